"""Pooling kernels named after Metal Performance Shaders', on tensors (N, H, W, C); `like.mps` computes the same on arrays.

Without `offset` the padding policy places the windows and decides how many there are. With `offset` (x, y), where the centre of
the first window lies in the source, `destination_size` (width, height) may say how many. Even kernels lean to the upper left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

from ..backends.webgpu import pooling
from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError, ArrayError, UnsupportedError
from ..like.mps import SIZE_SAME, _place
from ..plan import PoolPlan, Shape
from ..rules import mps
from .base import DeviceKernel

EDGES = ("zero", "clamp")


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a forward kernel found out that its gradient kernel would have to find out again: which taps won, or the result."""

    plan: PoolPlan
    shape: Shape
    kept: pooling.Kept


@dataclass(eq=False)
class Pooling(DeviceKernel):
    """The parameters that all pooling kernels share."""

    RULE: ClassVar[str] = "max_pool"
    SIZES: ClassVar[tuple[str, ...]] = ("kernel_width", "kernel_height", "stride_in_pixels_x", "stride_in_pixels_y")

    _: KW_ONLY
    offset: tuple[int, int] | None = None
    destination_size: tuple[int, int] | None = None
    edge_mode: str = "zero"
    padding_policy: int = SIZE_SAME

    def check(self) -> None:
        """Raise ArgumentError for sizes below 1, an unknown edge mode or policy, a destination size without an offset."""
        for name in self.SIZES:
            value = getattr(self, name)
            if not 1 <= value < 2**31:
                raise ArgumentError(f"{name} is out of range", given={name: value}, required=f"1 <= {name} < 2^31: {value}")
        if self.edge_mode not in EDGES:
            raise ArgumentError(
                "there is no such edge mode", given={"edge_mode": self.edge_mode}, required=f"one of {', '.join(EDGES)}"
            )
        _place(self.offset, self.destination_size, self.padding_policy)

    def _windows(self) -> dict[str, Any]:
        """The rule's arguments for the windows' sizes and steps, in axis order (y, x)."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        """The rule's arguments beyond those that all share."""
        return {}

    def plan(self, shape: Shape, dtype: str = "float32") -> PoolPlan:
        """What the kernel computes of a source of this shape (N, H, W, C). Raises ArgumentError: it has no windows there."""
        place = _place(self.offset, self.destination_size, self.padding_policy)
        del place["rules"]
        arguments = dict(
            edge=self.edge_mode,
            **self._windows(),
            **place,
            **self._options(),
        )
        return _plan(getattr(mps, self.RULE), shape, dtype, tuple(arguments.items()))

    def _plan_for(self, source: Tensor, name: str = "source") -> PoolPlan:
        """The plan, if it can be encoded. Raises ArrayError: no image tensor; UnsupportedError: no device computes it."""
        if not isinstance(source, Tensor) or source.ndim != 4:
            raise ArrayError(
                f"{name} is no tensor of images",
                given={name: source if isinstance(source, Tensor) else type(source).__name__},
                required="a tensor (N, H, W, C)",
                hint="device.tensor(array)",
                operator=type(self).__name__,
            )
        try:
            plan = self.plan(source.shape, source.dtype.name)
        except ArgumentError as error:
            raise error.within(operator=type(self).__name__, given={name: source})
        reason = pooling.refusal(plan)
        if reason is not None:
            raise UnsupportedError(f"no device computes this: it {reason}", operator=type(self).__name__, given={name: source})
        return plan

    def _check_commands(self, commands: CommandBuffer) -> None:
        if commands.device is not self.device:
            raise ArgumentError(
                "the kernel was made for another device", operator=type(self).__name__, hint="one Device for all"
            )


@lru_cache(maxsize=512)
def _plan(rule: Callable[..., PoolPlan], shape: Shape, dtype: str, arguments: tuple[tuple[str, Any], ...]) -> PoolPlan:
    return rule(shape, dtype, **dict(arguments))


@dataclass(eq=False)
class Plain(Pooling):
    """Sizes and steps of undilated windows."""

    kernel_width: int
    kernel_height: int
    stride_in_pixels_x: int = 1
    stride_in_pixels_y: int = 1

    def _windows(self) -> dict[str, Any]:
        return dict(kernel=(self.kernel_height, self.kernel_width), stride=(self.stride_in_pixels_y, self.stride_in_pixels_x))


@dataclass(eq=False)
class Dilated(Pooling):
    """Sizes and steps of dilated ones, in MPS's order."""

    SIZES: ClassVar[tuple[str, ...]] = (*Pooling.SIZES, "dilation_rate_x", "dilation_rate_y")

    kernel_width: int
    kernel_height: int
    dilation_rate_x: int
    dilation_rate_y: int
    stride_in_pixels_x: int = 1
    stride_in_pixels_y: int = 1

    def _windows(self) -> dict[str, Any]:
        return dict(
            kernel=(self.kernel_height, self.kernel_width),
            stride=(self.stride_in_pixels_y, self.stride_in_pixels_x),
            dilation=(self.dilation_rate_y, self.dilation_rate_x),
        )


@dataclass(eq=False)
class Forward(Pooling):
    """Kernels that pool."""

    def encode(self, commands: CommandBuffer, source: Tensor) -> Tensor:
        """Encode pooling the source (N, H, W, C); the result is there once the command buffer is committed."""
        return self._encode(commands, source, save=False)[0]

    def encode_with_state(self, commands: CommandBuffer, source: Tensor) -> tuple[Tensor, State]:
        """As `encode`, with a state that spares the gradient kernel computing the forward pass again."""
        y, kept = self._encode(commands, source, save=True)
        return y, State(self._plan_for(source), source.shape, kept)

    def _encode(self, commands: CommandBuffer, source: Tensor, save: bool) -> tuple[Tensor, pooling.Kept]:
        self._check_commands(commands)
        return pooling.encode_forward(commands, self._plan_for(source), source, self._uniform(commands, source), save=save)

    def _uniform(self, commands: CommandBuffer, source: Tensor) -> Tensor | None:
        return None


@dataclass(eq=False)
class Gradient(Pooling):
    """Kernels that give the gradient of pooling with respect to its source."""

    def encode(self, commands: CommandBuffer, gradient: Tensor, source: Tensor, state: State | None = None) -> Tensor:
        """Encode the gradient of the source, given that of the result; without a state the forward pass is computed again.

        Raises ArrayError: the gradient has not the shape of the result, or the state is of another kernel or source.
        """
        self._check_commands(commands)
        plan = self._plan_for(source)
        wanted = plan.output_shape(source.shape, *[self._result_shape(plan, source)] * (plan.reduce.value == "stochastic"))
        if not isinstance(gradient, Tensor) or gradient.shape != wanted or gradient.dtype != source.dtype:
            raise ArrayError(
                "the gradient does not fit the result",
                given={"gradient": gradient if isinstance(gradient, Tensor) else type(gradient).__name__, "source": source},
                required=f"shape {wanted}, dtype {source.dtype.name}",
                operator=type(self).__name__,
            )
        if state is None:
            uniform = self._uniform(commands, source)
            kept = pooling.encode_forward(commands, plan, source, uniform, save=True)[1]
        elif isinstance(state, State) and state.plan == plan and state.shape == source.shape:
            kept = state.kept
        else:
            raise ArrayError("the state is of another kernel or source", operator=type(self).__name__, hint="state=None")
        return pooling.encode_backward(commands, plan, gradient, kept, source.shape)

    def _uniform(self, commands: CommandBuffer, source: Tensor) -> Tensor | None:
        return None

    def _result_shape(self, plan: PoolPlan, source: Tensor) -> Shape:
        return (source.shape[0], *(axis.out for axis in plan.axes), source.shape[-1])


@dataclass(eq=False)
class PoolingMax(Plain, Forward):
    """MPSCNNPoolingMax. With edge_mode "zero" the zeros outside take part: they beat negative data."""


@dataclass(eq=False)
class PoolingMaxGradient(Plain, Gradient):
    """MPSCNNPoolingMaxGradient: to the first maximum of each window."""


@dataclass(eq=False)
class PoolingMin(Plain, Forward):
    """PoolingMax mirrored; MPS itself has no minimum among its CNN kernels."""

    RULE: ClassVar[str] = "min_pool"


@dataclass(eq=False)
class PoolingMinGradient(Plain, Gradient):
    """To the first minimum of each window."""

    RULE: ClassVar[str] = "min_pool"


@dataclass(eq=False)
class DilatedPoolingMax(Dilated, Forward):
    """MPSCNNDilatedPoolingMax: centred by the dilated extent."""


@dataclass(eq=False)
class DilatedPoolingMaxGradient(Dilated, Gradient):
    """MPSCNNDilatedPoolingMaxGradient."""


@dataclass(eq=False)
class Average(Plain):
    """What the average and its gradient share."""

    RULE: ClassVar[str] = "avg_pool"

    _: KW_ONLY
    zero_pad_size_x: int = 0
    zero_pad_size_y: int = 0

    def check(self) -> None:
        super().check()
        for name in ("zero_pad_size_x", "zero_pad_size_y"):
            value = getattr(self, name)
            if not 0 <= value < 2**31:
                raise ArgumentError(f"{name} is out of range", given={name: value}, required=f"0 <= {name} < 2^31: {value}")

    def _options(self) -> dict[str, Any]:
        return dict(zero_pad_size=(self.zero_pad_size_y, self.zero_pad_size_x))


@dataclass(eq=False)
class PoolingAverage(Average, Forward):
    """MPSCNNPoolingAverage. edge_mode "clamp" shrinks windows to their real taps, or to zero_pad_size around the source."""


@dataclass(eq=False)
class PoolingAverageGradient(Average, Gradient):
    """MPSCNNPoolingAverageGradient: in equal shares; of the source only its size counts."""


@dataclass(eq=False)
class L2Norm(Plain):
    """What the norm and its gradient share."""

    RULE: ClassVar[str] = "lp_pool"

    _: KW_ONLY
    zero_window: str = "zero"

    def check(self) -> None:
        super().check()
        if self.zero_window not in ("zero", "formula"):
            raise ArgumentError(
                "there is no such gradient of a window of zeros",
                given={"zero_window": self.zero_window},
                required="one of zero, formula",
            )

    def _options(self) -> dict[str, Any]:
        return dict(zero_window=self.zero_window)


@dataclass(eq=False)
class PoolingL2Norm(L2Norm, Forward):
    """MPSCNNPoolingL2Norm: sqrt(sum of squares over the window)."""


@dataclass(eq=False)
class PoolingL2NormGradient(L2Norm, Gradient):
    """MPSCNNPoolingL2NormGradient: source / result; of a window of zeros 0, or NaN with zero_window="formula"."""
