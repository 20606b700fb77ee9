"""Data layers by their texts: what they read, what is left to chance, and who may feed them instead."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.data.databases import encoded, raw, write_leveldb, write_lmdb

from astride import load_caffe, load_solver
from astride.errors import ArgumentError, AstrideError, BackendUnavailable, ModelFileError
from astride.layers import ArraySource
from astride.layers.hdf5_output import HDF5Output
from astride.proto import write_blob

from .gradients import Bench

RANDOM = np.random.RandomState(6)
IMAGES = RANDOM.randint(0, 256, (5, 3, 6, 6)).astype(np.uint8)
DATA = """
layer {{ name: "d" type: "Data" top: "data" top: "label"
  data_param {{ source: "{source}" backend: {backend} batch_size: {batch} }} transform_param {{ {transform} }} }}
"""


def data(source: Path, transform: str = "", batch: int = 2, backend: str = "LMDB") -> str:
    return DATA.format(source=source, backend=backend, batch=batch, transform=transform)


@pytest.fixture
def lmdb(tmp_path: Path) -> Path:
    return write_lmdb(tmp_path / "db", [raw(image, label) for label, image in enumerate(IMAGES)])


def test_lmdb(lmdb: Path) -> None:
    net = load_caffe(data(lmdb, "scale: 0.5 mean_value: 1 mean_value: 2 mean_value: 3"))
    assert net.blobs["data"].shape == (2, 3, 6, 6) and net.blobs["label"].shape == (2,)
    expected = (IMAGES - np.array([1, 2, 3]).reshape(3, 1, 1)) / 2
    for labels in ([0, 1], [2, 3], [4, 0], [1, 2]):
        out = net.forward()
        assert out["label"].tolist() == labels
        np.testing.assert_array_equal(out["data"], expected[labels])
    again = load_caffe(net.to_prototxt())
    assert again.forward()["label"].tolist() == [0, 1]


def test_leveldb_and_encoded_records(tmp_path: Path) -> None:
    path = write_leveldb(tmp_path / "db", [encoded(image, label) for label, image in enumerate(IMAGES)])
    out = load_caffe(data(path, backend="LEVELDB")).forward()
    np.testing.assert_array_equal(out["data"], IMAGES[:2])


def test_a_mean_file_and_a_crop(lmdb: Path, tmp_path: Path) -> None:
    mean = RANDOM.randint(0, 9, (1, 3, 6, 6)).astype(np.float32)
    write_blob(tmp_path / "mean.binaryproto", mean)
    text = data(lmdb, f'crop_size: 4 mean_file: "{tmp_path / "mean.binaryproto"}"')
    np.testing.assert_array_equal(load_caffe(text).forward()["data"], (IMAGES[:2] - mean)[:, :, 1:5, 1:5])
    seen = {load_caffe(text, phase="TRAIN", seed=seed).forward()["data"].tobytes() for seed in range(6)}
    assert len(seen) > 1


def test_mirrors_are_coins_in_either_phase(lmdb: Path) -> None:
    net = load_caffe(data(lmdb, "mirror: true", batch=5), seed=2)
    straight = mirrored = 0
    for _ in range(4):
        for image, own in zip(net.forward()["data"], IMAGES, strict=True):
            straight += int((image == own).all())
            mirrored += int((image == own[:, :, ::-1]).all())
    assert straight + mirrored == 20 and straight and mirrored


def test_a_seed_repeats_and_a_restored_run_goes_on(lmdb: Path, tmp_path: Path) -> None:
    text = (
        data(lmdb, "crop_size: 4 mirror: true")
        + """
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
    """
    )
    solver = (
        f'base_lr: 1e-5 lr_policy: "fixed" max_iter: 8 snapshot_prefix: "{tmp_path}/s" snapshot_after_train: false random_seed: 4'
    )
    whole = load_solver(solver, net=text)
    whole.step(4)
    snapshot = whole.snapshot()
    whole.step(4)
    other = load_solver(solver, net=text)
    other.restore(snapshot.state)
    other.step(4)
    np.testing.assert_array_equal(other.net.params["ip"][0].data, whole.net.params["ip"][0].data)


def test_images_of_any_size_one_at_a_time(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", [raw(IMAGES[0], 0), raw(IMAGES[1][:, :3], 1)])
    text = data(path, batch=1) + 'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }'
    net = load_caffe(text)
    assert [net.forward()["r"].shape for _ in range(3)] == [(1, 3, 6, 6), (1, 3, 3, 6), (1, 3, 6, 6)]
    with pytest.raises(AstrideError, match="different sizes"):
        load_caffe(data(path, batch=2)).forward()


def test_without_labels(lmdb: Path) -> None:
    net = load_caffe(data(lmdb, "mirror: true").replace('top: "label"', ""), seed=1)
    assert net.outputs == ["data"] and net.forward()["data"].shape == (2, 3, 6, 6)


def test_a_source_takes_the_place_of_what_the_text_names() -> None:
    text = data(Path("nowhere"))
    source = ArraySource(np.ones((4, 1, 2, 2)), np.arange(4))
    for sources in ({"d": source}, {"*": source}):
        net = load_caffe(text, sources=sources)
        assert net.forward()["data"].shape == (2, 1, 2, 2) and net.layer("d").type == "Data"
    with pytest.raises(ArgumentError, match="does not have"):
        load_caffe(text, sources={"e": source, "*": source})
    pytest.importorskip("lmdb")
    with pytest.raises(ModelFileError, match="no such LMDB") as caught:
        load_caffe(text)
    assert 'layer "d" (Data)' in str(caught.value)


def test_a_missing_package_names_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(BackendUnavailable, match=r'layer "d" \(Data\)'):
        load_caffe(data(Path("db")))


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        ('mean_value: 1 mean_file: "m"', "a mean is given twice"),
        ("force_color: true force_gray: true", "to colour and to grey"),
        ("crop_size: 7", "larger than the image"),
        ("mean_value: 1 mean_value: 2", "does not fit the image"),
    ],
)
def test_transformations_that_cannot_be(lmdb: Path, transform: str, words: str) -> None:
    with pytest.raises(AstrideError, match=words):
        load_caffe(data(lmdb, transform))


def test_image_data(tmp_path: Path) -> None:
    for i, pixels in enumerate(IMAGES):
        Image.fromarray(np.ascontiguousarray(pixels[::-1].transpose(1, 2, 0))).save(tmp_path / f"{i}.png")
    (tmp_path / "list.txt").write_text("".join(f"{i}.png {i}\n" for i in range(5)))
    text = f"""
    layer {{ name: "d" type: "ImageData" top: "data" top: "label"
      image_data_param {{ source: "{tmp_path}/list.txt" root_folder: "{tmp_path}/" batch_size: 3 %s }} }}
    """
    out = load_caffe(text % "").forward()
    np.testing.assert_array_equal(out["data"], IMAGES[:3])
    assert out["label"].tolist() == [0, 1, 2]
    assert load_caffe(text % "new_height: 3 new_width: 5 is_color: false").blobs["data"].shape == (3, 1, 3, 5)
    shuffled = load_caffe(text % "shuffle: true", seed=3)
    first = np.concatenate([shuffled.forward()["label"] for _ in range(5)])
    assert sorted(first[:5]) == sorted(first[5:10]) == [0, 1, 2, 3, 4] and first.tolist() != [0, 1, 2, 3, 4] * 3
    with pytest.raises(ArgumentError, match="along both axes"):
        load_caffe(text % "new_height: 3")


def test_hdf5_data_and_output(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"], file["t"] = np.arange(12.0).reshape(4, 3), np.arange(4)
    (tmp_path / "list.txt").write_text(str(tmp_path / "in.h5"))
    text = f"""
    layer {{ name: "d" type: "HDF5Data" top: "x" top: "t" hdf5_data_param {{ source: "{tmp_path}/list.txt" batch_size: 3 }} }}
    layer {{ name: "o" type: "HDF5Output" bottom: "x" bottom: "t" hdf5_output_param {{ file_name: "{tmp_path}/out.h5" }} }}
    """
    net = load_caffe(text)
    for rows in ([0, 1, 2], [3, 0, 1]):
        net.forward()
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["label"][:].tolist() == rows
            np.testing.assert_array_equal(file["data"][:, 0], np.array(rows) * 3)
    with pytest.raises(ArgumentError, match="not transformed"):
        load_caffe(text.replace('top: "t" ', 'top: "t" transform_param { scale: 2 } '))
    with pytest.raises(ArgumentError, match="no name"):
        load_caffe(text.replace(f'file_name: "{tmp_path}/out.h5"', ""))
    with pytest.raises(ArgumentError, match="one entry for each sample"):
        Bench(HDF5Output(lambda arrays: None), [np.zeros((2, 3)), np.zeros(3)], tops=0)


def test_window_data(tmp_path: Path) -> None:
    Image.fromarray(np.ascontiguousarray(IMAGES[0][::-1].transpose(1, 2, 0))).save(tmp_path / "a.png")
    (tmp_path / "w.txt").write_text("# 0\na.png\n3 6 6\n2\n3 1.0 0 0 3 3\n1 0.0 2 2 5 5\n")
    text = f"""
    layer {{ name: "d" type: "WindowData" top: "data" top: "label" transform_param {{ crop_size: 4 mean_value: 10 }}
      window_data_param {{ source: "{tmp_path}/w.txt" root_folder: "{tmp_path}/" batch_size: 4 fg_fraction: 0.5 %s }} }}
    """
    out = load_caffe(text % "", phase="TRAIN", seed=1).forward()
    assert out["label"].tolist() == [0, 0, 3, 3]
    np.testing.assert_array_equal(out["data"][0], IMAGES[0][:, 2:6, 2:6] - 10.0)
    np.testing.assert_array_equal(out["data"][3], IMAGES[0][:, 0:4, 0:4] - 10.0)
    with pytest.raises(ArgumentError, match="warped or made square"):
        load_caffe(text % 'crop_mode: "round"')
