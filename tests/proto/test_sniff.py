from __future__ import annotations

import gzip
import io
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride import proto
from astride.errors import ArgumentError, BackendUnavailable, ModelFileError

from .samples import NET, write_net


def zipped(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"content")
    return out.getvalue()


def numpy_bytes() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123abcd\nsize 244031\n"
FOREIGN = [
    (b"\n\n<!DOCTYPE html>\n<html><head><title>404</title>", "an HTML page", "raw or download link"),
    (b"<html lang='en'>", "an HTML page", "raw or download link"),
    (LFS, "a Git LFS pointer (oid sha256:0123abcd, size 244031 bytes)", "git lfs pull"),
    (zipped("archive/data.pkl"), "a PyTorch archive (zip)", "PyTorch"),
    (zipped("weights.npy"), "a NumPy archive (.npz)", "numpy.load"),
    (zipped("net.caffemodel"), "a zip archive", "unpack it"),
    (gzip.compress(b"x"), "a gzip archive", "unpack it"),
    (pickle.dumps({"a": 1}), "a Python pickle", "runs code"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.more", "a PyTorch file (old pickle format)", "PyTorch"),
    (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture", "as its input"),
    (b"\x89PNG\r\n\x1a\n\x00", "a PNG picture", "as its input"),
    (numpy_bytes(), "a NumPy array (.npy)", "numpy.load"),
    (b"\x1c\x00\x00\x00TFL3\x00", "a TensorFlow Lite model", "another name"),
    (b"<?xml version='1.0'?><net/>", "an XML file", "OpenVINO"),
    (b'{"message": "Not Found"}', "a JSON text", "server"),
    (b"404: Not Found", "a server's error message (404: not found)", "address"),
]


@pytest.mark.parametrize(("content", "what", "hint"), FOREIGN, ids=[what for _, what, _ in FOREIGN])
@pytest.mark.parametrize("read", [proto.read_caffemodel, proto.read_prototxt, proto.read_solverstate, proto.read_blob])
def test_foreign_files_are_named(content: bytes, what: str, hint: str, read: Callable[[Any], Any], tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    for source, name in ((path, str(path)), (content, "<bytes>")):
        with pytest.raises(ModelFileError) as caught:
            read(source)
        assert caught.value.problem.startswith(f"{name} is no ")
        assert caught.value.problem.endswith(f"but {what}")
        assert hint in (caught.value.hint or "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_net(tmp_path / "net.caffemodel")
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "empty.caffemodel").touch()
    return tmp_path


def failure(read: Callable[[Any], Any], source: Any) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        read(source)
    return caught.value


def test_the_two_files_swapped(folder: Path) -> None:
    error = failure(proto.read_caffemodel, folder / "net.prototxt")
    assert error.problem == f"{folder / 'net.prototxt'} is a prototxt (text); a caffemodel (binary) is needed here"
    assert "the text as the first" in (error.hint or "")
    error = failure(proto.read_prototxt, str(folder / "net.caffemodel"))
    assert error.problem == f"{folder / 'net.caffemodel'} is binary; a prototxt (text) is needed here"
    assert "UTF-8" in (error.hint or "")


def test_utf16_is_no_text_for_us() -> None:
    assert "is binary" in failure(proto.read_prototxt, NET.encode("utf-16")).problem


def test_other_binary_files_of_caffe(tmp_path: Path) -> None:
    proto.write_solverstate(tmp_path / "s", proto.message("SolverState")(iter=3), [])
    assert "begins with a number, as a solver state" in failure(proto.read_caffemodel, tmp_path / "s").problem


def test_no_such_file(folder: Path) -> None:
    error = failure(proto.read_caffemodel, folder / "nett.caffemodel")
    assert error.problem == f"there is no file {folder / 'nett.caffemodel'}"
    assert error.hint == str(folder / "net.caffemodel")
    error = failure(proto.read_prototxt, str(folder / "gone" / "net.prototxt"))
    assert error.hint == f"the folder {folder / 'gone'} does not exist either"


def test_a_folder_and_an_empty_file(folder: Path) -> None:
    error = failure(proto.read_caffemodel, folder)
    assert error.problem == f"{folder} is a folder"
    assert error.hint == "a file in it: empty.caffemodel, net.caffemodel, net.prototxt"
    assert failure(proto.read_caffemodel, folder / "empty.caffemodel").problem.endswith("is empty")
    assert failure(proto.read_prototxt, b"").problem == "<bytes> is empty"


def test_names_no_file_can_have() -> None:
    assert "cannot open" in failure(proto.read_caffemodel, "a\0b").problem


def test_every_form_of_a_text(folder: Path) -> None:
    path = folder / "net.prototxt"
    expected = proto.parse(NET, "NetParameter").message
    with path.open() as text, path.open("rb") as binary:
        sources: list[tuple[Any, str]] = [
            (path, str(path)),
            (str(path), str(path)),
            (NET, "<text>"),
            (NET.encode(), "<bytes>"),
            (text, str(path)),
            (binary, str(path)),
            (io.StringIO(NET), "<file>"),
        ]
        for source, name in sources:
            parsed = proto.read_prototxt(source)
            assert parsed.message == expected
            assert parsed.source == name
    assert proto.read_prototxt("name: 'a'").message.name == "a"
    assert proto.read_prototxt(NET, name="mine").source == "mine"


def test_every_form_of_weights(folder: Path) -> None:
    path = folder / "net.caffemodel"
    raw = path.read_bytes()
    with path.open("rb") as file:
        for source in (path, str(path), raw, bytearray(raw), memoryview(raw), file, io.BytesIO(raw)):
            net = proto.read_caffemodel(source)
            assert [len(blobs) for blobs in net.blobs] == [0, 2, 0]
            assert not net.blobs[1][0].data.flags.writeable


def test_the_callers_memory_stays_writable(folder: Path) -> None:
    raw = bytearray((folder / "net.caffemodel").read_bytes())
    net = proto.read_caffemodel(raw)
    assert not net.blobs[1][0].data.flags.writeable
    assert np.frombuffer(raw, np.uint8).flags.writeable


@pytest.mark.parametrize("source", [None, 3, ["deploy.prototxt"]], ids=repr)
def test_what_is_no_file_at_all(source: Any) -> None:
    with pytest.raises(ArgumentError, match="this is no file") as caught:
        proto.read_prototxt(source, "NetParameter")
    assert caught.value.given == {"file": type(source).__name__}


@pytest.mark.parametrize("read", [proto.read_prototxt, proto.read_blob])
def test_hdf5_is_no_text_and_no_blob(read: Callable[[Any], Any]) -> None:
    with pytest.raises(ModelFileError, match="an HDF5 file") as caught:
        read(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "layers are in its prototxt" in str(caught.value.hint)


@pytest.mark.parametrize("read", [proto.read_caffemodel, proto.read_solverstate])
def test_hdf5_without_h5py(read: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(BackendUnavailable, match="need h5py") as caught:
        read(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert caught.value.hint == "pip install 'astride[data]'"
