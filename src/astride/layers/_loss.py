"""What losses share: two bottoms that belong together, one number, and gradients for some bottoms only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..plan import ReducePlan
from ..plan.dense import Normalization
from ..plan.reduce import Total
from ._steps import Steps
from .blob import Blob
from .layer import Blobs, Layer, nothing_kept


class Loss(Layer):
    """One number made of several operators. Subclasses say how in `loss`, and which bottoms are `labels`: without gradient."""

    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    is_loss = True
    labels: ClassVar[frozenset[int]] = frozenset({1})
    source: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._steps: Steps | None = None
        self._given: list[Array] = []
        self._loss: Array | None = None

    def check(self, bottom: Blobs) -> None:
        """Raise ArgumentError where the bottoms do not belong together."""

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        """Run the steps from the bottoms' arrays to the loss, an array without axes."""
        raise NotImplementedError

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        first = [blob.shape[:1] for blob in bottom[:2]]
        if first[0] != first[1] or not first[0]:
            raise ArgumentError(
                "both bottoms need one entry for each sample",
                given={"bottoms": tuple(blob.shape for blob in bottom)},
                required=f"equal first sizes: {first[0]} == {first[1]}",
                because="Caffe, src/caffe/layers/loss_layer.cpp",
            )
        self.check(bottom)
        top[0].reshape()

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._steps, self._given = Steps(self.keep), [blob.data for blob in bottom]
        self._loss = self.loss(self._steps, self._given, bottom)
        top[0].data[...] = self._loss

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        self.refuse_labels(want)
        if self._steps is None or self._loss is None:
            raise nothing_kept()
        gradients = self._steps.backward(
            [(self._loss, top[0].diff)], [a for a, wanted in zip(self._given, want, strict=True) if wanted]
        )
        for blob, gradient in zip([b for b, wanted in zip(bottom, want, strict=True) if wanted], gradients, strict=True):
            blob.diff[...] = 0 if gradient is None else gradient

    def refuse_labels(self, want: Sequence[bool]) -> None:
        """Raise UnsupportedError where a label's gradient is asked for."""
        if any(wanted for i, wanted in enumerate(want) if i in self.labels):
            raise UnsupportedError("labels have no gradient", because=f"Caffe, {self.source}")

    def allow_force_backward(self, index: int) -> bool:
        return index not in self.labels

    def one_label_each(self, bottom: Blobs, index: int = 1) -> None:
        """Raise ArgumentError unless the bottom of that index has one element for each sample."""
        samples = bottom[0].shape[0]
        if bottom[index].count != samples:
            raise ArgumentError(
                "there must be one label for each sample",
                given={"samples": bottom[0].shape, "labels": bottom[index].shape},
                required=f"labels.count == samples: {bottom[index].count} == {samples}",
                because=f"Caffe, {self.source}",
            )


def divisor(normalization: Normalization, blob: Blob, counted: int) -> int:
    """What a sum over every element of the blob is divided by, `counted` of them not ignored; never less than one."""
    counts = {
        Normalization.FULL: blob.count,
        Normalization.VALID: counted,
        Normalization.BATCH_SIZE: blob.shape[0],
        Normalization.NONE: 1,
    }
    return max(counts[normalization], 1)


def sum_plan(dtype: str, coeff: float, *, total: Total = Total.SUM, axis: int = 0) -> ReducePlan:
    """coeff times the total of everything from `axis` on."""
    return ReducePlan(dtype=dtype, total=total, axis=axis, coeff=coeff)


__all__ = ["Loss", "divisor", "sum_plan"]
