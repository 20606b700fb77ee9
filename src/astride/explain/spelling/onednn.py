"""How oneDNN writes these operators: the operation descriptors of its C++ interface, version 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call import Word, Written
from .form import Choices, Given, Operation, forms, operation, pairs_of
from .statements import cpp

NAMES = "dnnl's descriptors; src, weights, bias and dst are memory descriptors"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "OI*"}
CHOICES = {
    "max_pool": Choices(numbers="pairs"),
    "avg_pool": Choices(numbers="pairs", flags={"include_padding": (False, True)}),
    "conv": Choices(numbers="pairs"),
    "conv_transpose": Choices(numbers="pairs"),
}
POOLS = {"pooling_max": ("max_pool", None), "pooling_avg": ("avg_pool", False)} | {
    f"pooling_avg_{name}clude_padding": ("avg_pool", name == "in") for name in ("in", "ex")
}


def _pool(given: Given, rank: int | None) -> Operation:
    op, include = POOLS[_word(given["algorithm"])]
    names = _common(given) | {"kernel": given["kernel"], "include_padding": include}
    return operation(op, len(given["kernel"]), names, {"x": given["src"]})


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names, found = _common(given), len(given["strides"])
        w = given["weights"]
        if isinstance(w, tuple):
            names["kernel"] = w[-found:]
            names["groups"] = w[0] if len(w) == found + 3 else 1
            if all(isinstance(n, int) for n in w):
                outer, inner = w[-found - 2 : -found]
                names |= {"in_channels": inner * names["groups"], "out_channels": outer * names["groups"]}
        return operation(op, found, names, {"x": given["src"]})

    return read


def _common(given: Given) -> dict[str, Any]:
    padding = tuple(zip(given["padding_l"], given["padding_r"], strict=True))
    found = {"stride": given["strides"], "padding": padding}
    if given.get("dilates") is not None:
        found["dilation"] = tuple(d + 1 for d in given["dilates"])  # oneDNN counts the holes
    return found


def _word(value: Any) -> str:
    return value.last if isinstance(value, Word) else str(value)


POOL = "propagation, algorithm, src, dst, strides, kernel"
FILTER = "propagation, algorithm, src, weights, bias, dst, strides, dilates, padding_l, padding_r"
FORMS = [
    *forms("pooling_v2_forward", f"{POOL}, dilates, padding_l, padding_r", _pool),
    *forms("pooling_forward", f"{POOL}, padding_l, padding_r", _pool),
    *forms("convolution_forward", FILTER, _conv("conv")),
    *forms("deconvolution_forward", FILTER, _conv("conv_transpose")),
]


def parse(text: str) -> Written:
    """C++'s braces and colons."""
    return cpp(text)


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Logical dimensions, wherever the memory has them."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The descriptor."""
    a = o.arguments
    both = pairs_of(a.get("padding", 0), rank)
    begin, end = _braces([lo for lo, _ in both]), _braces([hi for _, hi in both])
    strides = _braces(_each(a.get("stride", 1 if o.weighted else o.kernel), rank))
    dilates = _braces([d - 1 for d in _each(a.get("dilation", 1), rank)])
    propagation = "prop_kind::forward_training"
    if not o.weighted:
        name = "max" if o.op == "max_pool" else f"avg_{'in' if a.get('include_padding') else 'ex'}clude_padding"
        said: tuple[str, ...] = (propagation, f"algorithm::pooling_{name}", "src", "dst", strides, _braces(_each(o.kernel, rank)))
        return f"auto y = pooling_v2_forward::desc({', '.join((*said, dilates, begin, end))});"
    kind, groups = "convolution" if o.op == "conv" else "deconvolution", a.get("groups", 1)
    outer, inner = ("O", "I") if groups == 1 else (f"O/{groups}", f"I/{groups}")
    weights = _braces([*([groups] if groups > 1 else []), outer, inner, *_each(o.kernel, rank)])
    said = (propagation, f"algorithm::{kind}_direct", "src", weights, "bias", "dst", strides)
    return f"auto y = {kind}_forward::desc({', '.join((*said, dilates, begin, end))});"


def regrouped(groups: int, *, away: bool) -> str:
    """The weights of groups, which have an axis for the group; `away` takes it off."""
    if away:
        return "# w: its first two axes as one"
    return f"# w: its first axis in {groups} groups"


def _each(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, tuple) else [value] * rank


def _braces(values: list[Any]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """oneDNN has no primitive that pads."""
    return None


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str | None:
    """A part of a memory is no primitive either."""
    return None


def scale(factors: str) -> str | None:
    """A linear function of y, where one number serves all places."""
    if "[" in factors:
        return None
    above, slash, below = factors.strip("()").partition("/")
    number = f"{above}.f/{below}.f" if slash else f"{float(above)}f"
    return f"auto z = eltwise_forward::desc(prop_kind::forward_training, algorithm::eltwise_linear, dst, {number}, 0.f);"
