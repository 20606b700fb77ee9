"""LMDB and LevelDB, read only: records in the order of their keys.

They are opened without a lock, so that nothing is written into their folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..errors import ModelFileError
from .optional import needed

HINT = "check the path; a data layer's source is looked for in the working directory"


class Database(Protocol):
    """Records by place: 0 is the one with the least key."""

    path: Path

    def __len__(self) -> int:
        """How many records there are."""
        ...

    def __getitem__(self, place: int) -> bytes:
        """The record at a place. Reading the next place again and again is fast."""
        ...


class Walk:
    """Records by place over something that can only be walked: goes on from the last place, or starts again."""

    path: Path

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._count: int | None = None
        self._at = -1
        self._rest: Iterator[bytes] = iter(())
        self._keys: list[bytes] | None = None

    def __getitem__(self, place: int) -> bytes:
        if not 0 <= place < len(self):
            raise IndexError(place)
        if self._keys is not None:
            return self._get(self._keys[place])
        if place <= self._at:
            self._rest, self._at = self._values(), -1
        elif self._at < 0:
            self._rest = self._values()
        if place > self._at + MOST_STEPS:
            # Whoever jumps about once will do it again: from here on by key.
            self._keys = list(self._all_keys())
            return self._get(self._keys[place])
        value = b""
        while self._at < place:
            value = next(self._rest)
            self._at += 1
        return value

    def __len__(self) -> int:
        raise NotImplementedError

    def _values(self) -> Iterator[bytes]:
        raise NotImplementedError

    def _all_keys(self) -> Iterator[bytes]:
        raise NotImplementedError

    def _get(self, key: bytes) -> bytes:
        raise NotImplementedError


MOST_STEPS = 1024
"""A jump further ahead than this reads all keys, to go by them."""


_ENVIRONMENTS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""LMDB allows one environment a file and process, which the train and the test net may both read."""


def _environment(lmdb: Any, path: Path) -> Any:
    name = str(path.resolve())
    environment = _ENVIRONMENTS.get(name)
    if environment is None:
        environment = lmdb.open(
            name, subdir=path.is_dir(), readonly=True, lock=False, readahead=False, meminit=False, max_readers=1
        )
        _ENVIRONMENTS[name] = environment
    return environment


class LMDB(Walk):
    """An LMDB folder or file. Raises ModelFileError: there is none, or it is none; BackendUnavailable: no lmdb package."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(path)
        lmdb = needed("lmdb", "reading an LMDB")
        exists = (self.path / "data.mdb").is_file() if self.path.is_dir() else self.path.is_file()
        if not exists:
            raise ModelFileError("there is no such LMDB", given={"path": str(self.path)}, hint=HINT)
        try:
            self._env = _environment(lmdb, self.path)
            statistics = self._env.stat()
            self._count = int(statistics["entries"])
            used = (int(self._env.info()["last_pgno"]) + 1) * int(statistics["psize"])
        except lmdb.Error as error:
            raise ModelFileError("not an LMDB that can be read", given={"path": str(self.path)}, because=str(error)) from error
        file = self.path / "data.mdb" if self.path.is_dir() else self.path
        if file.stat().st_size < used:
            # Reading behind the end of a mapped file would end the process.
            raise ModelFileError(
                "the LMDB is cut off",
                given={"path": str(file), "bytes": file.stat().st_size},
                required=f"bytes >= {used}",
                hint="copy it again",
            )

    def __len__(self) -> int:
        assert self._count is not None
        return self._count

    def _values(self) -> Iterator[bytes]:
        with self._env.begin(buffers=False) as transaction, transaction.cursor() as cursor:
            yield from cursor.iternext(keys=False, values=True)

    def _all_keys(self) -> Iterator[bytes]:
        with self._env.begin(buffers=False) as transaction, transaction.cursor() as cursor:
            yield from cursor.iternext(keys=True, values=False)

    def _get(self, key: bytes) -> bytes:
        with self._env.begin() as transaction:
            return bytes(transaction.get(key))


class LevelDB(Walk):
    """A LevelDB folder. Raises ModelFileError: there is none, or it is none; BackendUnavailable: no plyvel package."""

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(path)
        plyvel = needed("plyvel", "reading a LevelDB")
        if not (self.path / "CURRENT").is_file():
            raise ModelFileError("there is no such LevelDB", given={"path": str(self.path)}, hint=HINT)
        try:
            self._db: Any = plyvel.DB(str(self.path), create_if_missing=False)
        except (plyvel.Error, OSError) as error:
            raise ModelFileError("not a LevelDB that can be read", given={"path": str(self.path)}, because=str(error)) from error

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(1 for _ in self._all_keys())
        return self._count

    def _values(self) -> Iterator[bytes]:
        return iter(self._db.iterator(include_key=False))

    def _all_keys(self) -> Iterator[bytes]:
        return iter(self._db.iterator(include_value=False))

    def _get(self, key: bytes) -> bytes:
        return bytes(self._db.get(key))
