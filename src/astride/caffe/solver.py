"""A solver from Caffe's solver prototxt: its numbers, its train net, its test nets, and where their files are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, ModelFileError
from ..layers.source import Source as Samples
from ..net import Net
from ..proto import Parsed, Source
from ..train import Communicator, Constants, Policy, Settings, Solver, find_update
from .dialects.choose import read_text
from .dialects.refused import check_refused
from .load import build_net
from .python_layers import PythonLayers, classes
from .state import enum_name
from .upgrade import upgrade_solver
from .weights import load_weights

SOLVER_CPP = "Caffe, src/caffe/solver.cpp"
_TRAIN_FIELDS = ("net_param", "net", "train_net_param", "train_net")


def load_solver(
    solver: Source,
    *,
    net: Source | None = None,
    weights: Source | None = None,
    sources: Mapping[str, Samples] | None = None,
    test_sources: Mapping[str, Samples] | None = None,
    seed: int | None = None,
    snapshot_prefix: str | os.PathLike[str] | None = None,
    communicator: Communicator | None = None,
    dialect: str | None = None,
    allow_unknown_fields: bool = False,
    python_layers: PythonLayers = (),
    type: str | None = None,
    max_memory: int | None = None,
) -> Solver:
    """A Solver with its nets from a solver prototxt (a path, text, bytes or open file).

    `net` stands in for every net the solver names. `sources` and `test_sources` give data layers, by layer name, what they
    draw from. `weights` are loaded before training, after those of the solver's own `weights` field. `seed` and
    `snapshot_prefix` go before the solver's. `python_layers` are the classes that Python layers may run, or their modules.
    `type` is a solver type that goes before the solver's own.

    A net file that is no absolute path is looked for beside the solver's file, then in the working directory. The prefix of
    snapshots is, as in Caffe, relative to the working directory.

    Raises ModelFileError, PrototxtError: a file that is missing or does not parse. ArgumentError: numbers that contradict each
    other. UnsupportedError: a solver type or policy that does not exist here.
    """
    parsed = read_text(solver, "SolverParameter", dialect=dialect, allow_unknown_fields=allow_unknown_fields)
    check_refused(parsed.message)
    message = upgrade_solver(parsed.message, parsed).message
    message.type = type or message.type
    file = Path(parsed.source) if Path(parsed.source).is_file() else None
    folder = Path() if file is None else file.parent
    chosen = _Nets(message, folder, net, dialect, allow_unknown_fields)
    train, tests = chosen.train(), chosen.tests()
    settings = settings_of(message, len(tests), seed, _prefix(file, message, snapshot_prefix))
    update = find_update(message.type)
    common = {"seed": settings.seed, "python_layers": classes(python_layers), "max_memory": max_memory}
    train_net = _build(train, "TRAIN", sources, common)
    test_nets = [_build(test, "TEST", test_sources, common) for test in tests]
    for name in (part.strip() for field in message.weights for part in field.split(",")):
        load_weights(train_net, _find(name, folder, "weights"), allow_missing=True)
    if weights is not None:
        load_weights(train_net, weights, allow_missing=True)
    return Solver(train_net, settings, update, test_nets=test_nets, communicator=communicator)


@dataclass(frozen=True)
class _Described:
    """A net before it is built: its text, and the state that chooses among its layers."""

    parsed: Parsed | None
    message: Any
    level: int
    stages: tuple[str, ...]


class _Nets:
    """Which nets a solver means, by Caffe's rules of precedence."""

    def __init__(
        self, message: Any, folder: Path, override: Source | None, dialect: str | None, allow_unknown_fields: bool
    ) -> None:
        self.message, self.folder, self.override = message, folder, override
        self.dialect, self.allow_unknown_fields = dialect, allow_unknown_fields

    def train(self) -> _Described:
        """The one train net."""
        state = [self.message.train_state] if self.message.HasField("train_state") else []
        if self.override is not None:
            return self._read(self.override, state)
        given = [name for name in _TRAIN_FIELDS if self.message.HasField(name)]
        if len(given) != 1:
            raise ArgumentError(
                "a solver trains exactly one net",
                given={"set in the solver": given},
                required=f"one of {' '.join(_TRAIN_FIELDS)}: {len(given)} are set",
                because=f"{SOLVER_CPP}, InitTrainNet",
                hint='net: "train_test.prototxt"' if not given else f"only {given[0]}",
            )
        (name,) = given
        value = getattr(self.message, name)
        return self._described(None, value, state) if name.endswith("_param") else self._file(value, state)

    def tests(self) -> list[_Described]:
        """The test nets: those of their own, then the common net for every test_iter that is left."""
        message = self.message
        shared = self.override is not None or message.HasField("net") or message.HasField("net_param")
        own = 0 if self.override is not None else len(message.test_net_param) + len(message.test_net)
        count = len(message.test_iter)
        if count < own or (count > own and not shared):
            raise ArgumentError(
                "each test net needs its number of batches",
                given={"test_iter": list(message.test_iter), "test nets": own},
                required=f"as many test_iter as test nets{' or more' if shared else ''}: {count} against {own}",
                because=f"{SOLVER_CPP}, InitTestNets",
                hint="test_iter: 100, once for each test net",
            )
        states = list(message.test_state)
        if states and len(states) != count:
            raise ArgumentError(
                "test_state belongs to a test net each",
                given={"test_state": len(states), "test nets": count},
                required=f"none, or as many as test nets: {len(states)} against {count}",
                because=f"{SOLVER_CPP}, InitTestNets",
                hint="a test_state { } for each test_iter",
            )
        if count and message.test_interval < 1:
            raise ArgumentError(
                "the test nets are never run",
                given={"test_iter": list(message.test_iter), "test_interval": message.test_interval},
                required=f"test_interval >= 1: {message.test_interval}",
                because=f"{SOLVER_CPP}, InitTestNets",
                hint="test_interval: 500",
            )
        return [self._test(index, own, states[index : index + 1]) for index in range(count)]

    def _test(self, index: int, own: int, state: Sequence[Any]) -> _Described:
        message = self.message
        if index >= own:
            if self.override is not None:
                return self._read(self.override, state)
            if message.HasField("net_param"):
                return self._described(None, message.net_param, state)
            return self._file(message.net, state)
        if index < len(message.test_net_param):
            return self._described(None, message.test_net_param[index], state)
        return self._file(message.test_net[index - len(message.test_net_param)], state)

    def _file(self, name: str, state: Sequence[Any]) -> _Described:
        return self._read(_find(name, self.folder, "net"), state)

    def _read(self, source: Source, state: Sequence[Any]) -> _Described:
        if hasattr(source, "read"):
            # The train net and the test nets are read one after the other; a stream has only one beginning.
            self.override = source = source.read()
        parsed = read_text(source, dialect=self.dialect, allow_unknown_fields=self.allow_unknown_fields)
        return self._described(parsed, parsed.message, state)

    def _described(self, parsed: Parsed | None, message: Any, states: Sequence[Any]) -> _Described:
        """Level and stages: the net's own state, then the solver's on top, as protobuf merges messages."""
        level, stages = message.state.level, list(message.state.stage)
        for state in states:
            level = state.level if state.HasField("level") else level
            stages += state.stage
        return _Described(parsed, message, level, tuple(stages))


def _build(net: _Described, phase: str, sources: Mapping[str, Samples] | None, common: Mapping[str, Any]) -> Net:
    return build_net(net.message, phase, level=net.level, stages=net.stages, sources=sources, lines=net.parsed, **common)


def _find(name: str, folder: Path, what: str) -> Path:
    places = [folder / name, Path(name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ModelFileError(
            f"the solver's {what} file is missing",
            given={what: name},
            required=f"a file {' or '.join(dict.fromkeys(map(str, places)))}",
            hint=f"{what}= with the right path, or start where the path leads there",
        )
    return found


def _prefix(file: Path | None, message: Any, given: str | os.PathLike[str] | None) -> str:
    """As Caffe: without a prefix the solver's file name without its ending; in a folder, that name in the folder."""
    stem = "solver" if file is None else file.stem
    if given is None and not message.HasField("snapshot_prefix"):
        return stem if file is None else str(file.with_suffix(""))
    prefix = message.snapshot_prefix if given is None else os.fspath(given)
    return os.path.join(prefix, stem) if prefix.endswith("/") or os.path.isdir(prefix) else prefix


def settings_of(message: Any, tests: int, seed: int | None, prefix: str) -> Settings:
    """The numbers of a SolverParameter for so many test nets; `seed` goes before its own."""
    policy = Policy(
        name=message.lr_policy,
        base_lr=message.base_lr,
        gamma=message.gamma if message.HasField("gamma") else None,
        power=message.power if message.HasField("power") else None,
        stepsize=message.stepsize if message.HasField("stepsize") else None,
        stepvalue=tuple(message.stepvalue),
        max_iter=message.max_iter if message.HasField("max_iter") else None,
    )
    own_seed = message.random_seed if message.random_seed >= 0 else None
    return Settings(
        policy=policy,
        type=message.type,
        constants=Constants(message.momentum, message.momentum2, message.rms_decay, message.delta),
        weight_decay=message.weight_decay,
        regularization=message.regularization_type,
        clip_gradients=message.clip_gradients,
        iter_size=message.iter_size,
        max_iter=message.max_iter,
        display=message.display,
        average_loss=message.average_loss,
        test_iter=tuple(message.test_iter),
        test_interval=message.test_interval if tests else 0,
        test_initialization=message.test_initialization,
        test_compute_loss=message.test_compute_loss,
        snapshot=message.snapshot,
        snapshot_prefix=prefix,
        snapshot_format=enum_name(message, "snapshot_format"),
        snapshot_diff=message.snapshot_diff,
        snapshot_after_train=message.snapshot_after_train,
        debug_info=message.debug_info,
        seed=own_seed if seed is None else seed,
    )
