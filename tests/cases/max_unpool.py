"""Max unpooling: places in a plane and in the whole tensor, duplicates among them."""

from __future__ import annotations

from tests.cases.records import Case, Refusal

CASES = (
    Case("one axis", (2, 3, 5), dict(kernel=2)),
    Case("one axis, channels last", (2, 5, 3), dict(kernel=2, layout="channels_last")),
    Case("two axes", (2, 3, 3, 4), dict(kernel=(2, 3), stride=(2, 1), padding=(0, 1))),
    Case("two axes, channels last", (2, 3, 4, 3), dict(kernel=(2, 3), stride=(2, 1), layout="NHWC")),
    Case("three axes", (1, 2, 2, 3, 2), dict(kernel=2)),
    Case("an output size", (2, 2, 3, 4), dict(output_size=(9, 5))),
    Case("duplicates", (2, 2, 6, 6), dict(output_size=(2, 2))),
    Case("places in the tensor", (2, 2, 3, 4), dict(output_size=(6, 8), index_base="tensor")),
    Case("places in the tensor, duplicates", (2, 3, 6), dict(output_size=4, index_base="tensor")),
    Case("places counted in smaller planes", (2, 2, 3, 4), dict(output_size=(6, 8), index_size=(5, 7))),
    Case(
        "places counted in a tensor of smaller planes",
        (2, 3, 2, 3),
        dict(output_size=(6, 8), index_size=(4, 6), index_base="tensor"),
    ),
    Case("ONNX, in a larger output", (2, 3, 2, 3), dict(kernel=2, output_size=(6, 8)), rules="onnx"),
    Case("ONNX Runtime, in a larger output", (2, 3, 2, 3), dict(kernel=2, output_size=(6, 8)), rules="onnxruntime"),
    Case("PyTorch", (2, 2, 3, 4), dict(kernel=2, output_size=(7, 7)), rules="pytorch"),
    Case("NaN and infinities", (2, 2, 3, 4), dict(kernel=2), fill="mixed"),
    Case("float64", (2, 2, 3, 4), dict(kernel=2), dtype="float64"),
    Case("float16", (2, 2, 3, 4), dict(kernel=2), dtype="float16"),
    Case("int32", (2, 2, 3, 4), dict(kernel=2), dtype="int32"),
    Case("empty batch", (0, 2, 3, 4), dict(kernel=2)),
)

REFUSALS = (
    Refusal("no output size", (1, 1, 4), {}, ("the output size is not given",)),
    Refusal(
        "indices counted in larger planes than the output",
        (1, 1, 4),
        dict(output_size=8, index_size=9),
        ("do not fit the output", "1 <= index_size <= out: (9,) <= (8,)"),
    ),
    Refusal("an empty output", (1, 1, 1), dict(kernel=2, padding=1), ("the output is empty",)),
    Refusal(
        "an output size too far",
        (1, 1, 2),
        dict(kernel=2, output_size=[6]),
        ("further than a stride", "2 < output_size < 6, on axis W: 6"),
        rules="pytorch",
    ),
    Refusal("wrong rank", (4,), dict(kernel=2), ("x has the wrong rank",)),
    Refusal("MPS has none", (1, 1, 4), dict(kernel=2), ("mps has no max_unpool",), "UnsupportedError", "mps"),
)
