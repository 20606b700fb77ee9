"""InfogainLoss: how unlikely the right classes are, some mistakes weighing more than others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..plan import SoftmaxLossPlan
from ..plan.dense import Normalization
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis, integers

FLOOR = 1e-20
"""Caffe's kLOG_THRESHOLD: no logarithm of anything smaller is taken."""
SOURCE = "src/caffe/layers/infogain_loss_layer.cpp"


class InfogainLoss(Layer):
    """-sum of H[label, class] log p[class] over classes and places, over the normalization, p = softmax(x) along `axis`.

    With H the identity it is SoftmaxWithLoss.

    Bottoms    scores x, one label for each place, and H unless the layer has it. Only x has a gradient
    Tops       the loss and, if asked for, the probabilities, which pass no gradient
    Options    matrix: H, (classes, classes) or any shape of as many elements
               axis: of the classes
               ignore_label: places with this label count nothing
               normalization: what the sum is divided by, at least by 1: full (every place), valid (those that count),
               batch_size (everything before `axis`), none
               floor: a smaller probability counts as this one in the loss
    Gradient   (p * sum(H[label]) - H[label]) / normalization, below the floor too; 0 at ignored places
    Source     Caffe, src/caffe/layers/infogain_loss_layer.cpp; golden layers/infogain (forward)
    """

    type = "InfogainLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 3)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    is_loss = True
    silent = frozenset({1})

    def __init__(
        self,
        *,
        matrix: Array | None = None,
        axis: int = 1,
        ignore_label: int | None = None,
        normalization: Normalization = Normalization.VALID,
        floor: float = FLOOR,
    ) -> None:
        super().__init__()
        self.matrix = matrix
        self.axis = axis
        self.ignore_label = ignore_label
        self.normalization = normalization
        self.floor = floor

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom[:2]
        classes = x.shape[canonical_axis(self.axis, x.shape)]
        places = x.count // classes if classes else 0
        if labels.count != places:
            raise ArgumentError(
                "there must be one label for each prediction",
                given={"scores": x.shape, "labels": labels.shape},
                required=f"labels.count == scores.count / classes: {labels.count} == {places}",
                because=f"Caffe, {SOURCE}",
                hint="infogain_loss_param { axis: ... } names the axis of the classes",
            )
        self._check_matrix(bottom, classes)
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(*x.shape)

    def _check_matrix(self, bottom: Blobs, classes: int) -> None:
        if len(bottom) < 3 and self.matrix is None:
            raise ArgumentError(
                "the layer has no matrix",
                given={"bottoms": len(bottom)},
                required="a matrix H of its own, or a third bottom",
                because=f"Caffe, {SOURCE}",
                hint='infogain_loss_param { source: "H.binaryproto" }',
            )
        if len(bottom) == 3:
            shape, count = bottom[2].shape, bottom[2].count
        else:
            assert self.matrix is not None
            shape, count = self.matrix.shape, self.matrix.size
        if count != classes**2:
            raise ArgumentError(
                "H has a row and a column for each class",
                given={"H": shape, "classes": classes},
                required=f"H.count == classes^2: {count} == {classes**2}",
                because=f"Caffe, {SOURCE}",
            )

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom[:2]
        plan = self._plan(x)
        square = (x.shape[plan.axis],) * 2
        given = bottom[2].data if len(bottom) == 3 else self.matrix
        assert given is not None
        gain = given.reshape(square).astype(x.dtype, copy=False)
        keep = self.keep or len(top) > 1
        saved = self.compute(plan, x.data, integers(labels, "labels"), gain, top=top[0].data, keep=keep)
        if len(top) > 1 and saved is not None:
            top[1].data[...] = saved.extra["p"]
        self._saved = [saved]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want[1:]):
            raise UnsupportedError("labels and H have no gradient", because=f"Caffe, {SOURCE}")
        if want[0]:
            dx = ops.backward(self._plan(bottom[0]), top[0].diff, self.kept(), want=(True, False, False))[0]
            bottom[0].diff[...] = dx

    def allow_force_backward(self, index: int) -> bool:
        return index == 0

    def _plan(self, blob: Blob) -> SoftmaxLossPlan:
        return SoftmaxLossPlan(
            dtype=blob.dtype,
            axis=canonical_axis(self.axis, blob.shape),
            ignore_label=self.ignore_label,
            normalization=self.normalization,
            floor=self.floor,
        )
