"""Image files named in a list, each line a file and its label."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArrayError, ModelFileError
from .pixels import read_pixels
from .samples import Array, Samples
from .transformer import Transformer

MOST_BYTES = 2**28
"""Of a list: millions of lines."""


def read_lines(path: str | PathLike[str], what: str) -> list[str]:
    """A list's lines that are not empty. Raises ModelFileError: no such file, no text, too long."""
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ModelFileError(
                f"the {what} is too long",
                given={"path": str(file)},
                required=f"at most {MOST_BYTES} bytes: {file.stat().st_size}",
            )
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError as error:
        raise ModelFileError(
            f"there is no such {what}",
            given={"path": str(file)},
            hint="check the path; a data layer's source is looked for in the working directory",
        ) from error
    except (UnicodeDecodeError, OSError) as error:
        raise ModelFileError(f"the {what} cannot be read", given={"path": str(file)}, because=str(error)) from error


class _Listed(Samples):
    """Samples whose files a list names: what both kinds of list share."""

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        root: str = "",
        size: tuple[int, int] | None = None,
        color: bool = True,
        transform: Transformer | None = None,
        shuffle: bool = False,
        rand_skip: int = 0,
    ) -> None:
        super().__init__(shuffle=shuffle, rand_skip=rand_skip)
        self.root, self.size, self.color, self.transform = root, size, color, transform
        self.entries = self._entries(path, read_lines(path, "image list"))

    def _entries(self, path: str | PathLike[str], lines: list[str]) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.entries)

    def _pixels(self, name: str) -> Array:
        return read_pixels(self.root + name, color=self.color, size=self.size)

    def _prepared(self, pixels: Array, random: np.random.Generator) -> Array:
        return pixels.astype(np.float32) if self.transform is None else self.transform(pixels, random)


class ImageListSource(_Listed):
    """Images from files, blue first, prepared by `transform`, and the labels behind their names.

    root        put in front of every name as it is, with its slash
    size        (height, width) to which images are resized as OpenCV does it
    color       three channels, or one
    """

    def _entries(self, path: str | PathLike[str], lines: list[str]) -> list[tuple[str, Any]]:
        return [_entry(line, number) for number, line in enumerate(lines, 1)]

    def sample(self, place: int, random: np.random.Generator) -> Sequence[Array]:
        name, label = self.entries[place]
        return self._prepared(self._pixels(name), random), np.array(label, np.float32)


class PairListSource(_Listed):
    """Images from files and, in files named behind them, an image of labels each, a class for every pixel.

    Both are resized to `size`, the labels to the nearest. Nothing else happens to labels.
    """

    def _entries(self, path: str | PathLike[str], lines: list[str]) -> list[tuple[str, Any]]:
        words = [word for line in lines for word in line.split()]
        if len(words) % 2:
            raise ArgumentError(
                "a line of this image list is an image and an image of its labels",
                given={"path": str(path), "names": len(words)},
                required=f"an even number of names: {len(words)}",
                because="SegNet's Caffe, src/caffe/layers/dense_image_data_layer.cpp",
                hint="street.png street_labels.png",
            )
        return list(zip(words[::2], words[1::2], strict=True))

    def sample(self, place: int, random: np.random.Generator) -> Sequence[Array]:
        image, labels = self.entries[place]
        pixels = self._pixels(image)
        classes = read_pixels(self.root + labels, color=False)
        if self.size is not None:
            rows, columns = (np.arange(out) * n // out for n, out in zip(classes.shape[1:], self.size, strict=True))
            classes = classes[:, rows[:, None], columns]
        if classes.shape[1:] != pixels.shape[1:]:
            raise ArrayError(
                "an image and its labels have different sizes",
                given={"image": image, "labels": labels, "sizes": (pixels.shape[1:], classes.shape[1:])},
                required="equal sizes, or new_height and new_width",
                because="SegNet's Caffe, src/caffe/layers/dense_image_data_layer.cpp",
            )
        return self._prepared(pixels, random), classes.astype(np.float32)


def _entry(line: str, number: int) -> tuple[str, int]:
    """A name, which may hold blanks, and its label."""
    name, _, label = line.rstrip().rpartition(" ")
    try:
        return name.rstrip(), int(label)
    except ValueError:
        raise ArgumentError(
            "a line of an image list is a file and its label",
            given={"line": number, "text": line[:80]},
            required="name label, the label a whole number",
            because="Caffe, src/caffe/layers/image_data_layer.cpp",
            hint="cat.jpg 3",
        ) from None
