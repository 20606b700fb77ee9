"""Scripts as people wrote them for Caffe, run as they are."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import pytest

from astride import pycaffe as caffe

from .texts import written

SCRIPTS = Path(__file__).parent / "scripts"

EIGHT = """
input: "data" input_shape { dim: 1 dim: 2 dim: 8 dim: 8 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "sum" type: "Pooling" bottom: "conv" top: "sum" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "fc1" type: "InnerProduct" bottom: "sum" top: "fc1"
  inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "fc1" top: "fc1" }
layer { name: "fc2" type: "InnerProduct" bottom: "fc1" top: "fc2"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc2" top: "prob" }
"""


@pytest.fixture
def run(installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run a script from the working directory, with arguments; what it prints last."""

    def runner(name: str, *arguments: str) -> str:
        script = Path(shutil.copy(SCRIPTS / f"{name}.py", installed))
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.strip().splitlines()[-1]

    return runner


@pytest.fixture
def eight(installed: Path) -> tuple[str, str]:
    """A small classifier of 8 x 8 pictures: text and weights."""
    caffe.set_random_seed(2)
    net = caffe.Net(written("eight.prototxt", EIGHT), caffe.TEST)
    net.save("eight.caffemodel")
    return "eight.prototxt", "eight.caffemodel"


def test_the_classification_notebook(run, shared: Path) -> None:  # type: ignore[no-untyped-def]
    cifar = shared / "models" / "cifar10_everpeace"
    picture = shared / "models" / "photos" / "chelsea.png"
    text, weights = cifar / "cifar10_quick.prototxt", cifar / "cifar10_quick_iter_5000.caffemodel"
    assert run("classification", str(text), str(weights), str(picture)).startswith("top [")


def test_net_surgery(run, eight: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    assert run("net_surgery", *eight) == "converted ['fc1', 'fc2']"


def test_fcn_surgery(run) -> None:  # type: ignore[no-untyped-def]
    assert run("fcn_surgery").startswith("labels [")


def test_a_training_loop(run) -> None:  # type: ignore[no-untyped-def]
    assert run("training_loop") == "accuracy True"


def test_training_from_lmdb(run) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("lmdb")
    assert run("lmdb_training") == "accuracy 1.0 ['lenet_iter_20.caffemodel', 'lenet_iter_20.solverstate']"


def test_a_loss_in_python(run, installed: Path) -> None:  # type: ignore[no-untyped-def]
    shutil.copy(SCRIPTS / "euclidean.py", installed)
    assert run("python_loss") == "diff EuclideanLossLayer (4, 2)"


def test_editing_with_caffe_pb2(run) -> None:  # type: ignore[no-untyped-def]
    assert run("edit_prototxt") == "kinds ['Convolution', 'InnerProduct', 'Softmax']"


def test_deepdream(run) -> None:  # type: ignore[no-untyped-def]
    assert run("deepdream").startswith("shape (1, 3, 16, 16)")


def test_feature_extraction(run, eight: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    assert run("extract_features", *eight) == "features (7, 3, 3, 3)"


def test_the_driver_of_mtcnn(run, shared: Path) -> None:  # type: ignore[no-untyped-def]
    models = shared / "models"
    words = run("mtcnn_first_stage", str(models / "mtcnn"), str(models / "photos" / "astronaut.png"))
    left, top, right, bottom = (int(word.strip("[],")) for word in words.split()[1:])
    # The face of the astronaut fills about (175, 60) to (285, 205) of the 512 x 512 picture.
    assert 120 < (left + right) / 2 < 330 and 40 < (top + bottom) / 2 < 260
