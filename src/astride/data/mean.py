"""What may be subtracted from an image: a number, one per channel, or a mean image from an array or a file."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArrayError, ModelFileError
from ..proto import read_blob

Mean = npt.NDArray[np.float32]


def load_mean(source: float | Sequence[float] | npt.NDArray[Any] | str | PathLike[str]) -> Mean:
    """A mean as float32: (C, 1, 1) from numbers, (C, H, W) from an image.

    A path is a Caffe `.binaryproto` (compute_image_mean writes them) or a NumPy `.npy`; the leading 1 of a blob is dropped.
    """
    if isinstance(source, str | PathLike):
        return _image(_read(Path(source)), str(source))
    values = np.asarray(source, dtype=np.float32)
    return values.reshape(-1, 1, 1) if values.ndim < 2 else _image(values, "the array")


def _read(path: Path) -> npt.NDArray[Any]:
    if path.suffix != ".npy":
        return read_blob(path).data
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except FileNotFoundError as error:
        raise ModelFileError("there is no such mean file", given={"path": str(path)}, hint="check the path") from error
    except (ValueError, EOFError, OSError) as error:
        raise ModelFileError(
            "not a NumPy array file", given={"path": str(path)}, because=str(error), hint="np.save(path, mean)"
        ) from error


def _image(values: npt.NDArray[Any], origin: str) -> Mean:
    if values.ndim == 4 and len(values) == 1:
        values = values[0]
    if values.ndim == 1:
        values = values.reshape(-1, 1, 1)
    if values.ndim != 3:
        raise ArrayError(
            "a mean is one number per channel or one image",
            given={"mean": values},
            required=f"(C,), (C, H, W) or (1, C, H, W) in {origin}: {values.shape}",
            hint="mean.mean(axis=0) for the mean of a batch",
        )
    # A copy: the values may lie in a mapped file.
    return np.array(values, dtype=np.float32, order="C")
