"""The files that `astride run` is given: images, arrays, folders, lists, and frames by a numbered pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import ModelFileError

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
ARRAYS = {".npy"}
LISTS = {".txt", ".lst"}
MOST = 1_000_000
"""Lines of a list, files of a folder."""


def expand(paths: Iterable[Path]) -> list[Path]:
    """Every image or array, in order.

    A folder stands for its images, `frame9` before `frame10`; a .txt file for a path a line, beside the list or from here, with
    Caffe's labels passed over; `frame_%04d.png` for all the numbers there are.
    Raises ModelFileError: a list that is missing or no text, a folder or pattern without images.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += _some(sorted((p for p in path.iterdir() if p.suffix.lower() in IMAGES), key=_natural), path)
        elif path.suffix.lower() in LISTS:
            found += _listed(path)
        elif re.search(r"%0?\d*d", path.name):
            found += _frames(path)
        else:
            found.append(path)
    return found


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Numbers in a name by their value."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def _some(files: list[Path], source: Path) -> list[Path]:
    if not files:
        raise ModelFileError(
            "there are no images here", given={"path": str(source)}, required=f"files that end in {' '.join(sorted(IMAGES))}"
        )
    return files[:MOST]


def _listed(path: Path) -> list[Path]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ModelFileError("there is no such list of images", given={"path": str(path)}, hint="check the path") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ModelFileError(
            "the list of images cannot be read", given={"path": str(path)}, because=str(error), hint="one path a line"
        ) from error
    files = []
    for line in lines[:MOST]:
        # Caffe's lists have a number behind each path; a path may have spaces itself.
        name = re.sub(r"\s+-?\d+\s*$", "", line).strip()
        if name:
            beside = path.parent / name
            files.append(beside if beside.is_file() else Path(name))
    return _some(files, path)


def _frames(path: Path) -> list[Path]:
    before, after = re.split(r"%0?\d*d", path.name, maxsplit=1)
    pattern = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    numbered = [(int(match[1]), p) for p in path.parent.glob("*") if (match := pattern.fullmatch(p.name))]
    return _some([p for _, p in sorted(numbered)], path)


__all__ = ["expand"]
