"""Which of the algorithms computes a convolution: decided here, and nowhere else.

Each way says whether it can compute a relation, and counts what it has to do (conv_cost.py), from which follows how long it
probably takes; the one that takes least is taken. Neither the number of threads nor other calls count, so the same call gives the
same numbers every time. What `astride tune` measured on this machine goes before, unless `astride.use(tuned=False)`: it is
remembered in a file.

Winograd's form rounds differently, so whether it computes y is decided as for one image: the same whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache

from ... import settings
from ...errors import ArgumentError
from . import (
    conv_cost,
    conv_few,
    conv_planar,
    conv_planar_weights,
    conv_planes,
    conv_short,
    conv_slabs,
    conv_subpixel,
    conv_tuned,
    conv_weights_matrix,
    conv_weights_packed,
    depthwise_first,
    depthwise_last,
    depthwise_moved,
    depthwise_weights,
    depthwise_weights_first,
    depthwise_whole,
    depthwise_whole_weights,
    winograd,
)
from .conv_cost import Situation, Work
from .conv_relation import Relation


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm. `declines` gives the reason why it cannot compute a situation, None if it can; `work` is what it has to do
    then, None of a way that is taken wherever it is possible, before all behind it."""

    name: str
    says: str
    declines: Callable[[Situation], str | None]
    work: Callable[[Situation], Work] | None = None

    def seconds(self, s: Situation) -> float:
        """How long it probably takes."""
        return 0.0 if self.work is None else conv_cost.seconds(self.work(s))


def _planar(takes: Callable[[Relation, int], bool], reason: str) -> Callable[[Situation], str | None]:
    """The answer of a way that works on planes."""

    def declines(s: Situation) -> str | None:
        return "channels come last" if not s.first else None if takes(s.relation, s.images) else reason

    return declines


def _rows(s: Situation) -> str | None:
    if s.first:
        return "channels come first"
    return None if depthwise_last.takes_rows(s.relation) else "groups have many channels, or windows are wide"


def _grouped(s: Situation) -> str | None:
    return None if depthwise_weights.takes(s.relation) else "groups have many channels, or windows are wide"


def _planar_weights(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    takes = depthwise_weights_first.takes(s.relation) and depthwise_weights_first.better(s.relation)
    return None if takes else "groups have several channels, windows many taps, or columns fill no lanes"


def _whole_weights(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    return None if depthwise_whole_weights.takes(s.relation) else NO_PLANES


def _slabs(s: Situation) -> str | None:
    if not s.first and not conv_slabs.crowded(s.relation):
        return "channels come last, and pixels do not crowd the cache"
    return None if conv_slabs.takes(s.relation, s.images, s.first) else "slabs do not fit into scratch memory"


def _subpixel(s: Situation) -> str | None:
    takes = conv_subpixel.takes(s.relation, s.images, s.first)
    return None if takes else "pixels do not lie apart, or cells of windows are not whole"


def _few(s: Situation) -> str | None:
    takes = conv_few.takes(s.relation, s.images, s.first)
    return None if takes else "output channels are not few, or windows are strided"


def _columns(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    takes = conv_planar.takes(s.relation, s.images)
    return None if takes else "pixels are stretched, or rows do not fit into scratch memory"


def _short(s: Situation) -> str | None:
    if s.first:
        return "channels come first"
    return None if conv_short.takes(s.relation) else "there are several groups, sums are long, or pixels stretched"


def _packed(s: Situation) -> str | None:
    return None if conv_weights_packed.takes(s.relation, s.images) else "chunks do not fit into scratch memory"


def _matrix(s: Situation) -> str | None:
    return None if conv_weights_matrix.takes(s.relation) else "windows are no single pixels"


def _columns_weights(s: Situation) -> str | None:
    if not s.first:
        return "channels come last"
    takes = conv_planar_weights.takes(s.relation, s.images)
    return None if takes else "weights are turned round, or slabs do not fit into scratch memory"


NO_ROWS = "groups have many channels, or rows of windows are short or wide"
NO_PLANES = "groups have several channels, or planes are too large to be written out"
GATHER = (
    Way(
        "planes",
        "single pixels: products of matrices whose rows are planes",
        _planar(conv_planes.takes, "windows are no single pixels"),
        conv_cost.planes,
    ),
    Way(
        "depthwise whole",
        "each channel by itself, small planes written out",
        _planar(depthwise_whole.takes, NO_PLANES),
        conv_cost.depthwise_whole_planes("depthwise whole"),
    ),
    Way(
        "depthwise planes",
        "each channel by itself, columns of a plane as lanes",
        _planar(depthwise_first.takes, NO_ROWS),
        conv_cost.depthwise("depthwise planes"),
    ),
    Way(
        "depthwise moved",
        "small groups, channels moved into lanes in blocks",
        _planar(depthwise_moved.takes, NO_ROWS),
        conv_cost.depthwise("depthwise moved"),
    ),
    Way("depthwise rows", "small groups, channels as lanes", _rows, conv_cost.depthwise("depthwise rows")),
    Way("winograd", "Winograd's form", lambda s: winograd.declines(s.relation, s.winograd), conv_cost.winograd_form),
    Way("sub-pixel", "direct sums of products, all phases of a column as channels", _subpixel, conv_cost.subpixel),
    Way("few outputs", "direct sums of products, columns of one phase as lanes", _few, conv_cost.few),
    Way("columns", "direct sums of products, columns of a plane as lanes", _columns, conv_cost.columns),
    Way("slabs", "direct sums of products, x packed in slabs", _slabs, conv_cost.slabs),
    Way("short", "direct sums of few products, all channels of a few pixels at once", _short, conv_cost.short),
    Way("tiles", "direct sums of products", lambda s: None, conv_cost.tiles),
)
"""How y and the gradient of x are computed; of ways that probably take as long, the first."""

WEIGHTS = (
    Way("winograd", "Winograd's form", lambda s: winograd.declines(s.relation, s.winograd), conv_cost.weights_winograd),
    Way(
        "depthwise whole",
        "each channel by itself, small planes written out",
        _whole_weights,
        conv_cost.depthwise_whole_planes("weights depthwise whole"),
    ),
    Way(
        "depthwise planes",
        "each channel by itself, columns of a plane as lanes",
        _planar_weights,
        conv_cost.depthwise("weights depthwise planes"),
    ),
    Way("depthwise", "small groups, channels as lanes", _grouped, conv_cost.depthwise("weights depthwise")),
    Way("matrix", "single pixels: a product of matrices, in chunks of pixels", _matrix, conv_cost.weights_matrix),
    Way("columns", "direct sums of products, columns of a plane as lanes", _columns_weights, conv_cost.weights_columns),
    Way("packed", "direct sums of products, from packed chunks", _packed, conv_cost.weights_packed),
    Way("tiles", "direct sums of products", lambda s: None, conv_cost.weights_tiles),
)
"""How the gradient of the weights is."""

KINDS = {"gather": GATHER, "weights": WEIGHTS}

SHOWN = 4
"""Ways whose times people are shown."""

_forced: ContextVar[str | None] = ContextVar("astride_conv_way", default=None)


def gathering(relation: Relation, images: int, first: bool) -> str:
    """The name of the way that computes a relation."""
    return _chosen("gather", relation, images, first)


def weighing(relation: Relation, images: int, first: bool) -> str:
    """The name of the way that computes the gradient of a relation's weights."""
    return _chosen("weights", relation, images, first)


def _chosen(kind: str, relation: Relation, images: int, first: bool) -> str:
    now, name = settings.current(), _forced.get()
    way = next((way for way in KINDS[kind] if way.name == name), None)
    if way is not None:
        return _allowed(way, kind, relation, images, first, now.winograd)
    return _decided(kind, relation, images, first, now.winograd, now.tuned)


@lru_cache(maxsize=2048)
def _allowed(way: Way, kind: str, relation: Relation, images: int, first: bool, most: int) -> str:
    """The name of a way that is forced. Raises ArgumentError if it is no candidate: its kernel would read what is not there."""
    possible = candidates(kind, relation, images, first, most)
    if way.name not in possible:
        raise ArgumentError(
            "this way cannot compute the convolution",
            given={"way": way.name},
            required=f"one of {', '.join(possible)}",
            because=way.declines(Situation(relation, images, first, most)) or "nothing is to be computed",
            operator="conv",
        )
    return way.name


@lru_cache(maxsize=2048)
def _decided(kind: str, relation: Relation, images: int, first: bool, most: int, tuned: bool) -> str:
    possible = candidates(kind, relation, images, first, most)
    remembered = conv_tuned.recall(key(kind, relation, images, first, most)) if tuned else None
    return remembered if remembered in possible else possible[0]


def candidates(kind: str, relation: Relation, images: int, first: bool, most: int) -> list[str]:
    """The ways that can compute it, the one chosen without measuring first."""
    return list(predicted(kind, relation, images, first, most))


def predicted(kind: str, relation: Relation, images: int, first: bool, most: int) -> dict[str, float]:
    """The same, with the seconds that each probably takes on one thread; in the order in which they are preferred."""
    if not (images and relation.inputs and relation.outputs and all(axis.size and axis.out for axis in relation.axes)):
        return {KINDS[kind][-1].name: 0.0}  # nothing is to be computed, and sizes of nothing decide nothing
    s = Situation(relation, images, first, most)
    found = _predicted(kind, s)
    if kind == "gather" and "winograd" in found and images > 1:
        wins = next(iter(_predicted(kind, replace(s, images=1)))) == "winograd"
        if wins != (next(iter(found)) == "winograd"):
            others = {name: time for name, time in found.items() if name != "winograd"}
            own = {"winograd": found["winograd"]}
            found = own | others if wins else dict([next(iter(others.items()))]) | own | others
    return found


def _predicted(kind: str, s: Situation) -> dict[str, float]:
    """The ways that can compute it, the one that probably takes least first."""
    found = {way.name: way.seconds(s) for way in KINDS[kind] if way.declines(s) is None}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def key(kind: str, relation: Relation, images: int, first: bool, most: int) -> str:
    """What is remembered by: all that the choice may depend on."""
    axes = ";".join(
        f"{a.size},{a.kernel},{a.stride},{a.dilation},{a.pad_lo},{a.pad_hi},{a.out},{a.input_dilation}" for a in relation.axes
    )
    parts = (kind, relation.dtype, images, relation.inputs, relation.outputs, relation.groups, axes, int(first), most)
    return "|".join(map(str, (*parts, int(relation.swapped), int(relation.flip))))


def described(key: str) -> str:
    """A key for people: "y, float32: 8 images of 64x56x56 to 64x56x56, 3x3, stride 1x1, channels first". What is called dx may
    be a transposed convolution as well."""
    kind, dtype, images, inputs, outputs, groups, text, first, _, swapped, _ = key.split("|")
    axes = [axis.split(",") for axis in text.split(";")] if text else []
    sizes, kernels, strides, dilations, _, _, out, stretched = zip(*axes, strict=True) if axes else [()] * 8
    what = "dw" if kind == "weights" else "dx" if swapped == "1" else "y"
    parts = [f"{what}, {dtype}: {images} image{'' if images == '1' else 's'}"]
    parts[0] += f" of {'x'.join([inputs, *sizes])} to {'x'.join([outputs, *out])}"
    parts += ["x".join(kernels) or "no axes", f"stride {'x'.join(strides)}"]
    parts += [f"{word} {'x'.join(of)}" for word, of in (("dilation", dilations), ("stretched", stretched)) if set(of) - {"1"}]
    parts += [f"{groups} groups"] * (groups != "1") + ["channels first" if first == "1" else "channels last"]
    return ", ".join(parts)


@contextmanager
def forced(name: str) -> Iterator[None]:
    """Take this way whatever was decided, for measuring it: for y and the gradient of x, or for that of the weights, whichever
    have a way of this name. Where it is no candidate ArgumentError is raised."""
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def forget() -> None:
    """Decide anew: after something was measured."""
    _decided.cache_clear()


def explained(kind: str, relation: Relation, images: int, first: bool) -> str:
    """The way taken and why, for people: "winograd 2x2 (Winograd's form); predicted 1.2 ms, slabs 2.1 ms"."""
    now = settings.current()
    name = _chosen(kind, relation, images, first)
    times = predicted(kind, relation, images, first, now.winograd)
    ways = {way.name: way for way in KINDS[kind]}
    said = f"{_titled(name, relation)} ({ways[name].says})"
    if now.tuned and conv_tuned.recall(key(kind, relation, images, first, now.winograd)) == name:
        measured = conv_tuned.entries()[key(kind, relation, images, first, now.winograd)]["ms"]
        return f"{said}; measured on this machine: {_listed(name, measured, relation)}"
    why = f"{said}; predicted: {_listed(name, {way: 1e3 * time for way, time in times.items()}, relation)}"
    if "winograd" not in times and relation.axes and not relation.depthwise:
        return f"{why}; not Winograd's form: {ways['winograd'].declines(Situation(relation, images, first, now.winograd))}"
    return why


def _listed(name: str, ms: dict[str, float], relation: Relation) -> str:
    """Milliseconds of the way taken and of the others: "slabs 2.1 ms, tiles 2.3 ms"."""
    order = [name, *(other for other in sorted(ms, key=ms.__getitem__) if other != name)][:SHOWN]
    return ", ".join(f"{_titled(way, relation)} {ms[way]:.3g} ms" for way in order if way in ms)


def _titled(name: str, relation: Relation) -> str:
    """A way's name, with the size of Winograd's tiles."""
    tile = winograd.tile_of(relation, settings.current().winograd) if name == "winograd" else 0
    return f"{name} {tile}x{tile}" if tile else name
