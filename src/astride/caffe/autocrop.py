"""Crop layers as HED's and FCN's first Caffe had them: without offsets, which that Caffe found itself so that the bottoms align.

BVLC's Caffe reads the same text as offsets of 0. Nothing in it says whose it is, so networks in which both would differ get a
note, and the dialect "autocrop" writes the offsets that align into the layers.

A blob's map is, for height and width, (scale, shift): position i of the blob it began from is position scale * i + shift of it.
Source: longjon/caffe, src/caffe/layers/crop_layer.cpp, where only the first bottom of each layer counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..proto import Message
from .fields import pooling_fields, window_fields
from .journal import Note

DIALECT = "autocrop"
SOURCE = "longjon/caffe, src/caffe/layers/crop_layer.cpp"

IN_PLACE = frozenset({
    "AbsVal", "BN", "BNLL", "BatchNorm", "Bias", "Clip", "Concat", "Dropout", "ELU", "Eltwise", "Exp", "LRN", "Log", "MVN",
    "Normalize", "PReLU", "Power", "ReLU", "ReLU6", "Scale", "Sigmoid", "Softmax", "Split", "Swish", "TanH", "Threshold",
})  # fmt: skip
"""Types whose top lies where their first bottom lies."""

Map = tuple[tuple[Fraction, Fraction], ...]
SAME: Map = ((Fraction(1), Fraction(0)),) * 2


class Place(NamedTuple):
    """Where a blob lies: in the blob it began from, by a map."""

    root: str
    map: Map


def align(layers: Iterable[tuple[Message, int | None]], dialect: str) -> list[Note]:
    """Look at every Crop layer without offsets, given with its line.

    In the dialect "autocrop" the layers get the offsets that align their bottoms; in others those that would get some other
    than 0, and whose text says nothing of the crop at all, are noted.
    Raises ArgumentError: in that dialect, bottoms that no offset aligns.
    """
    chosen = DIALECT in dialect.split("+")
    places: dict[str, Place] = {}
    notes = []
    for layer, line in layers:
        if layer.type == "Crop" and len(layer.bottom) == 2 and not len(layer.crop_param.offset):
            offsets, why = _offsets(*(places.get(blob, Place(blob, SAME)) for blob in layer.bottom))
            if chosen:
                if offsets is None:
                    raise _unaligned(layer, line, why)
                layer.crop_param.axis = 2
                layer.crop_param.offset.extend(offsets)
            elif offsets is not None and any(offsets) and not layer.HasField("crop_param"):
                notes.append(Note(_warning(layer.name, offsets), line, lost=True))
        _follow(layer, places)
    return notes


def _warning(name: str, offsets: list[int]) -> str:
    said = " ".join(f"offset: {offset}" for offset in (offsets if offsets[0] != offsets[1] else offsets[:1]))
    return (
        f"Crop \"{name}\" gives no offset and is cut from 0, as in Caffe; HED's and FCN's first Caffe aligned the bottoms: "
        f'if the network is theirs, crop_param {{ {said} }} or dialect="{DIALECT}"'
    )


def _unaligned(layer: Message, line: int | None, why: str) -> ArgumentError:
    return ArgumentError(
        "no offset aligns the bottoms",
        given={"bottoms": list(layer.bottom)} | ({"line": line} if line else {}),
        required=why,
        because=SOURCE,
        hint="crop_param { offset: ... }",
        operator=f'layer "{layer.name}" (Crop)',
    )


def _offsets(first: Place, second: Place) -> tuple[list[int] | None, str]:
    """Where the second lies in the first; None, and why, where no offset says it."""
    if first.root != second.root:
        return None, "bottoms that come from one blob by layers that keep places"
    found = []
    for (scale, shift), (scale2, shift2) in zip(first.map, second.map, strict=True):
        if scale != scale2:
            return None, f"pixels of one size: {scale} and {scale2} to one of {first.root}"
        offset = shift - shift2
        if offset < 0 or offset.denominator != 1:
            return None, f"a whole offset that is not negative: {float(offset):g}"
        found.append(int(offset))
    return found, ""


def _follow(layer: Message, places: dict[str, Place]) -> None:
    """Note where the tops of a layer lie. A blob that is written again stays where its first layer put it."""
    step = _map(layer) if len(layer.bottom) else None
    for top in layer.top:
        if top in places:
            continue
        if step is None:
            places[top] = Place(top, SAME)
        else:
            root, before = places.get(layer.bottom[0], Place(layer.bottom[0], SAME))
            after = tuple((s * s0, s * t0 + t) for (s, t), (s0, t0) in zip(step, before, strict=True))
            places[top] = Place(root, after)


def _map(layer: Message) -> Map | None:
    """Where a layer's top lies in its first bottom; None where that has no place in it."""
    if layer.type in IN_PLACE:
        return SAME
    if layer.type == "Crop":
        offset = [Fraction(n) for n in layer.crop_param.offset] or [Fraction(0)]
        return ((Fraction(1), -offset[-2:][0]), (Fraction(1), -offset[-1]))
    if layer.type == "Pooling":
        return None if layer.pooling_param.global_pooling else _window(pooling_fields(layer.pooling_param), forward=True)
    if layer.type in ("Convolution", "Deconvolution"):
        return _window(window_fields(layer.convolution_param), forward=layer.type == "Convolution")
    return None


def _window(fields: dict[str, Any], *, forward: bool) -> Map | None:
    """A window's map, backwards for a transposed one."""
    found = []
    for place, axis in enumerate("hw"):
        kernel, stride, pad, dilation = (
            _on(fields, name, axis, place, default)
            for name, default in (("kernel", 0), ("stride", 1), ("pad", 0), ("dilation", 1))
        )
        if kernel < 1 or stride < 1:
            return None  # the layer itself will say so
        shift = Fraction((kernel - 1) * dilation, 2) - pad
        found.append((Fraction(1, stride), -shift / stride) if forward else (Fraction(stride), shift))
    return tuple(found)


def _on(fields: dict[str, Any], name: str, axis: str, place: int, default: int) -> int:
    """A number of one axis: its own, or that of all."""
    own = fields.get(f"{name}_{axis}")
    given = own if own is not None else fields.get("kernel_size" if name == "kernel" else name, default)
    values = [given] if isinstance(given, int) else list(given)
    return int(values[min(place, len(values) - 1)]) if values else default


__all__ = ["DIALECT", "align"]
