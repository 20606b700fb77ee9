"""caffe.draw: pictures of networks, with nothing installed for it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from google.protobuf import text_format
from PIL import Image

from astride import pycaffe as caffe
from astride.errors import UnsupportedError
from astride.pycaffe import draw
from astride.pycaffe.proto import caffe_pb2

from .texts import LEARNS, SMALL


def message(text: str) -> object:
    return text_format.Parse(text, caffe_pb2.NetParameter())


def test_the_graph_has_layers_and_blobs() -> None:
    graph = draw.get_pydot_graph(message(SMALL), "TB")
    names = [node.name for node in graph.get_nodes()]
    assert "conv_Convolution" in names and "conv_blob" in names and "input_Input" in names
    arrows = [(start.name, end.name, label) for start, end, label in graph.get_edges()]
    assert ("data_blob", "conv_Convolution", "") in arrows and ("conv_Convolution", "conv_blob", "3") in arrows
    assert ("conv_blob", "relu_ReLU", "") in arrows and ("relu_ReLU", "conv_blob", "") in arrows
    text = graph.to_string()
    assert text.startswith('digraph "small" {\nrankdir=TB;') and text.endswith("}\n")
    assert '"conv_Convolution" -> "conv_blob" [label="3"];' in text and "#90EE90" in text
    plain = draw.get_pydot_graph(message(SMALL), label_edges=False)
    assert {label for *_, label in plain.get_edges()} == {""}


@pytest.mark.parametrize(("phase", "expected"), [(None, True), (caffe.TRAIN, False), (caffe.TEST, True)])
def test_a_phase_s_layers_only(phase: int | None, expected: bool) -> None:
    graph = draw.get_pydot_graph(message(LEARNS), phase=phase)
    assert ("accuracy_Accuracy" in [node.name for node in graph.get_nodes()]) == expected


@pytest.mark.parametrize("direction", ["LR", "TB", "BT"])
def test_pictures_hold_everything(direction: str) -> None:
    with Image.open(io.BytesIO(draw.draw_net(message(SMALL), direction))) as picture:
        picture.load()
        wide = picture.width > picture.height
        assert min(picture.size) > 100 and wide == (direction == "LR")
        assert (
            len(set(picture.convert("RGB").get_flattened_data() if hasattr(picture, "get_flattened_data") else picture.getdata()))
            > 8
        )
    svg = draw.draw_net(message(SMALL), direction, "svg").decode()
    assert all(f">{name}<" in svg for name in ("conv", "relu", "left", "right", "prob", "(Softmax)"))


def test_files_by_the_ending_of_their_name(tmp_path: Path) -> None:
    net = message(SMALL)
    for name, start in (("net.png", b"\x89PNG"), ("net.svg", b"<svg"), ("net.raw", b"digraph")):
        draw.draw_net_to_file(net, tmp_path / name)
        assert start in (tmp_path / name).read_bytes()[:200]
    graph = draw.get_pydot_graph(net, "LR")
    assert graph.write_png(str(tmp_path / "other.png")) and graph.create_png()[:4] == b"\x89PNG"
    assert graph.write(tmp_path / "net.dot") and (tmp_path / "net.dot").read_text() == graph.to_string()
    with pytest.raises(UnsupportedError, match="pictures of this kind"):
        draw.draw_net_to_file(net, tmp_path / "net.jpg")
    with pytest.raises(RuntimeError, match="no such direction"):
        draw.draw_net(net, "up")


def test_labels() -> None:
    conv, _, left, *_ = message(SMALL).layer  # type: ignore[attr-defined]
    assert draw.get_layer_label(conv, "TB") == "conv (Convolution) kernel size: 3 stride: 1 pad: 0"
    assert draw.get_layer_label(left, "LR").split("\\n")[2:4] == ["MAX pooling", "kernel size: 2"]
    assert draw.get_edge_label(conv) == "3" and draw.get_edge_label(left) == ""
    assert draw.get_pooling_types_dict() == {0: "MAX", 1: "AVE", 2: "STOCHASTIC"}
    assert draw.choose_color_by_layertype("Pooling") != draw.choose_color_by_layertype("ReLU")
    assert draw.get_layer_lr_mult(caffe_pb2.LayerParameter(type="Convolution", param=[{"lr_mult": 3}])) == 3


def test_old_networks_are_drawn_too() -> None:
    old = """
    input: "data" input_dim: 1 input_dim: 1 input_dim: 2 input_dim: 2
    layers { name: "pool" type: POOLING bottom: "data" top: "pool" pooling_param { global_pooling: true } }
    """
    assert "kernel size: the whole plane" in draw.get_pydot_graph(message(old)).to_string()
