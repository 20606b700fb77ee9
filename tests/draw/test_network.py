"""Drawings of networks: every layer is there, boxes do not overlap, arrows pass between them."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from astride.caffe import load_caffe
from astride.draw import draw_network
from astride.draw.layout import Layout, arrange
from astride.net import Net

LENET = files("astride.examples") / "lenet"


def conv(name: str, bottom: str, top: str) -> str:
    return f"""layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{top}"
                convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 }} }}
                layer {{ name: "relu_{name}" type: "ReLU" bottom: "{top}" top: "{top}" }}"""


BRANCHES = "\n".join(
    [
        'name: "branches"',
        'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }',
        conv("a", "x", "a"),
        conv("b1", "x", "b1"),
        conv("b2", "b1", "b2"),
        conv("b3", "b2", "b3"),
        'layer { name: "up" type: "Deconvolution" bottom: "x" top: "up"',
        "        convolution_param { num_output: 2 kernel_size: 2 stride: 2 } }",
        'layer { name: "flat" type: "Flatten" bottom: "b3" top: "flat" }',
    ]
)


def lenet(phase: str) -> Net:
    return load_caffe(LENET / "lenet_train_test.prototxt", phase=phase)  # type: ignore[arg-type]


def texts(net: Net) -> list[str]:
    return [node.text or "" for node in ET.fromstring(draw_network(net).svg()).iter() if node.tag.endswith("text")]


def test_every_layer_and_blob_is_named() -> None:
    found = texts(lenet("TEST"))
    for name in ("digits", "conv1", "pool1", "conv2", "pool2", "ip1", "relu1", "ip2", "accuracy", "loss"):
        assert name in found
    assert "data  50 x 1 x 28 x 28" in found and "pool2  50 x 50 x 4 x 4" in found and "loss  one number" in found
    assert "Convolution, 20 of 5x5" in found
    assert not any("split" in text for text in found)


def test_layers_in_place_stand_in_the_box_they_change() -> None:
    net = load_caffe(BRANCHES)
    boxes = [node for node in ET.fromstring(draw_network(net).svg()).iter() if node.attrib.get("rx") == "7"]
    assert len(boxes) == 7  # in, a, b1, b2, b3, up, flat: the four ReLUs have none of their own


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_the_picture_is_not_blank(phase: str) -> None:
    canvas = draw_network(lenet(phase))
    image = np.asarray(Image.open(io.BytesIO(canvas.png())).convert("RGB"))
    inked = (image < 250).any(axis=2)
    assert inked.mean() > 0.05
    assert not inked[:, :8].any() and not inked[:, -8:].any() and not inked[-8:].any()


# The layout


def overlaps(layout: Layout, boxes: list[tuple[float, float]]) -> list[tuple[int, int]]:
    found = []
    for i, ((x, y), (w, h)) in enumerate(zip(layout.centers, boxes)):
        for j in range(i):
            (u, v), (a, b) = layout.centers[j], boxes[j]
            if abs(x - u) < (w + a) / 2 - 1e-6 and abs(y - v) < (h + b) / 2 - 1e-6:
                found.append((i, j))
    return found


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(1, 12))
    boxes = [(float(draw(st.integers(20, 200))), float(draw(st.integers(20, 90)))) for _ in range(count)]
    pairs = [(a, b) for b in range(count) for a in range(b)]
    return boxes, draw(st.lists(st.sampled_from(pairs), max_size=2 * count)) if pairs else []


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_boxes_do_not_overlap_and_edges_go_down(graph: tuple[list[tuple[float, float]], list[tuple[int, int]]]) -> None:
    boxes, edges = graph
    layout = arrange(boxes, edges)
    assert overlaps(layout, boxes) == []
    for (x, y), (w, h) in zip(layout.centers, boxes):
        assert x - w / 2 >= -1e-6 and x + w / 2 <= layout.width + 1e-6
        assert y - h / 2 >= -1e-6 and y + h / 2 <= layout.height
    for a, b in edges:
        ys = [layout.centers[a][1], *[y for _, y in layout.bends[a, b]], layout.centers[b][1]]
        assert ys == sorted(ys)


def test_an_edge_passes_beside_the_boxes_of_the_rows_it_crosses() -> None:
    boxes = [(100.0, 40.0)] * 4
    layout = arrange(boxes, [(0, 1), (1, 2), (2, 3), (0, 3)])
    bends = layout.bends[0, 3]
    assert len(bends) == 4
    for x, y in bends:
        for (u, v), (w, h) in zip(layout.centers[1:3], boxes):
            assert abs(x - u) > w / 2 or abs(y - v) > h / 2 + 1e-6


def test_a_chain_is_straight() -> None:
    layout = arrange([(100.0, 40.0), (60.0, 40.0), (150.0, 40.0)], [(0, 1), (1, 2)])
    assert len({round(x, 3) for x, _ in layout.centers}) == 1


def test_long_edges_and_chains_below_a_fork_are_straight() -> None:
    """0 forks to a chain 1-2-3 and to 4, which 3 joins: the long edge runs straight past the chain, the chain hangs straight."""
    layout = arrange([(100.0, 40.0)] * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    assert len({round(layout.centers[i][0], 3) for i in (1, 2, 3)}) == 1
    assert len({round(x, 3) for x, _ in layout.bends[0, 4]}) == 1
