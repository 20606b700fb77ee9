"""Which algorithm computes a convolution: the reasons, the same numbers by every candidate, what is measured and remembered."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.backends import backend
from astride.backends.cpu import conv_choice, conv_tune, conv_tuned
from astride.backends.cpu.conv_directions import PLANAR, relation


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nothing measured before counts, and nothing here later."""
    monkeypatch.setattr(conv_tuned, "folder", lambda: tmp_path / "kernels")
    conv_tuned.entries.cache_clear()
    conv_choice.forget()
    yield tmp_path
    conv_tuned.entries.cache_clear()
    conv_choice.forget()


def plan_of(shape: tuple[int, ...], w_shape: tuple[int, ...], op: str = "conv", **options: Any) -> Any:
    return astride.plan(op, shape, w_shape=w_shape, **options)


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], str, str]] = [
    ((1, 64, 20, 20), (64, 64, 3, 3), {"padding": 1}, "winograd", ""),
    ((1, 64, 20, 20), (64, 64, 1, 1), {}, "planes", "packed"),
    ((1, 20, 20, 64), (64, 64, 3, 3), {"padding": 1, "layout": "channels_last"}, "winograd", ""),
    ((1, 20, 20, 8), (9, 8, 5, 5), {"padding": 1, "layout": "channels_last"}, "tiles", "tiles"),
    ((1, 8, 20, 20), (9, 8, 5, 5), {"padding": 1}, "slabs", "tiles"),
    ((1, 16, 40, 40), (16, 1, 3, 3), {"padding": 1, "groups": 16}, "depthwise planes", "tiles"),
    ((1, 40, 40, 16), (16, 1, 3, 3), {"padding": 1, "groups": 16, "layout": "channels_last"}, "depthwise rows", "tiles"),
]


@pytest.mark.parametrize(("shape", "w_shape", "options", "forward", "weights"), CASES)
def test_what_is_chosen(shape: Any, w_shape: Any, options: Any, forward: str, weights: str) -> None:
    plan, first = plan_of(shape, w_shape, **options), "layout" not in options
    assert conv_choice.gathering(relation(plan, False), 1, first) == forward
    assert weights in ("", conv_choice.weighing(relation(plan, False), 1, first))
    for threads in (1, 2):
        with astride.use(threads=threads):
            assert conv_choice.gathering(relation(plan, False), 1, first) == forward


def test_every_planar_way_has_its_module() -> None:
    assert set(PLANAR) <= {way.name for way in conv_choice.GATHER}
    assert conv_choice.GATHER[-1].name == conv_choice.WEIGHTS[-1].name == "tiles", "which takes everything"


@pytest.mark.parametrize(("shape", "w_shape", "options"), [case[:3] for case in CASES])
def test_every_candidate_gives_the_same_numbers(shape: Any, w_shape: Any, options: Any) -> None:
    plan, first = plan_of(shape, w_shape, **options), "layout" not in options
    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, shape).astype(np.float32), rng.integers(-2, 3, w_shape).astype(np.float32)
    y, saved = dispatch.forward(plan, x, w, save=True, backend="reference")
    assert saved is not None
    dy = rng.integers(-2, 3, y.shape).astype(np.float32)
    expected = dispatch.backward(plan, dy, saved)
    how = relation(plan, False)
    with astride.use(backend="cpu"):
        for way in conv_choice.candidates("gather", how, 1, first, 2):
            with conv_choice.forced(way):
                assert np.array_equal(dispatch.forward(plan, x, w)[0], y), way
        for way in conv_choice.candidates("weights", how, 1, first, 2):
            kept = dispatch.forward(plan, x, w, save=True)[1]
            assert kept is not None
            with conv_choice.forced(way):
                assert np.array_equal(dispatch.backward(plan, dy, kept, want=(False, True, False))[1], expected[1]), way


def test_measured_and_remembered(folder: Path) -> None:
    plan = plan_of((2, 64, 20, 20), (64, 64, 3, 3), padding=1)
    found = conv_tune.measure(plan, 2, 0.01)
    assert [one.what for one in found] == list(conv_tune.WHATS)
    for one in found:
        assert one.chosen == next(iter(one.ms)) and one.fastest in one.ms and "tiles" in one.ms
        assert all(0 < ms < 1e4 for ms in one.ms.values())
    how = relation(plan, False)
    (first,) = (one for one in found if one.what == "forward")
    conv_tune.remember([conv_tune.Measured("forward", first.key, "winograd", "tiles", first.ms)])
    assert conv_choice.gathering(how, 2, True) == "tiles" and conv_choice.gathering(how, 3, True) == "winograd"
    assert "measured on this machine" in conv_choice.explained("gather", how, 2, True)
    with astride.use(tuned=False):
        assert conv_choice.gathering(how, 2, True) == "winograd"
    with astride.use(winograd=0):
        assert conv_choice.gathering(how, 2, True) == "slabs", "measured with it"
    conv_tune.remember([conv_tune.Measured("forward", first.key, "winograd", "planes", first.ms)])
    assert conv_choice.gathering(how, 2, True) == "winograd", "what does not take it is not taken"
    assert conv_tuned.clear() == 1 and conv_tuned.entries() == {}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '{"of": 1}',
        '["a"]',
        '{"of": "x", "key": "y", "way": "z", "ms": 3}',
        "\xff",
        pytest.param("[" * 100_000, id="nested"),
    ],
)
def test_damaged_files_are_empty(folder: Path, text: str) -> None:
    conv_tuned.path().write_text(text, encoding="latin-1")
    assert conv_tuned.entries() == {}
    conv_tuned.remember({"k": {"way": "tiles", "ms": {}}})
    assert conv_tuned.recall("k") == "tiles" and conv_tuned.recall("l") is None


def test_others_entries_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conv_tuned.remember({"k": {"way": "tiles", "ms": {"tiles": 1.0}}})
    monkeypatch.setattr(conv_tuned, "_here", lambda: "another machine")
    conv_tuned.entries.cache_clear()
    assert conv_tuned.recall("k") is None
    conv_tuned.remember({"k": {"way": "slabs", "ms": {}}})
    assert conv_tuned.recall("k") == "slabs" and len(conv_tuned._all()) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is one of POSIX systems")
def test_several_remember_at_once(folder: Path) -> None:
    """The lock belongs to whoever opened the file: threads wait for each other as processes do."""

    def remember(number: int) -> None:
        for k in range(10):
            conv_tuned.remember({f"{number} {k}": {"way": "tiles", "ms": {}}})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(remember, range(4)))
    assert len(conv_tuned._all()) == 40


def test_what_cannot_be_measured() -> None:
    assert conv_tune.measure(plan_of((1, 4, 5, 5), (4, 4, 3, 3), dtype="float16"), 1) == []
    assert conv_tune.measure(plan_of((1, 4, 5, 5), (4, 4, 3, 3)), 0) == []


def test_reasons_for_people() -> None:
    (kernel,) = backend("cpu").kernels("conv")
    lines = kernel.ways(plan_of((1, 16, 30, 30), (16, 16, 3, 3), padding=1))
    assert lines[0] == (
        "forward: slabs (direct sums of products, x packed in slabs); not Winograd's form: groups have fewer than 32 channels"
    )
    assert [line.partition(":")[0] for line in lines] == ["forward", "gradient of x", "gradient of w"]
    assert kernel.ways(plan_of((1, 64, 30, 30), (64, 64, 3, 3), padding=1))[0] == "forward: winograd 2x2 (Winograd's form)"
