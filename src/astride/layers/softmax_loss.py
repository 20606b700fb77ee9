"""SoftmaxWithLoss: how unlikely the right classes are, as one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import SoftmaxLossPlan
from ..plan.dense import Normalization
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis, integers


class SoftmaxWithLoss(Layer):
    """-log softmax(x)[label], summed over the places that count, over the normalization.

    Bottoms     scores x (*outer, classes, *inner), and a label for each place, of as many elements in any shape
    Tops        the loss, one number; if asked for, the probabilities, of x's shape
    Options     axis: of the classes
                ignore_label: places with this label count nothing
                normalization: what the sum is divided by, at least by 1: full (every place), valid (those that count),
                batch_size (everything before `axis`), none
    Edges       a probability below the smallest normal float32 counts as that; a label that names no class is an error
    Gradient    (p - [class = label]) / normalization, 0 at ignored places; labels have none
    Quirks      Caffe's older field `normalize` means valid or batch_size; `normalization`, where it is set, goes before it
    Source      Caffe, src/caffe/layers/softmax_loss_layer.cpp; golden layers/softmaxloss_*
    """

    type = "SoftmaxWithLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    is_loss = True
    silent = frozenset({1})

    def __init__(
        self, *, axis: int = 1, ignore_label: int | None = None, normalization: Normalization = Normalization.VALID
    ) -> None:
        super().__init__()
        self.axis = axis
        self.ignore_label = ignore_label
        self.normalization = normalization

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        axis = canonical_axis(self.axis, x.shape)
        places = x.count // x.shape[axis] if x.shape[axis] else 0
        if labels.count != places:
            raise ArgumentError(
                "there must be one label for each prediction",
                given={"scores": x.shape, "labels": labels.shape},
                required=f"labels.count == scores.count / classes: {labels.count} == {places}",
                because="Caffe, src/caffe/layers/softmax_loss_layer.cpp",
                hint="softmax_param { axis: ... } names the axis of the classes",
            )
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(*x.shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        saved = self.compute(self._plan(x), x.data, integers(labels, "labels"), top=top[0].data, keep=self.keep or len(top) > 1)
        if len(top) > 1 and saved is not None:
            top[1].data[...] = saved.extra["p"]
        self._saved = [saved]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError("labels have no gradient", because="Caffe, src/caffe/layers/softmax_loss_layer.cpp")
        if want[0]:
            dy = top[0].diff
            bottom[0].diff[...] = ops.backward(self._plan(bottom[0]), dy, self.kept(), want=(True, False))[0]

    def allow_force_backward(self, index: int) -> bool:
        return index == 0

    def _plan(self, blob: Blob) -> SoftmaxLossPlan:
        return SoftmaxLossPlan(
            dtype=blob.dtype,
            axis=canonical_axis(self.axis, blob.shape),
            ignore_label=self.ignore_label,
            normalization=self.normalization,
        )
