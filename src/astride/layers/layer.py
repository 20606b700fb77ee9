"""What a layer is: blobs in, blobs out, forward and backward, and parameters that gather gradients.

A layer is set up once, when it declares its parameters, and reshaped before every forward pass, which costs nothing
while the shapes stay. It computes only through `ops`, on whichever backend is in force, and knows no framework:
whatever frameworks differ in is an option of its constructor, and a windowed layer is given a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

import numpy as np

from .. import ops
from ..backends.epilogue import Epilogue
from ..backends.protocol import Array, Saved
from ..errors import ArgumentError, ArrayError, UnsupportedError
from ..plan import Plan, Shape
from .blob import Blob
from .fillers import Filler

PlanT = TypeVar("PlanT", bound=Plan)
Blobs = Sequence[Blob]
PLANS_KEPT = 64


class Parameter(Blob):
    """Weights or the like. `diff` gathers gradients until it is cleared; lr_mult and decay_mult are the solver's factors."""

    def __init__(
        self,
        shape: Shape,
        dtype: str = "float32",
        *,
        filler: Filler | None = None,
        lr_mult: float = 1.0,
        decay_mult: float = 1.0,
        name: str = "",
    ) -> None:
        super().__init__(shape, dtype)
        self.filler = filler or Filler()
        self.lr_mult = lr_mult
        self.decay_mult = decay_mult
        self.name = name

    def fill(self, random: np.random.RandomState) -> None:
        self.data[...] = self.filler(self.shape, self.dtype, random)


class Plans(Generic[PlanT]):
    """A rule bound to its arguments, and the plans it has made: one a shape."""

    def __init__(self, rule: Callable[[Shape, str], PlanT]) -> None:
        self.rule = rule
        self._made: dict[tuple[Shape, str], PlanT] = {}

    def __call__(self, shape: Shape, dtype: str) -> PlanT:
        plan = self._made.get((shape, dtype))
        if plan is None:
            if len(self._made) >= PLANS_KEPT:
                self._made.clear()
            plan = self._made[shape, dtype] = self.rule(shape, dtype)
        return plan


class Layer:
    """Base of all layers. Subclasses have `type` and define setup (if they have parameters), reshape, forward, backward.

    bottoms, tops   how many blobs there may be: (least, most), None for any number
    in_place        a top may be the bottom itself
    shares          tops use the bottom's memory unless `copies` is set
    is_loss         the first top counts as a loss of weight 1 unless told otherwise
    silent          tops that pass no gradient: masks, probabilities beside a loss, counts
    """

    type: ClassVar[str] = ""
    bottoms: ClassVar[tuple[int, int | None]] = (1, 1)
    tops: ClassVar[tuple[int, int | None]] = (1, 1)
    in_place: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    is_loss: ClassVar[bool] = False
    silent: ClassVar[frozenset[int]] = frozenset()

    def __init__(self) -> None:
        self.name = ""
        self.params: list[Parameter] = []
        self.param_wanted: list[bool] = []
        """Which parameters' gradients backward computes."""
        self.keep = True
        """Whether forward keeps what backward needs."""
        self.copies = False
        """Set for a layer that could share memory but must not, because a later one overwrites it."""
        self.random = False
        """True for a layer that draws random numbers when it runs forward."""
        self.stateful = False
        """True for a layer that goes on where its last pass ended, so that a second pass gives other numbers."""
        self.key = 0
        self.draws = 0
        self._saved: list[Saved | None] = []

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        """Once, before the first reshape: declare parameters from the bottoms' shapes. Nothing is allocated yet."""

    def begin(self, top: Blobs) -> None:
        """Once, when the network's memory is there and its parameters are filled: what tops hold before the first pass."""

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        """Give the tops their shapes. Raises where the bottoms do not fit."""
        raise NotImplementedError

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        """Fill the tops' data."""
        raise NotImplementedError

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """Overwrite the wanted bottoms' diff, add to the wanted parameters' diff."""
        raise NotImplementedError

    def allow_force_backward(self, index: int) -> bool:
        """Whether `force_backward` may ask for this bottom's gradient; labels have none."""
        return True

    def passes_on(self) -> bool:
        """Whether the tops are the bottom unchanged, so that a compiled network may leave the layer out."""
        return False

    def forget(self) -> None:
        """Drop what earlier passes left for later ones; only a stateful layer has anything."""

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        """(scale, shift), one per channel of axis 1, where that is all the layer does; None where it is not.

        A compiled network folds such a layer into the weights of the linear layer before it.
        """
        return None

    def declare(self, shape: Shape, dtype: str, filler: Filler) -> Parameter:
        """Add a parameter."""
        parameter = Parameter(shape, dtype, filler=filler)
        self.params.append(parameter)
        self.param_wanted.append(True)
        return parameter

    def accumulate(self, index: int, gradient: Array | None) -> None:
        """Add to a parameter's gradient, which is cleared by whoever owns the passes."""
        if gradient is not None:
            self.params[index].diff[...] += gradient

    def compute(
        self,
        plan: Plan,
        *arrays: Array | None,
        top: Array,
        keep: bool | None = None,
        epilogue: Epilogue | None = None,
        residual: Array | None = None,
    ) -> Saved | None:
        """Run a plan into a top's data, which may be one of the inputs.

        What is kept for backward stays true when this or a later layer overwrites the memory it lies in.
        """
        in_place = any(a is not None and np.may_share_memory(a, top) for a in (*arrays, residual))
        out, save = None if in_place else top, self.keep if keep is None else keep
        y, saved = ops.forward(plan, *arrays, out=out, save=save, epilogue=epilogue, residual=residual)
        if in_place:
            if saved is not None and saved.x is not None and np.may_share_memory(saved.x, top):
                saved = replace(saved, x=saved.x.copy())
            top[...] = y
        elif saved is not None and saved.y is not None and np.may_share_memory(saved.y, top):
            saved = replace(saved, y=saved.y.copy())
        return saved

    def kept(self, index: int = 0) -> Saved:
        """What forward kept. Raises UnsupportedError where it did not run or was not asked to keep."""
        saved = self._saved[index] if index < len(self._saved) else None
        if saved is None:
            raise nothing_kept()
        return saved

    def __repr__(self) -> str:
        return f"<{self.type} {self.name!r}>"


def nothing_kept() -> UnsupportedError:
    """The error of a backward pass whose forward pass kept nothing, or did not run."""
    return UnsupportedError(
        "backward needs a forward pass that kept its state",
        because="nothing in the network asked for this layer's gradient when forward ran",
        hint="forward once more, then backward; or force_backward: true in the network's text",
    )


def canonical_axis(axis: int, shape: Shape, *, end: bool = False) -> int:
    """An axis counted from the front; negative ones count from the back. Raises ArgumentError: no such axis."""
    limit = len(shape) + (1 if end else 0)
    if not -len(shape) <= axis < limit:
        raise ArgumentError(
            "the blob has no such axis",
            given={"axis": axis, "shape": shape},
            required=f"-{len(shape)} <= axis < {limit}: {axis}",
            hint="axis: 1",
        )
    return axis + len(shape) if axis < 0 else axis


def integers(blob: Blob, what: str) -> Array:
    """A blob's values as whole numbers: labels, which travel as floating point; a fraction is cut off, as C does."""
    values = blob.data
    if not np.isfinite(values).all():
        raise ArrayError(f"{what} are not all finite", given={what: values}, required=f"whole numbers, one a place: {what}")
    return values.astype(np.int64)


def check_classes(truth: Array, classes: int) -> None:
    """Raise ArrayError where a label names no class."""
    bad = truth[(truth < 0) | (truth >= classes)]
    if bad.size:
        raise ArrayError(
            "a label names no class",
            given={"label": int(bad[0])},
            required=f"0 <= label < {classes}",
            hint=f"ignore_label: {int(bad[0])} skips it",
        )


__all__ = [
    "Blob",
    "Blobs",
    "Layer",
    "Parameter",
    "Plans",
    "canonical_axis",
    "check_classes",
    "integers",
    "nothing_kept",
]
