"""What the arguments of Net's calls become, by Caffe's rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import CallError, FileError, SignatureError
from .proto import caffe_pb2

Array = npt.NDArray[Any]
Arrays = dict[str, Any]
"""name -> array"""
FilePath = str | os.PathLike[str]
PHASES = {caffe_pb2.TRAIN: "TRAIN", caffe_pb2.TEST: "TEST"}


def existing(file: Any) -> str:
    """A file's name if it can be opened."""
    name = os.fspath(file)
    if not os.path.isfile(name):
        raise FileError(
            f"Could not open file {name}", given={"file": name, "working directory": os.getcwd()}, hint="the file's path"
        )
    return str(name)


def arguments(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, int, Sequence[str], Any]:
    """phase, level, stages, weights from either constructor's arguments."""
    names = ["weights", "phase"] if args and isinstance(args[0], str | os.PathLike) else ["phase", "level", "stages", "weights"]
    given = dict(zip(names, args, strict=False))
    unknown = set(named) - {"phase", "level", "stages", "weights"}
    phase = named.get("phase", given.get("phase"))
    if len(args) > len(names) or unknown or set(given) & set(named) or phase not in PHASES:
        raise SignatureError(
            "no constructor of Net takes these arguments",
            given={"arguments": args, "named": named},
            required="Net(prototxt, phase, level=0, stages=None, weights=None), or Net(prototxt, weights, phase)",
            hint="caffe.Net('deploy.prototxt', caffe.TEST, weights='x.caffemodel')",
        )
    merged = given | named
    return int(phase), int(merged.get("level") or 0), list(merged.get("stages") or ()), merged.get("weights")


def check_array(name: str, array: Any, sizes: tuple[int, ...]) -> None:
    """What Caffe asks of memory that it will read through a pointer."""
    problem = ""
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        problem = "must be C contiguous"
    elif array.ndim != 4:
        problem = "must be 4-d"
    elif array.dtype != np.float32:
        problem = "must be float32"
    else:
        for word, got, size in zip(("number of channels", "height", "width"), array.shape[1:], sizes, strict=True):
            if got != size:
                problem = f"has wrong {word}"
                break
    if problem:
        raise CallError(
            f"{name} {problem}",
            given={name.split()[0]: array},
            required=f"(N, {', '.join(map(str, sizes))}) float32",
            hint="numpy.ascontiguousarray(x, dtype='float32')",
        )


def cut(results: dict[str, list[Array]], count: int) -> Arrays:
    """Lists of samples as arrays, without the samples that filled up the last batch."""
    packed = {name: np.asarray(values) for name, values in results.items()}
    extra = len(next(iter(packed.values()))) - count
    return {name: values[:-extra] if extra > 0 else values for name, values in packed.items()}


def pieces(arrays: Mapping[str, Any], size: int) -> Iterator[Arrays]:
    """Arrays of any length in pieces of one size, the last filled up with zeros."""
    if not arrays:
        return
    whole = {name: np.asarray(values) for name, values in arrays.items()}
    for begin in range(0, len(next(iter(whole.values()))), size):
        parts = {name: values[begin : begin + size] for name, values in whole.items()}
        for name, part in parts.items():
            if len(part) < size:
                parts[name] = np.concatenate([part, np.zeros((size - len(part), *part.shape[1:]), part.dtype)])
        yield parts


__all__ = ["PHASES", "Array", "Arrays", "FilePath", "arguments", "check_array", "cut", "existing", "pieces"]
