"""How TensorFlow Lite writes these operators: those of its schema, with their options' fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, output_sizes, shape_of, unless, written

NAMES = "the schema's operators as calls: tensors by position, options by name; channels last"
GRADIENT = False
WEIGHTS = {"conv": "O*I", "conv_transpose": "O*I"}
_WORDS = ("valid", "same")
CHOICES = {
    "max_pool": Choices(words=_WORDS),
    "avg_pool": Choices(words=_WORDS),
    "lp_pool": Choices(words=_WORDS),
    "conv": Choices(words=_WORDS),
    "conv_transpose": Choices(words=_WORDS, flags={"output_size": ("source",)}),
}
RANKS = dict.fromkeys(CHOICES, (2,))


def _common(given: Given) -> dict[str, Any]:
    return {"stride": (given["stride_h"], given["stride_w"]), "padding": str(given["padding"]).lower()}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {"kernel": (given["filter_height"], given["filter_width"])}
        return operation(op, 2, names | ({"p": 2.0} if op == "lp_pool" else {}), given, channels_last=True)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given)
        if op == "conv":
            names["dilation"] = (given["dilation_h_factor"], given["dilation_w_factor"])
        w, x = shape_of(given["weights"]), shape_of(given["x"])
        if w is not None:
            names |= {"kernel": w[1:-1], "in_channels": w[-1], "out_channels": w[0]}
            if op == "conv" and x is not None and w[-1] and x[-1] % w[-1] == 0:
                names |= {"groups": x[-1] // w[-1], "in_channels": x[-1]}
        names["output_size"] = output_sizes(given.get("output_shape"), 2, channels_last=True)
        return operation(op, 2, names, given, channels_last=True)

    return read


STEPS = "padding='SAME', stride_w=1, stride_h=1"
POOL = f"x=None, *, {STEPS}, filter_width, filter_height, fused_activation_function='NONE'"
DILATED = "dilation_w_factor=1, dilation_h_factor=1, fused_activation_function='NONE'"
FORMS = [
    *forms("MAX_POOL_2D", POOL, _pool("max_pool")),
    *forms("AVERAGE_POOL_2D", POOL, _pool("avg_pool")),
    *forms("L2_POOL_2D", POOL, _pool("lp_pool")),
    *forms("CONV_2D", f"x=None, weights=None, bias=None, *, {STEPS}, {DILATED}", _conv("conv")),
    *forms(
        "TRANSPOSE_CONV",
        f"output_shape=None, weights=None, x=None, bias=None, *, {STEPS}, fused_activation_function='NONE'",
        _conv("conv_transpose"),
    ),
]
POOLS = {"max_pool": "MAX_POOL_2D", "avg_pool": "AVERAGE_POOL_2D", "lp_pool": "L2_POOL_2D"}


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """TFLite has one."""
    return "channels_last"


def write(o: Operation, rank: int) -> str:
    """The operator."""
    a = o.arguments
    h, w = _each(a.get("stride", 1 if o.weighted else o.kernel))
    steps = {"padding": str(a.get("padding", "valid")).upper(), "stride_h": unless(h, 1), "stride_w": unless(w, 1)}
    if not o.weighted:
        height, width = _each(o.kernel)
        return "y = " + written(POOLS[o.op], Raw("x"), filter_height=height, filter_width=width, **steps)
    if o.op == "conv":
        dh, dw = _each(a.get("dilation", 1))
        factors = {"dilation_h_factor": unless(dh, 1), "dilation_w_factor": unless(dw, 1)}
        return "y = " + written("CONV_2D", Raw("x"), Raw("w"), Raw("b"), **steps, **factors)
    size = Raw(f"[N, {', '.join(map(str, a['output_size']))}, C]")
    return "y = " + written("TRANSPOSE_CONV", size, Raw("w"), Raw("x"), Raw("b"), **steps)


def _each(value: Any) -> tuple[int, int]:
    return (value[0], value[1]) if isinstance(value, tuple) else (value, value)


MODES = {"mirror": "REFLECT", "mirror_edge": "SYMMETRIC"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = written("", [[0, 0], *map(list, pairs), [0, 0]])[1:-1]
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = MIRROR_PAD(x, {amounts}, mode="{MODES[fill]}")'
    if fill == 0:
        return f"x = PAD(x, {amounts})"
    return f"x = PADV2(x, {amounts}, {'-np.inf' if fill == float('-inf') else 'np.finfo(np.float32).min'})"


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str:
    """A part of y; what is not cut is masked."""
    whole = [i + 1 for i, e in enumerate(end) if e is None]
    mask = sum(1 << i for i in (0, *whole, len(end) + 1))
    return (
        f"y = STRIDED_SLICE(y, {[0, *begin, 0]}, {[0, *(e or 0 for e in end), 0]}, {[1] * (len(end) + 2)}, "
        f"begin_mask={1 | 1 << (len(end) + 1)}, end_mask={mask})"
    )


def scale(factors: str) -> str:
    """y, each place by its factor."""
    return f"y = MUL(y, np.float32({factors}))"
