"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from astride.errors import ModelFileError

Bytes: TypeAlias = bytes | bytearray | memoryview


def atomic_write(path: str | os.PathLike[str], chunks: Iterable[Bytes]) -> None:
    """Write the chunks one after another to a temporary file beside `path`, then rename it into place.

    Whoever reads `path` meanwhile, or after a crash, finds the old file or the new one, never half of one.
    """
    with atomic_file(path) as temporary:
        handle = os.open(temporary, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A new, empty file beside `path` to write into; when all is written it takes the name, else it is gone."""
    # A link keeps pointing where it points: it is its target that is replaced.
    target = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666))
        try:
            yield temporary
            _sync_file(temporary)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
        _sync_folder(folder)
    except OSError as error:
        hint = "create the folder first" if not os.path.isdir(folder) else None
        raise ModelFileError(f"cannot write {target}: {error.strerror or error}", hint=hint) from error


def _sync_file(path: str) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: str) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
