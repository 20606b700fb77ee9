"""astride show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride
from tests.cv2dnn.ssd import ssd


def test_the_layers_of_a_network(shop: Path) -> None:
    done = astride("show", "net.prototxt")
    assert done.lines[0] == "stripes, phase TEST"
    rows = {line.split()[0]: line.split() for line in done.lines[2:]}
    assert rows["conv"] == ["conv", "Convolution", "4", "of", "3x3", "10x4x4x4", "40", "5.76", "k", "2.6", "KB"]
    assert rows["relu"][-2:] == ["in", "place"]
    assert rows["ip"] == ["ip", "InnerProduct", "2", "outputs", "10x2", "34", "320", "80", "B"]
    assert "74 parameters (296 B)" in done.out
    assert [line for line in done.lines if len(line) > 80] == []


def test_what_is_not_learned_is_counted_apart(shop: Path) -> None:
    text = (shop / "net.prototxt").read_text()
    norm = 'layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "norm" }'
    (shop / "norm.prototxt").write_text(text + norm)
    done = astride("show", "norm.prototxt", "--svg", "net.svg")
    assert "83 parameters, 74 of them learned (332 B)" in " ".join(done.lines), (
        "a mean and a variance of 4 channels, and a weight"
    )
    assert "83 parameters, 74 of them learned, phase TEST" in (shop / "net.svg").read_text()
    totals = astride("show", "norm.prototxt", "--json").data()["totals"]
    assert (totals["parameters"], totals["learned"]) == (83, 74)


def test_json_and_phase(shop: Path) -> None:
    data = astride("show", "net.prototxt", "--phase", "train", "--json").data()
    assert data["phase"] == "TRAIN" and "accuracy" not in [layer["name"] for layer in data["layers"]]
    assert data["totals"]["parameters"] == 74
    assert data["totals"]["multiplications"] == 16 * (4 * 4 * 4 * 9 + 16 * 2)


def test_drawings(shop: Path) -> None:
    done = astride("show", "net.prototxt", "--png", "net.png", "--svg", "net.svg", "--json")
    assert done.data()["name"] == "stripes"
    image = np.asarray(Image.open(shop / "net.png").convert("L"))
    assert min(image.shape) > 300 and image.std() > 10
    assert ">accuracy<" in (shop / "net.svg").read_text()


def test_long_names_fit_80_columns(shop: Path) -> None:
    """Names are folded, numbers never."""
    Path("long.prototxt").write_text(ssd(side=300).replace("norm_conf_perm", "a_feature_map_with_quite_a_long_name"))
    done = astride("show", "long.prototxt")
    assert [line for line in done.lines if len(line) > 80] == []
    assert "DetectionOutput" in done.out and "1x1x1x7" in done.out and done.lines[2].endswith("1.1 MB")
    assert [line for line in astride("time", "long.prototxt", "-i", 1, "--forward").lines if len(line) > 80] == []


def test_a_page(shop: Path) -> None:
    """One file, nothing loaded from elsewhere, and names cannot break out of it."""
    text = (shop / "net.prototxt").read_text().replace('name: "stripes"', 'name: "<b>stripes</b>"')
    (shop / "net.prototxt").write_text(text)
    astride("show", "net.prototxt", "--html", "net.html")
    page = (shop / "net.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "<svg" in page and ">conv<" in page
    assert "&lt;b&gt;stripes&lt;/b&gt;" in page and "<b>" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "") and "<script" not in page
    assert '<td class="number">5,760</td>' in page


def test_the_arrays_of_a_weight_file(shop: Path) -> None:
    done = astride("show", "stripes_iter_30.caffemodel")
    rows = [line.split() for line in done.lines]
    assert ["conv", "Convolution", "4x1x3x3", "36"] in [row[:4] for row in rows]
    assert "74 numbers in 4 arrays" in done.out
    data = astride("show", "stripes_iter_30.caffemodel", "--json").data()
    assert data["totals"]["numbers"] == 74
    conv = next(layer for layer in data["layers"] if layer["name"] == "conv")
    assert conv["blobs"][0]["finite"] and conv["blobs"][0]["min"] <= conv["blobs"][0]["mean"] <= conv["blobs"][0]["max"]


def test_a_weight_file_by_its_content(shop: Path) -> None:
    (shop / "stripes_iter_30.caffemodel").rename(shop / "weights.bin")
    assert "74 numbers" in astride("show", "weights.bin").out


def test_weights_with_nan_are_json_and_are_named(shop: Path) -> None:
    from astride.caffe import load_caffe

    net = load_caffe("deploy.prototxt", "stripes_iter_30.caffemodel")
    net.params["conv"][0].data[0] = np.nan
    net.save("nan.caffemodel")
    data = astride("show", "nan.caffemodel", "--json").data()
    conv = next(layer for layer in data["layers"] if layer["name"] == "conv")
    assert conv["blobs"][0]["min"] == "NaN" and not conv["blobs"][0]["finite"]
    assert "layer conv: blob 0 holds NaN" in astride("show", "nan.caffemodel").err


@pytest.mark.parametrize(("name", "text", "said"), [
    ("none.prototxt", None, "no file"),
    ("page.caffemodel", "<!doctype html><html></html>", "HTML"),
    ("bad.prototxt", "layer { name: 'a' ", "bad.prototxt:1:7"),
    ("unknown.prototxt", 'layer { name: "a" type: "Nothing" top: "x" }\nlayer { name: "b" type: "Nought" top: "y" }', "line 2"),
])  # fmt: skip
def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str | None, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path(name).write_text(text)
    done = astride("show", name, status=1)
    assert said in done.err and done.out == ""


def test_a_weight_file_alone_cannot_be_drawn(shop: Path) -> None:
    assert "prototxt" in astride("show", "stripes_iter_30.caffemodel", "--png", "x.png", status=2).err


def test_shared_parameters_are_counted_once(shop: Path) -> None:
    ip = 'param { name: "w" } param { name: "b" } inner_product_param { num_output: 3 }'
    twin = "".join(
        f'layer {{ name: "in_{x}" type: "Input" top: "{x}" input_param {{ shape {{ dim: [1, 4] }} }} }}\n'
        f'layer {{ name: "ip_{x}" type: "InnerProduct" bottom: "{x}" top: "y_{x}" {ip} }}\n'
        for x in "ab"
    )
    Path("twin.prototxt").write_text(twin)
    done = astride("show", "twin.prototxt", "--html", "twin.html")
    assert "15 parameters (60 B)" in done.out, "4 x 3 weights and 3 biases"
    page = Path("twin.html").read_text()
    assert page.count('<td class="number">15</td>') == 3 and '<td class="number">30</td>' not in page
