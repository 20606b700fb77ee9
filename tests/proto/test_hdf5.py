"""Weights and solver states in HDF5, in Caffe's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride import proto
from astride.caffe import load_caffe
from astride.errors import ModelFileError

h5py: Any = pytest.importorskip("h5py")

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3] } } }
layer { name: "a/1x1" type: "InnerProduct" bottom: "data" top: "a"
        param { name: "w" } inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "b" type: "InnerProduct" bottom: "data" top: "b"
        param { name: "w" } inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
"""


def caffes(path: Path, layers: dict[str, dict[str, np.ndarray]], root: str = "data", mode: str = "w") -> Path:
    """A file as Caffe's ToHDF5 writes it, by h5py alone."""
    with h5py.File(path, mode) as file:
        for name, arrays in layers.items():
            group = file.create_group(f"{root}/{name}")
            for number, array in arrays.items():
                group[number] = array
    return path


W, BIAS = np.arange(12, dtype="f4").reshape(4, 3), np.array([1, 2, 3, 4], "f4")


def test_weights_of_caffe(tmp_path: Path) -> None:
    """A shared parameter lies with its owner only; a layer's group can begin with its second parameter."""
    path = caffes(tmp_path / "n.caffemodel.h5", {"a/1x1": {"0": W, "1": BIAS}, "b": {"1": 2 * BIAS}})
    net = load_caffe(NET, path)
    np.testing.assert_array_equal(net.params["b"][0].data, W)
    assert net.params["b"][1].data.tolist() == [2, 4, 6, 8]
    file = proto.read_caffemodel(path)
    assert [layer.name for layer in file.layers] == ["a/1x1", "b"] and file.blobs[0][0].shape == (4, 3)


def test_a_layer_that_owns_nothing_may_be_absent(tmp_path: Path) -> None:
    text = NET.replace('param { name: "w" }', 'param { name: "w" } param { name: "v" }')
    path = caffes(tmp_path / "n.h5", {"a/1x1": {"0": W, "1": BIAS}})
    with h5py.File(path, "a") as file:
        file.create_group("data/b")
    assert load_caffe(text, path).params["b"][1].data.tolist() == [1, 2, 3, 4]
    with pytest.raises(ModelFileError, match="lacks weights of 1 of"):
        load_caffe(NET.replace('param { name: "w" }', ""), path)


def test_double_and_half_precision_and_diffs(tmp_path: Path) -> None:
    path = caffes(tmp_path / "n.h5", {"x": {"0": W.astype("f8"), "1": BIAS.astype("f2"), "2": W.astype(">f4")}})
    caffes(path, {"x": {"0": -W.astype("f8")}}, root="diff", mode="a")
    blobs = proto.read_caffemodel(path).blobs[0]
    assert [b.data.dtype for b in blobs] == ["<f8", "<f4", "<f4"]
    assert blobs[1].data.tolist() == BIAS.tolist() and blobs[0].diff is not None and blobs[1].diff is None
    np.testing.assert_array_equal(blobs[0].diff, -W)


def test_written_and_read_again(tmp_path: Path) -> None:
    net = load_caffe(NET, seed=3)
    net.save(tmp_path / "n.caffemodel.h5")
    with h5py.File(tmp_path / "n.caffemodel.h5") as file:
        assert file["data/a/1x1/0"].dtype == "f4" and file["data/b/1"].shape == (4,)
    again = load_caffe(NET, tmp_path / "n.caffemodel.h5", seed=4)
    for name, parameters in net.params.items():
        for one, two in zip(parameters, again.params[name], strict=True):
            np.testing.assert_array_equal(one.data, two.data)
    assert [path.name for path in tmp_path.iterdir()] == ["n.caffemodel.h5"]


def test_solver_states(tmp_path: Path) -> None:
    record = proto.message("SolverState")(iter=7, learned_net="x.caffemodel.h5", current_step=2)
    proto.write_solverstate(tmp_path / "s.solverstate.h5", record, [W, BIAS])
    read = proto.read_solverstate(tmp_path / "s.solverstate.h5")
    assert (read.message.iter, read.message.learned_net, read.message.current_step) == (7, "x.caffemodel.h5", 2)
    np.testing.assert_array_equal(read.history[0].data, W)
    with h5py.File(tmp_path / "s.solverstate.h5") as file:
        assert file["iter"].shape == (1,) and file["learned_net"][()] == b"x.caffemodel.h5"


def state(path: Path, **other: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, value in {"iter": np.int32(1), "current_step": np.int32(0), **other}.items():
            file[name] = value
    return path


def test_broken_states(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="history lacks some of its 2 arrays"):
        proto.read_solverstate(state(tmp_path / "a", **{"history/1": BIAS}))
    with pytest.raises(ModelFileError, match="iter is no integer"):
        proto.read_solverstate(state(tmp_path / "b", iter=1.5))
    with pytest.raises(ModelFileError, match="learned_net is no string"):
        proto.read_solverstate(state(tmp_path / "c", learned_net=np.arange(3)))
    assert proto.read_solverstate(state(tmp_path / "d")).message.learned_net == ""


def test_links_and_other_files_are_not_followed(tmp_path: Path) -> None:
    caffes(tmp_path / "other.h5", {"x": {"0": W}})
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["data/x/0"] = h5py.ExternalLink("other.h5", "/data/x/0")
    with pytest.raises(ModelFileError, match="a link to somewhere else"):
        proto.read_caffemodel(tmp_path / "link.h5")
    with h5py.File(tmp_path / "soft.h5", "w") as file:
        file["data/x/1"] = W
        file["data/x/0"] = h5py.SoftLink("/data/x/1")
    with pytest.raises(ModelFileError, match="a link to somewhere else"):
        proto.read_caffemodel(tmp_path / "soft.h5")
    with h5py.File(tmp_path / "external.h5", "w") as file:
        secret = tmp_path / "secret"
        secret.write_bytes(bytes(48))
        file.create_dataset("data/x/0", (4, 3), "f4", external=[(str(secret), 0, 48)])
    with pytest.raises(ModelFileError, match="lies in another file"):
        proto.read_caffemodel(tmp_path / "external.h5")


def test_arrays_larger_than_the_file_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_dataset("data/x/0", (2**20, 2**20), "f4", chunks=(64, 64))
    with pytest.raises(ModelFileError, match="the file stores 0 for it"):
        proto.read_caffemodel(tmp_path / "huge.h5")
    with h5py.File(tmp_path / "late.h5", "w") as file:
        file.create_dataset("data/x/0", (2**38,), "f4")
    with pytest.raises(ModelFileError, match="the file stores 0 for it"):
        proto.read_caffemodel(tmp_path / "late.h5")


@pytest.mark.parametrize("value", [np.arange(4), b"pickle", np.array([1 + 2j])], ids=["integers", "string", "complex"])
def test_only_floats_are_parameters(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ModelFileError, match="not float32 or float64"):
        proto.read_caffemodel(caffes(tmp_path / "n.h5", {"x": {"0": value}}))


def test_many_and_deep_groups(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_group("data/" + "/".join("x" * 20))
    with pytest.raises(ModelFileError, match="nested deeper than 16"):
        proto.read_caffemodel(tmp_path / "deep.h5")
    with h5py.File(tmp_path / "loop.h5", "w") as file:
        group = file.create_group("data/x")
        group["again"] = group
    with pytest.raises(ModelFileError, match="nested deeper than 16"):
        proto.read_caffemodel(tmp_path / "loop.h5")


def test_other_hdf5_files_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["model_weights"] = W
    with pytest.raises(ModelFileError, match="it has no data: Caffe's weights lie in /data"):
        proto.read_caffemodel(tmp_path / "other.h5")
    with pytest.raises(ModelFileError, match="an HDF5 file"):
        proto.read_prototxt(tmp_path / "other.h5")


def test_a_truncated_file(tmp_path: Path) -> None:
    raw = caffes(tmp_path / "n.h5", {"x": {"0": W}}).read_bytes()
    for size in (8, 100, len(raw) // 2, len(raw) - 1):
        with pytest.raises(ModelFileError):
            proto.read_caffemodel(raw[:size])
