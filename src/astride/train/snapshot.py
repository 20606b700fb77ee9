"""A solver's state in Caffe's two files: `<prefix>_iter_<n>.caffemodel` and `<prefix>_iter_<n>.solverstate`.

With snapshot_format HDF5 both names end in .h5 besides.

The first holds the parameters, the second the iteration, the step count, the solver's histories and the name of the first.
Nothing is changed in the solver before both files are read and found to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..errors import ModelFileError
from ..layers import Parameter
from ..proto import BlobArray, message, read_caffemodel, read_solverstate, write_solverstate
from ..proto.blobs import ABSENT
from .events import SnapshotWritten

if TYPE_CHECKING:
    from .solver import Solver

Array = npt.NDArray[Any]


def write(solver: Solver, prefix: Path) -> SnapshotWritten:
    """Write both files, each whole or not at all, weights first: a state never names weights that are not there."""
    ending = ".h5" if solver.settings.snapshot_format == "HDF5" else ""
    model = prefix.with_name(f"{prefix.name}_iter_{solver.iter}.caffemodel{ending}")
    state = prefix.with_name(f"{prefix.name}_iter_{solver.iter}.solverstate{ending}")
    if solver.communicator.rank == 0:
        make_folder(prefix.parent)
        solver.net.save(model, diffs=solver.settings.snapshot_diff)
        record = message("SolverState")(iter=solver.iter, learned_net=str(model), current_step=solver.current_step)
        write_solverstate(state, record, solver.history)
    return SnapshotWritten(solver.iter, model, state)


def make_folder(folder: Path) -> None:
    """The folder and those above it, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelFileError(
            "there is no folder to write into, and none can be made",
            given={"folder": str(folder)},
            because=str(error.strerror or error),
            hint="another folder",
        ) from error


def restore(solver: Solver, path: Path, weights: Path | None) -> None:
    """Put the solver where the snapshot was taken."""
    record = read_solverstate(path)
    _check_history(solver, path, record.history)
    parameters = _read_weights(solver, weights or _learned_net(path, record.message.learned_net))
    for target, source in parameters:
        target[...] = source
    for own, stored in zip(solver.history, record.history):
        own[...] = stored.data.reshape(own.shape)
    solver.iter = record.message.iter
    solver.current_step = record.message.current_step


def _check_history(solver: Solver, path: Path, stored: Sequence[BlobArray]) -> None:
    own = solver.history
    if len(stored) != len(own):
        raise ModelFileError(
            f"{path.name}: the state is not of this solver and net",
            given={"arrays in the file": len(stored), "type": solver.update.name, "parameters": len(solver.net.learnable)},
            required=f"{solver.update.slots} for each parameter: {len(stored)} against {len(own)}",
            because="Caffe, src/caffe/solvers/sgd_solver.cpp, RestoreSolverStateFromBinaryProto",
            hint="the net and the solver type that wrote it; or only the weights, by load_solver(..., weights=...)",
        )
    for index, (array, blob) in enumerate(zip(own, stored)):
        if not _same(array.shape, blob.shape):
            raise _misfit(f"{path.name}: history {index}", array.shape, blob.shape)


def _learned_net(path: Path, name: str) -> Path:
    """The weights beside the state, for folders that moved; else where the state says they are."""
    if not name:
        raise ModelFileError(
            f"{path.name}: the state names no weights",
            given={"learned_net": name},
            required="the name of a .caffemodel in the field learned_net",
            hint="restore(path, weights='x.caffemodel')",
        )
    places = [path.parent / name.replace("\\", "/").rsplit("/", 1)[-1], Path(name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ModelFileError(
            f"{path.name}: the weights that belong to the state are missing",
            given={"learned_net": name},
            required=f"a file {' or '.join(map(str, dict.fromkeys(places)))}",
            hint="put the .caffemodel beside the .solverstate, or restore(path, weights='x.caffemodel')",
        )
    return found


def _read_weights(solver: Solver, path: Path) -> list[tuple[Array, Array]]:
    """(parameter of the net, values of the file) by layer name; every parameter of the net must be there.

    One that layers share may lie with one of them only, as HDF5 files have it.
    """
    file = read_caffemodel(path, partial=True)
    stored = {layer.name: blobs for layer, blobs in zip(file.layers, file.blobs)}
    pairs: list[tuple[Array, Array]] = []
    lacking: list[tuple[str, Parameter]] = []
    for name, parameters in solver.net.params.items():
        blobs = stored.get(name, [])
        for index, (parameter, blob) in enumerate(zip_longest(parameters, blobs)):
            if parameter is None:
                raise _foreign(path, name, len(blobs), len(parameters))
            if blob is None or blob is ABSENT:
                lacking.append((name, parameter))
                continue
            if not _same(parameter.shape, blob.shape):
                raise _misfit(f"{path.name}: parameter {index} of layer {name}", parameter.shape, blob.shape)
            pairs.append((parameter.data, blob.data.reshape(parameter.shape)))
    filled = {target.ctypes.data for target, _ in pairs}
    for name, parameter in lacking:
        if parameter.data.ctypes.data not in filled:
            raise _foreign(path, name, len(stored.get(name, [])), len(solver.net.params[name]))
    return pairs


def _foreign(path: Path, layer: str, stored: int, own: int) -> ModelFileError:
    return ModelFileError(
        f"{path.name}: the weights are not of this net, at layer {layer}",
        given={"blobs in the file": stored},
        required=f"one for each parameter: {stored} against {own}",
        hint="the net that wrote the snapshot",
    )


def _same(own: tuple[int, ...], stored: tuple[int, ...]) -> bool:
    """Whether two shapes agree but for leading ones: old files write four axes always."""
    return _without_leading_ones(own) == _without_leading_ones(stored)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = next((index for index, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def _misfit(what: str, own: tuple[int, ...], stored: tuple[int, ...]) -> ModelFileError:
    return ModelFileError(
        f"{what} has another shape than the net",
        given={"file": stored, "net": own},
        required=f"the same shape: {stored} against {own}",
        hint="the net that wrote the snapshot",
    )
