"""astride explain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride

THREE = ("explain", "max_pool", "--kernel", 3, "--stride", 2, "--size", 8, "--rules", "caffe,pytorch,mps")


def test_sizes_and_windows_side_by_side() -> None:
    lines = astride(*THREE).lines
    assert lines[0] == "max_pool of 8x8, kernel 3, stride 2, float32"
    assert "  caffe       8 -> 4   ceil((8 - 3) / 2) + 1 = 4" in lines
    assert "  window 3                   6 7 x" in lines
    assert "≠ pytorch     8 -> 3   floor((8 - 3) / 2) + 1 = 3" in lines
    assert "≠ window 0     o 0 1" in lines
    assert any(line.startswith("≠ NaN") for line in lines)
    assert [line for line in lines if len(line) > 80] == []


def test_json() -> None:
    data = astride(*THREE, "--json").data()
    assert [side["axes"][0]["out"] for side in data["rules"]] == [4, 3, 4]
    assert [window["differs"] for window in data["rules"][2]["axes"][0]["windows"]] == [True] * 4


def test_pictures(tmp_path: Path) -> None:
    done = astride(*THREE, "--png", tmp_path / "w.png", "--svg", tmp_path / "w.svg", "--json")
    json.loads(done.out)
    image = np.asarray(Image.open(tmp_path / "w.png").convert("RGB"))
    assert min(image.shape[:2]) > 500 and image.std() > 10
    assert (tmp_path / "w.svg").read_text().count("<rect") > 40
    assert "wrote" in done.err


def test_a_geometry_per_axis_and_options_of_one_framework() -> None:
    done = astride(
        "explain", "avg_pool", "-k", "3x2", "-s", "2,1", "-p", "1x0", "--size", "7x9",
        "-r", "caffe,pytorch", "-o", "pytorch.ceil_mode=true", "--json",
    )  # fmt: skip
    caffe, pytorch = done.data()["rules"]
    assert pytorch["arguments"]["ceil_mode"] is True and "ceil_mode" not in caffe["arguments"]
    assert [axis["out"] for axis in caffe["axes"]] == [4, 8]


def test_pads_before_and_after_and_words() -> None:
    (side,) = astride("explain", "conv", "-k", 3, "-p", "0:2", "--size", 5, "--rank", 1, "-r", "explicit", "--json").data()[
        "rules"
    ]
    assert side["axes"][0]["pads"] == [0, 2]
    (side,) = astride("explain", "conv", "-k", 3, "-p", "same", "--size", 5, "--rank", 1, "-r", "pytorch", "--json").data()[
        "rules"
    ]
    assert side["axes"][0]["out"] == 5


def test_by_default_all_frameworks_that_have_the_operator() -> None:
    data = astride("explain", "lp_pool", "-k", 2, "--size", 4, "--json").data()
    names = [side["rules"] for side in data["rules"]]
    assert "caffe" not in names and "pytorch" in names


def test_a_refusal_is_shown_and_all_refusals_fail() -> None:
    text = astride("explain", "max_pool", "-k", 3, "-s", 2, "--size", 8, "-r", "caffe,numpy_loops").out
    assert "refuses: the windows do not fill the input exactly" in text
    done = astride("explain", "max_pool", "-k", 9, "-s", 1, "--size", 4, "-r", "caffe,pytorch", status=1)
    assert done.out.count("refuses") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["max_pol", "-k", "3", "--size", "8"], "max_pool"),
        (["max_pol"], "there is no operator of that name"),
        (["max_pool", "-k", "3", "--size", "8", "-r", "caffee"], "one of explicit, caffe, pytorch"),
        (["max_pool", "-k", "3", "--size", "8", "-r", "caffe", "-o", "ceil_mod=true"], "ceil_mod"),
        (["matmul", "-k", "3", "--size", "8"], "has no rules"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(words: list[str], said: str) -> None:
    done = astride("explain", *words, status=1)
    assert said in done.err and done.out == ""


@pytest.mark.parametrize("option", ["pytorch", "=3", "a.b.c=1"])
def test_a_malformed_option(option: str) -> None:
    assert "name=value" in astride("explain", "max_pool", "-k", 3, "--size", 8, "-o", option, status=2).err


def test_a_layer_of_a_network(shop: Path) -> None:
    text = astride("explain", "deploy.prototxt", "--layer", "pool", "--rules", "caffe,pytorch").out
    assert "y[c, i] = greatest x[c, i*stride - pad + j]" in text
    assert "reads   conv (1, 4, 4, 4)" in text and "4 -> 2" in text
    data = astride("explain", "deploy.prototxt", "--layer", "ip", "--json", "--png", shop / "no.png").data()
    assert data["comparison"] is None and data["parameters"] == 16 * 2 + 2
    assert not (shop / "no.png").exists()


def test_a_file_called_like_an_operator_is_in_nobodys_way(shop: Path) -> None:
    (shop / "max_pool").write_text("notes")
    assert astride("explain", "max_pool", "-k", 2, "--size", 4, "-r", "caffe").lines[0].startswith("max_pool of 4x4")


def test_an_unknown_layer(shop: Path) -> None:
    assert "conv, relu, pool" in astride("explain", "deploy.prototxt", "--layer", "pol", status=1).err
    assert "which of its layers" in astride("explain", "deploy.prototxt", status=2).err


def test_an_input_of_numbers_or_a_file(tmp_path: Path) -> None:
    done = astride("explain", "max_pool", "-k", 2, "--input", "1,2,nan,4", "-r", "caffe,pytorch")
    assert "≠ pytorch     output       2 ≠NaN   gradient   0  1 ≠1 ≠0" in done.lines
    data = astride("explain", "max_pool", "-k", 2, "--input", "1,-inf;3,4", "-r", "caffe", "--json").data()
    assert data["input"] == [[1, "-Infinity"], [3, 4]] and data["rules"][0]["values"]["y"] == [[4]]
    np.save(tmp_path / "x.npy", np.arange(6.0))
    data = astride("explain", "avg_pool", "-k", 3, "--input", tmp_path / "x.npy", "-r", "pytorch", "--json").data()
    assert data["rules"][0]["values"]["y"] == [1, 4]


def test_inputs_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"no array")
    said = astride("explain", "max_pool", "-k", 2, "--input", tmp_path / "x.npy", "-r", "caffe", status=2).err
    assert "no .npy file" in " ".join(said.replace("│", " ").split())
    assert "different lengths" in astride("explain", "max_pool", "-k", 2, "--input", "1,2;3", "-r", "caffe", status=2).err
    assert "no list of numbers" in astride("explain", "max_pool", "-k", 2, "--input", "a,b", "-r", "caffe", status=2).err
    words = ("explain", "max_pool", "-k", 2, "--input", "1,2,3", "--size", 4, "--rank", 1, "-r", "caffe")
    assert "the input has other sizes" in astride(*words, status=1).err


CALL = ("explain", "--from", "pytorch", "MaxPool2d(3, 2, ceil_mode=True)", "--to")


def test_a_call_in_another_framework() -> None:
    done = astride(*CALL, "tensorflow", "--size", "8x8")
    assert "  y = tf.nn.max_pool2d(x, 3, 2, [[0, 0], [0, 1], [0, 1], [0, 0]])" in done.lines
    assert any(line.startswith("≠ NaN") for line in done.lines)
    assert [line for line in done.lines if len(line) > 80] == []
    data = astride(*CALL, "tensorflow", "--size", 8, "--json").data()
    assert data["expressed"] and not data["exact"] and data["trials"][0]["forward"] == "equal"


def test_a_translation_is_drawn(tmp_path: Path) -> None:
    done = astride(*CALL, "tensorflow", "--size", 8, "--png", tmp_path / "t.png", "--svg", tmp_path / "t.svg", "--json")
    assert len(done.data()["windows"]["to"][0]["windows"]) == 4 and done.err.count("wrote") == 2
    assert "tf.nn.max_pool2d(x, 3, 2" in (tmp_path / "t.svg").read_text()


def test_a_call_that_has_no_counterpart() -> None:
    done = astride("explain", "--from", "pytorch", "LPPool2d(2, 3)", "--to", "tensorflow", status=1)
    assert "tensorflow has no lp_pool" in done.out
    assert not astride("explain", "--from", "pytorch", "LPPool2d(2, 3)", "--to", "keras", "--json", status=1).data()["expressed"]


def test_wrong_translations() -> None:
    assert "one of caffe, pytorch" in astride(*CALL, "theano", status=1).err
    assert "--to" in astride("explain", "--from", "pytorch", "MaxPool2d(3)", status=2).err
