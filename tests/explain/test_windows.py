"""The windows that are drawn are the windows that are computed: operators on inputs of a single pixel say which read it."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride.errors import AstrideError
from astride.explain import Place, compare
from astride.rules import RULES, has

WORDS = {"mps", "tensorflow", "keras", "tflite"}  # pad by words rather than amounts
GEOMETRIES = [
    (size, kernel, stride, padding) for size in (4, 7) for kernel in (1, 2, 3) for stride in (1, 2, 3) for padding in (0, 1)
]


def readers(op: str, rules: str, size: int, arguments: dict[str, object]) -> list[tuple[int, ...]]:
    """For each output along one axis the input pixels it depends on."""
    rows = []
    for pixel in range(size):
        x = np.zeros((1, 1, size), np.float32)
        x[..., pixel] = 1
        if op == "avg_pool":
            y = astride.avg_pool(x, rules=rules, **arguments)  # type: ignore[arg-type]
        else:
            kernel = arguments["kernel"]
            assert isinstance(kernel, int)
            rest = {name: value for name, value in arguments.items() if name != "kernel"}
            function = astride.conv if op == "conv" else astride.conv_transpose
            y = function(x, np.ones((1, 1, kernel), np.float32), rules=rules, **rest)  # type: ignore[arg-type]
        rows.append(np.nan_to_num(y[0, 0]) != 0)
    return [tuple(int(p) for p in np.flatnonzero(column)) for column in np.array(rows).T]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("op", ["avg_pool", "conv", "conv_transpose"])
def test_drawn_windows_are_computed_windows(op: str, rules: str) -> None:
    if not has(rules, op):
        pytest.skip(f"{rules} has no {op}")
    tried = 0
    for size, kernel, stride, padding in GEOMETRIES:
        arguments: dict[str, object] = dict(kernel=kernel, stride=stride)
        if rules in WORDS:
            arguments["padding"] = ("same", "valid")[padding]
        elif padding:
            arguments["padding"] = padding
        (side,) = compare(op, size, (rules,), rank=1, **arguments).sides
        if side.plan is None:
            continue
        found = readers(op, rules, size, arguments)
        axis = side.axes[0]
        if op == "conv_transpose":
            written = {window.index: set(window.pixels) for window in axis.windows}
            assert axis.size == len(found)
            for place, pixels in enumerate(found):
                assert pixels == tuple(i for i in sorted(written) if place in written[i]), (arguments, place)
        else:
            assert [window.pixels for window in axis.windows] == found, arguments
        touched = {p for w in axis.windows for p in w.pixels}
        unread = {p for lo, hi in axis.unread for p in range(lo, hi + 1)}
        assert touched | unread == set(range(axis.size)) and not touched & unread
        tried += 1
    assert tried >= 8 or rules == "darknet"  # whose average is that of a whole plane


@pytest.mark.parametrize("edge", ["clamp", "mirror", "mirror_edge", "wrap"])
def test_what_taps_outside_read(edge: str) -> None:
    """A kernel that is one at a single tap shows, on an input of pixel numbers, the pixel that this tap reads."""
    size, kernel = 5, 4
    arguments = dict(padding=2, edge=edge)
    (side,) = compare("conv", size, ("explicit",), rank=1, kernel=kernel, **arguments).sides
    x = np.arange(size, dtype=np.float64).reshape(1, 1, size)
    for tap in range(kernel):
        w = np.zeros((1, 1, kernel))
        w[..., tap] = 1
        y = astride.conv(x, w, rules="explicit", **arguments)  # type: ignore[arg-type]
        assert [window.taps[tap].reads for window in side.axes[0].windows] == [int(v) for v in y[0, 0]]


def test_a_skipped_tap_reads_nothing() -> None:
    (side,) = compare("max_pool", 4, ("pytorch",), rank=1, kernel=3, padding=1, stride=2).sides
    tap = side.axes[0].windows[0].taps[0]
    assert (tap.position, tap.place, tap.reads) == (-1, Place.PADDING, None)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "unread"), [(10, 3, 3, ((9, 9),)), (9, 2, 3, ((2, 2), (5, 5), (8, 8))), (9, 3, 1, ())]
)
def test_pixels_that_no_window_reads(size: int, kernel: int, stride: int, unread: tuple[tuple[int, int], ...]) -> None:
    (side,) = compare("max_pool", size, ("pytorch",), rank=1, kernel=kernel, stride=stride).sides
    assert side.axes[0].unread == unread


def test_an_axis_of_a_billion_pixels_is_no_work() -> None:
    (side,) = compare("avg_pool", 10**9, ("pytorch",), rank=1, kernel=3, stride=2).sides
    assert side.axes[0].out == (10**9 - 3) // 2 + 1 and side.axes[0].unread == ((10**9 - 1, 10**9 - 1),)


def test_dilation_spreads_the_taps() -> None:
    (side,) = compare("conv", 7, ("pytorch",), rank=1, kernel=3, dilation=2).sides
    assert [window.pixels for window in side.axes[0].windows] == [(0, 2, 4), (1, 3, 5), (2, 4, 6)]


def test_divisors_are_those_of_the_operator() -> None:
    """On an input of ones the sum is the count of pixels, so count / y is the divisor."""
    checked = 0
    for rules in RULES:
        for size, kernel, stride, padding in GEOMETRIES:
            arguments = dict(kernel=kernel, stride=stride, padding=("same", "valid")[padding] if rules in WORDS else padding)
            try:
                y = astride.avg_pool(np.ones((1, 1, size), np.float32), rules=rules, **arguments)  # type: ignore[arg-type]
            except AstrideError:
                continue
            (side,) = compare("avg_pool", size, (rules,), rank=1, **arguments).sides
            for window, value in zip(side.axes[0].windows, y[0, 0], strict=True):
                if window.pixels:
                    assert window.divisor is not None
                    assert len(window.pixels) / window.divisor == pytest.approx(float(value))
                    checked += 1
    assert checked > 100


def test_huge_windows_are_not_kept_tap_by_tap() -> None:
    (side,) = compare("max_pool", 3_000_000, ("caffe",), kernel=1_000_000, stride=7, rank=1).sides
    assert side.axes[0].windows == () and side.axes[0].left_out == side.axes[0].out > 10**5
    (side,) = compare("max_pool", 300_000, ("caffe",), kernel=10_000, stride=1, rank=1).sides
    assert [window.index for window in side.axes[0].windows][:2] == [0, 1] and len(side.axes[0].windows) == 12
