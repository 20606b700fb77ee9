"""Stochastic pooling as a kernel object. MPS has none: windows lie as its pooling's do, the arithmetic is Caffe's."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ..backends.webgpu import draws
from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError
from ..plan import PoolPlan, Shape
from ..plan.kinds import Empty, Reduce
from .pooling import Forward, Gradient, Plain


@dataclass(eq=False)
class Stochastic(Plain):
    """Training draws by `seed` and `stream`: change one of them between steps. Taps outside the source take no part."""

    _: KW_ONLY
    training: bool = True
    seed: int = 0
    stream: int = 0

    def check(self) -> None:
        super().check()
        if self.edge_mode != "zero":
            raise ArgumentError(
                "stochastic pooling draws inside the source only", given={"edge_mode": self.edge_mode}, hint='"zero"'
            )
        for name in ("seed", "stream"):
            value = getattr(self, name)
            if not 0 <= value < 2**64:
                raise ArgumentError(
                    f"{name} does not fit 64 bits", given={name: value}, required=f"0 <= {name} < 2^64: {value}"
                )

    def plan(self, shape: Shape, dtype: str = "float32") -> PoolPlan:
        """What the kernel computes of a source of this shape."""
        windows = super().plan(shape, dtype)
        reduce = Reduce.STOCHASTIC if self.training else Reduce.STOCHASTIC_MEAN
        return PoolPlan(
            dtype=dtype, axes=windows.axes, reduce=reduce, layout=windows.layout, empty=Empty.ZERO, accumulate="float32"
        )

    def _draws(self, commands: CommandBuffer, source: Tensor) -> Any:
        """One draw per place of the result, as `astride.stochastic_pool(seed=)` has them for stream 0."""
        if not self.training:
            return None
        plan = self._plan_for(source)
        shape = (source.shape[0], *(axis.out for axis in plan.axes), source.shape[-1])
        return draws.encode(commands, shape, source.dtype.name, self.seed, self.stream)


@dataclass(eq=False)
class PoolingStochastic(Stochastic, Forward):
    """In training one tap of each window, drawn in proportion to its activation; else sum x^2 / sum x."""

    def _uniform(self, commands: CommandBuffer, source: Tensor) -> Tensor | None:
        drawn: Tensor | None = self._draws(commands, source)
        return drawn


@dataclass(eq=False)
class PoolingStochasticGradient(Stochastic, Gradient):
    """To the drawn tap; without a state the draws are made again, from the same seed and stream."""

    def _uniform(self, commands: CommandBuffer, source: Tensor) -> Tensor | None:
        drawn: Tensor | None = self._draws(commands, source)
        return drawn
