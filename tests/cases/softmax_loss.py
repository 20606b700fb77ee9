"""Cases of softmax_loss."""

from __future__ import annotations

from typing import Any

from astride.plan import SoftmaxLossPlan
from astride.plan.dense import Normalization

from .dense import DenseCase, DenseRefusal


def plan(axis: int = 1, dtype: str = "float32", **fields: Any) -> SoftmaxLossPlan:
    return SoftmaxLossPlan(dtype=dtype, axis=axis, **fields)


CASES = (
    DenseCase("plain", plan(), ((4, 3), (4,), None), 3),
    DenseCase("places", plan(), ((2, 3, 2, 2), (2, 1, 2, 2), None), 3),
    DenseCase("last axis", plan(2), ((2, 3, 4), (6,), None), 4),
    *(
        DenseCase(f"ignored, {mode}", plan(ignore_label=1, normalization=mode), ((3, 3, 2), (3, 2), None), 3)
        for mode in Normalization
    ),
    DenseCase("an ignored label out of range", plan(ignore_label=0), ((3, 3), (3,), None), 1),
    DenseCase("no images", plan(), ((0, 3), (0,), None), 3),
    DenseCase("gain", plan(), ((4, 3), (4,), (3, 3)), 3),
    DenseCase("gain of places", plan(ignore_label=2, normalization=Normalization.FULL), ((2, 3, 2), (2, 2), (3, 3)), 3),
    DenseCase("gain on the last axis", plan(2, floor=1e-20), ((2, 3, 4), (6,), (4, 4)), 4),
    DenseCase("double", plan(dtype="float64"), ((4, 3), (4,), None), 3),
)
F = "float32"
REFUSALS = (
    DenseRefusal("number of labels", (((2, 3), F), ((3,), "int64")), {}, ("labels.size == 2: (3,)",), "ArrayError"),
    DenseRefusal("labels as floats", (((2, 3), F), ((2,), F)), {}, ("labels are not integers",), "ArrayError"),
    DenseRefusal("label out of range", (((2, 0), F), ((2,), "int64")), {}, ("names no class", "0 <= label < 0"), "ArrayError"),
    DenseRefusal("axis", (((2, 3), F), ((2,), "int64")), {"axis": 3}, ("-2 <= axis < 2: 3",)),
    DenseRefusal("gain", (((2, 3), F), ((2,), "int64"), ((3, 2), F)), {}, ("gain.shape == (3, 3): (3, 2)",), "ArrayError"),
    DenseRefusal("floor", (((2, 3), F), ((2,), "int64")), {"floor": 0.0}, ("0 < floor < 1: 0.0",)),
    DenseRefusal("normalization", (((2, 3), F), ((2,), "int64")), {"normalization": "mean"}, ("one of full, valid",)),
)
