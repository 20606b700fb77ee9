"""Weights and solver states as Caffe writes them to HDF5, by way of h5py, which is imported when such a file is met.

    /data/<layer>/<i>   the i-th parameter of a layer; a parameter that is shared lies with its owner only
    /diff/<layer>/<i>   its gradient, where the solver said snapshot_diff
    iter, learned_net, current_step, /history/<i>   a solver's state

Source: Caffe, src/caffe/net.cpp (ToHDF5, CopyTrainedLayersFromHDF5), src/caffe/solvers/sgd_solver.cpp, src/caffe/util/hdf5.cpp.

An HDF5 file can name other files to read from, declare more numbers than it has bytes, and hold objects that are
unpickled: all of that is refused.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astride.errors import BackendUnavailable, ModelFileError
from astride.proto.blobs import ABSENT, BlobArray
from astride.proto.files import atomic_file
from astride.proto.limits import MAX_AXES, MAX_FILE_BYTES, MAX_LAYERS

MAGIC = b"\x89HDF\r\n\x1a\n"

_MAX_LINKS = 200_000
_MAX_DEPTH = 16
_MAX_PARAMETERS = 10_000
_INFLATED = 1_032
"""The most that HDF5's deflate filter can make of one byte."""


def read_weights(view: memoryview, source: str) -> dict[str, list[BlobArray]]:
    """The parameters of each layer, in the order of their numbers. Layers of networks have their names from the groups."""
    with _Reader(view, source) as reader:
        layers = reader.layers("data")
        diffs = reader.layers("diff", optional=True)
        return {name: _with_diffs(blobs, diffs.get(name, [])) for name, blobs in layers.items()}


def read_state(view: memoryview, source: str) -> tuple[int, str, int, list[BlobArray]]:
    """A solver's state: iter, learned_net, current_step, history."""
    with _Reader(view, source) as reader:
        history = [BlobArray(array.shape, array) for array in reader.numbered("history")]
        return reader.integer("iter"), reader.string("learned_net"), reader.integer("current_step"), history


def write_weights(
    path: str, layers: Mapping[str, Sequence[NDArray[Any]]], diffs: Mapping[str, Sequence[NDArray[Any]]] | None = None
) -> None:
    """Write each layer's parameters, and their gradients if they are given, whole or not at all."""
    with atomic_file(path) as temporary, _h5py().File(temporary, "w") as file:
        for root, named in (("data", layers), ("diff", diffs)):
            if named is None:
                continue
            top = file.create_group(root)
            for name, arrays in named.items():
                group = top.create_group(name)
                for index, array in enumerate(arrays):
                    group.create_dataset(str(index), data=np.ascontiguousarray(array))


def write_state(path: str, iteration: int, learned_net: str, current_step: int, history: Sequence[NDArray[Any]]) -> None:
    """Write a solver's state, whole or not at all."""
    with atomic_file(path) as temporary, _h5py().File(temporary, "w") as file:
        file["iter"] = np.array([iteration], np.int32)
        file["learned_net"] = np.bytes_(learned_net.encode())
        file["current_step"] = np.array([current_step], np.int32)
        group = file.create_group("history")
        for index, array in enumerate(history):
            group.create_dataset(str(index), data=np.ascontiguousarray(array))


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise BackendUnavailable("HDF5 files need h5py", hint="pip install 'astride[data]'") from error
    return h5py


Numbered = list[NDArray[Any] | None]
"""The arrays 0, 1, ... of a group; None for a number that it lacks."""


def _with_diffs(arrays: Numbered, diffs: Numbered) -> list[BlobArray]:
    blobs = []
    for index, array in enumerate(arrays):
        diff = diffs[index] if index < len(diffs) else None
        if array is None:
            blobs.append(ABSENT)
        else:
            blobs.append(BlobArray(array.shape, array, diff if diff is not None and diff.shape == array.shape else None))
    return blobs


class _Reader:
    """One open file, of which nothing is believed."""

    def __init__(self, view: memoryview, source: str) -> None:
        self.h5py = _h5py()
        self.view = view
        self.source = source
        self.links = 0
        self.bytes = 0

    def __enter__(self) -> _Reader:
        try:
            self.file = self.h5py.File(_Bytes(self.view), "r")
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            raise self.fault(f"h5py cannot open it: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def layers(self, root: str, *, optional: bool = False) -> dict[str, Numbered]:
        """Every group below `root` that holds numbered arrays, by its path: a layer's name may have slashes."""
        found: dict[str, Numbered] = {}
        for path, group in self.groups(root, optional):
            arrays = self.arrays(group, f"{root}/{path}")
            if arrays:
                found[path] = arrays
        return found

    def numbered(self, root: str) -> list[NDArray[Any]]:
        """The arrays of one group, every number of them."""
        group = self.get(self.file, root, optional=True)
        arrays = [] if group is None else self.arrays(group, root)
        if any(array is None for array in arrays):
            raise self.fault(f"{root} lacks some of its {len(arrays)} arrays")
        return [array for array in arrays if array is not None]

    def groups(self, root: str, optional: bool) -> Iterator[tuple[str, Any]]:
        top = self.get(self.file, root, optional)
        stack = [("", top, 0)] if top is not None else []
        while stack:
            path, group, depth = stack.pop()
            if path:
                yield path, group
            if depth >= _MAX_DEPTH:
                raise self.fault(f"groups are nested deeper than {_MAX_DEPTH}")
            names = self.names(group)
            if depth == 0 and len(names) > MAX_LAYERS:
                raise self.fault(f"more than {MAX_LAYERS} layers: no real network has so many")
            for name in reversed(names):
                inner = self.get(group, name)
                if isinstance(inner, self.h5py.Group):
                    stack.append((f"{path}/{name}" if path else name, inner, depth + 1))

    def arrays(self, group: Any, where: str) -> Numbered:
        numbers = sorted((int(name), name) for name in self.names(group) if name.isdecimal() and len(name) < 6)
        sets = [(n, name, self.get(group, name)) for n, name in numbers]
        sets = [(n, name, item) for n, name, item in sets if isinstance(item, self.h5py.Dataset)]
        if sets and sets[-1][0] >= _MAX_PARAMETERS:
            raise self.fault(f"{where} has an array {sets[-1][1]}: no layer has so many parameters")
        found = {number: self.array(item, f"{where}/{name}") for number, name, item in sets}
        return [found.get(number) for number in range(max(found, default=-1) + 1)]

    def array(self, item: Any, where: str) -> NDArray[Any]:
        try:
            shape, dtype, size = tuple(item.shape or ()), item.dtype, item.size or 0
            nested = item.external or item.is_virtual
            stored = item.id.get_storage_size()
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            raise self.fault(f"{where} is damaged: {error}") from error
        if nested:
            raise self.fault(f"{where} lies in another file, which is not opened")
        if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
            raise self.fault(f"{where} holds {dtype}, not float32 or float64")
        if len(shape) > MAX_AXES:
            raise self.fault(f"{where} has {len(shape)} axes; Caffe allows {MAX_AXES}")
        needed = size * dtype.itemsize
        self.bytes += needed
        most = min(stored, len(self.view)) * (_INFLATED if item.chunks else 1)
        if needed > most or self.bytes > MAX_FILE_BYTES:
            raise self.fault(f"{where} has the shape {shape}, {needed} bytes; the file stores {stored} for it")
        try:
            array = item[()]
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
            raise self.fault(f"{where} cannot be read: {error}") from error
        numbers = np.asarray(array, np.float64 if dtype.itemsize == 8 else np.float32)
        numbers.flags.writeable = False
        return numbers

    def integer(self, name: str) -> int:
        item = self.get(self.file, name)
        number = isinstance(item, self.h5py.Dataset) and item.dtype.kind in "iu" and item.size == 1
        if not number or item.external or item.is_virtual:
            raise self.fault(f"{name} is no integer")
        return int(np.asarray(item[()]).reshape(-1)[0])

    def string(self, name: str) -> str:
        """A string of fixed length, as Caffe writes it, or of any length; empty where there is none."""
        item = self.get(self.file, name, optional=True)
        if item is None:
            return ""
        plain = isinstance(item, self.h5py.Dataset) and item.shape == () and not (item.external or item.is_virtual)
        if not plain or self.h5py.check_string_dtype(item.dtype) is None or item.dtype.itemsize > 65_536:
            raise self.fault(f"{name} is no string")
        value = item[()]
        return value.decode("utf-8", "replace").rstrip("\0") if isinstance(value, bytes) else str(value)

    def names(self, group: Any) -> list[str]:
        try:
            self.links += len(group)
            if self.links > _MAX_LINKS:
                raise self.fault(f"more than {_MAX_LINKS} groups and arrays: no real network has so many")
            return list(group)
        except (OSError, RuntimeError, ValueError, KeyError, TypeError, UnicodeError) as error:
            raise self.fault(f"a group is damaged: {error}") from error

    def get(self, group: Any, name: str, optional: bool = False) -> Any:
        try:
            if name not in group:
                if optional:
                    return None
                raise self.fault(f"it has no {name}: Caffe's weights lie in /data, a solver's history in /history")
            if not isinstance(group.get(name, getlink=True), self.h5py.HardLink):
                raise self.fault(f"{name} is a link to somewhere else, which is not followed")
            return group[name]
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            raise self.fault(f"{name} is damaged: {error}") from error

    def fault(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self.source}: {problem}", hint="download or copy the file again, or save it as .caffemodel")


class _Bytes(io.RawIOBase):
    """A file over memory that is not copied."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.at = 0

    def readinto(self, buffer: Any) -> int:
        part = self.view[self.at : self.at + len(buffer)]
        buffer[: len(part)] = part
        self.at += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = max(0, offset + (0, self.at, len(self.view))[whence])
        return self.at

    def tell(self) -> int:
        return self.at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
