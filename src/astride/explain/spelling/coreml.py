"""How Core ML writes these operators: MIL's, by coremltools' builder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, output_sizes, pairs_of, shape_of, show, unless, written

NAMES = "mb is coremltools' MIL builder"
GRADIENT = False
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_WORDS = ("valid", "same", "same_lower")
CHOICES = {
    "max_pool": Choices(words=_WORDS, numbers="pairs", flags={"ceil_mode": (False, True)}),
    "avg_pool": Choices(
        words=_WORDS, numbers="pairs", flags={"ceil_mode": (False, True), "exclude_padding_from_average": (False, True)}
    ),
    "lp_pool": Choices(words=_WORDS, numbers="pairs", flags={"ceil_mode": (False, True)}),
    "conv": Choices(words=_WORDS, numbers="pairs"),
    "conv_transpose": Choices(words=_WORDS[:2], numbers="pairs", flags={"output_size": (None, "source")}),
}


def _common(given: Given) -> dict[str, Any]:
    padding = given["pad_type"]
    if given["pad"] is not None:
        values = tuple(given["pad"])
        padding = tuple(zip(values[::2], values[1::2]))
    return {"stride": given["strides"] or 1, "padding": padding}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {name: given.get(name) for name in ("ceil_mode", "exclude_padding_from_average")}
        names |= {"kernel": given["kernel_sizes"], **({"p": 2.0} if op == "lp_pool" else {})}
        return operation(op, len(given["kernel_sizes"]), names, given)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        groups = given["groups"]
        names = _common(given) | {"dilation": given["dilations"], "groups": groups}
        w = shape_of(given["weight"])
        if w is not None:
            outer, inner = (w[0], w[1] * groups) if op == "conv" else (w[1] * groups, w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        size = given.get("output_shape")
        if size is not None:
            names["output_size"] = output_sizes(size, len(size) - 2, channels_last=False)
        return operation(op, None if w is None else len(w) - 2, names, given)

    return read


POOL = "x=None, *, kernel_sizes, strides=None, pad_type, pad=None, ceil_mode=False, name=None"
CONV = "x=None, weight=None, bias=None, *, strides=None, pad_type='valid', pad=None, dilations=None, groups=1, name=None"
FORMS = [
    *forms("max_pool", POOL, _pool("max_pool")),
    *forms("avg_pool", f"{POOL}, exclude_padding_from_average=False", _pool("avg_pool")),
    *forms("l2_pool", POOL, _pool("lp_pool")),
    *forms("conv", CONV, _conv("conv")),
    *forms("conv_transpose", f"{CONV}, output_shape=None", _conv("conv_transpose")),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """MIL has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The operator, of x (and w and b) to y."""
    a = o.arguments
    padding = a.get("padding", "valid")
    word = padding if isinstance(padding, str) else "custom"
    pads = None if isinstance(padding, str) else [amount for pair in pairs_of(padding, rank) for amount in pair]
    strides = None if a.get("stride", 1) in (1, (1,) * rank) else _each(a["stride"], rank)
    if not o.weighted:
        return "y = " + written(
            f"mb.{'l2_pool' if o.op == 'lp_pool' else o.op}",
            x=Raw("x"),
            kernel_sizes=_each(o.kernel, rank),
            strides=strides,
            pad_type=word,
            pad=pads,
            ceil_mode=a.get("ceil_mode") or None,
            exclude_padding_from_average=a.get("exclude_padding_from_average") or None,
        )
    size = a.get("output_size")
    return "y = " + written(
        f"mb.{o.op}",
        x=Raw("x"),
        weight=Raw("w"),
        bias=Raw("b"),
        strides=strides,
        pad_type=unless(word, "valid"),
        pad=pads,
        dilations=None if a.get("dilation", 1) in (1, (1,) * rank) else _each(a["dilation"], rank),
        groups=unless(a.get("groups", 1), 1),
        output_shape=None if size is None else Raw(f"[N, C, {', '.join(map(str, size))}]"),
    )


def _each(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, tuple) else [value] * rank


MODES = {"mirror": "reflect", "clamp": "replicate"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it; reflecting and replicating for two axes at most."""
    amounts = show([0, 0, 0, 0, *(amount for pair in pairs for amount in pair)])
    if isinstance(fill, str):
        return None if fill not in MODES or len(pairs) > 2 else f'x = mb.pad(x=x, pad={amounts}, mode="{MODES[fill]}")'
    value = "0.0" if fill == 0 else "-np.inf" if fill == float("-inf") else "np.finfo(np.float32).min"
    return f'x = mb.pad(x=x, pad={amounts}, mode="constant", constant_val={value})'


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str:
    """What is left out of y; an end that is not cut is masked."""
    return (
        f"y = mb.slice_by_index(x=y, begin={show([0, 0, *begin])}, end={show([0, 0, *(e or 0 for e in end)])}, "
        f"end_mask={show([True, True, *(e is None for e in end)])})"
    )


def scale(factors: str) -> str:
    """y, each place by its factor."""
    return f"y = mb.mul(x=y, y=np.float32({factors}))"
