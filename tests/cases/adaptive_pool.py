"""Adaptive pooling: outputs that divide the input, do not, exceed it, or are empty."""

from __future__ import annotations

from tests.cases.records import Case, Refusal

CASES = (
    Case("one axis", (2, 3, 7), dict(output_size=3)),
    Case("one axis, channels last", (2, 7, 3), dict(output_size=3, layout="channels_last")),
    Case("two axes", (2, 3, 7, 5), dict(output_size=(3, 4))),
    Case("two axes, channels last", (2, 7, 5, 3), dict(output_size=(3, 4), layout="NHWC")),
    Case("three axes", (1, 2, 4, 5, 3), dict(output_size=(2, 3, 2))),
    Case("three axes, channels last", (1, 4, 5, 3, 2), dict(output_size=2, layout="NDHWC")),
    Case("a divisor of the input", (2, 2, 6, 4), dict(output_size=2)),
    Case("an axis kept", (2, 2, 6, 4), dict(output_size=(None, 3))),
    Case("one pixel", (2, 2, 6, 5), dict(output_size=1)),
    Case("more windows than pixels", (2, 2, 3, 2), dict(output_size=(5, 7))),
    Case("no windows", (2, 2, 3, 2), dict(output_size=(2, 0))),
    Case("no images", (0, 2, 3, 2), dict(output_size=2)),
    Case("half", (2, 2, 7, 5), dict(output_size=3), dtype="float16"),
    Case("bfloat16", (1, 2, 7, 5), dict(output_size=2), dtype="bfloat16"),
    Case("double", (2, 2, 7, 5), dict(output_size=3), dtype="float64"),
    Case("NaN and infinities", (2, 2, 7, 5), dict(output_size=3), fill="mixed"),
    Case("maximum", (2, 3, 7, 5), dict(output_size=(3, 4), reduce="max"), fill="ties"),
    Case("maximum, one axis", (2, 3, 7), dict(output_size=3, reduce="max")),
    Case("maximum, three axes", (1, 2, 4, 5, 3), dict(output_size=(2, 3, 2), reduce="max")),
    Case("maximum, channels last", (2, 7, 5, 3), dict(output_size=(3, 4), reduce="max", layout="NHWC"), fill="ties"),
    Case("maximum, integers", (2, 2, 7, 5), dict(output_size=3, reduce="max"), dtype="int16"),
    Case("maximum, NaN and infinities", (4, 2, 7, 5), dict(output_size=3, reduce="max"), fill="mixed"),
    Case("maximum, equal shares", (2, 2, 7, 5), dict(output_size=3, reduce="max", tie="equal_share"), fill="ties"),
    Case("PyTorch", (2, 2, 7, 5), dict(output_size=3), rules="pytorch"),
    Case("PyTorch, maximum", (4, 2, 7, 5), dict(output_size=3, reduce="max"), rules="pytorch", fill="mixed"),
)

REFUSALS = (
    Refusal("no output size", (1, 1, 4), dict(output_size=()), ("output_size needs one value per axis",)),
    Refusal("a value too many", (1, 1, 4), dict(output_size=(1, 2)), ("output_size needs one value per axis", "1 values")),
    Refusal("a negative size", (1, 1, 4), dict(output_size=-1), ("output_size is below 0",)),
    Refusal("another reduction", (1, 1, 4), dict(output_size=2, reduce="median"), ("'average', 'max'",)),
    Refusal("an average of integers", (1, 1, 4), dict(output_size=2), ("no rule for int32 arrays",), dtype="int32"),
    Refusal("PyTorch without channels", (1, 0, 4), dict(output_size=2, reduce="max"), ("x has no channels",), rules="pytorch"),
    Refusal("Caffe has none", (1, 1, 4), dict(output_size=2), ("caffe has no adaptive_pool",), "UnsupportedError", "caffe"),
)
