"""What tf.nn takes for ksize, strides, padding and data_format, as one value per spatial axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..rules._arguments import whole

FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
SOURCE = "TensorFlow 2.21, tensorflow/python/ops/nn_ops.py"


def rank_of(input: Any) -> int:
    """The number of spatial axes."""
    return as_array(input, "input").ndim - 2


def layout_of(data_format: str | None, rank: int) -> tuple[str, bool]:
    """(layout, whether channels come first); None is channels last."""
    if rank not in FORMATS:
        raise ArgumentError("input has the wrong rank", required=f"input.ndim is 3, 4 or 5: {rank + 2}", because=SOURCE)
    known = FORMATS[rank]
    if data_format is None:
        return "channels_last", False
    if data_format not in known:
        raise ArgumentError(
            "there is no such data_format for this rank",
            given={"data_format": data_format},
            required=f"{known[0]!r} or {known[1]!r}",
            because=SOURCE,
            hint=f"data_format={known[0]!r}",
        )
    return ("channels_first", True) if data_format == known[1] else ("channels_last", False)


def along(value: Any, rank: int, first: bool, name: str) -> Any:
    """One number, one per spatial axis, or one per axis with 1 for batch and channels."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return value
    values = tuple(value)
    if len(values) == 1:
        return values[0]
    if len(values) == rank:
        return values
    if len(values) != rank + 2:
        raise ArgumentError(
            f"{name} has the wrong length",
            given={name: value},
            required=f"1, {rank} or {rank + 2} values: {len(values)}",
            because=SOURCE,
        )
    batch, channel = values[0], values[1 if first else -1]
    if batch != 1 or channel != 1:
        raise ArgumentError(
            f"{name} moves along the batch or the channels",
            given={name: value},
            required=f"1 for both: {batch} and {channel}",
            because=SOURCE,
        )
    return values[2:] if first else values[1:-1]


def along_or_ones(value: Any, rank: int, first: bool) -> Any:
    """`along` for dilations, where None is 1."""
    return 1 if value is None else along(value, rank, first, "dilations")


def padding_of(padding: Any, rank: int, first: bool) -> Any:
    """ "valid", "same", or pairs of the spatial axes out of [[0, 0], [top, bottom], ..., [0, 0]]."""
    if isinstance(padding, str):
        return _word(padding)
    pairs = tuple((int(lo), int(hi)) for lo, hi in padding) if _are_pairs(padding) else ()
    if len(pairs) != rank + 2 or pairs[0] != (0, 0) or pairs[1 if first else -1] != (0, 0):
        raise ArgumentError(
            "padding has the wrong form",
            given={"padding": padding},
            required=f"{rank + 2} pairs, [0, 0] for batch and channels",
            because=SOURCE,
            hint='padding="SAME"',
        )
    return pairs[2:] if first else pairs[1:-1]


def words(padding: Any, function: str) -> str:
    """The padding of functions that take no amounts."""
    if not isinstance(padding, str):
        raise ArgumentError(
            f"{function} takes no explicit padding", given={"padding": padding}, because=SOURCE, hint='padding="SAME"'
        )
    _word(padding)
    return padding


def spatial_of(output_shape: Any, x: Array, channels: int, rank: int, first: bool) -> tuple[int, ...]:
    """The sizes out of `output_shape`: (N, *size, C) or (N, C, *size), or the sizes alone."""
    values = tuple(whole(v, "output_shape") for v in np.asarray(output_shape).reshape(-1))
    if len(values) == rank:
        return values
    wanted = (values[0], values[1 if first else -1]) if len(values) == rank + 2 else None
    if wanted != (x.shape[0], channels):
        raise ArgumentError(
            "output_shape does not fit",
            given={"output_shape": values, "input": x},
            required=f"{rank + 2} numbers, batch {x.shape[0]} and channels {channels}",
            because=SOURCE,
        )
    return values[2:] if first else values[1:-1]


def _word(padding: str) -> str:
    if padding not in ("VALID", "SAME"):
        raise ArgumentError("padding has no such value", given={"padding": padding}, required='"VALID" or "SAME"', because=SOURCE)
    return padding.lower()


def _are_pairs(padding: Any) -> bool:
    return isinstance(padding, Sequence) and all(isinstance(p, Sequence) and len(p) == 2 for p in padding)
