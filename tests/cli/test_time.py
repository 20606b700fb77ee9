"""astride time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.console import astride
from tests.cv2dnn.ssd import ssd

from astride.errors import UnsupportedError
from astride.layers.relu import ReLU


def test_each_layer_forward_and_backward(shop: Path) -> None:
    done = astride("time", "deploy.prototxt", "stripes_iter_30.caffemodel", "--iterations", 3)
    rows = {line.split()[0]: line for line in done.lines if line}
    assert list(rows)[:6] == ["layer", "conv", "relu", "pool", "ip", "prob"]
    assert rows["conv"].count(" us") + rows["conv"].count(" ms") + rows["conv"].count(" s") >= 2 and "%" in rows["conv"]
    assert rows["conv"].endswith("576") and "median of 3 passes of 1" in done.out
    assert [line for line in done.lines if len(line) > 80] == []


def test_json_has_every_layer(shop: Path) -> None:
    data = astride("time", "deploy.prototxt", "--batch", 4, "-i", 2, "--json").data()
    assert data["batch_size"] == 4 and data["iterations"] == 2 and data["no_backward"] is None
    layers = {layer["name"]: layer for layer in data["layers"]}
    assert layers["conv"]["output"] == [4, 4, 4, 4] and layers["conv"]["multiply_adds"] == 4 * 4 * 16 * 9
    assert all(layer["forward_seconds"] >= 0 for layer in layers.values())
    assert layers["conv"]["backward_seconds"] > 0
    assert data["forward_seconds"] >= 0.5 * sum(layer["forward_seconds"] for layer in layers.values())


def test_a_network_that_trains(shop: Path) -> None:
    """Its data layer draws random samples, or those of a file."""
    for words in ((), ("--data", "train.npz")):
        data = astride("time", "net.prototxt", "--phase", "train", "-i", 2, "--json", *words).data()
        assert data["phase"] == "TRAIN" and data["batch_size"] == 16
        assert {layer["name"]: layer for layer in data["layers"]}["ip"]["backward_seconds"] > 0


def test_forward_only_and_sorted(shop: Path) -> None:
    done = astride("time", "deploy.prototxt", "--forward", "--sort", "-i", 2)
    assert "backward" not in done.lines[-2] and "forward" in done.lines[-2]
    data = astride("time", "deploy.prototxt", "--forward", "-i", 1, "--json").data()
    assert data["backward_seconds"] is None and {layer["backward_seconds"] for layer in data["layers"]} == {None}


def test_a_detector(shop: Path) -> None:
    Path("ssd.prototxt").write_text(ssd(side=16))
    assert astride("time", "ssd.prototxt", "-i", 1, "--json").data()["backward_seconds"] > 0


def test_a_layer_without_a_gradient(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise UnsupportedError("nobody knows its gradient")

    monkeypatch.setattr(ReLU, "backward", none)
    done = astride("time", "deploy.prototxt", "-i", 1)
    assert 'no backward pass: layer "relu"' in done.err and "nobody knows its gradient" in done.err
    assert "forward" in done.lines[-2] and "backward" not in done.lines[-2]


def test_a_layer_with_state(shop: Path) -> None:
    """It cannot run twice for one pass; from the second on, forward keeps what backward needs."""
    norm = 'layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "norm" batch_norm_param { use_global_stats: false } }'
    Path("norm.prototxt").write_text(Path("deploy.prototxt").read_text() + norm)
    data = astride("time", "norm.prototxt", "-i", 2, "--json").data()
    assert data["no_backward"] is None and data["backward_seconds"] > 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nosuch.prototxt"], 1, "nosuch"),
        (["deploy.prototxt", "--backend", "gpu9"], 1, "no such backend"),
        (["net.prototxt", "--batch", "3"], 2, "data layers has its batch"),
        (["deploy.prototxt", "-i", "0"], 2, "--iterations"),
    ],
)
def test_errors(shop: Path, words: list[str], status: int, said: str) -> None:
    assert said in astride("time", *words, status=status).err
