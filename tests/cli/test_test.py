"""astride test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.console import astride

TEST = ("test", "net.prototxt", "stripes_iter_30.caffemodel", "--data", "test.npz")


def test_the_mean_of_each_output(shop: Path) -> None:
    done = astride(*TEST)
    assert done.lines[0].split() == ["output", "mean"]
    assert done.lines[1].split() == ["accuracy", "1"]
    assert done.lines[2].split()[0] == "loss" and float(done.lines[2].split()[1]) < 0.2
    assert done.lines[3].startswith("2 batches of 10 in")


def test_json_and_iterations(shop: Path) -> None:
    data = astride(*TEST, "--iterations", 1, "--json").data()
    assert data["iterations"] == 1 and data["batch_size"] == 10 and data["outputs"]["accuracy"] == 1.0
    assert data["loss"] == pytest.approx(data["outputs"]["loss"])


def test_samples_that_fill_no_batch_are_named(shop: Path) -> None:
    done = astride("test", "net.prototxt", "stripes_iter_30.caffemodel", "--data", "train.npz", "--json")
    assert done.data()["iterations"] == 6 and "the last 4 are left out" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["net.prototxt", "stripes_iter_30.caffemodel", "--data", "images.npy"], "--labels"),
        (["deploy.prototxt", "stripes_iter_30.caffemodel", "--data", "test.npz"], "no data layer"),
        (["net.prototxt", "none.caffemodel", "--data", "test.npz"], "no file"),
        (["net.prototxt", "stripes_iter_30.caffemodel", "--data", "test.npz", "--phase", "later"], "TRAIN or TEST"),
    ],
)
def test_errors(shop: Path, words: list[str], said: str) -> None:
    done = astride("test", *words, status=1)
    assert said in done.err and done.out == ""
