"""BN: batch normalization with its own scale and shift, as forks had it before Caffe's BatchNorm."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import numpy as np

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import BatchNormPlan, BroadcastPlan, ElementwisePlan, Shape
from ..plan.dense import Function
from ..plan.norms import Along
from ._composed import Composed
from ._steps import Steps
from .fillers import Filler
from .layer import Blobs

SOURCE = "forks of Caffe, src/caffe/layers/bn_layer.cpp"


class Statistics(StrEnum):
    """What a BN normalizes by."""

    BATCH = "batch"  # the batch's own mean and variance
    RUNNING = "running"  # those gathered in training
    NONE = "none"  # nothing: they are folded into scale and shift


class BN(Composed):
    """y = scale * (x - mean) / sqrt(variance + eps) + shift, for each place of axis 1.

    statistics  the batch's own, running ones, or none, and then y = scale * x + shift
    momentum    where the layer keeps running statistics: running = momentum * running + (1 - momentum) * the batch's, after
                every pass by the batch's own; None where it keeps none
    moves       whether such a pass moves them
    frozen      no parameter learns

    Parameters  scale and shift, and, with a momentum, running mean and variance, which no solver moves; all of the shape
                that `axes` axes make: (1, C) or (1, C, 1, 1)
    Tops        y; the batch's mean and its variance, (1, C, 1, 1) each, where asked for and the batch's own are taken
    Quirks      three forks have a layer of this name. SegNet's and ENet's keeps no statistics, has eps 1e-9, and takes the
                batch's own in use as well unless bn_mode is INFERENCE. PSPNet's has slope_filler, bias_filler, momentum and
                eps 1e-5, and takes running ones in use or frozen. A third has var_eps, decay and moving_average. The
                variance gathered is divided by the count, not by one less
    Source      SegNet's, PSPNet's and other Caffe, src/caffe/layers/bn_layer.cpp
    """

    type = "BN"
    tops: ClassVar[tuple[int, int | None]] = (1, 3)
    in_place = True
    silent = frozenset({1, 2})

    def __init__(
        self,
        *,
        statistics: Statistics,
        momentum: float | None = None,
        moves: bool = False,
        frozen: bool = False,
        eps: float = 1e-5,
        axes: int = 4,
        scale_filler: Filler | None = None,
        shift_filler: Filler | None = None,
    ) -> None:
        super().__init__()
        if statistics is Statistics.RUNNING and momentum is None:
            raise ArgumentError(
                "running statistics need parameters that hold them",
                given={"statistics": str(statistics), "momentum": momentum},
                required="a momentum",
                because=SOURCE,
            )
        self.statistics, self.momentum, self.frozen, self.eps, self.axes = statistics, momentum, frozen, eps, axes
        self.moves = moves and statistics is Statistics.BATCH
        self.stateful = self.moves
        self.fillers = (scale_filler or Filler(value=1.0), shift_filler or Filler())

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        channels = self._channels(bottom[0].shape)
        shape = (1, channels, 1, 1)[: self.axes]
        fillers = [*self.fillers, *([Filler(), Filler(value=float(self.frozen))] if self.momentum is not None else [])]
        for filler in fillers:
            self.declare(shape, bottom[0].dtype, filler)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        channels = self._channels(bottom[0].shape)
        if channels != self.params[0].count:
            raise ArgumentError(
                "the bottom has another number of channels than the parameters",
                given={"bottom": bottom[0].shape, "scale": self.params[0].shape},
                required=f"channels == {self.params[0].count}: {channels}",
                hint="a bottom of as many channels as the network was set up with",
            )
        for i, parameter in enumerate(self.params):
            if i > 1 or self.frozen:
                parameter.lr_mult = parameter.decay_mult = 0.0
        top[0].reshape(*bottom[0].shape)
        for statistic in top[1:]:
            statistic.reshape(1, channels, 1, 1)

    def _channels(self, shape: Shape) -> int:
        if len(shape) < 2:
            raise ArgumentError(
                "the bottom has no channels",
                given={"bottom": shape},
                required="(N, C, ...)",
                because=SOURCE,
                hint="a Reshape before it",
            )
        return shape[1]

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._batch: tuple[Array, Array] | None = None
        super().forward(bottom, top)
        for i, statistic in enumerate(top[1:]):
            statistic.data[...] = 0 if self._batch is None else self._batch[i].reshape(statistic.shape)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x, *parameters = arrays
        scale, shift, *running = [steps.shaped(p, (p.size,)) for p in parameters]
        plan = BatchNormPlan(dtype=x.dtype.name, axis=1, eps=self.eps)
        if self.statistics is Statistics.RUNNING:
            x = steps.run(plan, x, *running)
        elif self.statistics is Statistics.BATCH and x.size:
            x = self._by_the_batch(steps, plan, x)
        return steps.run(BroadcastPlan(dtype=x.dtype.name, function=Along.MULTIPLY, axis=1), x, scale, shift)

    def _by_the_batch(self, steps: Steps, plan: BatchNormPlan, x: Array) -> Array:
        y, saved = ops.forward(plan, x, save=True)
        assert saved is not None
        kept = saved
        self._batch = (saved.extra["mean"].copy(), saved.extra["variance"].copy())
        if self.moves and self.params[2].data.flags.writeable:
            assert self.momentum is not None
            for parameter, value in zip(self.params[2:], self._batch, strict=True):
                add = ElementwisePlan(
                    dtype=parameter.dtype, function=Function.ADD, scale=1 - self.momentum, z_scale=self.momentum
                )
                parameter.data[...] = ops.forward(add, value.reshape(parameter.shape), parameter.data)[0]
        return steps.note(
            "batch_norm", x, y, lambda g, want: ops.backward(plan, _given(g[0]), kept, want=(True, False, False))[:1]
        )

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        self.param_wanted = [w and i < 2 for i, w in enumerate(self.param_wanted)]
        super().backward(top, want, bottom)

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        if self.statistics is Statistics.BATCH or self.params[0].count != channels:
            return None
        scale, shift, *running = [p.data.astype(np.float64).reshape(-1) for p in self.params]
        if self.statistics is Statistics.NONE:
            return scale, shift
        mean, variance = running
        root = ElementwisePlan(dtype="float64", function=Function.POWER, shift=self.eps, power=-0.5)
        scale = ops.forward(ElementwisePlan(dtype="float64", function=Function.MULTIPLY), scale, ops.forward(root, variance)[0])[
            0
        ]
        moved = ops.forward(ElementwisePlan(dtype="float64", function=Function.MULTIPLY), mean, scale)[0]
        return scale, ops.forward(ElementwisePlan(dtype="float64", function=Function.ADD, z_scale=-1.0), shift, moved)[0]


def _given(gradient: Array | None) -> Array:
    assert gradient is not None
    return gradient
