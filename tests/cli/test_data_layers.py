"""Commands on networks that read databases, and on Python layers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import astride
from tests.data.databases import raw, write_lmdb

from astride import pycaffe

NET = """
layer { name: "d" type: "Data" top: "data" top: "label" data_param { source: "db" backend: LMDB batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2
  weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "twice" type: "Python" bottom: "loss" top: "twice" python_param { module: "shop_layers" layer: "Twice" } }
"""
SOLVER = """
net: "net.prototxt" test_iter: 2 test_interval: 10 base_lr: 0.001 lr_policy: "fixed" max_iter: 10 snapshot_prefix: "s"
random_seed: 1 display: 0
"""
LAYERS = """
class Twice:
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = 2 * bottom[0].data
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    random = np.random.RandomState(2)
    write_lmdb(tmp_path / "db", [raw(random.randint(0, 9, (1, 3, 3)).astype(np.uint8), i % 2) for i in range(8)])
    for name, text in (("net.prototxt", NET), ("solver.prototxt", SOLVER), ("shop_layers.py", LAYERS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("shop_layers", "old_layers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    pycaffe.uninstall()


def test_train_and_test_read_what_the_text_names(folder: Path) -> None:
    astride("train", "solver.prototxt", "--python-layer", "shop_layers")
    data = astride("test", "net.prototxt", "s_iter_10.caffemodel", "--python-layer", "shop_layers", "-i", 2, "--json").data()
    assert data["batch_size"] == 4
    assert data["outputs"]["twice"] == pytest.approx(2 * data["loss"])


def test_python_layers_import_caffe(folder: Path) -> None:
    """As every layer does that was written for Caffe."""
    layers = LAYERS.replace(
        "class Twice:", "import caffe\n\nclass Twice(caffe.Layer):\n    def setup(self, bottom, top):\n        pass\n"
    )
    (folder / "shop_layers.py").write_text(layers)
    astride("train", "solver.prototxt", "--python-layer", "shop_layers")
    rows = astride("show", "net.prototxt", "--python-layer", "shop_layers", "--json").data()["layers"]
    assert [row["type"] for row in rows][-1] == "Python"


def test_layers_of_python_2_are_told(folder: Path) -> None:
    (folder / "old_layers.py").write_text("import caffe\nprint 'reading'\n")
    done = astride("show", "net.prototxt", "--python-layer", "old_layers", status=2)
    words = " ".join(done.err.replace("│", " ").split())
    assert "old_layers is no Python 3" in words and "line 2" in words


def test_python_layers_must_be_asked_for(folder: Path) -> None:
    done = astride("train", "solver.prototxt", status=1)
    assert "not one of those that may run" in done.err and "--python-layer shop_layers" in done.err
    done = astride("train", "solver.prototxt", "--python-layer", "shop_layer", status=2)
    assert "there is no module shop_layer" in done.err
