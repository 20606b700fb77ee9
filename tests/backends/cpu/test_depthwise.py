"""Depthwise convolution: windows of all kinds in both layouts, forward and back, equal to the reference's to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import depthwise_last
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.depthwise_last import _pairs, takes_rows
from astride.backends.cpu.edges import taps_inside
from astride.plan import StridedAxis

Array = NDArray[Any]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


CASES = [
    ((2, 5, 9, 11), 3, {"padding": 1}),
    ((2, 37, 14, 14), 3, {"padding": 1}),
    ((1, 16, 7, 7), 3, {"padding": 1}),
    ((1, 33, 12, 19), 3, {"padding": 1, "stride": 2}),
    ((2, 32, 20, 35), 5, {"padding": 2}),
    ((1, 20, 17, 40), 7, {"padding": 3, "dilation": 2}),
    ((1, 18, 15, 33), 5, {"padding": 2, "stride": 2}),
    ((1, 6, 13, 50), 3, {"padding": 4, "stride": 3}),
    ((2, 19, 70), 3, {"padding": 1}),
    ((1, 17, 5, 6, 20), 3, {"padding": 1}),
    ((1, 40, 6, 6), 6, {}),
    ((1, 12, 3, 30), (1, 12), {"padding": (0, 6)}),
    ((1, 8, 30, 4), (20, 3), {"padding": (10, 1)}),
]


BOTH = [(case, astride.conv) for case in CASES] + [(case, astride.conv_transpose) for case in CASES[::4]]


@pytest.mark.parametrize(("case", "operator"), BOTH, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_every_kind_of_window(
    operator: Any, layout: str, case: tuple[tuple[int, ...], int | tuple[int, ...], dict[str, Any]]
) -> None:
    shape, kernel, given = case
    rng = np.random.default_rng(0)
    window = (kernel,) * (len(shape) - 2) if isinstance(kernel, int) else kernel
    w, b, x = whole(rng, shape[1], 1, *window), whole(rng, shape[1]), whole(rng, *shape)
    x = x if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
    results = []
    for backend in ("cpu", "reference"):
        y, pull = astride.vjp(operator, x, w, b, groups=shape[1], layout=layout, backend=backend, **given)
        results.append((y, *pull(np.asarray(y % 4, "float32"))))
    for name, a, e in zip(("y", "dx", "dw", "db"), *results, strict=True):
        assert np.array_equal(a, e), name


GROUPS = [
    ((2, 12, 9, 11), 2, 3, {"padding": 1}),
    ((1, 40, 8, 13), 4, 3, {"padding": 1, "stride": 2}),
    ((2, 64, 7, 7), 8, 3, {"padding": 1}),
    ((1, 24, 40), 4, 5, {"dilation": 2}),
    ((1, 8, 4, 5, 6), 4, 2, {"padding": 1}),
]


@pytest.mark.parametrize(("shape", "inputs", "kernel", "given"), GROUPS, ids=str)
@pytest.mark.parametrize(
    ("operator", "layout"),
    [(astride.conv, "channels_first"), (astride.conv, "channels_last"), (astride.conv_transpose, "channels_last")],
)
def test_groups_of_several_channels(
    operator: Any, layout: str, shape: tuple[int, ...], inputs: int, kernel: int, given: dict[str, Any]
) -> None:
    rng = np.random.default_rng(3)
    w, b, x = whole(rng, shape[1], inputs, *[kernel] * (len(shape) - 2)), whole(rng, shape[1]), whole(rng, *shape)
    x = x if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
    results = []
    for backend in ("cpu", "reference"):
        y, pull = astride.vjp(operator, x, w, b, groups=shape[1] // inputs, layout=layout, backend=backend, **given)
        results.append((y, *pull(np.asarray(y % 4, "float32"))))
    for name, a, e in zip(("y", "dx", "dw", "db"), *results, strict=True):
        assert np.array_equal(a, e), name


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_other_numbers(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    shape = (2, 21, 10, 26) if layout == "channels_first" else (2, 10, 26, 21)
    x, w = whole(rng, *shape, dtype=dtype), whole(rng, 21, 1, 3, 3, dtype=dtype)
    y, e = (astride.conv(x, w, padding=1, groups=21, layout=layout, backend=backend) for backend in ("cpu", "reference"))
    assert np.array_equal(y, e)


AXES = [
    StridedAxis(7, 3, 1, 1, 1, 1, 7),
    StridedAxis(9, 3, 2, 1, 1, 1, 5),
    StridedAxis(12, 3, 1, 2, 2, 2, 12),
    StridedAxis(6, 3, 1, 1, 1, 1, 11, input_dilation=2),
    StridedAxis(4, 2, 3, 1, 0, 0, 1),
    StridedAxis(5, 3, 2, 3, 9, 9, 9),
]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_pairs_have_every_row_and_its_taps(axis: StridedAxis) -> None:
    taps, seen = taps_inside(axis), {}
    for first, upper, both, lower, w_upper, w_lower, y, apart, _ in _pairs(axis, 1, 1, 1).tolist():
        rows = {y: (0, upper + both, w_upper)} | ({y + apart: (upper, both + lower, w_lower)} if apart else {})
        for row, (skipped, count, tap) in rows.items():
            assert row not in seen
            seen[row] = (first + skipped * taps.step if count else 0, count, tap if count else 0)
    for row in range(axis.out):
        count = int(taps.count[row])
        assert seen[row] == (taps.pixel[row] if count else 0, count, taps.number[row] if count else 0)


def test_wide_windows_go_another_way() -> None:
    wide = astride.plan("conv", (1, 4, 9, 99), w_shape=(4, 1, 3, 40), groups=4, dtype="float32")
    assert not takes_rows(relation(wide, False))
    rng = np.random.default_rng(2)
    x, w = whole(rng, 1, 4, 9, 99), whole(rng, 4, 1, 3, 40)
    y, e = (astride.conv(x, w, groups=4, backend=backend) for backend in ("cpu", "reference"))
    assert np.array_equal(y, e)


@pytest.mark.parametrize(("channels", "inputs"), [(64, 1), (64, 4), (72, 1)])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_that_go_past_the_caches(channels: int, inputs: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a CPU has no such stores, or not for these channels, they do not."""
    monkeypatch.setattr(depthwise_last, "STREAMED", 1 << 16)
    monkeypatch.setattr(depthwise_last, "FAR", 1)
    rng = np.random.default_rng(4)
    x, w, b = whole(rng, 2, 47, 53, channels), whole(rng, channels, inputs, 3, 3), whole(rng, channels)
    given: dict[str, Any] = {"padding": 1, "groups": channels // inputs, "layout": "channels_last"}
    with astride.use(threads=threads):
        y = astride.conv(x, w, b, backend="cpu", **given)
    assert np.array_equal(y, astride.conv(x, w, b, backend="reference", **given))
