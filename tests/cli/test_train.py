"""astride train."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import astride

from astride.proto import read_caffemodel

TRAIN = ("train", "solver.prototxt", "--data", "train.npz")
TEST = ("--test-data", "test.npz")


def weights(path: Path) -> list[np.ndarray]:
    return [blob.data.copy() for blobs in read_caffemodel(path).blobs for blob in blobs]


def test_a_network_learns(shop: Path) -> None:
    done = astride(*TRAIN, *TEST)
    assert done.lines[0].split() == ["iteration", "test", "net", "accuracy", "loss"]
    assert done.lines[-1].split() == ["state", "stripes_iter_30.solverstate"]
    last = next(line for line in reversed(done.lines) if line.strip().startswith("30"))
    assert float(last.split()[2]) == 1.0
    assert "iteration 10, loss" in done.err and "iteration 15, test: accuracy" in done.err
    assert [line for line in done.lines if len(line) > 80] == []


def test_json(shop: Path) -> None:
    data = astride(*TRAIN, *TEST, "--snapshot-prefix", "out/net", "--json").data()
    assert data["iterations"] == 30 and not data["stopped"] and data["loss"] < 0.5
    assert [test["iteration"] for test in data["tests"]] == [0, 15, 30]
    assert data["tests"][-1]["outputs"]["accuracy"] == 1.0
    assert (shop / data["snapshots"][-1]["model"]).is_file()


def test_resuming_equals_not_stopping(shop: Path) -> None:
    astride(*TRAIN, *TEST, "--iterations", 12, "--snapshot-prefix", "half/net")
    astride(*TRAIN, *TEST, "--snapshot", "half/net_iter_12.solverstate", "--snapshot-prefix", "half/net")
    whole, halves = weights(shop / "stripes_iter_30.caffemodel"), weights(shop / "half" / "net_iter_30.caffemodel")
    assert all((a == b).all() for a, b in zip(whole, halves, strict=True))


def test_fine_tuning_begins_with_the_weights(shop: Path) -> None:
    data = astride(*TRAIN, *TEST, "--weights", "stripes_iter_30.caffemodel", "--iterations", 1, "--json").data()
    assert data["tests"][0]["outputs"]["accuracy"] == 1.0


def test_samples_can_be_held_out(shop: Path) -> None:
    data = astride(*TRAIN, "--hold-out", 0.25, "--iterations", 15, "--json").data()
    assert data["tests"][-1]["outputs"]["accuracy"] > 0.8


def test_images_and_labels_of_their_own(shop: Path) -> None:
    words = ("train", "solver.prototxt", "--data", "images.npy", "--labels", "labels.npy", *TEST, "--in-order", "--seed", 4)
    assert astride(*words, "--iterations", 2, "--json").data()["iterations"] == 2


def test_a_data_layer_of_another_kind_is_fed(shop: Path) -> None:
    text = (shop / "net.prototxt").read_text()
    text = text.replace("MemoryData", "Data").replace(
        "memory_data_param { batch_size: 16 channels: 1 height: 6 width: 6 }", 'data_param { source: "lmdb" batch_size: 16 }'
    )
    text = text.replace(
        "memory_data_param { batch_size: 10 channels: 1 height: 6 width: 6 }", 'data_param { source: "lmdb" batch_size: 10 }'
    )
    (shop / "net.prototxt").write_text(text)
    assert astride(*TRAIN, *TEST, "--iterations", 30, "--json").data()["tests"][-1]["outputs"]["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solver.prototxt"], "train net has a data layer without data"),
        (["solver.prototxt", "--data", "train.npz"], "--hold-out"),
        (["solver.prototxt", "--data", "images.npy"], "--labels"),
        (["solver.prototxt", "--data", "none.npz"], "no such array file"),
        (["solver.prototxt", "--data", "net.prototxt", "--labels", "labels.npy"], "not a NumPy array file"),
        (["solver.prototxt", "--data", "train.npz", "--hold-out", "2"], "0 < held out"),
        (["solver.prototxt", "--data", "train.npz", "--hold-out", "0.1", "--test-data", "test.npz"], "one place"),
        (["solver.prototxt", "--data", "train.npz", "--test-data", "test.npz", "--snapshot", "none.solverstate"], "no file"),
        (["none.prototxt", "--data", "train.npz"], "no file"),
    ],
)
def test_errors(shop: Path, words: list[str], said: str) -> None:
    done = astride("train", *words, status=1)
    assert said in done.err and done.out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent another way there")
def test_ctrl_c_writes_a_snapshot_and_stops(shop: Path) -> None:
    code = "import sys; from astride.cli import main; sys.exit(main())"
    words = [*map(str, TRAIN), *TEST, "--iterations", "1000000", "--snapshot-prefix", "stop/net"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=shop, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("iteration 10,"):
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopping after this iteration" in err and "go on with" in out
    written = list((shop / "stop").glob("net_iter_*.solverstate"))
    assert len(written) == 1 and written[0].with_suffix(".caffemodel").is_file()
