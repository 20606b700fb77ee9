"""SPP: an image of any size pooled to a row of one length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import ops
from ..errors import ArgumentError
from ..ops.stochastic_pool import uniforms
from ..plan import ElementwisePlan, LayoutPlan, PoolPlan, Shape
from ..plan.dense import Function
from ..plan.kinds import Reduce
from ..plan.layout import Move
from .blob import Blob
from .layer import Blobs, Layer, Plans


class SPP(Layer):
    """Spatial pyramid pooling: a pooling for each of `rules`, flattened to (N, values), one behind the other.

    rules   (shape, dtype) -> PoolPlan each, for shapes (N, C, H, W)

    Caffe's level l has 2^l bins an axis: windows of ceil(n / 2^l), as far apart, padded alike on both sides.
    Stochastic plans in training draw by the layer's key, the level and the number of the pass.
    Source     Caffe, src/caffe/layers/spp_layer.cpp
    """

    type = "SPP"

    def __init__(self, rules: Sequence[Callable[[Shape, str], PoolPlan]], *, random: bool = False) -> None:
        super().__init__()
        if not rules:
            raise ArgumentError("a pyramid has at least one level", given={"levels": 0}, hint="pyramid_height: 1")
        self.levels = [Plans(rule) for rule in rules]
        self.random = random

    def plans(self, blob: Blob) -> list[PoolPlan]:
        """The levels' plans for a bottom of this shape."""
        return [level(blob.shape, blob.dtype) for level in self.levels]

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].shape
        top[0].reshape(x[0], sum(math.prod(self._pooled(plan, x)[1:]) for plan in self.plans(bottom[0])))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0]
        self._saved, rows = [], []
        for level, plan in enumerate(self.plans(x)):
            arrays = [x.data]
            if plan.reduce is Reduce.STOCHASTIC:
                arrays.append(uniforms(self._pooled(plan, x.shape), x.dtype, self.key + level, self.draws))
            y, saved = ops.forward(plan, *arrays, save=self.keep)
            rows.append(y.reshape(x.shape[0], math.prod(y.shape[1:])))
            self._saved.append(saved)
        self.draws += int(self.random)
        self._saved.append(self.compute(self._join(bottom[0]), *rows, top=top[0].data))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if not want[0]:
            return
        x = bottom[0]
        plans = self.plans(x)
        parts = ops.backward(self._join(x), top[0].diff, self.kept(len(plans)))
        add = ElementwisePlan(dtype=x.dtype, function=Function.ADD)
        for level, (plan, part) in enumerate(zip(plans, parts, strict=True)):
            assert part is not None
            dx = ops.backward(plan, part.reshape(self._pooled(plan, x.shape)), self.kept(level), want=(True, False))[0]
            assert dx is not None
            x.diff[...] = ops.forward(add, x.diff, dx)[0] if level else dx

    def _join(self, blob: Blob) -> LayoutPlan:
        return LayoutPlan(dtype=blob.dtype, move=Move.CONCAT, axis=1, pieces=len(self.levels))

    @staticmethod
    def _pooled(plan: PoolPlan, shape: Shape) -> Shape:
        return (*shape[:2], *(axis.out for axis in plan.axes))
