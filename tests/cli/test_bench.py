"""astride bench."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.cli.console import astride

from astride.bench import DIRECTIONS, RUNGS, Problem, Timed

SMALL = ("--images", 1, "--channels", 2, "--size", 5, "--rounds", 1)


def test_the_table_and_the_picture(tmp_path: Path) -> None:
    done = astride("bench", "ladder", "--ops", "max_pool", *SMALL, "--png", tmp_path / "ladder.png")
    rows = [line.split() for line in done.lines]
    assert rows[0] == ["operator", "layout", *RUNGS, "gain"]
    assert rows[1][:3] == ["max_pool", "forward", "NHWC"] and rows[2][0] == "NCHW"
    assert rows[3][:2] == ["backward", "NHWC"] and rows[1][-1].endswith("x")
    assert done.lines[-2] == "1 images of 5 x 5 pixels, 2 channels, kernel 3, stride 1, float32, one thread"
    assert done.lines[-1] == "every rung gives the numbers of the one below"
    assert max(map(len, done.lines)) <= 80
    assert "wrote" in done.err
    with Image.open(tmp_path / "ladder.png") as picture:
        assert picture.width > 500


def test_json() -> None:
    data = astride("bench", "ladder", "--ops", "conv,avg_pool", *SMALL, "--json").data()
    assert data["threads"] == 1 and data["problem"]["size"] == 5
    assert len(data["timed"]) == 2 * 2 * 2 * len(RUNGS)
    assert all(row["agrees"] and row["seconds"] > 0 for row in data["timed"])
    assert [row["op"] for row in data["timed"]][::20] == ["conv", "avg_pool"]


def test_a_wrong_rung_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_one_thread(asked: list[Problem], rounds: int, seconds: float) -> Iterator[list[Timed]]:
        for problem in asked:
            yield [
                Timed("conv", direction, problem.layout, rung, 0.1, 1, (rung, problem.layout) != ("loops2", "NCHW"))
                for direction in DIRECTIONS
                for rung in RUNGS
            ]

    monkeypatch.setattr("astride.bench.on_one_thread", on_one_thread)
    done = astride("bench", "ladder", "--ops", "conv", status=1)
    wrong = [line for line in done.lines if line.startswith("WRONG")]
    assert wrong == [f"WRONG: conv {d} NCHW, loops2 differs from the rung below" for d in DIRECTIONS]
    assert "every rung gives" not in done.out


def raced(name: str, differing: list[str]) -> list[dict[str, Any]]:
    about = {"machine": "a machine", "versions": {"astride": "1", "torch": "2"}, "spread": 0.1, "noise": 0.1}
    return [
        {
            **about,
            "case": case,
            "what": what,
            "layout": layout,
            "threads": threads,
            "ms": 2.0,
            "rivals": {"torch": [3.0, 0.1]},
            "best": "torch" if case != "alone" else None,
            "ratio": 1.5 if case != "alone" else None,
            "differing": differing,
            "peak": 0.9,
            "copy": 0.8,
        }
        for threads in (1, 2)
        for case in ("stem", "alone")
        for what in ("forward", "data")
        for layout in ("nchw", "nhwc")
    ]


@pytest.mark.parametrize("name", ["convolution", "pooling"])
def test_beside_other_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    asked: list[Any] = []

    def rows(name: str, words: list[str], threads: list[int]) -> list[dict[str, Any]]:
        asked.append((name, words, threads))
        return raced(name, [])

    monkeypatch.setattr("astride.bench.race.rows", rows)
    done = astride("bench", name, "--quick", "--cases", "s", "--svg", tmp_path / "race.svg", "--record", tmp_path / "rows.jsonl")
    assert asked == [(name, ["--cases=s", f"--record={tmp_path / 'rows.jsonl'}", "--quick"], [1])]
    assert done.lines[0] == "1 thread" and "2 threads" in done.lines
    assert done.lines[2].split() == ["stem", "forward", "NCHW", "2", "90%" if name == "convolution" else "80%", "torch", "1.50"]
    assert "NCHW data, threads 1: 1.50 times as fast in the mean of 1, at least 1.50" in done.lines
    assert max(map(len, done.lines)) <= 80 and "stem" in (tmp_path / "race.svg").read_text()
    data = astride("bench", name, "--threads", "2,1", "--json").data()
    assert asked[-1] == (name, [], [2, 1]) and data["benchmark"] == name and len(data["rows"]) == 16


def test_answers_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astride.bench.race.rows", lambda *_: raced("convolution", ["torch"]))
    assert "DIFFERENT: torch in stem forward NCHW" in astride("bench", "convolution").lines
    monkeypatch.setattr("astride.bench.race.rows", lambda *_: raced("convolution", ["astride"]))
    astride("bench", "convolution", status=1)
    monkeypatch.setattr("astride.bench.race.rows", lambda *_: [])
    assert "nothing was measured" in astride("bench", "convolution", status=1).err


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        (("bench", "stairs"), "one of ladder", 2),
        (("bench", "ladder", "--ops", "softmax"), "no ladder", 1),
        (("bench", "ladder", "--ops", "conv", "--size", 2), "larger than the padded input", 1),
        (("bench", "ladder", "--rounds", 0), "rounds", 2),
        (("bench", "ladder", "--quick"), "not for ladder", 2),
        (("bench", "pooling", "--record", "no/such/rows.jsonl"), "there is no folder", 2),
        (("bench", "pooling", "--kernel", 3), "is for ladder, not for pooling", 2),
        (("bench", "pooling", "--cases", "("), "regular expression", 2),
        (("bench", "convolution", "--threads", "1,0"), "from 1 on", 2),
    ],
)
def test_what_cannot_be_measured(words: tuple[object, ...], said: str, status: int) -> None:
    done = astride(*words, status=status)
    assert said in " ".join(done.err.replace("│", " ").split()) and "Traceback" not in done.err
