"""Lp pooling: every form, scale and zero window, orders from 1/2 to infinity."""

from __future__ import annotations

import math

from astride.plan import ExplicitAxis, StridedAxis
from astride.plan.kinds import Edge, LpForm, LpScale, ZeroWindow
from tests.cases.records import Case, Refusal

FORMS = tuple(
    Case(
        f"p={p:g}-{form}-{scale}-{zero}-{'scaled' if scaled else 'plain'}",
        (2, 2, 5, 4),
        dict(kernel=2, stride=(1, 2), padding=((1, 0), (0, 1)), p=p, form=form, scale=scale, zero_window=zero, scaled=scaled),
        fill=fill,
    )
    for p, form, fill in (
        (0.5, LpForm.ABSOLUTE, "integers"),
        (1.0, LpForm.ABSOLUTE, "integers"),
        (2.0, LpForm.ABSOLUTE, "integers"),
        (3.0, LpForm.ABSOLUTE, "integers"),
        (2.5, LpForm.ABSOLUTE, "integers"),
        (1.0, LpForm.SIGNED, "integers"),
        (2.0, LpForm.SIGNED, "integers"),
        (3.0, LpForm.SIGNED, "positives"),
        (1.0, LpForm.SIGNED_ROOT, "integers"),
        (3.0, LpForm.SIGNED_ROOT, "integers"),
        (math.inf, LpForm.ABSOLUTE, "integers"),
    )
    for scale in LpScale
    for zero, scaled in ((ZeroWindow.ZERO, True), (ZeroWindow.FORMULA, False))
)

EDGES = tuple(
    Case(
        f"edge-{edge}-p={p:g}",
        (2, 3, 4, 3),
        dict(kernel=(3, 2), stride=(1, 2), padding=((3, 2), (1, 4)), edge=edge, edge_value=3.0, p=p),
    )
    for edge in Edge
    for p in (2.0, 3.0)
)

CASES = (
    *FORMS,
    *EDGES,
    Case("one axis", (2, 3, 9), dict(kernel=3, stride=2)),
    Case("one axis, channels last", (2, 9, 3), dict(kernel=3, stride=2, layout="channels_last")),
    Case("two axes", (2, 3, 7, 6), dict(kernel=(3, 2), stride=(2, 1))),
    Case("two axes, channels last", (2, 7, 6, 3), dict(kernel=(3, 2), stride=(2, 1), layout="NHWC")),
    Case("three axes", (1, 2, 4, 5, 3), dict(kernel=2, stride=(1, 2, 1), padding=1)),
    Case("windows of padding alone", (1, 2, 5), dict(kernel=2, stride=2, padding=4)),
    Case("windows of zeros", (1, 2, 6, 6), dict(kernel=2), fill="zeros"),
    Case("windows of zeros, the formula", (1, 2, 6, 6), dict(kernel=2, zero_window="formula"), fill="zeros"),
    Case("PyTorch", (2, 3, 8, 7), dict(kernel=3, stride=2, ceil_mode=True), rules="pytorch"),
    Case("PyTorch, p infinite", (2, 3, 8, 7), dict(kernel=3, stride=2, ceil_mode=True, p=math.inf), rules="pytorch"),
    Case("ONNX", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1, ceil_mode=1, p=3), rules="onnx"),
    Case("ONNX Runtime", (2, 3, 8, 7), dict(kernel=3, stride=2, dilation=2, padding="SAME_LOWER"), rules="onnxruntime"),
    Case("MPS", (2, 3, 8, 7), dict(kernel=3, stride=2), rules="mps"),
    Case("MPS, clamp", (2, 3, 8, 7), dict(kernel=2, stride=2, edge="clamp"), rules="mps"),
    Case("empty batch", (0, 3, 5, 5), dict(kernel=2)),
    Case("float64", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype="float64"),
    Case("float16", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype="float16"),
    Case("bfloat16", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype="bfloat16"),
    Case(
        "PyTorch, p 0.5 of windows of zeros", (2, 2, 7, 6), dict(kernel=2, p=0.5), rules="pytorch", fill="ties", dtype="float64"
    ),
    Case("PyTorch, p -1", (2, 2, 7, 6), dict(kernel=(3, 2), stride=2, p=-1, ceil_mode=True), rules="pytorch", dtype="float64"),
    Case("PyTorch, p -1 of zeros", (2, 2, 9), dict(kernel=2, p=-1), rules="pytorch", fill="ties", dtype="float64"),
    Case("explicit windows", (2, 2, 7), dict(kernel=2), axes=(ExplicitAxis(7, (0, 2, 4, 4), (3, 5, 7, 4)),)),
    Case(
        "dilated input",
        (2, 2, 5),
        dict(kernel=2),
        axes=(StridedAxis(size=5, kernel=2, pad_lo=1, pad_hi=2, out=11, input_dilation=2),),
    ),
)

REFUSALS = (
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(kernel=7, padding=1),
        ("lp_pool [explicit]: the kernel is larger than the padded input",),
    ),
    Refusal("p of 0", (1, 1, 4), dict(kernel=2, p=0), ("the order of an Lp norm is positive", "p > 0: 0")),
    Refusal("p below 0 elsewhere", (1, 1, 4), dict(kernel=2, p=-1), ("the order of an Lp norm is positive", "p > 0: -1")),
    Refusal("halves in 3-D", (1, 1, 4, 4, 4), dict(kernel=2), ("no rule for float16",), rules="pytorch", dtype="float16"),
    Refusal("integers", (1, 1, 4), dict(kernel=2), ("lp_pool [explicit]: there is no rule for int64 arrays",), dtype="int64"),
    Refusal(
        "padding under PyTorch", (1, 1, 4), dict(kernel=2, padding=1), ("these rules have no padding", "lp_pool"), rules="pytorch"
    ),
    Refusal("p of 3 under MPS", (1, 1, 4), dict(kernel=2, p=3), ("these rules have no p", "p=2.0"), rules="mps"),
    Refusal(
        "Caffe has none",
        (1, 1, 4),
        dict(kernel=2),
        ("caffe has no lp_pool", "explicit, pytorch"),
        "UnsupportedError",
        "caffe",
    ),
    Refusal(
        "the infinity norm with shared ties",
        (1, 1, 4),
        dict(kernel=2, p=math.inf, tie="all_full"),
        ("returns its gradient to one tap",),
    ),
)
