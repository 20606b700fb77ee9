"""Networks that other people trained, from their own files, against what Caffe computed with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from astride.caffe import load_caffe
from astride.cli import app
from astride.net import Net

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODELS, RECORDED = SHARED / "models", SHARED / "goldens" / "models"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the real networks and what Caffe computed with them are not here")

TOLERANCE = 1e-5
"""Of the largest recorded value. Measured: 2e-6, where another order of sums would show."""

TEXTS = sorted(MODELS.rglob("*.prototxt"))
CIFAR, MTCNN, ULTRALIGHT = "cifar10_everpeace", "mtcnn", "ultralight"

NETWORKS = [
    (CIFAR, "cifar10_quick.prototxt", "cifar10_quick_iter_5000.caffemodel"),
    (CIFAR, "lenet.prototxt", "lenet_iter_10000.caffemodel"),
    *((MTCNN, f"det{number}.prototxt", f"det{number}.caffemodel") for number in (1, 2, 3)),
    (ULTRALIGHT, "RFB-320.prototxt", "RFB-320.caffemodel"),
]

Floats = npt.NDArray[np.float32]


def load(folder: str, text: str, weights: str | None = None) -> Net:
    return load_caffe(MODELS / folder / text, None if weights is None else MODELS / folder / weights)


def values(name: str) -> dict[str, Any]:
    with np.load(RECORDED / f"{name}.npz") as file:
        return dict(file)


def compare(net: Net, recorded: dict[str, Any]) -> None:
    """Every recorded blob; of some only the first image was recorded."""
    names = [key for key in recorded if key.startswith("out_")]
    assert names
    for key in names:
        expected = recorded[key]
        actual = net.blobs[key.removeprefix("out_").replace("|", "/")].data[: len(expected)]
        assert actual.shape == expected.shape, key
        np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max(), err_msg=key)


def channels_first(images: npt.NDArray[np.uint8]) -> Floats:
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32)


def test_cifar10_quick() -> None:
    """V1 text and weights; the layer pool1 comes before its relu."""
    recorded = values("cifar10_quick")
    net = load(CIFAR, "cifar10_quick.prototxt", "cifar10_quick_iter_5000.caffemodel")
    mean = np.array([125.3, 123.0, 113.9], np.float32).reshape(3, 1, 1)
    net.forward(data=channels_first(recorded["image_u8"]) - mean)
    compare(net, recorded)


def test_lenet() -> None:
    """V1 text and weights; and it knows its digits."""
    recorded = values("lenet_v1")
    net = load(CIFAR, "lenet.prototxt", "lenet_iter_10000.caffemodel")
    outputs = net.forward(data=recorded["image_u8"] / np.float32(256))
    compare(net, recorded)
    assert (outputs["prob"].argmax(axis=1) == recorded["label"]).all()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_mtcnn(number: int) -> None:
    """PReLU; images of any size in det1; images lie on their side (N, C, W, H)."""
    recorded = values(f"mtcnn_det{number}")
    net = load(MTCNN, f"det{number}.prototxt", f"det{number}.caffemodel")
    images = recorded["image_u8"].reshape(-1, *recorded["image_u8"].shape[-3:])
    net.forward(data=(images.transpose(0, 3, 2, 1).astype(np.float32) - 127.5) * 0.0078125)
    compare(net, recorded)


def ultralight_input(recorded: dict[str, Any]) -> Floats:
    return (channels_first(recorded["image_u8"][None]) - 127) / 128


def test_ultralight() -> None:
    """Depthwise and dilated convolutions, Eltwise, Concat; as far as BVLC's Caffe could run it."""
    recorded = values("ultralight_RFB-320")
    net = load(ULTRALIGHT, "RFB-320_bvlc.prototxt", "RFB-320.caffemodel")
    net.forward(input=ultralight_input(recorded))
    compare(net, recorded)


def test_ultralight_with_permute() -> None:
    """The whole network of SSD's fork: the recorded maps turned to lists of scores and boxes, worked out here by hand."""
    recorded = values("ultralight_RFB-320")
    net = load(ULTRALIGHT, "RFB-320.prototxt", "RFB-320.caffemodel")
    outputs = net.forward(input=ultralight_input(recorded))
    compare(net, recorded)

    def lists(names: tuple[str, ...], width: int) -> Floats:
        maps = [recorded[f"out_{name}"].transpose(0, 2, 3, 1).reshape(1, -1, width) for name in names]
        return np.concatenate(maps, axis=1)

    scores = lists(("317", "363", "403", "435"), 2)
    odds = np.exp(scores - scores.max(axis=2, keepdims=True))
    assert outputs["scores"].shape == (1, 4420, 2)
    np.testing.assert_allclose(outputs["scores"], odds / odds.sum(axis=2, keepdims=True), rtol=0, atol=1e-4)
    boxes = lists(("331", "377", "417", "447"), 4)
    np.testing.assert_allclose(outputs["boxes"], boxes, rtol=0, atol=1e-4 * np.abs(boxes).max())


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_text_loads_and_comes_back(path: Path) -> None:
    net = load(path.parent.name, path.name)
    text = net.to_prototxt()
    again = load_caffe(text)
    assert again.to_prototxt() == text
    assert [(node.name, node.layer.type, node.bottoms, node.tops) for node in again.nodes] == [
        (node.name, node.layer.type, node.bottoms, node.tops) for node in net.nodes
    ]
    assert {name: blob.shape for name, blob in again.blobs.items()} == {name: blob.shape for name, blob in net.blobs.items()}
    assert path.stem in repr(net) or net.name in repr(net)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_text_is_shown(path: Path) -> None:
    result = CliRunner().invoke(app, ["show", str(path), "--json"])
    assert result.exit_code == 0, result.stderr
    shown = {layer["name"]: layer["type"] for layer in json.loads(result.stdout)["layers"]}
    net = load(path.parent.name, path.name)
    assert {node.name: node.layer.type for node in net.nodes if node.layer.type != "Split"}.items() <= shown.items()


@pytest.mark.parametrize(("folder", "text", "weights"), NETWORKS, ids=lambda value: Path(value).stem)
def test_compiled_they_compute_the_same(folder: str, text: str, weights: str) -> None:
    net = load(folder, text, weights)
    shapes = {name: net.blobs[name].shape for name in net.inputs}
    inputs = {name: np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    expected = net.forward(**inputs)
    actual = net.compile()(**inputs)
    assert list(actual) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=TOLERANCE * np.abs(value).max(), err_msg=name)


@pytest.mark.parametrize("path", [path for path in TEXTS if CIFAR in path.parts], ids=lambda path: path.stem)
def test_saved_in_the_current_format_old_networks_compute_the_same(path: Path, tmp_path: Path) -> None:
    weights = {"lenet": "lenet_iter_10000", "cifar10_quick": "cifar10_quick_iter_5000"}[path.stem]
    old = load_caffe(path, path.with_name(f"{weights}.caffemodel"))
    old.save(tmp_path / "new.caffemodel")
    new = load_caffe(old.to_prototxt(), tmp_path / "new.caffemodel")
    x = np.random.RandomState(0).rand(*old.blobs["data"].shape)
    np.testing.assert_array_equal(new.forward(data=x)["prob"], old.forward(data=x)["prob"])
