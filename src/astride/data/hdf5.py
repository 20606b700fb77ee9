"""HDF5 files: samples in datasets, and results written."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArrayError, ModelFileError
from ..plan import Shape
from ..proto.files import atomic_write
from .image_list import read_lines
from .optional import needed

Array = npt.NDArray[Any]
SIGNATURE = b"\x89HDF\r\n\x1a\n"


class HDF5Source:
    """Rows of the datasets of these names, file after file.

    shuffle     the files of each epoch in an order of its own, and the rows of each file too; files are not mixed

    Only what a batch needs is read. Datasets that lie in other files, by links or otherwise, are refused.
    """

    def __init__(self, paths: Sequence[str | PathLike[str]], names: Sequence[str], *, shuffle: bool = False) -> None:
        self.paths, self.names, self.shuffle = [Path(p) for p in paths], tuple(names), shuffle
        if not self.paths:
            raise ModelFileError("the list of HDF5 files is empty", required="at least one file")
        self._h5py = needed("h5py", "reading HDF5")
        self._open: tuple[int, Any] | None = None
        described = [self._described(i) for i in range(len(self.paths))]
        self._rows = [rows for rows, _ in described]
        self._shapes = described[0][1]
        for path, (_, shapes) in zip(self.paths, described, strict=True):
            if shapes != self._shapes:
                raise ArrayError(
                    "HDF5 files have samples of different shapes",
                    given={"path": str(path), "shapes": shapes},
                    required=f"{self._shapes}, as in {self.paths[0]}",
                )
        self.position = 0
        self.reseed(0)

    @classmethod
    def listed(cls, path: str | PathLike[str], names: Sequence[str], *, shuffle: bool = False) -> HDF5Source:
        """The files that a text names, separated by blanks or lines, as Caffe's source is."""
        words = [word for line in read_lines(path, "list of HDF5 files") for word in line.split()]
        return cls(words, names, shuffle=shuffle)

    def __len__(self) -> int:
        return sum(self._rows)

    def reseed(self, seed: int) -> None:
        """Let the orders follow from another seed."""
        self.seed = seed
        self._orders: dict[tuple[int, int], npt.NDArray[np.int64]] = {}

    def shapes(self) -> tuple[Shape, ...]:
        return self._shapes

    def batch(self, size: int) -> tuple[Array, ...]:
        parts: list[tuple[Array, ...]] = []
        while size > 0:
            file, begin, left = self._place(self.position)
            count = min(size, left)
            parts.append(self._read(file, self.position, begin, count))
            self.position += count
            size -= count
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def reset(self, position: int = 0) -> None:
        self.position = position

    def _place(self, position: int) -> tuple[int, int, int]:
        """The file of a position, its row in the file's order, and how many rows are left there."""
        total = len(self)
        if total < 1:
            raise ModelFileError("the HDF5 files have no rows", given={"files": [str(p) for p in self.paths]})
        epoch, row = divmod(position, total)
        for file in self._order(epoch, 0, len(self.paths)):
            if row < self._rows[file]:
                return int(file), row, self._rows[file] - row
            row -= self._rows[file]
        raise AssertionError("a position lies in some file")

    def _order(self, epoch: int, what: int, count: int) -> npt.NDArray[np.int64]:
        if not self.shuffle:
            return np.arange(count)
        key = (epoch, what)
        if key not in self._orders:
            if len(self._orders) > 8:
                self._orders.clear()
            self._orders[key] = np.random.default_rng([self.seed, what, epoch]).permutation(count)
        return self._orders[key]

    def _read(self, file: int, position: int, begin: int, count: int) -> tuple[Array, ...]:
        datasets = self._datasets(file)
        if not self.shuffle:
            return tuple(np.asarray(d[begin : begin + count], np.float32) for d in datasets)
        epoch = position // len(self)
        rows = self._order(epoch, 1 + file, self._rows[file])[begin : begin + count]
        # h5py reads rising places only.
        rising = np.sort(rows)
        back = np.searchsorted(rising, rows)
        return tuple(np.asarray(d[rising], np.float32)[back] for d in datasets)

    def _described(self, file: int) -> tuple[int, tuple[Shape, ...]]:
        datasets = self._datasets(file)
        rows = {d.shape[0] for d in datasets}
        if len(rows) != 1:
            raise ArrayError(
                "the datasets of an HDF5 file have different numbers of rows",
                given={"path": str(self.paths[file]), **{n: d.shape for n, d in zip(self.names, datasets, strict=True)}},
                required="equal first sizes",
            )
        return rows.pop(), tuple(tuple(d.shape[1:]) for d in datasets)

    def _datasets(self, file: int) -> list[Any]:
        if self._open is None or self._open[0] != file:
            if self._open is not None:
                self._open[1].close()
            self._open = (file, open_hdf5(self.paths[file]))
        return [self._dataset(self._open[1], name, self.paths[file]) for name in self.names]

    def _dataset(self, opened: Any, name: str, path: Path) -> Any:
        link = opened.get(name, getlink=True) if name in opened else None
        found: Any = opened[name] if isinstance(link, self._h5py.HardLink) else None
        plain = isinstance(found, self._h5py.Dataset) and not found.is_virtual and not found.external
        if not (plain and found.ndim >= 1 and found.dtype.kind in "fiu"):
            raise ModelFileError(
                "an HDF5 file lacks a dataset of numbers",
                given={"path": str(path), "dataset": name, "there are": list(opened)[:16]},
                required="numbers with a row for each sample, in the file itself",
                because="Caffe, src/caffe/layers/hdf5_data_layer.cpp: a dataset has the name of the layer's top",
                hint=f"h5py.File(path, 'w')[{name!r}] = array",
            )
        return found


def open_hdf5(path: str | PathLike[str]) -> Any:
    """An HDF5 file, to be read. Raises ModelFileError: there is none, or it is none."""
    h5py = needed("h5py", "reading HDF5")
    try:
        return h5py.File(Path(path), "r")
    except FileNotFoundError as error:
        raise ModelFileError("there is no such HDF5 file", given={"path": str(path)}, hint="check the path") from error
    except (OSError, RuntimeError) as error:
        raise ModelFileError("not an HDF5 file that can be read", given={"path": str(path)}, because=str(error)) from error


def write_hdf5(path: str | PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write arrays as an HDF5 file, atomically; an HDF5 file of that name is replaced, any other file is not.

    Raises ModelFileError: the path names another file, or cannot be written.
    """
    h5py = needed("h5py", "writing HDF5")
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read(len(SIGNATURE)) != SIGNATURE:
                raise ModelFileError(
                    "a file of another kind would be overwritten",
                    given={"path": str(path)},
                    required="a new file, or an HDF5 file",
                )
    memory = io.BytesIO()
    with h5py.File(memory, "w") as written:
        for name, array in arrays.items():
            written[name] = array
    atomic_write(path, [memory.getvalue()])
