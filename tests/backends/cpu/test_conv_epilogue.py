"""Every kernel that convolves can finish its results while it stores them: the same as doing so afterwards, to the last bit."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import astride
from astride.backends.cpu import (
    conv_gather,
    conv_planar,
    conv_planes,
    conv_slabs,
    depthwise_first,
    depthwise_last,
    depthwise_moved,
)
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_pack import packed, packed_bias
from astride.backends.cpu.ending import bits, given
from astride.backends.epilogue import RECTIFIED, Epilogue
from astride.dispatch import forward

Array = npt.NDArray[Any]

WAYS: list[tuple[Any, str, tuple[int, ...], tuple[int, ...], int]] = [
    (conv_gather, "channels_last", (2, 9, 10, 20), (40, 20, 3, 3), 1),
    (conv_slabs, "channels_first", (2, 300, 9, 10), (40, 300, 3, 3), 1),
    (conv_planar, "channels_first", (2, 3, 9, 20), (20, 3, 3, 3), 1),
    (conv_planar, "channels_first", (2, 3, 9, 5), (13, 3, 3, 3), 1),
    (conv_planes, "channels_first", (2, 20, 18, 16), (40, 20, 1, 1), 1),
    (depthwise_first, "channels_first", (2, 20, 9, 18), (20, 1, 3, 3), 20),
    (depthwise_last, "channels_last", (2, 9, 10, 20), (20, 1, 3, 3), 20),
    (depthwise_moved, "channels_first", (2, 24, 5, 6), (24, 4, 3, 3), 6),
]

EPILOGUES = {
    "nothing": Epilogue(),
    "rectified": RECTIFIED,
    "leaky": Epilogue(slope=0.1),
    "turned": Epilogue(slope=-2.0),
    "six": Epilogue(slope=0.0, high=6.0),
    "leaky six": Epilogue(slope=0.3, high=6.0),
    "clip": Epilogue(low=-0.7, high=0.3),
    "clip from zero": Epilogue(low=0.0, high=0.0),
    "clip as C has it": Epilogue(low=-0.7, high=0.3, nan_is_low=True),
    "clip the wrong way round": Epilogue(low=1.0, high=-1.0),
}


def arrays(shape: tuple[int, ...], w_shape: tuple[int, ...], dtype: str) -> tuple[Array, Array, Array]:
    """x, w and b from which come numbers of both signs, zeros of both signs (channels 0 and 1), NaN and infinities."""
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(s).astype(dtype) for s in (shape, w_shape, w_shape[:1]))
    w[:2], b[0], b[1] = 0, -0.0, 0.0
    x.reshape(-1)[[7, 90, 171]] = np.nan, np.inf, -np.inf
    return x, w, b


def other(shape: tuple[int, ...], dtype: str) -> Array:
    """A residual, with what is not finite as well."""
    r = np.random.default_rng(8).standard_normal(shape).astype(dtype)
    r.reshape(-1)[[3, 50, -1]] = np.nan, np.inf, -np.inf
    return r


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("way", "layout", "shape", "w_shape", "groups"), WAYS, ids=lambda p: getattr(p, "__name__", None))
def test_the_same_as_afterwards(
    way: Any, layout: str, shape: tuple[int, ...], w_shape: tuple[int, ...], groups: int, dtype: str, name: str, added: bool
) -> None:
    x, w, b = arrays(shape, w_shape, dtype)
    pad = w_shape[-1] // 2
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype=dtype, padding=pad, groups=groups, layout=layout)
    how = relation(plan, False)
    tiled = way in (conv_gather, conv_slabs, conv_planar)
    sent = (x, packed(how, w), packed_bias(how, b, w.dtype)) if tiled else (x, w, b)
    plain, fused = (np.empty(plan.output_shape(shape, w_shape, b.shape), dtype) for _ in range(2))
    way.compute(how, *sent, plain)
    residual = other(plain.shape, dtype) if added else None
    way.compute(how, *sent, fused, epilogue=EPILOGUES[name], residual=residual)
    assert (plain < 0).any() and (plain == 0).any() and np.isnan(plain).any()
    EPILOGUES[name].apply(plain, residual)
    assert fused.tobytes() == plain.tobytes()


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize(("layout", "shape"), [("channels_first", (2, 64, 28, 28)), ("channels_last", (2, 28, 28, 64))])
@pytest.mark.parametrize("tile", [0, 2])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_whoever_computes(backend: str, tile: int, layout: str, shape: tuple[int, ...], name: str, added: bool) -> None:
    x, w, b = arrays(shape, (64, 64, 3, 3), "float32")
    plan = astride.plan("conv", shape, w_shape=w.shape, dtype="float32", padding=1, layout=layout)
    with astride.use(winograd=tile):
        plain = forward(plan, x, w, b, backend=backend)[0]
        residual = other(plain.shape, "float32") if added else None
        fused = forward(plan, x, w, b, backend=backend, epilogue=EPILOGUES[name], residual=residual)[0]
    assert (plain < 0).any() and np.isnan(plain).any()
    EPILOGUES[name].apply(plain, residual)
    assert fused.tobytes() == plain.tobytes()


@pytest.mark.parametrize("name", EPILOGUES)
def test_narrow_numbers_are_rounded_before(name: str) -> None:
    x, w, b = arrays((1, 20, 8, 9), (24, 20, 3, 3), "float16")
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype="float16", padding=1)
    plain = forward(plan, x, w, b, backend="cpu")[0]
    residual = other(plain.shape, "float16")
    fused = forward(plan, x, w, b, backend="cpu", epilogue=EPILOGUES[name], residual=residual)[0]
    EPILOGUES[name].apply(plain, residual)
    assert fused.tobytes() == plain.tobytes()


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_a_residual_of_any_strides(layout: str) -> None:
    """Alone, added whatever is computed and however it lies; y of another order as well."""
    shape = (1, 16, 5, 6) if layout == "channels_first" else (1, 5, 6, 16)
    x, w, b = arrays((2, *shape[1:]), (16, 16, 3, 3), "float32")
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype="float32", padding=1, layout=layout)
    plain = forward(plan, x, w, b, backend="cpu")[0]
    residual = other(plain.shape[::-1], "float32").T
    out = np.empty(plain.shape[::-1], "float32").T
    forward(plan, x, w, b, out=out, backend="cpu", residual=residual)
    assert np.array_equal(out, plain + residual, equal_nan=True)


@pytest.mark.parametrize("epilogue", [None, Epilogue(slope=0.5)])
def test_what_sums_begin_with_lives_as_long_as_the_call(epilogue: Epilogue | None) -> None:
    """It may be a copy that nobody else has, as of a bias of any strides."""
    bias, y = np.arange(8, dtype=np.float32)[::2].copy(), np.zeros(4, np.float32)
    alive, how = weakref.ref(bias), bits(epilogue)
    begin, memory = given(how, bias, epilogue, None, y)
    del bias
    assert begin and alive() is not None
    del memory
    assert alive() is None


def test_a_residual_must_fit() -> None:
    x, w, b = arrays((1, 16, 5, 6), (16, 16, 3, 3), "float32")
    x.reshape(-1)[-1], y = 0, np.zeros((1, 16, 5, 6), "float32")
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype="float32", padding=1)
    for wrong in (y[:, :8], y.astype("float64"), [1.0]):
        with pytest.raises(astride.ArrayError, match="not like the result"):
            forward(plan, x, w, b, residual=wrong)  # type: ignore[arg-type]
    with pytest.raises(astride.ArrayError, match="overlaps the residual"):
        forward(plan, x, w, b, out=y, residual=y)


def test_an_epilogue_is_what_layers_do() -> None:
    x = np.array([-np.inf, -2, -0.0, 0, 1, 7, np.inf, np.nan], "float32")
    for epilogue, expected in [
        (Epilogue(), x),
        (RECTIFIED, [0, 0, 0, 0, 1, 7, math.inf, math.nan]),
        (Epilogue(slope=0.5), [-math.inf, -1, 0, 0, 1, 7, math.inf, math.nan]),
        (Epilogue(slope=0.5, high=6), [-math.inf, -1, 0, 0, 1, 6, 6, math.nan]),
        (Epilogue(low=-1, high=6), [-1, -1, 0, 0, 1, 6, 6, math.nan]),
        (Epilogue(low=-1, high=6, nan_is_low=True), [-1, -1, 0, 0, 1, 6, 6, -1]),
    ]:
        y = x.copy()
        epilogue.apply(y)
        np.testing.assert_array_equal(y, np.float32(expected))
    for epilogue, fields in [
        (RECTIFIED, {"function": "relu"}),
        (Epilogue(slope=0.1), {"function": "relu", "slope": 0.1}),
        (Epilogue(low=-1, high=6), {"function": "clip", "low": -1.0, "high": 6.0}),
        (Epilogue(low=-1, high=6, nan_is_low=True), {"function": "clip", "low": -1.0, "high": 6.0, "nan": "compared"}),
    ]:
        y = x.copy()
        epilogue.apply(y)
        assert y.tobytes() == astride.elementwise(x, **fields).tobytes()  # type: ignore[arg-type]
