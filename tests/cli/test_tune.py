"""astride tune."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.console import astride

from astride.backends.cpu import conv_choice, conv_tuned

TEXT = """
input: "data" input_dim: 1 input_dim: 3 input_dim: 12 input_dim: 12
layer { name: "a" type: "Convolution" bottom: "data" top: "a" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "r" type: "ReLU" bottom: "a" top: "a" }
layer { name: "b" type: "Deconvolution" bottom: "a" top: "b" convolution_param { num_output: 2 kernel_size: 2 stride: 2 } }
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(conv_tuned, "folder", lambda: tmp_path / "kernels")
    conv_tuned.entries.cache_clear()
    conv_choice.forget()
    path = tmp_path / "net.prototxt"
    path.write_text(TEXT)
    yield path
    conv_tuned.entries.cache_clear()
    conv_choice.forget()


def test_a_network(net: Path) -> None:
    done = astride("tune", net, "--seconds", 0)
    rows = [line.split() for line in done.lines]
    assert rows[0] == ["layer", "fastest", "ms", "predicted", "ms"]
    assert [row[0] for row in rows[1:7]] == ["a", "data", "weights", "b", "data", "weights"] and rows[1][1] == "forward"
    assert "of 6 are computed in another way from now on" in done.out and str(conv_tuned.path()) in done.out
    assert len(conv_tuned.entries()) == 6
    assert astride("tune", "--forget").lines == ["6 measurements forgotten"] and conv_tuned.entries() == {}


def test_one_layer_as_json(net: Path) -> None:
    data = astride("tune", net, "--layer", "b", "--batch", 2, "--threads", 1, "--seconds", 0, "--json").data()
    assert [(row["layer"], row["what"]) for row in data["measured"]] == [("b", w) for w in ("forward", "data", "weights")]
    assert all(row["fastest"] in row["ms"] and row["chosen"] in row["ms"] for row in data["measured"])
    assert all("|2|" in key for key in conv_tuned.entries())
    assert astride("tune", "--forget", "--json").data() == {"forgotten": 3}


def test_one_convolution(net: Path) -> None:
    words = ("conv", "-k", 3, "-p", 1, "--size", "9x8", "--channels", 4, "--out-channels", 6, "--groups", 2, "--layout", "NHWC")
    data = astride("tune", *words, "--batch", 3, "--seconds", 0, "--json").data()
    assert [(row["layer"], row["what"]) for row in data["measured"]] == [("conv", w) for w in ("forward", "data", "weights")]
    shown = astride("tune", "--show").out
    assert "3 measurements of this machine and version" in shown and "dw, float32: 3 images of 4x9x8" in " ".join(shown.split())
    assert {entry["way"] for entry in astride("tune", "--show", "--json").data()["measured"]} <= {"tiles", "winograd", "packed"}
    astride("tune", "conv_transpose", "-k", 2, "-s", 2, "--size", 5, "--channels", 3, "--out-channels", 2, "--seconds", 0)
    assert len(conv_tuned.entries()) == 6 and "dx, float32: 1 image of 3x5x5 to 2x10x10" in " ".join(
        " ".join(map(conv_choice.described, conv_tuned.entries())).split()
    )
    assert "conv needs a size" in astride("tune", "conv", "-k", 3, "--channels", 2, "--out-channels", 2, status=2).err
    astride("tune", "--forget")
    assert "0 measurements" in astride("tune", "--show").out


def test_what_cannot_be_tuned(net: Path) -> None:
    assert "no such convolution" in astride("tune", net, "--layer", "r", status=1).err
    assert "a network, conv or conv_transpose" in astride("tune", status=2).err
