"""SSD's and Faster R-CNN's layers in OpenCV 4's Caffe importer, alone and as whole networks with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

from astride.caffe import load_caffe
from astride.net import Net

cv2 = pytest.importorskip("cv2", reason="OpenCV 4 is not installed: pip install 'opencv-python-headless<5'")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not hasattr(cv2.dnn, "readNetFromCaffe"),
        reason="this OpenCV has no Caffe importer: pip install 'opencv-python-headless<5'",
    ),
]

TOLERANCE = 1e-5
DETECTIONS = 1e-4
"""Report CAF-01 asks for boxes and scores this near."""


def net_text(shapes: dict[str, tuple[int, ...]], layers: str) -> str:
    inputs = "".join(f'input: "{n}" input_shape {{ {" ".join(f"dim: {d}" for d in s)} }}\n' for n, s in shapes.items())
    return inputs + layers


def both(text: str, folder: Path, **inputs: Any) -> tuple[Net, Any, Any]:
    """The network, and the last blob as it and as OpenCV compute it, with the same weights."""
    net = load_caffe(text, seed=len(text))
    net.save(folder / "weights.caffemodel")
    ours = net.forward(**inputs)
    theirs = cv2.dnn.readNetFromCaffe(
        np.frombuffer(text.encode(), np.uint8), np.fromfile(folder / "weights.caffemodel", np.uint8)
    )
    for name, value in inputs.items():
        theirs.setInput(value.astype(np.float32), name)
    return net, ours[net.outputs[-1]], theirs.forward()


def fields(**values: Any) -> str:
    return " ".join(
        " ".join(f"{key}: {v}" for v in value) if isinstance(value, list) else f"{key}: {str(value).lower()}"
        for key, value in values.items()
    )


PRIORS = """
layer {{ name: "{name}" type: "PriorBox" bottom: "{map}" bottom: "{image}" top: "{name}" prior_box_param {{ {fields} }} }}
"""


def priors_of(rng: np.random.Generator) -> dict[str, Any]:
    """Options of a PriorBox; sizes are whole, which OpenCV does not make them."""
    least = [int(n) for n in rng.integers(3, 12, rng.integers(1, 3))]
    options: dict[str, Any] = {"min_size": least, "flip": bool(rng.integers(2)), "clip": bool(rng.integers(2))}
    if rng.integers(2):
        options["max_size"] = [n + int(rng.integers(1, 9)) for n in least]
    options["aspect_ratio"] = [float(r) for r in rng.choice([1.5, 2, 3], int(rng.integers(0, 3)), replace=False)]
    options["variance"] = [[0.1], [0.1, 0.1, 0.2, 0.2]][rng.integers(2)]
    if not options["clip"] and rng.integers(2):  # clipped boxes outside the image would have no size, which SSD refuses
        options["step"] = float(rng.integers(3, 9))
    options["offset"] = float(rng.choice([0.5, 0.25, 0.0]))
    return {key: value for key, value in options.items() if value != []}


@pytest.mark.parametrize("seed", range(30))
def test_prior_box(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    shapes = {
        "map": (1, 4, *(int(n) for n in rng.integers(1, 6, 2))),
        "image": (1, 3, *(int(n) for n in rng.integers(20, 60, 2))),
    }
    layer = PRIORS.format(name="p", map="map", image="image", fields=fields(**priors_of(rng)))
    _, ours, theirs = both(net_text(shapes, layer), tmp_path, **{name: np.zeros(s) for name, s in shapes.items()})
    assert ours.shape == theirs.shape, layer
    assert_near(ours, theirs, TOLERANCE, layer)


def test_fractional_sizes_differ(tmp_path: Path) -> None:
    """SSD's Caffe keeps sizes in an int; OpenCV does not."""
    shapes = {"map": (1, 1, 1, 1), "image": (1, 1, 100, 100)}
    inputs = {name: np.zeros(shape) for name, shape in shapes.items()}
    for size, half in ((35.84, 0.1792), (35, 0.175)):
        layer = PRIORS.format(name="p", map="map", image="image", fields=f"min_size: {size} variance: 0.1")
        _, ours, theirs = both(net_text(shapes, layer), tmp_path, **inputs)
        assert_near(ours[0, 0], np.array([0.325, 0.325, 0.675, 0.675], np.float32), TOLERANCE, layer)
        expected = np.array([0.5 - half] * 2 + [0.5 + half] * 2, np.float32)
        assert_near(expected, theirs[0, 0].ravel(), TOLERANCE, layer)


def test_normalize(tmp_path: Path) -> None:
    """A scale for each channel at each place: SSD's own use. OpenCV takes no other together with Caffe's shape of the blob."""
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 6)).astype(np.float32)
    options = 'across_spatial: false channel_shared: false scale_filler { type: "uniform" min: 1 max: 20 }'
    layer = f'layer {{ name: "n" type: "Normalize" bottom: "x" top: "y" norm_param {{ {options} }} }}'
    _, ours, theirs = both(net_text({"x": x.shape}, layer), tmp_path, x=x)
    assert_near(ours, theirs, TOLERANCE, layer)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("layer", "channels"),
    [
        ('type: "ROIPooling" roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.0625 }', 4),
        ('type: "PSROIPooling" psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.0625 }', 18),
    ],
)
def test_regions(layer: str, channels: int, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, channels, 10, 12)).astype(np.float32)
    corners = np.sort(rng.uniform(0, 180, (8, 2, 2)), axis=1).reshape(8, 4)
    rois = np.concatenate([np.zeros((8, 1)), corners], axis=1).astype(np.float32)
    text = net_text({"x": x.shape, "rois": rois.shape}, f'layer {{ name: "p" bottom: "x" bottom: "rois" top: "p" {layer} }}')
    _, ours, theirs = both(text, tmp_path, x=x, rois=rois)
    assert_near(ours, theirs, TOLERANCE, layer)


@pytest.mark.parametrize("seed", range(5))
def test_proposal(seed: int, tmp_path: Path) -> None:
    """Regions of any size: OpenCV leaves none out for being small."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=(1, 18, 6, 7)).astype(np.float32)
    moves = (0.3 * rng.normal(size=(1, 36, 6, 7))).astype(np.float32)
    image = np.array([[96, 112, 1, 1]], np.float32)
    options = (
        "ratio: 0.5 ratio: 1 ratio: 2 scale: 1 scale: 2 scale: 4 min_size: 0 pre_nms_topn: 200 post_nms_topn: 40 nms_thresh: 0.7"
    )
    layer = 'layer { name: "p" type: "Proposal" bottom: "scores" bottom: "moves" bottom: "image" top: "p" '
    text = net_text(
        {"scores": scores.shape, "moves": moves.shape, "image": image.shape}, f"{layer} proposal_param {{ {options} }} }}"
    )
    _, ours, theirs = both(text, tmp_path, scores=scores, moves=moves, image=image)
    assert ours.shape == (40, 5)
    assert_near(ours, theirs, TOLERANCE, text)


CONVOLUTION = """
layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
  convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 stride: {stride}
    weight_filler {{ type: "gaussian" std: {std} }} bias_filler {{ type: "uniform" min: -0.1 max: 0.1 }} }} }}
"""


def ssd(seed: int) -> tuple[str, tuple[int, ...], int]:
    """A small SSD over two maps: its text, its image's shape, how many classes it has."""
    rng = np.random.default_rng(seed)
    classes, shared = int(rng.integers(2, 5)), bool(rng.integers(4))
    kinds = 1 if shared else classes
    image = (int(rng.integers(1, 3)), 3, *(int(n) for n in rng.integers(24, 48, 2)))
    layers = CONVOLUTION.format(name="c1", bottom="data", outputs=8, stride=4, std=0.3)
    layers += 'layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }\n'
    layers += CONVOLUTION.format(name="c2", bottom="c1", outputs=8, stride=2, std=0.3)
    layers += 'layer { name: "r2" type: "ReLU" bottom: "c2" top: "c2" }\n'
    layers += (
        'layer { name: "n1" type: "Normalize" bottom: "c1" top: "n1" norm_param { across_spatial: false channel_shared: false '
        'scale_filler { type: "constant" value: 8 } } }\n'
    )
    joined: dict[str, list[str]] = {"loc": [], "conf": [], "prior": []}
    for source in ("n1", "c2"):
        options = priors_of(rng)
        alone = PRIORS.format(name="p", map="map", image="image", fields=fields(**options))
        boxes = load_caffe(net_text({"map": (1, 1, 1, 1), "image": (1, 1, 9, 9)}, alone)).blobs["p"].shape[2] // 4
        for what, each, std in (("loc", 4 * kinds, 0.05), ("conf", classes, 0.05)):
            name = f"{source}_{what}"
            layers += CONVOLUTION.format(name=name, bottom=source, outputs=boxes * each, stride=1, std=std)
            layers += f'layer {{ name: "{name}_perm" type: "Permute" bottom: "{name}" top: "{name}_perm" '
            layers += "permute_param { order: 0 order: 2 order: 3 order: 1 } }\n"
            layers += f'layer {{ name: "{name}_flat" type: "Flatten" bottom: "{name}_perm" top: "{name}_flat" }}\n'
            joined[what].append(f"{name}_flat")
        layers += PRIORS.format(name=f"{source}_prior", map=source, image="data", fields=fields(**options))
        joined["prior"].append(f"{source}_prior")
    for what, names in joined.items():
        bottoms = " ".join(f'bottom: "{name}"' for name in names)
        axis = 2 if what == "prior" else 1
        layers += f'layer {{ name: "{what}" type: "Concat" {bottoms} top: "{what}" concat_param {{ axis: {axis} }} }}\n'
    layers += 'layer { name: "rows" type: "Reshape" bottom: "conf" top: "rows" '
    layers += f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {classes} }} }} }}\n"
    layers += 'layer { name: "odds" type: "Softmax" bottom: "rows" top: "odds" softmax_param { axis: 2 } }\n'
    layers += 'layer { name: "flat" type: "Flatten" bottom: "odds" top: "flat" }\n'
    output = fields(
        num_classes=classes,
        share_location=shared,
        background_label_id=0,
        keep_top_k=int(rng.choice([5, 20, 100])),
        confidence_threshold=float(rng.choice([0.01, 0.3, 0.5, 0.99])),
    )
    nms = fields(nms_threshold=float(rng.choice([0.3, 0.45, 0.7])), top_k=int(rng.choice([10, 50, 400])))
    code = rng.choice(["CENTER_SIZE", "CORNER"])
    layers += 'layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "flat" bottom: "prior" top: "out" '
    layers += f"detection_output_param {{ {output} code_type: {code} nms_param {{ {nms} }} }} }}"
    return net_text({"data": image}, layers), image, classes


def in_order(rows: Any) -> Any:
    """Rows by image, label and place: where keep_top_k cut some off OpenCV leaves them by score, SSD puts them by label."""
    return rows[np.lexsort((rows[:, 3], rows[:, 1], rows[:, 0]))]


@pytest.mark.parametrize("seed", range(25))
def test_whole_networks(seed: int, tmp_path: Path) -> None:
    """Report CAF-01: the same two files give the same table."""
    text, image, classes = ssd(seed)
    x = np.random.default_rng(seed).normal(size=image).astype(np.float32)
    net, ours, theirs = both(text, tmp_path, data=x)
    assert ours.shape[:2] == (1, 1) and ours.shape[3] == 7
    found, other = in_order(ours[0, 0]), theirs.reshape(-1, 7)
    if found[0, 1] == -1:
        assert not other.any()
        return
    # OpenCV has room for keep_top_k boxes of every image; what it does not need stays zero
    assert not other[len(found) :].any() and other[: len(found), 2].all(), text
    assert set(found[:, 1]) <= set(range(1, classes))
    np.testing.assert_allclose(found, in_order(other[: len(found)]), rtol=0, atol=DETECTIONS * max(1, np.abs(found).max()))
    np.testing.assert_array_equal(net.compile()(data=x)["out"], ours)
