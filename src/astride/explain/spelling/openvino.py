"""How OpenVINO writes these operators: the functions of its Python opsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, pairs_of, shape_of, show, written

NAMES = "ops is openvino.opset14; max_pool's y is its first output"
GRADIENT = False
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_WORDS = ("same_upper", "same_lower")
_ROUNDINGS = {"rounding_type": ("floor", "ceil", "ceil_torch")}
CHOICES = {
    "max_pool": Choices(words=_WORDS, numbers="pairs", flags=_ROUNDINGS),
    "avg_pool": Choices(words=_WORDS, numbers="pairs", flags={**_ROUNDINGS, "exclude_pad": (True, False)}),
    "conv": Choices(words=_WORDS, numbers="pairs"),
    "conv_transpose": Choices(numbers="pairs", flags={"output_padding": ("source",)}),
}


def _common(given: Given) -> dict[str, Any]:
    word, begin, end = given["auto_pad"], given["pads_begin"], given["pads_end"]
    padding = tuple(zip(begin, end, strict=True)) if begin is not None and end is not None else 0
    if word not in (None, "explicit", "notset"):
        padding = word
    return {"stride": given["strides"], "padding": padding, "dilation": given.get("dilations")}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {name: given.get(name) for name in ("rounding_type", "exclude_pad", "axis")}
        return operation(op, len(given["kernel_shape"]), names | {"kernel": given["kernel_shape"]}, given)

    return read


def _conv(op: str, grouped: bool) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {"output_padding": given.get("output_padding"), "output_shape": given.get("output_shape")}
        w = shape_of(given["filters"])
        if w is not None:
            groups = w[0] if grouped else 1
            w = w[1:] if grouped else w
            outer, inner = (w[0], w[1]) if op == "conv" else (w[1], w[0])
            names |= {"groups": groups, "kernel": w[2:], "in_channels": inner * groups, "out_channels": outer * groups}
        elif grouped:
            names["groups"] = 2  # any number: it decides nothing but the shapes of w
        return operation(op, len(given["strides"]), names, given)

    return read


WINDOW = "strides, dilations, pads_begin, pads_end, kernel_shape, rounding_type='floor', auto_pad=None"
FILTER = "data, filters, strides, pads_begin, pads_end, dilations, auto_pad='explicit', name=None"
BACK = (
    "data, filters, strides, output_shape=None, pads_begin=None, pads_end=None, dilations=None, auto_pad=None, "
    "output_padding=None, name=None"
)
FORMS = [
    *forms("max_pool", f"data, {WINDOW}, index_element_type='i64', axis=0, name=None", _pool("max_pool")),
    *forms(
        "avg_pool",
        "data_batch, strides, pads_begin, pads_end, kernel_shape, exclude_pad, rounding_type='floor', auto_pad=None, name=None",
        _pool("avg_pool"),
    ),
    *forms("convolution", FILTER, _conv("conv", grouped=False)),
    *forms("group_convolution", FILTER, _conv("conv", grouped=True)),
    *forms("convolution_backprop_data", BACK, _conv("conv_transpose", grouped=False)),
    *forms("group_convolution_backprop_data", BACK, _conv("conv_transpose", grouped=True)),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """OpenVINO has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The node."""
    a = o.arguments
    padding = a.get("padding", 0)
    word = padding if isinstance(padding, str) else None
    both = ((0, 0),) * rank if word else pairs_of(padding, rank)
    begin, end = [lo for lo, _ in both], [hi for _, hi in both]
    strides, dilations = _each(a.get("stride", 1 if o.weighted else o.kernel), rank), _each(a.get("dilation", 1), rank)
    rounding = None if a.get("rounding_type", "floor") == "floor" else a["rounding_type"]
    if o.op == "max_pool":
        return "y = " + written(
            "ops.max_pool", Raw("x"), strides, dilations, begin, end, _each(o.kernel, rank), rounding_type=rounding, auto_pad=word
        )
    if o.op == "avg_pool":
        exclude = bool(a.get("exclude_pad", True))
        return "y = " + written(
            "ops.avg_pool", Raw("x"), strides, begin, end, _each(o.kernel, rank), exclude, rounding_type=rounding, auto_pad=word
        )
    group = "group_" if a.get("groups", 1) > 1 else ""
    if o.op == "conv":
        return "y = " + written(f"ops.{group}convolution", Raw("x"), Raw("w"), strides, begin, end, dilations, auto_pad=word)
    more = a.get("output_padding")
    return "y = " + written(
        f"ops.{group}convolution_backprop_data",
        Raw("x"),
        Raw("w"),
        strides,
        pads_begin=begin,
        pads_end=end,
        dilations=dilations,
        output_padding=None if more in (None, 0) else _each(more, rank),
    )


def regrouped(groups: int, *, away: bool) -> str:
    """The weights of groups, which have an axis for the group; `away` takes it off."""
    if away:
        return "w = np.reshape(w, (-1, *w.shape[2:]))"
    return f"w = np.reshape(w, ({groups}, -1, *w.shape[1:]))"


def _each(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, tuple | list) else [value] * rank


MODES = {"mirror": "reflect", "mirror_edge": "symmetric", "clamp": "edge"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = f"{show([0, 0, *(lo for lo, _ in pairs)])}, {show([0, 0, *(hi for _, hi in pairs)])}"
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = ops.pad(x, {amounts}, "{MODES[fill]}")'
    value = "np.float32(0)" if fill == 0 else "np.float32(-np.inf)" if fill == float("-inf") else "np.finfo(np.float32).min"
    return f'x = ops.pad(x, {amounts}, "constant", {value})'


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str:
    """A part of y; an end that is not cut is the greatest number."""
    rank = len(begin)
    ends = [2**31 - 1 if e is None else e for e in end]
    return f"y = ops.slice(y, {show(list(begin))}, {show(ends)}, {show([1] * rank)}, {show(list(range(2, 2 + rank)))})"


def scale(factors: str) -> str:
    """y, each place by its factor."""
    return f"y = ops.multiply(y, np.float32({factors}))"
