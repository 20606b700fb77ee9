"""Image files named in a list, each line a file and its label."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, ModelFileError
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


class ImageListSource(Samples):
    """Images from files, blue first, prepared by `transform`, and the labels behind their names.

    root        put in front of every name as it is, with its slash
    size        (height, width) to which images are resized as OpenCV does it
    color       three channels, or one
    """

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
        self.entries = [_entry(line, number) for number, line in enumerate(read_lines(path, "image list"), 1)]

    def __len__(self) -> int:
        return len(self.entries)

    def sample(self, place: int, random: np.random.Generator) -> Sequence[Array]:
        name, label = self.entries[place]
        pixels = read_pixels(self.root + name, color=self.color, size=self.size)
        image = pixels.astype(np.float32) if self.transform is None else self.transform(pixels, random)
        return image, np.array(label, np.float32)


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
