"""From solver text to a solver: which nets, which numbers, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_solver
from astride.errors import ArgumentError, AstrideError, ModelFileError, PrototxtError, UnsupportedError
from astride.train import Policy, Settings

from .nets import SOLVER, small_solver

NET = """
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "extra" type: "ReLU" bottom: "ip" top: "more" include { stage: "more" } }
layer { name: "deep" type: "ReLU" bottom: "ip" top: "deep" include { min_level: 2 } }
layer { name: "test" type: "ReLU" bottom: "ip" top: "test" include { phase: TEST } }
"""
TEXT = SOLVER + 'lr_policy: "fixed" '
BRACED = "{" + NET + "}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(TEXT + 'net: "net.prototxt" test_iter: 2 test_interval: 5')
    return tmp_path


def names(net: object) -> list[str]:
    return [layer.name for layer in net.layers]  # type: ignore[attr-defined]


def test_a_net_beside_the_solver_file(folder: Path) -> None:
    solver = load_solver(folder / "solver.prototxt")
    assert "test" not in names(solver.net)
    assert "test" in names(solver.test_nets[0])
    assert solver.settings.snapshot_prefix == str(folder / "solver")


def test_a_net_in_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "deep").mkdir()
    moved = (folder / "solver.prototxt").rename(folder / "deep" / "solver.prototxt")
    with pytest.raises(ModelFileError, match="the solver's net file is missing"):
        load_solver(moved)
    monkeypatch.chdir(folder)
    assert len(load_solver("deep/solver.prototxt").net.layers) > 0
    assert len(load_solver((moved).read_text()).net.layers) > 0


def test_nets_inside_the_text() -> None:
    solver = load_solver(
        TEXT + f"net_param {BRACED} test_net_param {BRACED} test_iter: 1 test_iter: 7 test_interval: 5"
        " test_state { stage: 'more' } test_state { level: 2 } train_state { stage: 'more' level: 3 }"
    )
    assert {"extra", "deep"} <= set(names(solver.net))
    assert [("extra" in names(net), "deep" in names(net)) for net in solver.test_nets] == [(True, False), (False, True)]
    assert solver.settings.test_iter == (1, 7)


def test_train_net_and_test_net(folder: Path) -> None:
    (folder / "solver.prototxt").write_text(
        TEXT + 'train_net: "net.prototxt" test_net: "net.prototxt" test_iter: 1 test_interval: 1'
    )
    solver = load_solver(folder / "solver.prototxt")
    assert "test" not in names(solver.net) and "test" in names(solver.test_nets[0])


@pytest.mark.parametrize("form", ["text", "bytes", "file"])
def test_a_given_net_stands_in_for_the_named(form: str) -> None:
    net = {"text": NET, "bytes": NET.encode(), "file": io.StringIO(NET)}[form]
    solver = load_solver(TEXT + 'net: "gone.prototxt" test_iter: 1 test_interval: 1', net=net)
    assert "test" in names(solver.test_nets[0]) and "test" not in names(solver.net)


def test_every_number_arrives() -> None:
    solver = load_solver(
        'base_lr: 0.5 lr_policy: "inv" gamma: 0.25 power: 0.75 momentum: 0.5 weight_decay: 0.125 regularization_type: "L1" '
        'clip_gradients: 2 iter_size: 3 max_iter: 40 display: 7 average_loss: 9 snapshot: 11 snapshot_prefix: "out/x" '
        "snapshot_after_train: false test_initialization: false test_compute_loss: true test_iter: 6 test_interval: 8 "
        "random_seed: 12",
        net=NET,
    )
    got = solver.settings
    assert isinstance(got, Settings)
    assert (got.policy.name, got.policy.base_lr, got.policy.gamma, got.policy.power) == ("inv", 0.5, 0.25, 0.75)
    assert (got.constants.momentum, got.weight_decay, got.regularization, got.clip_gradients) == (0.5, 0.125, "L1", 2)
    assert (got.iter_size, got.max_iter, got.display, got.average_loss, got.snapshot) == (3, 40, 7, 9, 11)
    assert (got.snapshot_prefix, got.snapshot_after_train) == ("out/x", False)
    assert (got.test_initialization, got.test_compute_loss, got.test_iter, got.test_interval) == (False, True, (6,), 8)
    assert got.seed == 12


def test_the_seed_fills_the_net_the_same_way_every_time() -> None:
    one, two = (load_solver(TEXT, net=NET).net.params["ip"][0].data for _ in range(2))
    other = load_solver(TEXT, net=NET, seed=99).net.params["ip"][0].data
    assert (one == two).all() and not (one == other).all()


def test_a_prefix_that_is_a_folder_gets_the_solvers_name(folder: Path) -> None:
    solver = load_solver(folder / "solver.prototxt", snapshot_prefix=folder)
    assert solver.settings.snapshot_prefix == str(folder / "solver")


@pytest.mark.parametrize("how", ["argument", "field"])
def test_weights_to_start_from(how: str, folder: Path) -> None:
    first = load_solver(TEXT, net=NET)
    first.net.params["ip"][0].data[...] = 7
    first.net.save(folder / "w.caffemodel")
    if how == "argument":
        solver = load_solver(folder / "solver.prototxt", weights=folder / "w.caffemodel")
    else:
        text = (folder / "solver.prototxt").read_text() + ' weights: "w.caffemodel"'
        (folder / "solver.prototxt").write_text(text)
        solver = load_solver(folder / "solver.prototxt")
    assert (solver.net.params["ip"][0].data == 7).all() and (solver.test_nets[0].params["ip"][0].data == 7).all()


def test_the_older_enumeration_of_types() -> None:
    assert load_solver(TEXT + "solver_type: SGD", net=NET).update.name == "SGD"
    assert load_solver(TEXT + "solver_type: NESTEROV", net=NET).update.name == "Nesterov"
    with pytest.raises(ArgumentError, match="given twice"):
        load_solver(TEXT + 'solver_type: ADAM type: "Adam"', net=NET)


@pytest.mark.parametrize(
    ("more", "kind", "text"),
    [
        ('type: "AdamW"', UnsupportedError, "one of SGD"),
        ('type: "AdaGrad"', ArgumentError, "AdaGrad has no momentum"),
        ('regularization_type: "L3"', UnsupportedError, "L2 or L1"),
        ("iter_size: 0", ArgumentError, "iter_size >= 1: 0"),
        ("average_loss: 0", ArgumentError, "average_loss >= 1: 0"),
        ("test_iter: 0 test_interval: 1", ArgumentError, "test_iter >= 1: 0"),
        ("test_iter: 3", ArgumentError, "test_interval >= 1: 0"),
        ("test_iter: 3 test_interval: 1 test_state { } test_state { }", ArgumentError, "2 against 1"),
        ("lr_polcy: 1", PrototxtError, "lr_policy"),
    ],
)
def test_what_a_solver_must_not_say(more: str, kind: type[AstrideError], text: str) -> None:
    with pytest.raises(kind, match=text):
        load_solver(TEXT + more, net=NET)


@pytest.mark.parametrize(
    ("nets", "text"),
    [
        ("", "0 are set"),
        (f"net_param {BRACED} train_net_param {BRACED}", "2 are set"),
        (f"train_net_param {BRACED} test_iter: 1 test_interval: 1", "1 against 0"),
        (f"train_net_param {BRACED} test_net_param {BRACED} test_interval: 1", "0 against 1"),
    ],
)
def test_nets_that_are_not_said_once(nets: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        load_solver(TEXT + nets)


def test_momentum_of_one_never_settles() -> None:
    with pytest.raises(ArgumentError, match="0 <= momentum < 1"):
        load_solver(TEXT.replace("0.9", "1.0"), net=NET)


def test_unknown_fields_may_be_allowed() -> None:
    assert load_solver(TEXT + "lr_polcy: 1", net=NET, allow_unknown_fields=True).settings.policy.name == "fixed"


def test_a_missing_solver_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        load_solver(tmp_path / "solver.prototxt")


def test_sources_reach_their_nets() -> None:
    solver = small_solver("test_iter: 1 test_interval: 1")
    train, test = solver.net.sources["digits"], solver.test_nets[0].sources["digits"]
    assert train is not None and test is not None and train is not test
    assert not np.array_equal(train.batch(4)[1], test.batch(4)[1])


@pytest.mark.parametrize("field", ["weight_decay", "clip_gradients"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_numbers_that_are_none_are_refused_before_anything_runs(field: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=f"{field} is no number"):
        Settings(policy=Policy("fixed", 0.1), **{field: float(value)})  # type: ignore[arg-type]
