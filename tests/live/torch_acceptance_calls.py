"""Calls of torch.nn.functional that differ in dtype, rank and sizes of zero: every combination, in a fixed order."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.live.torch_calls import Call

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64")
ORDERS = (1.0, 2.0, 0.5, 3, 2, -1.0, -1, 0.0, 0, math.inf, -math.inf)
OPS = ("max_pool", "avg_pool", "lp_pool", "adaptive_pool", "fractional_pool", "max_unpool", "conv", "conv_transpose", "columns")
SIZE = {1: 6, 2: 5, 3: 4}


def calls(op: str) -> Iterator[Call]:
    """Every combination for one operator, in one to three dimensions."""
    for rank, dtype in itertools.product((1, 2, 3), DTYPES):
        yield from {
            "max_pool": _max,
            "avg_pool": _average,
            "lp_pool": _norm,
            "adaptive_pool": _adaptive,
            "fractional_pool": _fractional,
            "max_unpool": _unpool,
            "conv": _conv,
            "conv_transpose": _transposed,
            "columns": _columns,
        }[op](rank, dtype)


def filled(shape: tuple[int, ...], dtype: str, *, wide: bool = False) -> Any:
    """Small whole numbers, negative ones where the type has them; `wide`: over the whole range of an integer type."""
    rng = np.random.default_rng([*shape, zlib.crc32(dtype.encode())])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if wide else (max(limits.min, -3), 4)
        return rng.integers(low, high, shape, dtype, endpoint=True)
    if dtype == "bfloat16":
        import ml_dtypes

        return rng.integers(-3, 5, shape).astype(ml_dtypes.bfloat16)
    return rng.integers(-3, 5, shape).astype(dtype)


def shapes(rank: int) -> tuple[tuple[int, ...], ...]:
    """Batched, without a batch, and with nothing in one place or two."""
    n = (SIZE[rank],) * rank
    return (
        (2, 3, *n), (3, *n), (0, 3, *n), (2, 0, *n), (0, *n), (0, 0, *n), (2, 3, *n[1:], 0), (0, 3, *n[1:], 0),
        (2, 3, 0, *n[1:]), (2, 3, *n[1:], 1), n, (1, 2, 3, *n),
    )  # fmt: skip


def _max(rank: int, dtype: str) -> Iterator[Call]:
    for shape, indices, window in itertools.product(
        shapes(rank), (False, True), ({}, {"stride": 1, "padding": 1}, {"ceil_mode": True, "dilation": 2})
    ):
        yield Call(f"max_pool{rank}d", (filled(shape, dtype, wide=True),), (2,), {**window, "return_indices": indices})


def _average(rank: int, dtype: str) -> Iterator[Call]:
    for shape, window in itertools.product(shapes(rank), ({}, {"stride": 1, "padding": 1}, {"ceil_mode": True})):
        yield Call(f"avg_pool{rank}d", (filled(shape, dtype),), (2,), window)


def _norm(rank: int, dtype: str) -> Iterator[Call]:
    for order in ORDERS:
        for shape in shapes(rank) if order in (2, 3, math.inf) else shapes(rank)[:2]:
            yield Call(f"lp_pool{rank}d", (filled(shape, dtype),), (order, 2), {"ceil_mode": True})


def _adaptive(rank: int, dtype: str) -> Iterator[Call]:
    for shape, size in itertools.product(shapes(rank), (2, 1, 0)):
        yield Call(f"adaptive_avg_pool{rank}d", (filled(shape, dtype),), (size,), {})
        yield Call(f"adaptive_max_pool{rank}d", (filled(shape, dtype),), (size,), {})
        yield Call(f"adaptive_max_pool{rank}d", (filled(shape, dtype),), (size,), {"return_indices": True})


def _fractional(rank: int, dtype: str) -> Iterator[Call]:
    for shape in shapes(rank) if rank > 1 else ():
        lead = (shape[0] if len(shape) == rank + 2 else 1, shape[-rank - 1] if len(shape) > rank else 1)
        samples = np.zeros_like(filled((*lead, rank), dtype))
        yield Call(f"fractional_max_pool{rank}d", (filled(shape, dtype),), (2,), {"output_size": 2, "_random_samples": samples})


def _unpool(rank: int, dtype: str) -> Iterator[Call]:
    for shape in shapes(rank):
        places = np.arange(math.prod(shape), dtype=np.int64).reshape(shape) % max(math.prod(shape[-rank:]), 1)
        yield Call(f"max_unpool{rank}d", (filled(shape, dtype), places), (2,), {})


def _conv(rank: int, dtype: str) -> Iterator[Call]:
    for n, size, kernel in itertools.product((2, 0, None), (SIZE[rank], 0, 1), (2, 1, 0)):
        for (inner, outer, groups), window in itertools.product(CHANNELS, WINDOWS):
            x = filled((*(() if n is None else (n,)), inner * groups, *(SIZE[rank],) * (rank - 1), size), dtype, wide=True)
            w = filled((outer, inner, *(kernel,) * rank), dtype, wide=True)
            bias = () if groups > 1 else (filled((outer,), dtype, wide=True),)
            yield Call(f"conv{rank}d", (x, w, *bias), (), {**window, "groups": groups})


CHANNELS = ((2, 3, 1), (1, 4, 2), (0, 3, 1), (2, 0, 1), (0, 0, 1), (0, 4, 2), (2, 3, 2), (1, 0, 2), (1, 2, 2))
WINDOWS: tuple[dict[str, Any], ...] = ({}, {"padding": 1, "stride": 2}, {"dilation": 2}, {"padding": "same"})


def _transposed(rank: int, dtype: str) -> Iterator[Call]:
    windows: tuple[dict[str, Any], ...] = ({}, {"padding": 1, "stride": 2}, {"dilation": 2, "output_padding": 1})
    for n, size, kernel in itertools.product((2, 0, None), (3, 0, 1), (2, 1, 0)):
        for (inner, outer, groups), window in itertools.product(CHANNELS[:-1], windows):
            x = filled((*(() if n is None else (n,)), inner * groups, *(3,) * (rank - 1), size), dtype, wide=True)
            w = filled((inner * groups, outer, *(kernel,) * rank), dtype, wide=True)
            bias = () if groups > 1 else (filled((outer,), dtype, wide=True),)
            yield Call(f"conv_transpose{rank}d", (x, w, *bias), (), {**window, "groups": groups})


def _columns(rank: int, dtype: str) -> Iterator[Call]:
    if rank != 2:
        return
    for shape, window in itertools.product(shapes(2), ({}, {"padding": 1, "stride": 2})):
        yield Call("unfold", (filled(shape, dtype),), (2,), window)
    for shape in ((2, 8, 9), (8, 9), (0, 8, 9), (2, 0, 9), (2, 8, 0), (0, 9), (2, 7, 9), (2, 8, 8), (9,)):
        yield Call("fold", (filled(shape, dtype),), ((4, 4), 2), {})
