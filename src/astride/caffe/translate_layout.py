"""The layers that move values, cut and join them, or make blobs from nothing: Caffe's messages to layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import ArgumentError
from ..layers import Layer
from ..layers.argmax import ArgMax
from ..layers.batch_reindex import BatchReindex
from ..layers.concat import Concat
from ..layers.crop import Crop
from ..layers.dummy_data import DummyData
from ..layers.embed import Embed
from ..layers.filter import Filter
from ..layers.flatten import Flatten
from ..layers.im2col import Im2col
from ..layers.parameter import ParameterLayer
from ..layers.permute import Permute
from ..layers.reduction import Reduction
from ..layers.reshape import Reshape
from ..layers.silence import Silence
from ..layers.slice import Slice
from ..layers.split import Split
from ..layers.spp import SPP
from ..layers.tile import Tile
from ..net import Phase
from ..plan import PoolPlan, Shape, UnfoldPlan
from ..plan.reduce import Total
from ..proto import Message
from ..rules import caffe as rules
from .fields import filler, window_fields
from .state import enum_name

MOST_LEVELS = 16
"""A pyramid's last level has 2^15 bins an axis, which is more than any image has pixels."""


def _argmax(message: Message, phase: Phase) -> Layer:
    p = message.argmax_param
    return ArgMax(top_k=p.top_k, axis=p.axis if p.HasField("axis") else None, values=p.out_max_val)


def _batch_reindex(message: Message, phase: Phase) -> Layer:
    return BatchReindex()


def _concat(message: Message, phase: Phase) -> Layer:
    return Concat(axis=_axis(message.concat_param, "concat_dim"))


def _crop(message: Message, phase: Phase) -> Layer:
    return Crop(axis=message.crop_param.axis, offsets=tuple(message.crop_param.offset))


def _dummy_data(message: Message, phase: Phase) -> Layer:
    p = message.dummy_data_param
    return DummyData(_dummy_shapes(p, len(message.top)), [filler(each) for each in p.data_filler])


def _dummy_shapes(p: Message, tops: int) -> list[Shape]:
    """The shapes, which older texts give as num, channels, height and width, each once or once a top."""
    old = [tuple(getattr(p, name)) for name in ("num", "channels", "height", "width")]
    if not any(old):
        return [tuple(int(n) for n in shape.dim) for shape in p.shape]
    if len(p.shape) or any(len(sizes) not in (1, tops) for sizes in old):
        raise ArgumentError(
            "the tops' sizes are given by shape, or by num, channels, height and width once or once a top",
            given={"shape": len(p.shape), **dict(zip(("num", "channels", "height", "width"), old, strict=True))},
            required=f"one of the two forms, with 1 or {tops} of each size",
            because="Caffe, src/caffe/layers/dummy_data_layer.cpp",
            hint="shape { dim: 1 dim: 3 dim: 8 dim: 8 }",
        )
    return [tuple(int(sizes[i if len(sizes) > 1 else 0]) for sizes in old) for i in range(tops)]


def _embed(message: Message, phase: Phase) -> Layer:
    p = message.embed_param
    return Embed(
        p.input_dim,
        p.num_output,
        bias=p.bias_term,
        weight_filler=filler(p.weight_filler),
        bias_filler=filler(p.bias_filler),
    )


def _filter(message: Message, phase: Phase) -> Layer:
    return Filter()


def _flatten(message: Message, phase: Phase) -> Layer:
    return Flatten(axis=message.flatten_param.axis, end_axis=message.flatten_param.end_axis)


def _im2col(message: Message, phase: Phase) -> Layer:
    return Im2col(partial(_columns, fields=window_fields(message.convolution_param)), axis=message.convolution_param.axis)


def _columns(shape: Shape, dtype: str, *, fields: dict[str, Any]) -> UnfoldPlan:
    """The windows of a convolution with these fields."""
    return UnfoldPlan(dtype=dtype, axes=rules.convolution(shape, dtype, num_output=1, **fields).axes)


def _parameter(message: Message, phase: Phase) -> Layer:
    return ParameterLayer(tuple(int(n) for n in message.parameter_param.shape.dim))


def _permute(message: Message, phase: Phase) -> Layer:
    return Permute(tuple(message.permute_param.order))


def _reduction(message: Message, phase: Phase) -> Layer:
    p = message.reduction_param
    return Reduction(total=Total(enum_name(p, "operation").lower()), axis=p.axis, coeff=p.coeff)


def _reshape(message: Message, phase: Phase) -> Layer:
    p = message.reshape_param
    return Reshape(tuple(int(n) for n in p.shape.dim), axis=p.axis, num_axes=p.num_axes)


def _silence(message: Message, phase: Phase) -> Layer:
    return Silence()


def _slice(message: Message, phase: Phase) -> Layer:
    p = message.slice_param
    return Slice(axis=_axis(p, "slice_dim"), points=tuple(p.slice_point))


def _split(message: Message, phase: Phase) -> Layer:
    return Split()


def _spp(message: Message, phase: Phase) -> Layer:
    p = message.spp_param
    height, pool = p.pyramid_height, enum_name(p, "pool")
    if not 1 <= height <= MOST_LEVELS:
        raise ArgumentError(
            "a pyramid has at least one level",
            given={"pyramid_height": height},
            required=f"1 <= pyramid_height <= {MOST_LEVELS}: {height}",
            because="Caffe, src/caffe/layers/spp_layer.cpp",
            hint="pyramid_height: 3",
        )
    levels = [partial(_bins, bins=2**level, pool=pool, phase=phase.value) for level in range(height)]
    return SPP(levels, random=pool == "STOCHASTIC" and phase is Phase.TRAIN)


def _bins(shape: Shape, dtype: str, *, bins: int, pool: str, phase: str) -> PoolPlan:
    """A pooling to bins x bins windows: ceil(n / bins) wide, as far apart, half of what they lack padded on each side."""
    window: dict[str, Any] = {}
    for axis, n in zip("hw", shape[2:], strict=False):
        kernel = max(-(-n // bins), 1)
        pad = (kernel * bins - n + 1) // 2
        if pad >= kernel:
            raise ArgumentError(
                "the image is too small for a level of the pyramid",
                given={"size": n, "bins": bins},
                required=f"(kernel * bins - size + 1) / 2 < kernel = ceil(size / bins), on axis {axis}: {pad} < {kernel}",
                because="Caffe, src/caffe/layers/spp_layer.cpp and pooling_layer.cpp",
                hint="fewer levels, or a larger image",
            )
        window |= {f"kernel_{axis}": kernel, f"stride_{axis}": kernel, f"pad_{axis}": pad}
    return rules.pooling(shape, dtype, pool=pool, phase=phase, **window)


def _tile(message: Message, phase: Phase) -> Layer:
    return Tile(message.tile_param.tiles, axis=message.tile_param.axis)


def _axis(p: Message, old: str) -> int:
    """The axis, which older texts give under another name; that one counts from the front only."""
    if p.HasField(old) and p.HasField("axis"):
        raise ArgumentError(
            f"{old} is an older name of axis",
            given={old: getattr(p, old), "axis": p.axis},
            required="one of the two",
            hint=f"axis: {p.axis}",
        )
    return int(getattr(p, old) if p.HasField(old) else p.axis)


LAYOUT: dict[str, Callable[[Message, Phase], Layer]] = {
    "ArgMax": _argmax,
    "BatchReindex": _batch_reindex,
    "Concat": _concat,
    "Crop": _crop,
    "DummyData": _dummy_data,
    "Embed": _embed,
    "Filter": _filter,
    "Flatten": _flatten,
    "Im2col": _im2col,
    "Parameter": _parameter,
    "Permute": _permute,
    "Reduction": _reduction,
    "Reshape": _reshape,
    "SPP": _spp,
    "Silence": _silence,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
}
