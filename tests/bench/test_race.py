"""Benchmarks beside other libraries: fair turns, answers that are compared, records that go on where they stopped."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride import settings
from astride.bench import convolution, convolution_cases, convolution_rivals, field, pooling, pooling_cases, race
from astride.bench.peak import peak

TINY = convolution_cases.conv("tiny", 1, 3, 6, 4, 3, 2, (0, 1))
TURNED = convolution_cases.transposed("turned", 2, 4, 5, 3, 4, 2, 1)


def row(**more: Any) -> race.Row:
    about = {"case": "a", "layout": "nchw", "what": "forward", "threads": 1, "run": 1, "commit": "c"}
    measured = {"ms": 1.0, "spread": 0.1, "noise": 0.1, "rivals": {"torch": [1.2, 0.1]}, "best": "torch", "ratio": 1.2}
    return {**about, **measured, "differing": [], "peak": 0.5, "copy": 0.5, **more}


def alone(about: race.Benchmark, *libraries: str) -> Any:
    """The field of these libraries only, in this process."""
    return field.field(dataclasses.replace(about, libraries=libraries), apart=False)


@pytest.mark.parametrize("case", convolution_cases.CASES, ids=lambda case: case.name)
def test_the_sample_is_what_astride_computes(case: convolution_cases.Case) -> None:
    from astride.ops._run import plan

    for layout in race.LAYOUTS.values():
        shape = case.x_shape if layout == "channels_first" else (case.images, *case.size, case.inputs)
        made = plan(case.op, shape, w_shape=case.w_shape, layout=layout, **case.options)
        y = made.output_shape(shape, case.w_shape, None)
        assert sorted(y) == sorted((case.images, case.outputs, *case.out))
        assert made.in_channels == case.inputs and made.out_channels == case.outputs


def test_the_samples_have_names_of_their_own() -> None:
    for cases in (convolution_cases.CASES, pooling_cases.CASES):
        names = [case.name for case in cases]
        assert len(names) == len(set(names)) >= 30


@pytest.mark.parametrize("case", [TINY, TURNED], ids=lambda case: case.name)
@pytest.mark.parametrize("what", convolution.WHATS)
def test_a_row_of_a_convolution(case: convolution_cases.Case, what: str) -> None:
    with alone(convolution.BENCHMARK, "astride") as entered:
        found = convolution.timed(case, ["nchw", "nhwc"], what, entered, 0.01)
    assert list(found) == ["nchw", "nhwc"] and all(one["way"] for one in found.values())
    for one in found.values():
        assert one["ms"] > 0 and one["ratio"] is None and one["differing"] == [] and 0 < one["peak"] < 1.5
        assert one["GFLOP_per_s"] == pytest.approx(case.flops / one["ms"] / 1e6, rel=0.2)


def test_multiplications_are_counted() -> None:
    assert TINY.out == (3, 3) and TINY.flops == 2 * 9 * 9 * 3 * 4
    assert TURNED.out == (10, 10) and TURNED.flops == 2 * 2 * 25 * 16 * 4 * 3


@pytest.mark.parametrize(("error", "said"), [(0.0, []), (1e-5, []), (0.1, ["torch"])])
def test_a_rival_with_another_answer_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, error: float, said: list[str]
) -> None:
    def rival(case: Any, layout: str, what: str, arrays: convolution_rivals.Arrays) -> field.Entrant:
        own = convolution_rivals.astride(case, "channels_first", what, arrays)
        return field.Entrant(lambda: own.call() + np.float32(error))

    monkeypatch.setitem(convolution_rivals.LIBRARIES, "torch", rival)
    about = dataclasses.replace(convolution.BENCHMARK, version=lambda library: "1")
    with alone(about, "astride", "torch") as entered:
        found = convolution.timed(TINY, ["nhwc"], "forward", entered, 0.01)["nhwc"]
    assert found["differing"] == said and (found["best"] == "torch") is (not said)


def lineup(**calls: Callable[[], Any]) -> field.Lineup:
    """Libraries with one call each, that answer nothing."""
    return field.Lineup(
        libraries=tuple(calls),
        version=lambda library: "1" if library != "absent" else None,
        entrants=lambda library, case, layouts, what: {
            "x": field.Entrant(calls[library], None if library != "own" else np.asarray)
        },
        same=lambda answer, expected: True,
    )


def test_everyone_takes_turns() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) or 0 for name in ("own", "a", "b", "absent")}
    with field.field(lineup(**calls), apart=False) as entered:
        assert list(entered.versions) == ["own", "a", "b"]
        keys = entered.enter(None, [], "")
        times = entered.turns(keys, 0.05)
    assert keys == [("own", "x"), ("a", "x"), ("b", "x")] == list(times) and min(map(len, times.values())) >= field.FEW
    assert field.spread([1.0, 1.0, 1.0]) == 0 and field.spread([1.0, 2.0, 3.0]) == pytest.approx(0.5)


def test_a_hopeless_rival_is_timed_once() -> None:
    calls = []

    def slow() -> None:
        calls.append(sum(range(300_000)))

    with field.field(lineup(own=lambda: 0, slow=slow), apart=False) as entered:
        times = entered.turns(entered.enter(None, [], ""), 1e-3)
    assert len(calls) == 2 and len(times["slow", "x"]) == 2 and times["slow", "x"][0] > 1e-4


@pytest.mark.skipif(not field.PROCESSES, reason="this system cannot stop processes")
def test_a_library_stands_still_while_it_is_not_its_turn() -> None:
    side = field.Apart(dataclasses.replace(convolution.BENCHMARK), "astride")
    try:
        assert side.ask("version") and side.ask("enter", TINY, ["nhwc"], "forward") == ["nhwc"]
        assert side.ask("answer", "nhwc").shape == (1, 4, 3, 3) and side.ask("once", "nhwc") > 0
        assert all(took > 0 for took in side.ask("turn", "nhwc", 1e-5))
        info = Path(f"/proc/{side.process.pid}/stat")
        if info.exists():
            for _ in range(100):
                if info.read_text().rpartition(")")[2].split()[0] == "T":
                    break
                time.sleep(0.05)
            else:
                pytest.fail("its process still runs")
        with pytest.raises(RuntimeError, match="astride: KeyError"):
            side.ask("once", "sideways")
    finally:
        side.close()
    with pytest.raises(RuntimeError, match="the process of astride ended"):
        side.ask("version")


def test_a_row_of_a_pooling() -> None:
    case = pooling_cases.case("tiny", "max_pool", 1, 3, 6, 2, 2)
    with alone(pooling.BENCHMARK, "astride", "im2col", "copy") as entered:
        found = pooling.timed(case, ["nhwc"], "argmax", entered, 0.01)["nhwc"]
        assert list(entered.versions) == ["astride"] and found["im2col_ms"] > 0
    assert found["ms"] > 0 and found["copy"] > 0 and found["ratio"] is None
    assert not pooling.takes(pooling_cases.case("tiny", "avg_pool", 1, 3, 6, 2, 2), "argmax")


def test_what_fails() -> None:
    assert (
        convolution.fails(row(ratio=0.94)) and not convolution.fails(row(ratio=0.96)) and not convolution.fails(row(ratio=None))
    )
    assert convolution.fails(row(differing=["astride"]))
    assert pooling.fails(row(ratio=0.85)) and not pooling.fails(row(ratio=0.95))


def test_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.jsonl"
    rows = [row(run=run, case=case, ratio=ratio) for run in (1, 2, 3) for case, ratio in (("a", 1.2), ("b", 0.9 - 0.01 * run))]
    file.write_text("".join(json.dumps(one) + "\n" for one in [row(case="a", ratio=0.1), *rows]))
    assert list(race.read(file)) == rows, "the last of those about the same thing counts"
    assert race.means(rows[:2]) == {("nchw", "forward", 1): (pytest.approx((1.2 * 0.89) ** 0.5), 0.89, 2)}
    race.summarise(convolution.BENCHMARK, race.read(file))
    said = capsys.readouterr().out
    assert "2 rows, runs 1, 2, 3" in said and "failing in each of 3 runs or more: 1" in said and "0.87" in said


def options(*words: str) -> Any:
    return race.parser(convolution.BENCHMARK, None).parse_args(words)


def groups(*words: str) -> list[tuple[str, str, Sequence[str]]]:
    found = race._groups(convolution.BENCHMARK, options(*words), "now")
    return [(case.name, what, layouts) for case, what, layouts in found]


def test_which_rows_are_timed(tmp_path: Path) -> None:
    everything = groups("--threads", "1")
    assert len(everything) == 3 * len(convolution_cases.CASES)
    assert len(groups("--threads", "1", "--quick")) == 3 * len(convolution_cases.CASES[::5])
    assert groups("--threads", "1", "--cases", "LeNet conv1", "--what", "data") == [("LeNet conv1", "data", ["nchw", "nhwc"])]
    file = tmp_path / "found.jsonl"
    about = {"case": "LeNet conv1", "what": "data", "commit": "now"}
    file.write_text("".join(json.dumps(row(layout=n, ratio=r, **about)) + "\n" for n, r in (("nchw", 0.5), ("nhwc", 1.5))))
    failed = ["--threads", "1", "--fails-of", str(file)]
    assert groups(*failed) == [("LeNet conv1", "data", ["nchw"])], "only what failed"
    assert len(groups("--threads", "1", "--record", str(file))) == len(everything) - 1, "only what is not there yet"
    assert groups(*failed, "--record", str(file)) == [] and len(groups(*failed, "--record", str(file), "--run", "2")) == 1


def test_a_process_measures_and_records(tmp_path: Path) -> None:
    file = tmp_path / "found.jsonl"
    words = ["--cases", "FCN upscore2", "--what", "forward", "--seconds", "0.01", "--record", str(file)]
    found = list(race.rows("convolution", words, [1]))
    assert [(one["layout"], one["threads"]) for one in found] == [("nchw", 1), ("nhwc", 1)]
    assert list(race.read(file)) == found and all("CPUs" in one["machine"] for one in found)
    assert convolution.line(found[0]).startswith("FCN upscore2 4x4/2")
    with pytest.raises(subprocess.CalledProcessError):
        list(race.rows("convolution", ["--what", "sideways"], [1]))


def test_more_processors_than_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(race.rows("pooling", [], [10_000])) == [] and "no 10000 processors" in capsys.readouterr().err


def test_the_peak_is_positive_and_no_fantasy() -> None:
    with settings.use(threads=1):
        assert 1 < peak(0.005) < 2000
