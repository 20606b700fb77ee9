"""How Chainer writes these operators: chainer.functions and chainer.links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, alike, forms, operation, shape_of, short, unless, written

NAMES = "F is chainer.functions"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
CHOICES = {
    "max_pool": Choices(numbers="alike", flags={"cover_all": (False, True)}),
    "avg_pool": Choices(numbers="alike", flags={"pad_value": (0, None)}),
    "conv": Choices(numbers="alike", flags={"cover_all": (False, True)}),
    "conv_transpose": Choices(numbers="alike", flags={"output_size": (None, "source")}),
}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {
            "kernel": given["ksize"],
            "stride": given["stride"],
            "padding": given["pad"],
            "cover_all": given.get("cover_all"),
        }
        several = isinstance(given["ksize"], tuple | list)
        found = operation(op, len(given["ksize"]) if rank is None and several else rank, names, given)
        if "pad_value" in given:  # None is a value of its own
            return Operation(**{**_parts(found), "arguments": {**found.arguments, "pad_value": given["pad_value"]}})
        return found

    return read


def _parts(o: Operation) -> dict[str, Any]:
    return {name: getattr(o, name) for name in Operation.__dataclass_fields__}


def _function(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        w, groups = shape_of(given["W"]), int(given["groups"])
        names = _filter(given)
        if w is not None:
            outer, inner = (w[0], w[1] * groups) if op == "conv" else (w[1] * groups, w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        return operation(op, len(w) - 2 if rank is None and w is not None else rank, names, given)

    return read


def _link(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _filter(given) | {
            "kernel": given["ksize"],
            "in_channels": given["in_channels"],
            "out_channels": given["out_channels"],
        }
        return operation(op, rank, names, given)

    return read


def _filter(given: Given) -> dict[str, Any]:
    return {
        "stride": given["stride"],
        "padding": given["pad"],
        "dilation": given["dilate"],
        "groups": given["groups"],
        "cover_all": given.get("cover_all"),
        "output_size": given.get("outsize"),
    }


LINK = (
    "in_channels, out_channels, ksize=None, stride=1, pad=0, nobias=False, {}initialW=None, initial_bias=None, *, dilate=1, "
    "groups=1"
)
FORMS = [
    *forms(
        "max_pooling_{}d max_pooling_nd", "x, ksize, stride=None, pad=0, cover_all=True, return_indices=False", _pool("max_pool")
    ),
    *forms("average_pooling_{}d average_pooling_nd", "x, ksize, stride=None, pad=0, pad_value=0", _pool("avg_pool"), (1, 3)),
    *forms("average_pooling_{}d", "x, ksize, stride=None, pad=0", _pool("avg_pool"), (2,)),
    *forms(
        "convolution_{}d convolution_nd", "x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1", _function("conv")
    ),
    *forms(
        "deconvolution_{}d deconvolution_nd",
        "x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1",
        _function("conv_transpose"),
    ),
    *forms("Convolution{}D", LINK.format(""), _link("conv")),
    *forms("Deconvolution{}D", LINK.format("outsize=None, "), _link("conv_transpose")),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Chainer has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The call, of x (and w and b) to y."""
    a = o.arguments
    pad = unless(alike(a.get("padding", 0), rank), 0)
    if not o.weighted:
        name = "max_pooling" if o.op == "max_pool" else "average_pooling"
        excluding = o.op == "avg_pool" and a.get("pad_value", 0) is None
        return "y = " + written(
            f"F.{name}_{'nd' if excluding and rank == 2 else f'{rank}d'}",  # average_pooling_2d has no pad_value
            Raw("x"),
            (o.kernel if isinstance(o.kernel, tuple) else (o.kernel,) * rank) if excluding and rank == 2 else short(o.kernel),
            stride=unless(short(a.get("stride", o.kernel)), short(o.kernel)),
            pad=pad,
            cover_all=False if o.op == "max_pool" and not a.get("cover_all", True) else None,
            pad_value=Raw("None") if excluding else None,
        )
    return "y = " + written(
        f"F.{'convolution' if o.op == 'conv' else 'deconvolution'}_{rank}d",
        Raw("x"),
        Raw("w"),
        Raw("b"),
        stride=unless(short(a.get("stride", 1)), 1),
        pad=pad,
        cover_all=a.get("cover_all") or None,
        outsize=a.get("output_size"),
        dilate=unless(short(a.get("dilation", 1)), 1),
        groups=unless(a.get("groups", 1), 1),
    )


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it; Chainer hands the mode to NumPy, but has the gradient of constants only."""
    if isinstance(fill, str):
        return None
    amounts = written("", ((0, 0), (0, 0), *pairs))[1:-1]
    value = "0" if fill == 0 else "-np.inf" if fill == float("-inf") else "np.finfo(x.dtype).min"
    return f'x = F.pad(x, {amounts}, "constant", constant_values={value})'
