"""Where `astride run` writes: blobs to one .npz, or what was found drawn on each image."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import load_image
from ..errors import ArgumentError, ArrayError, ModelFileError
from ..proto import atomic_write
from ._findings import Finding

Array = npt.NDArray[Any]
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def check_target(path: Path, images: int) -> None:
    """Raise ArgumentError unless it is an .npz, a picture for one image, or a folder for any number."""
    suffix = path.suffix.lower()
    if suffix == ".npz" or path.is_dir() or suffix == "" or (suffix in FORMATS and images == 1):
        return
    if suffix in FORMATS:
        raise ArgumentError(
            "several images do not fit one picture",
            given={"save": str(path), "images": images},
            required="a folder, where each is drawn under its own name",
            hint=f"--save {path.with_suffix('')}/",
        )
    raise ArgumentError(
        "there is no such format to save in",
        given={"save": str(path)},
        required=f"a name that ends in .npz (blobs) or {', '.join(FORMATS)} (the image with what was found), or a folder",
        hint=f"{path}.npz",
    )


class Blobs:
    """The blobs of all images, kept for one .npz; `images` in it names the file of each.

    Of detections and regions the rows of all images make one table; `rois` and detections begin with the image's number.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrays: dict[str, list[Array]] = {}
        self.files: list[str] = []
        self.detected: set[str] = set()
        self.rows: set[str] = set()

    def add(self, file: str, sample: dict[str, Array], detected: Sequence[str], rows: Sequence[str] = ()) -> None:
        """One image's outputs, without their first axis; `detected` are tables of detections, `rows` have one a region."""
        self.detected |= set(detected)
        self.rows |= set(rows)
        for blob, values in sample.items():
            if blob in detected or (blob == "rois" and blob in rows):
                values = values.reshape(-1, 7 if blob in detected else 5).copy()
                values[:, 0] = len(self.files)
            self.arrays.setdefault(blob, []).append(values)
        self.files.append(file)

    def write(self) -> None:
        """Everything, images in order along the first axis; detections and regions as rows."""
        made: dict[str, Any] = {}
        for blob, parts in self.arrays.items():
            if blob in self.detected or blob in self.rows:
                made[blob] = np.concatenate(parts)[None, None] if blob in self.detected else np.concatenate(parts)
                continue
            if len({part.shape for part in parts}) > 1:
                raise ArrayError(
                    "the images have outputs of different shapes, which do not fit one array",
                    given={"output": blob, "shapes": sorted({part.shape for part in parts})},
                    hint="one image at a time, or --size",
                )
            made[blob] = np.stack(parts)
        made["images"] = np.array(self.files)
        buffer = io.BytesIO()
        np.savez(buffer, **made)
        atomic_write(self.path, [buffer.getvalue()])


def draw(target: Path, file: Path, findings: Sequence[Finding], written: set[Path]) -> Path | None:
    """Draw what was found on the image and write it; None where nothing can be drawn. What was written before is left."""
    from PIL import Image

    pixels = np.rint(load_image(file) * 255).astype(np.uint8).transpose(1, 2, 0)
    image, some = Image.fromarray(pixels), False
    for finding in findings:
        drawn = finding.drawn(image)
        if drawn is not None:
            image, some = drawn, True
    if not some:
        return None
    path = target
    if target.suffix.lower() not in FORMATS or target.is_dir():
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ModelFileError("cannot make the folder", given={"save": str(target)}, because=str(error)) from error
        path = target / f"{file.stem}.png"
        count = 1
        while path in written:  # images of one name from several folders
            count += 1
            path = target / f"{file.stem}_{count}.png"
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, FORMATS.get(path.suffix.lower(), "PNG"))
    atomic_write(path, [buffer.getvalue()])
    written.add(path)
    return path


__all__ = ["Blobs", "check_target", "draw"]
