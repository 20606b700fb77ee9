"""Snapshots: a broken run that goes on is the unbroken run, bit for bit; files that do not fit say so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ModelFileError
from astride.proto import read_caffemodel, read_solverstate
from astride.train import Communicator, SnapshotWritten

from .nets import NET, samples, small_solver, values

RESUME = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.train.nets import small_solver, values
solver = small_solver(sys.argv[3])
solver.restore(Path(sys.argv[2]))
solver.step(5)
sys.stdout.buffer.write(b"".join(values(solver)))
"""

POLICIES = {
    "fixed": "",
    "step": 'lr_policy: "step" gamma: 0.5 stepsize: 2',
    "multistep": 'lr_policy: "multistep" gamma: 0.5 stepvalue: 2 stepvalue: 4 stepvalue: 7',
    "inv, iter_size, clip": 'lr_policy: "inv" gamma: 0.1 power: 0.75 iter_size: 2 clip_gradients: 0.5',
    "Nesterov": 'type: "Nesterov"',
    "AdaGrad": 'type: "AdaGrad" momentum: 0',
    "RMSProp": 'type: "RMSProp" momentum: 0 rms_decay: 0.9',
    "AdaDelta": 'type: "AdaDelta" delta: 1e-6',
    "Adam": 'type: "Adam" momentum2: 0.99',
}


@pytest.mark.parametrize("policy", POLICIES)
def test_ten_equal_five_and_five_in_a_fresh_process(policy: str, tmp_path: Path, root: Path) -> None:
    """Dropout's masks, the shuffled order, the policy's steps and the history all go on where they were."""
    unbroken = small_solver(POLICIES[policy])
    unbroken.step(10)
    broken = small_solver(POLICIES[policy])
    broken.step(5)
    state = broken.snapshot(tmp_path).state
    command = [sys.executable, "-c", RESUME, str(root), str(state), POLICIES[policy]]
    resumed = subprocess.run(command, capture_output=True, check=True, cwd=root)
    assert resumed.stdout == b"".join(values(unbroken))


HDF5 = "snapshot_format: HDF5 "


@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_snapshots_in_hdf5_go_on_bit_for_bit(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    text = HDF5 + f'type: "{kind}" ' + ("momentum: 0" if kind in ("AdaGrad", "RMSProp") else "")
    unbroken, broken, resumed = (small_solver(text) for _ in range(3))
    unbroken.step(6)
    broken.step(3)
    written = broken.snapshot(tmp_path)
    assert (written.model.name, written.state.name) == ("small_iter_3.caffemodel.h5", "small_iter_3.solverstate.h5")
    resumed.restore(written.state)
    resumed.step(3)
    assert values(resumed) == values(unbroken)


@pytest.mark.parametrize("form", ["", HDF5])
def test_the_last_update_beside_the_weights(form: str, tmp_path: Path) -> None:
    if form:
        pytest.importorskip("h5py")
    solver = small_solver(form + "snapshot_diff: true")
    solver.step(2)
    file = read_caffemodel(solver.snapshot(tmp_path).model)
    stored = {layer.name: blobs for layer, blobs in zip(file.layers, file.blobs) if blobs}
    for name, parameters in solver.net.params.items():
        for parameter, blob in zip(parameters, stored[name], strict=True):
            assert blob.diff is not None and (blob.diff == parameter.diff).all() and parameter.diff.any()
            assert (blob.data == parameter.data).all()
    plain = read_caffemodel(small_solver(form).snapshot(tmp_path / "plain").model)
    assert all(blob.diff is None for blobs in plain.blobs for blob in blobs)


def test_hdf5_weights_of_another_net_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    solver = small_solver(HDF5)
    written = solver.snapshot(tmp_path)
    other = small_solver(HDF5, net=NET.replace('"conv"', '"else"'))
    with pytest.raises(ModelFileError, match="the weights are not of this net, at layer else"):
        other.restore(written.state)


def test_a_parameter_shared_by_layers_lies_once_in_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    twice = NET.replace(
        'layer { name: "ip"',
        'layer { name: "ip0" type: "InnerProduct" bottom: "pool" top: "ip0" param { name: "w" } param { name: "b" }'
        "  inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }"
        'layer { name: "silence" type: "Silence" bottom: "ip0" } layer { name: "ip"',
    ).replace('bottom: "pool" top: "ip"\n', 'bottom: "pool" top: "ip" param { name: "w" } param { name: "b" }\n')
    solver = small_solver(HDF5, net=twice)
    assert solver.net.params["ip"][0] is solver.net.params["ip0"][0]
    written = solver.snapshot(tmp_path)
    kept = [parameter.data.copy() for parameter in solver.net.learnable]
    with h5py.File(written.model) as file:
        groups = [name for name in ("ip", "ip0") if len(file["data"].get(name, ()))]
    assert groups and groups[-1] == "ip0"
    solver.step(2)
    solver.restore(written.state)
    assert all((a == b.data).all() for a, b in zip(kept, solver.net.learnable))


def test_tests_on_the_way_change_nothing_and_go_on_too(tmp_path: Path) -> None:
    tested = "test_iter: 2 test_interval: 3 "
    plain, unbroken, broken = small_solver(), small_solver(tested), small_solver(tested)
    plain.step(10)
    unbroken.step(10)
    broken.step(5)
    state = broken.snapshot(tmp_path).state
    resumed = small_solver(tested)
    resumed.restore(state)
    resumed.step(5)
    assert values(resumed) == values(unbroken) == values(plain)
    assert str(resumed.test()) == str(unbroken.test())


def test_files_are_named_as_caffe_names_them_and_readable_as_a_net(tmp_path: Path) -> None:
    solver = small_solver(prefix=tmp_path / "deep" / "down" / "small")
    solver.step(2)
    written = solver.snapshot()
    assert written == SnapshotWritten(
        2, tmp_path / "deep/down/small_iter_2.caffemodel", tmp_path / "deep/down/small_iter_2.solverstate"
    )
    state = read_solverstate(written.state)
    assert (state.message.iter, state.message.learned_net) == (2, str(written.model))
    net = load_caffe(NET, written.model)
    for name, parameters in net.params.items():
        for own, trained in zip(parameters, solver.net.params[name]):
            assert own.data.tobytes() == trained.data.tobytes()
    assert sorted(path.name for path in written.model.parent.iterdir()) == ["small_iter_2.caffemodel", "small_iter_2.solverstate"]


def test_solve_writes_snapshots_at_their_interval_and_at_the_end(tmp_path: Path) -> None:
    solver = small_solver("snapshot: 4", prefix=tmp_path / "s")
    solver.solve()
    assert sorted(path.stem for path in tmp_path.glob("*.solverstate")) == ["s_iter_10", "s_iter_4", "s_iter_8"]


def test_snapshot_after_train_false_writes_none(tmp_path: Path) -> None:
    small_solver("snapshot_after_train: false", prefix=tmp_path / "s").solve()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_moved_still_works(tmp_path: Path) -> None:
    solver = small_solver()
    solver.step(1)
    state = solver.snapshot(tmp_path / "here").state
    shutil.move(tmp_path / "here", tmp_path / "there")
    other = small_solver()
    other.restore(tmp_path / "there" / state.name)
    assert values(other) == values(solver)


def test_a_prefix_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match="no folder to write into"):
        small_solver(prefix=tmp_path / "file" / "small").snapshot()


def test_weights_may_be_named(tmp_path: Path) -> None:
    solver = small_solver()
    solver.step(1)
    written = solver.snapshot(tmp_path)
    renamed = written.model.rename(tmp_path / "x.caffemodel")
    other = small_solver()
    with pytest.raises(ModelFileError, match="weights that belong to the state are missing"):
        other.restore(written.state)
    other.restore(written.state, weights=renamed)
    assert values(other) == values(solver)


def test_a_state_of_another_net_changes_nothing(tmp_path: Path) -> None:
    solver = small_solver()
    solver.step(1)
    state = solver.snapshot(tmp_path).state
    wider = small_solver(net=NET.replace("num_output: 3 kernel_size", "num_output: 4 kernel_size"))
    before = values(wider)
    with pytest.raises(ModelFileError, match=r"history 0 has another shape.*\n.*\(3, 1, 3, 3\).*\(4, 1, 3, 3\)"):
        wider.restore(state)
    deeper = small_solver()
    deeper.history.append(np.zeros(1, np.float32))
    with pytest.raises(ModelFileError, match="not of this solver and net"):
        deeper.restore(state)
    assert values(wider) == before and wider.iter == 0


def test_weights_of_another_net_change_nothing(tmp_path: Path) -> None:
    solver = small_solver()
    solver.step(1)
    state = solver.snapshot(tmp_path).state
    renamed = small_solver(net=NET.replace('name: "ip"', 'name: "other"'))
    before = values(renamed)
    with pytest.raises(ModelFileError, match="not of this net, at layer other"):
        renamed.restore(state)
    assert values(renamed) == before and renamed.iter == 0


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE html><html></html>", b"\x08\x06\x12\x7f"])
def test_a_state_that_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.solverstate"
    file.write_bytes(content)
    with pytest.raises(ModelFileError):
        small_solver().restore(file)


def test_a_state_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    solver = small_solver()
    solver.step(1)
    state = solver.snapshot(tmp_path).state
    whole = state.read_bytes()
    other = small_solver()
    before = values(other)
    # The last field, two bytes, is current_step: without it the file is whole and means step 0.
    for length in range(0, len(whole) - 2, 37):
        state.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            other.restore(state)
    assert values(other) == before and other.iter == 0


def test_only_rank_0_writes(tmp_path: Path) -> None:
    class Second:
        size, rank = 2, 1

        def all_reduce(self, arrays: object) -> None:
            raise AssertionError

        def broadcast(self, arrays: object) -> None:
            raise AssertionError

    second: Communicator = Second()
    solver = small_solver()
    solver.communicator = second
    written = solver.snapshot(tmp_path)
    assert written.model.name == "small_iter_0.caffemodel" and list(tmp_path.iterdir()) == []


def test_the_samples_are_not_the_same_in_every_batch() -> None:
    """Without this the resumed order would be tested by nothing."""
    images, _ = samples()
    assert len({image.tobytes() for image in images}) == len(images)
