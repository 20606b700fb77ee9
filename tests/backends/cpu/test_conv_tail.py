"""Tiles whose last vector is at most half full: any number of channels and of pixels behind the last whole tile, with all that
ends a sum, and nothing written behind y."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride.backends.cpu import conv_gather, conv_planes, conv_slabs
from astride.backends.cpu.contraction import Contraction
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_pack import packed, packed_bias
from astride.backends.cpu.machine import machine
from astride.backends.epilogue import Epilogue

RESTS = [1, 3, 4, 5, 8, 9, 12, 13, 16, 17, 20, 24, 25, 31]


def test_tails_are_half_vectors() -> None:
    spec, m = Contraction("float"), machine()
    halves = [spec.ending(96 + rest, m) for rest in (0, 1, 8, 9, 16, 17, 24, 25, 31)]
    assert halves == ([0, 1, 1, 0, 0, 3, 3, 0, 0] if m.vector_bytes == 64 else [0] * 9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rest", RESTS)
def test_channels_and_pixels_behind_the_last_tile(rest: int, dtype: str) -> None:
    """150 terms are added up in two parts. Slabs and tiles have channels side by side, planes pixels."""
    rng, count = np.random.default_rng(rest), 32 + rest
    epilogue, inputs = Epilogue(slope=0.5, low=-400.0, high=300.0), 150
    x, w = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((1, inputs, count), (count, inputs, 1)))
    b, residual = (rng.integers(-9, 10, shape).astype(dtype) for shape in (count, (1, count, count)))
    how = relation(astride.plan("conv", x.shape, w_shape=w.shape, dtype=dtype), False)
    expected = np.einsum("nip,oi->nop", x, w[:, :, 0]) + b[:, None]
    epilogue.apply(expected, residual)
    room = np.full(expected.size + 64, np.nan, dtype)
    y = room[: expected.size].reshape(expected.shape)
    weights, bias = packed(how, w), packed_bias(how, b, np.dtype(dtype))
    conv_planes.compute(how, x, w, b, y, epilogue=epilogue, residual=residual)
    assert np.array_equal(y, expected)
    y[...] = np.nan
    conv_slabs.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)
    assert np.array_equal(y, expected)
    x, residual, last = (np.ascontiguousarray(np.moveaxis(array, 1, 2)) for array in (x, residual, expected))
    y = y.reshape(last.shape)
    y[...] = np.nan
    conv_gather.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)
    assert np.array_equal(y, last)
    assert np.isnan(room[expected.size :]).all()
