"""Which of the algorithms computes a convolution: decided here, and nowhere else.

Each way says whether it takes a relation, by sizes at which it was measured faster than those behind it; the first that does is
taken. Neither the number of threads nor other calls count, so the same call gives the same numbers every time. What `astride
tune` measured on this machine goes before, unless `astride.use(tuned=False)`: it is remembered in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

from ... import settings
from . import (
    conv_planar,
    conv_planar_weights,
    conv_planes,
    conv_slabs,
    conv_subpixel,
    conv_tuned,
    conv_weights_packed,
    depthwise_first,
    depthwise_last,
    depthwise_moved,
    winograd,
    winograd_weights,
)
from .conv_gather import Relation


@dataclass(frozen=True, slots=True)
class Situation:
    """What is to be computed: a relation over so many images, channels first or last, with Winograd tiles up to a size."""

    relation: Relation
    images: int
    first: bool
    winograd: int


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm. `declines` gives the reason why it does not take a situation, None if it does."""

    name: str
    says: str
    declines: Callable[[Situation], str | None]


def _planar(takes: Callable[[Relation, int], bool], reason: str) -> Callable[[Situation], str | None]:
    """The answer of a way that works on planes."""

    def declines(s: Situation) -> str | None:
        return "channels come last" if not s.first else None if takes(s.relation, s.images) else reason

    return declines


def _rows(s: Situation) -> str | None:
    if s.first:
        return "channels come first"
    return None if depthwise_last.takes_rows(s.relation) else "groups have many channels, or windows are wide"


def _slabs(s: Situation) -> str | None:
    if not s.first and not conv_slabs.crowded(s.relation):
        return "channels come last, and pixels do not crowd the cache"
    return None if conv_slabs.takes(s.relation, s.images, s.first) else "slabs do not fit into scratch memory"


def _subpixel(s: Situation) -> str | None:
    if not conv_subpixel.takes(s.relation, s.images, s.first):
        return "pixels do not lie apart, or cells of windows are not whole"
    return None if conv_subpixel.better(s.relation) else "phases fill vectors by themselves"


def _columns(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    if not conv_planar.takes(s.relation, s.images):
        return "pixels are stretched, or rows do not fit into scratch memory"
    return None if conv_planar.better(s.relation, s.images) else "groups have many input channels, or rows are short"


def _packed(s: Situation) -> str | None:
    takes = conv_weights_packed.takes(s.relation, s.images, s.first)
    return None if takes else "chunks are not worth packing, or do not fit into scratch memory"


def _columns_weights(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    if not conv_planar_weights.takes(s.relation, s.images):
        return "weights are turned round, or slabs do not fit into scratch memory"
    better = conv_planar_weights.better(s.relation, s.images)
    return None if better else "groups have many input channels, rows are short, or arrays small"


NO_ROWS = "groups have many channels, or rows of windows are short or wide"
GATHER = (
    Way(
        "planes",
        "single pixels: products of matrices whose rows are planes",
        _planar(conv_planes.takes, "windows are no single pixels, or planes small"),
    ),
    Way("depthwise planes", "each channel by itself, columns of a plane as lanes", _planar(depthwise_first.takes, NO_ROWS)),
    Way("depthwise moved", "small groups, channels moved into lanes in blocks", _planar(depthwise_moved.takes, NO_ROWS)),
    Way("depthwise rows", "small groups, channels as lanes", _rows),
    Way("winograd", "Winograd's form", lambda s: winograd.declines(s.relation, s.winograd)),
    Way("sub-pixel", "direct sums of products, all phases of a column as channels", _subpixel),
    Way("columns", "direct sums of products, columns of a plane as lanes", _columns),
    Way("slabs", "direct sums of products, x packed in slabs", _slabs),
    Way("tiles", "direct sums of products", lambda s: None),
)
"""How y and the gradient of x are computed, the first that takes it."""

WEIGHTS = (
    Way("winograd", "Winograd's form", lambda s: winograd_weights.declines(s.relation, s.images, s.winograd)),
    Way("columns", "direct sums of products, columns of a plane as lanes", _columns_weights),
    Way("packed", "direct sums of products, from packed chunks", _packed),
    Way("tiles", "direct sums of products", lambda s: None),
)
"""How the gradient of the weights is."""

KINDS = {"gather": GATHER, "weights": WEIGHTS}

_forced: ContextVar[str | None] = ContextVar("astride_conv_way", default=None)


def gathering(relation: Relation, images: int, first: bool) -> str:
    """The name of the way that computes a relation."""
    return _chosen("gather", relation, images, first)


def weighing(relation: Relation, images: int, first: bool) -> str:
    """The name of the way that computes the gradient of a relation's weights."""
    return _chosen("weights", relation, images, first)


def _chosen(kind: str, relation: Relation, images: int, first: bool) -> str:
    now = settings.current()
    return _forced.get() or _decided(kind, relation, images, first, now.winograd, now.tuned)


@lru_cache(maxsize=2048)
def _decided(kind: str, relation: Relation, images: int, first: bool, most: int, tuned: bool) -> str:
    possible = candidates(kind, relation, images, first, most)
    remembered = conv_tuned.recall(key(kind, relation, images, first, most)) if tuned else None
    return remembered if remembered in possible else possible[0]


def candidates(kind: str, relation: Relation, images: int, first: bool, most: int) -> list[str]:
    """The ways that take it, the one chosen without measuring first."""
    s = Situation(relation, images, first, most)
    if not (images and relation.inputs and relation.outputs and all(axis.size and axis.out for axis in relation.axes)):
        return [KINDS[kind][-1].name]  # nothing is to be computed, and sizes of nothing decide nothing
    return [way.name for way in KINDS[kind] if way.declines(s) is None]


def key(kind: str, relation: Relation, images: int, first: bool, most: int) -> str:
    """What is remembered by: all that the choice may depend on."""
    axes = ";".join(
        f"{a.size},{a.kernel},{a.stride},{a.dilation},{a.pad_lo},{a.pad_hi},{a.out},{a.input_dilation}" for a in relation.axes
    )
    parts = (kind, relation.dtype, images, relation.inputs, relation.outputs, relation.groups, axes, int(first), most)
    return "|".join(map(str, (*parts, int(relation.swapped), int(relation.flip))))


@contextmanager
def forced(name: str) -> Iterator[None]:
    """Take this way, which must be among the candidates, whatever was decided: for measuring it."""
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def forget() -> None:
    """Decide anew: after something was measured."""
    _decided.cache_clear()


def explained(kind: str, relation: Relation, images: int, first: bool) -> str:
    """The way taken and why, for people: "winograd 2x2: Winograd's form"."""
    now = settings.current()
    name = _chosen(kind, relation, images, first)
    ways = {way.name: way for way in KINDS[kind]}
    tile = winograd.tile_of(relation, now.winograd) if name == "winograd" else 0
    said = f"{name}{f' {tile}x{tile}' if tile else ''} ({ways[name].says})"
    if name != candidates(kind, relation, images, first, now.winograd)[0]:
        return f"{said}, measured on this machine"
    if name != "winograd" and relation.axes and not relation.depthwise:
        return f"{said}; not Winograd's form: {ways['winograd'].declines(Situation(relation, images, first, now.winograd))}"
    return said
