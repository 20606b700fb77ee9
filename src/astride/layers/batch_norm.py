"""BatchNorm: each channel with mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import ops
from ..backends.protocol import Array, Saved
from ..errors import ArgumentError
from ..plan import BatchNormPlan, ElementwisePlan
from ..plan.dense import Function
from .blob import Blob
from .fillers import Filler
from .layer import Blobs, Layer, Parameter


class BatchNorm(Layer):
    """y = (x - mean) / sqrt(variance + eps) for each place of axis 1: by the batch's own statistics, or by running ones.

    Three parameters, which no solver moves (lr_mult 0): running sums of means and of variances, and the weight they
    have, one number, that both are divided by; a weight of 0 stands for mean = variance = 0. A pass by its own statistics
    moves them: all three shrink by `moving_average_fraction`, then the batch's mean, its variance times m / (m - 1), for m
    values a channel, and 1 are added. `use_global_stats` takes the running ones and moves nothing.

    The gradient flows through the batch's statistics. There is no scale and no bias: that is Scale's part. In place it
    keeps x. A bottom of one axis is one channel.
    Source     Caffe, src/caffe/layers/batch_norm_layer.cpp; goldens layers/bn_test, bn_train_maf
    """

    type = "BatchNorm"
    in_place = True

    def __init__(self, *, use_global_stats: bool, moving_average_fraction: float = 0.999, eps: float = 1e-5) -> None:
        super().__init__()
        self.use_global_stats = use_global_stats
        self.moving_average_fraction = moving_average_fraction
        self.eps = eps
        self.stateful = not use_global_stats

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        channels = _view(bottom[0]).shape[1]
        for shape in ((channels,), (channels,), (1,)):
            self.declare(shape, bottom[0].dtype, Filler()).lr_mult = 0.0

    def plan(self, blob: Blob) -> BatchNormPlan:
        """The plan for a bottom of this dtype."""
        return BatchNormPlan(dtype=blob.dtype, axis=1, eps=self.eps)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        channels = _view(bottom[0]).shape[1]
        if channels != self.params[0].count:
            raise ArgumentError(
                "the bottom has another number of channels than the statistics",
                given={"bottom": bottom[0].shape, "statistics": self.params[0].shape},
                required=f"channels == {self.params[0].count}: {channels}",
                hint="a bottom of as many channels as the network was set up with",
            )
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, y = _view(bottom[0]), _view(top[0])
        plan = self.plan(bottom[0])
        if self.use_global_stats:
            self._saved = [self.compute(plan, x, *self._running(), top=y)]
            return
        saved = self.compute(plan, x, top=y, keep=True)
        # a compiled network's parameters are frozen, and an empty batch has no statistics
        if saved is not None and self.params[0].data.flags.writeable and x.size:
            self._move(saved, x.size // x.shape[1])
        self._saved = [saved if self.keep else None]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            dy = top[0].diff.reshape(_view(top[0]).shape)
            gradient = ops.backward(self.plan(bottom[0]), dy, self.kept(), want=(True, False, False))[0]
            assert gradient is not None
            bottom[0].diff[...] = gradient.reshape(bottom[0].shape)

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        if not self.use_global_stats or self.params[0].count != channels:
            return None
        mean, variance = (p.data.astype(np.float64) for p in self.params[:2])
        weight = self._weight()
        root = ElementwisePlan(dtype="float64", function=Function.POWER, scale=weight, shift=self.eps, power=-0.5)
        scale = ops.forward(root, variance)[0]
        shift = ops.forward(ElementwisePlan(dtype="float64", function=Function.MULTIPLY, scale=-weight), mean, scale)[0]
        return scale, shift

    def _weight(self) -> float:
        """What the running sums are multiplied by."""
        total = float(self.params[2].data[0])
        return 0.0 if total == 0 else 1 / total

    def _running(self) -> tuple[Array, Array]:
        plan = ElementwisePlan(dtype=self.params[0].dtype, function=Function.POWER, scale=self._weight())
        return ops.forward(plan, self.params[0].data)[0], ops.forward(plan, self.params[1].data)[0]

    def _move(self, saved: Saved, count: int) -> None:
        """Add a batch's statistics to the running sums."""
        keep = self.moving_average_fraction
        unbiased = count / (count - 1) if count > 1 else 1.0
        for parameter, added, factor in ((self.params[0], "mean", 1.0), (self.params[1], "variance", unbiased)):
            plan = ElementwisePlan(dtype=parameter.dtype, function=Function.ADD, scale=factor, z_scale=keep)
            parameter.data[...] = ops.forward(plan, saved.extra[added], parameter.data)[0]
        total: Parameter = self.params[2]
        plan = ElementwisePlan(dtype=total.dtype, function=Function.POWER, scale=keep, shift=1.0)
        total.data[...] = ops.forward(plan, total.data)[0]


def _view(blob: Blob) -> Array:
    """The blob's values with channels on axis 1; one axis alone is one channel."""
    return blob.data if len(blob.shape) > 1 else blob.data.reshape(-1, 1)
