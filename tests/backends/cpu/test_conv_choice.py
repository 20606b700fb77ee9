"""Which algorithm computes a convolution: the reasons, the same numbers by every candidate, what is measured and remembered."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch, settings
from astride.backends import backend
from astride.backends.cpu import conv_choice, conv_tune, conv_tuned
from astride.backends.cpu.conv_directions import PLANAR, relation
from astride.backends.cpu.machine import machine
from astride.errors import ArgumentError


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
    ((1, 64, 20, 20), (64, 64, 1, 1), {}, "", ""),
    ((1, 20, 20, 64), (64, 64, 3, 3), {"padding": 1, "layout": "channels_last"}, "winograd", ""),
    ((1, 20, 20, 8), (9, 8, 5, 5), {"padding": 1, "layout": "channels_last"}, "", ""),
    ((4, 32, 56, 56), (64, 32, 5, 5), {"padding": 2}, "", ""),
    ((1, 16, 40, 40), (16, 1, 3, 3), {"padding": 1, "groups": 16}, "depthwise planes", ""),
    ((1, 40, 40, 16), (16, 1, 3, 3), {"padding": 1, "groups": 16, "layout": "channels_last"}, "depthwise rows", ""),
]


@pytest.mark.parametrize(("shape", "w_shape", "options", "forward", "weights"), CASES)
def test_what_is_chosen(shape: Any, w_shape: Any, options: Any, forward: str, weights: str) -> None:
    plan, first = plan_of(shape, w_shape, **options), "layout" not in options
    how = relation(plan, False)
    found = conv_choice.gathering(how, 1, first), conv_choice.weighing(how, 1, first)
    if machine().vector_bytes >= 32:  # kinds of machines whose times were measured
        assert forward in ("", found[0]) and weights in ("", found[1])
    for kind, way in zip(("gather", "weights"), found, strict=True):
        times = conv_choice.predicted(kind, how, 1, first, 2)
        assert times[way] == min(times.values())
    for threads in (1, 2):
        with astride.use(threads=threads):
            conv_choice.forget()
            assert (conv_choice.gathering(how, 1, first), conv_choice.weighing(how, 1, first)) == found


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


@pytest.mark.parametrize("way", ["planes", "depthwise planes", "sub-pixel"])
def test_what_is_no_candidate_cannot_be_forced(way: str) -> None:
    plan = plan_of((2, 8, 20, 20), (16, 8, 3, 3), padding=1)
    x, w = np.ones((2, 8, 20, 20), np.float32), np.ones((16, 8, 3, 3), np.float32)
    possible = conv_choice.candidates("gather", relation(plan, False), 2, True, settings.current().winograd)
    with astride.use(backend="cpu"), conv_choice.forced(way), pytest.raises(ArgumentError) as caught:
        dispatch.forward(plan, x, w)
    assert way not in possible and all(name in str(caught.value) for name in (way, *possible))


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
        assert conv_choice.gathering(how, 2, True) != "winograd", "measured with it"
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


def test_reasons_for_people(folder: Path) -> None:
    (kernel,) = backend("cpu").kernels("conv")
    lines = kernel.ways(plan_of((1, 64, 30, 30), (64, 64, 3, 3), padding=1))
    assert [line.partition(":")[0] for line in lines] == ["forward", "gradient of x", "gradient of w"]
    assert re.match(r"forward: (\w[\w ]*) \(.*\); predicted: \1 \d\.\d+ ms, \w+.* \d\.\d+ ms", lines[0])
    strided = kernel.ways(plan_of((1, 64, 30, 30), (64, 64, 3, 3), padding=1, stride=2))[0]
    assert strided.endswith("; not Winograd's form: windows are not 3x3 with stride 1")
    how = relation(plan_of((1, 64, 30, 30), (64, 64, 3, 3), padding=1), False)
    conv_tuned.remember({conv_choice.key("gather", how, 1, True, 2): {"way": "tiles", "ms": {"winograd": 2.0, "tiles": 1.5}}})
    conv_choice.forget()
    said = conv_choice.explained("gather", how, 1, True)
    assert said == "tiles (direct sums of products); measured on this machine: tiles 1.5 ms, winograd 2x2 2 ms"


def test_winograd_does_not_depend_on_the_batch() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        inputs, outputs, size = (int(n) for n in rng.integers([8, 8, 4], [96, 96, 30]))
        how = relation(plan_of((1, inputs, size, size), (outputs, inputs, 3, 3), padding=1), bool(rng.integers(2)))
        for first in (True, False):
            chosen = {conv_choice.gathering(how, images, first) == "winograd" for images in (1, 2, 7, 64)}
            assert len(chosen) == 1, how


def test_predictions_are_times() -> None:
    """More images take longer, and no way takes less than its products at the machine's most."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        inputs, outputs, size, kernel = (int(n) for n in rng.integers([1, 1, 8, 1], [70, 70, 30, 5]))
        how = {"padding": kernel // 2, "stride": int(rng.integers(1, 3))}
        plan = plan_of((1, inputs, size, size), (outputs, inputs, kernel, kernel), **how)
        for kind, back in (("gather", False), ("gather", True), ("weights", False)):
            for first in (True, False):
                few, many = (conv_choice.predicted(kind, relation(plan, back), n, first, 2) for n in (1, 16))
                assert set(few) & set(many) and "tiles" in few
                assert all(0 < few[way] < many[way] for way in set(few) & set(many)), (few, many)


def test_a_plan_is_tuned(folder: Path) -> None:
    plan = plan_of((1, 4, 8, 8), (6, 4, 3, 3))
    assert len(astride.tune(plan, images=2, seconds=0)) == 3 == len(conv_tuned.entries())
    for wrong in (plan_of((1, 4, 8, 8), (6, 4, 3, 3), dtype="float16"), astride.plan("max_pool", (1, 1, 4, 4), kernel=2)):
        with pytest.raises(astride.ArgumentError, match="cannot be tuned"):
            astride.tune(wrong)
