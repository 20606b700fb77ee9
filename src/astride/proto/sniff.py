"""What a file really is, said before anything tries to parse it.

    opened = open_model("weights.caffemodel", expect="caffemodel")      path, bytes, text or open file
    opened.name, opened.kind, opened.view                               "weights.caffemodel", "binary", memoryview

Whatever else the file may be is named, with what to do about it.
"""

from __future__ import annotations

import io
import mmap
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias

from astride.errors import ArgumentError, ModelFileError

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[Any]
Kind: TypeAlias = Literal["prototxt", "caffemodel", "solverstate", "binaryproto", "Caffe file"]
"""What a reader needs; a "Caffe file" is text or binary."""

_HEAD = 65_536
_HDF5 = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """A source's bytes, not copied where they come from a file, and the name errors call it by."""

    name: str
    kind: Literal["text", "binary", "hdf5"]
    view: memoryview


@dataclass(frozen=True, slots=True)
class Foreign:
    """A kind of file that is no Caffe file: what it is, and what to do about it."""

    what: str
    hint: str


def open_model(source: Source, *, expect: Kind, name: str | None = None, hdf5: bool = False) -> Opened:
    """Open a model file in whatever form it comes; a ModelFileError says what it is if it is something else.

    `hdf5` allows weights and states in HDF5, which some readers can read.
    A string is a path unless it looks like prototxt: several lines, a brace, or `name: value`.
    """
    view, called = _read(source)
    called = name or called
    if not len(view):
        raise ModelFileError(f"{called} is empty", hint="download or copy the file again")
    head = bytes(view[:_HEAD])
    if hdf5 and head.startswith(_HDF5):
        return Opened(called, "hdf5", view)
    foreign = sniff(head)
    if foreign is not None:
        raise ModelFileError(f"{called} is no {expect} but {foreign.what}", hint=foreign.hint)
    kind: Literal["text", "binary"] = "binary" if re.search(rb"[\x00-\x08\x0e-\x1f]", head) else "text"
    if kind == "text" and expect not in ("prototxt", "Caffe file") and _looks_like_prototxt(head):
        raise ModelFileError(
            f"{called} is a prototxt (text); a {expect} (binary) is needed here",
            hint="the network's text and its weights are two files: pass the text as the first, the weights as the second",
        )
    if kind == "binary" and expect == "prototxt":
        raise ModelFileError(
            f"{called} is binary; a prototxt (text) is needed here",
            hint="weights (.caffemodel, .binaryproto) go second; a text saved as UTF-16 must be saved as UTF-8",
        )
    return Opened(called, kind, view)


def sniff(head: bytes) -> Foreign | None:
    """What the first bytes of a file show it to be, if that is a known kind which is not Caffe's."""
    for magic, offset, foreign in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return foreign(head) if callable(foreign) else foreign
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:512].lower()
    if text.startswith((b"<!doctype html", b"<head", b"<!--", b"<body")) or (text.startswith(b"<") and b"<html" in text):
        return Foreign("an HTML page", "the address led to a web page: open it in a browser and take the raw or download link")
    if text.startswith(b"<?xml"):
        return Foreign("an XML file", "an OpenVINO .xml or an error page of the server; the Caffe file has another address")
    if re.match(rb"\{\s*\"|\[\s*[\{\"]|\{\s*\}", text):
        return Foreign("a JSON text", "the server answered with a message instead of the file: look at its text")
    if re.match(rb"(\d{3}: )?(not found|forbidden|access denied)", text):
        return Foreign(f"a server's error message ({text[:40].decode('ascii', 'replace').strip()})", "check the address")
    return None


def _lfs(head: bytes) -> Foreign:
    oid = re.search(rb"oid (\S+)", head)
    size = re.search(rb"size (\d+)", head)
    known = f"oid {oid[1].decode('ascii', 'replace') if oid else 'unknown'}, size {size[1].decode() if size else 'unknown'} bytes"
    return Foreign(f"a Git LFS pointer ({known})", "git lfs pull")


def _zip(head: bytes) -> Foreign:
    if b"data.pkl" in head or b"/version" in head[:512] or b"constants.pkl" in head:
        return Foreign("a PyTorch archive (zip)", "PyTorch weights need a conversion to Caffe, or PyTorch itself")
    if b".npy" in head[:512]:
        return Foreign("a NumPy archive (.npz)", "numpy.load opens it; set net.params[...] from its arrays")
    return Foreign("a zip archive", "unpack it and pass the file inside")


_UNPACK = "unpack it and pass the file inside"
_PICTURE = "pass the network's files here, pictures as its input"
_MAGIC: list[tuple[bytes, int, Foreign | Callable[[bytes], Foreign]]] = [
    (b"version https://git-lfs", 0, _lfs),
    (b"PK\x03\x04", 0, _zip),
    (b"PK\x05\x06", 0, Foreign("an empty zip archive", "download or copy the file again")),
    (b"\x1f\x8b", 0, Foreign("a gzip archive", _UNPACK)),
    (b"BZh", 0, Foreign("a bzip2 archive", _UNPACK)),
    (b"\xfd7zXZ\x00", 0, Foreign("an xz archive", _UNPACK)),
    (b"\x28\xb5\x2f\xfd", 0, Foreign("a Zstandard archive", _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", 0, Foreign("a 7z archive", _UNPACK)),
    (b"Rar!\x1a\x07", 0, Foreign("a RAR archive", _UNPACK)),
    (b"ustar", 257, Foreign("a tar archive", _UNPACK)),
    (_HDF5, 0, Foreign("an HDF5 file", "HDF5 holds weights or a solver's state: a network's layers are in its prototxt")),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", 0, Foreign("a PyTorch file (old pickle format)", "convert it with PyTorch")),
    *(
        (
            bytes([0x80, version]),
            0,
            Foreign("a Python pickle", "a pickle runs code when opened, so none is read here: save arrays"),
        )
        for version in (2, 3, 4, 5)
    ),
    (b"\xff\xd8\xff", 0, Foreign("a JPEG picture", _PICTURE)),
    (b"\x89PNG\r\n\x1a\n", 0, Foreign("a PNG picture", _PICTURE)),
    (b"GIF8", 0, Foreign("a GIF picture", _PICTURE)),
    (b"%PDF", 0, Foreign("a PDF document", "the Caffe file has another address")),
    (b"\x93NUMPY", 0, Foreign("a NumPy array (.npy)", "numpy.load opens it")),
    (b"TFL3", 4, Foreign("a TensorFlow Lite model", "the Caffe file has another name")),
]


def _looks_like_prototxt(head: bytes) -> bool:
    return re.search(rb"^\s*(#|[A-Za-z_]\w*\s*[:{<])", head) is not None


def _read(source: Source) -> tuple[memoryview, str]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return memoryview(source).cast("B"), "<bytes>"
    if isinstance(source, str) and _is_content(source):
        return memoryview(source.encode("utf-8", "surrogateescape")), "<text>"
    if isinstance(source, (str, os.PathLike)):
        return _map(source), os.fspath(source)
    if not hasattr(source, "read"):
        raise ArgumentError(
            "this is no file",
            given={"file": type(source).__name__},
            required="a path, text, bytes or an open file",
            hint='"deploy.prototxt"',
        )
    content = source.read()
    name = getattr(source, "name", None)
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return memoryview(data), name if isinstance(name, str) else "<file>"


def _is_content(text: str) -> bool:
    return ("\n" in text or "{" in text or re.match(r"\s*\w+\s*:\s", text) is not None) and not (
        len(text) < 4096 and "\n" not in text and os.path.exists(text)
    )


def _map(path: str | os.PathLike[str]) -> memoryview:
    name = os.fspath(path)
    try:
        if os.path.isdir(name):
            raise ModelFileError(f"{name} is a folder", given={"path": name}, hint=_inside(name))
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                # Nothing to map in an empty file, and pipes and devices say 0 too.
                return memoryview(file.read(2**31))
            try:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except (OSError, io.UnsupportedOperation):
                return memoryview(file.read())
    except FileNotFoundError as error:
        raise ModelFileError(f"there is no file {name}", given={"path": name}, hint=_similar(name)) from error
    except MemoryError as error:
        raise ModelFileError(f"{name} does not fit into memory", given={"path": name, "bytes": size}) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot open {name}: {getattr(error, 'strerror', None) or error}", given={"path": name}) from error


def _inside(folder: str) -> str | None:
    names = sorted(name for name in os.listdir(folder) if name.endswith((".prototxt", ".caffemodel", ".binaryproto")))
    return f"a file in it: {', '.join(names[:5])}" if names else None


def _similar(path: str) -> str | None:
    from astride.proto.schema import nearest

    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"the folder {folder} does not exist either"
    near = nearest(os.path.basename(path), os.listdir(folder))
    return os.path.join(os.path.dirname(path), near) if near else None
