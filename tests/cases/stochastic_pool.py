"""Stochastic pooling: training with given draws, and the weighted mean of test time."""

from __future__ import annotations

from astride.plan import ExplicitAxis
from tests.cases.records import Case, Refusal

CASES = tuple(
    Case(
        f"{name}, {'training' if training else 'test time'}",
        shape,
        dict(arguments, training=training),
        rules,
        dtype,
        fill=fill,
        axes=axes,
    )
    for training in (True, False)
    for name, shape, arguments, rules, dtype, fill, axes in (
        ("one axis", (2, 3, 9), dict(kernel=3, stride=2), "explicit", "float32", "positives", None),
        (
            "one axis, channels last",
            (2, 9, 3),
            dict(kernel=3, stride=2, layout="channels_last"),
            "explicit",
            "float32",
            "positives",
            None,
        ),
        ("two axes", (2, 3, 7, 6), dict(kernel=(3, 2), stride=(2, 1)), "explicit", "float32", "positives", None),
        ("three axes", (1, 2, 4, 5, 3), dict(kernel=2, stride=(1, 2, 1), padding=1), "explicit", "float32", "positives", None),
        ("negative activations", (2, 2, 6, 6), dict(kernel=2), "explicit", "float32", "integers", None),
        ("only negative activations", (2, 2, 6, 6), dict(kernel=2), "caffe", "float32", "negatives", None),
        ("zeros", (2, 2, 6, 6), dict(kernel=2), "explicit", "float32", "zeros", None),
        ("windows of padding alone", (1, 2, 5), dict(kernel=2, stride=2, padding=4), "explicit", "float32", "positives", None),
        ("Caffe", (2, 3, 8, 7), dict(kernel=3, stride=2), "caffe", "float32", "positives", None),
        ("Caffe in double precision", (2, 3, 8, 7), dict(kernel=3, stride=2), "caffe", "float64", "positives", None),
        ("half floats", (2, 3, 8, 7), dict(kernel=3, stride=2), "explicit", "float16", "positives", None),
        ("bfloat16", (2, 3, 8, 7), dict(kernel=3, stride=2), "explicit", "bfloat16", "positives", None),
        ("empty batch", (0, 3, 8, 7), dict(kernel=3, stride=2), "explicit", "float32", "positives", None),
        (
            "explicit windows",
            (2, 2, 7),
            dict(kernel=2),
            "explicit",
            "float32",
            "positives",
            (ExplicitAxis(7, (0, 2, 4, 4), (3, 5, 7, 4)),),
        ),
    )
)

REFUSALS = (
    Refusal(
        "padding under Caffe",
        (1, 1, 5, 5),
        dict(kernel=2, padding=1),
        ("Caffe pads only maximum and average pooling", "padding=0"),
        rules="caffe",
    ),
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(kernel=7, padding=1),
        ("the kernel is larger than the padded input",),
    ),
    Refusal("integers", (1, 1, 4), dict(kernel=2), ("there is no rule for uint8 arrays",), dtype="uint8"),
    Refusal("PyTorch has none", (1, 1, 4), dict(kernel=2), ("pytorch has no stochastic_pool",), "UnsupportedError", "pytorch"),
    Refusal("an edge mode", (1, 1, 4), dict(kernel=2, edge="clamp"), ("there is no argument 'edge'",)),
)
