"""Pooling: windows reduced to a value each, by whatever rule it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError
from ..ops.max_pool import plane_indices
from ..ops.stochastic_pool import uniforms
from ..plan import PoolPlan, Shape
from ..plan.kinds import Reduce
from .layer import Blobs, Layer, Plans


class Pooling(Layer):
    """y = the rule's reduction of each window; a second top of a maximum holds the winners' places.

    rule        (shape, dtype) -> PoolPlan, for shapes (N, C, *size)

    The places are row-major in the unpadded plane, in the blob's dtype, -1 where nothing won. No gradient comes from them.
    A stochastic plan in training draws by the layer's key and the number of the pass, so that a pass can be repeated.

    Quirks      Caffe's sizes round up, ceil((n + 2 pad - kernel) / stride) + 1; where there is a pad, a last window that
                would begin behind the image and its pad is dropped. An average divides by the window clipped to the
                image and its pad, so padding zeros count. Of equal values the first wins; NaN never does
    Source      Caffe, src/caffe/layers/pooling_layer.cpp; golden ops/pool_*, and stochastic
    """

    type = "Pooling"
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    silent = frozenset({1})

    def __init__(self, rule: Callable[[Shape, str], PoolPlan], *, random: bool = False) -> None:
        super().__init__()
        self.plans = Plans(rule)
        self.random = random

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        plan = self.plans(bottom[0].shape, bottom[0].dtype)
        if len(top) > 1 and plan.reduce is not Reduce.MAX:
            raise ArgumentError(
                "only a maximum has a second top",
                given={"pool": str(plan.reduce), "tops": len(top)},
                required=f"tops == 1: {len(top)}",
                because="Caffe, src/caffe/layers/pooling_layer.cpp",
                hint="one top",
            )
        shape = (*bottom[0].shape[:2], *(axis.out for axis in plan.axes))
        for y in top:
            y.reshape(*shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, y = bottom[0], top[0]
        plan = self.plans(x.shape, x.dtype)
        uniform = None
        if plan.reduce is Reduce.STOCHASTIC:
            uniform = uniforms(y.shape, y.dtype, self.key, self.draws)
            self.draws += 1
        arrays = (x.data,) if uniform is None else (x.data, uniform)
        saved = self.compute(plan, *arrays, top=y.data, keep=self.keep or len(top) > 1)
        if len(top) > 1 and saved is not None:
            top[1].data[...] = plane_indices(plan, saved)
        self._saved = [saved]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if not want[0]:
            return
        plan = self.plans(bottom[0].shape, bottom[0].dtype)
        gradient = ops.backward(plan, top[0].diff, self.kept(), want=(True, False))[0]
        assert gradient is not None
        bottom[0].diff[...] = gradient
