"""What `astride run` does to files before the network sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Transformer, load_image, load_mean
from ..errors import ArgumentError, ArrayError, ModelFileError
from ..net import Net
from ..proto import nearest
from ._findings import REGIONS
from ._output import shape_text
from ._recipe import Recipe

Array = npt.NDArray[Any]
Size = tuple[int, int]
ORDERS = ("bgr", "rgb", "gray")


@dataclass(frozen=True, eq=False)
class Preparation:
    """How files become inputs: one transformer for image files, one for arrays, which are changed only where asked."""

    shape: tuple[int, ...]
    order: str
    images: Transformer
    arrays: Transformer
    recipe: Recipe
    sides: Size | None = None
    """Without a size: what the shorter side becomes, and what the longer at most."""

    @classmethod
    def of(cls, shape: tuple[int, ...], recipe: Recipe) -> Preparation:
        """For an input blob (N, C, H, W). Arrays get only what flags ask for. Raises ArgumentError: no such channel order."""
        channels, wanted = (shape[1], (shape[2], shape[3])) if len(shape) == 4 else (0, None)
        order = recipe.order or ("gray" if channels == 1 else "bgr")
        if order not in ORDERS:
            problem = "there is no such channel order"
            raise ArgumentError(problem, given={"channel_order": order}, required=f"one of {', '.join(ORDERS)}")
        size, crop = recipe.size, recipe.crop
        if crop is None and size is not None and wanted is not None and size != wanted:
            crop = wanted if size[0] >= wanted[0] and size[1] >= wanted[1] else None
        sides = None if size or crop else recipe.sides
        images = Transformer(
            raw_scale=255.0 if recipe.raw_scale is None else recipe.raw_scale,
            mean=_mean(recipe),
            crop=crop,
            scale=1.0 if recipe.scale is None else recipe.scale,
            crop_mean=True,
            size=None if sides else size or crop or wanted,
            channel_swap=(2, 1, 0) if order == "bgr" else None,
        )
        flags = {name for name, source in recipe.sources.items() if source == "flag"}
        arrays = replace(
            images,
            raw_scale=1.0 if recipe.raw_scale is None else recipe.raw_scale,
            mean=images.mean if "mean" in flags else None,
            scale=images.scale if "scale" in flags else 1.0,
            crop=crop if flags & {"size", "crop"} else None,
            size=None,
            channel_swap=None,
        )
        return cls(shape, order, images, arrays, recipe, sides)

    def load(self, path: Path) -> tuple[Array, Size | None]:
        """(inputs (N, ...) that a file holds, size of its image): one image, or as many as an array says, whose size is None."""
        if path.suffix.lower() == ".npy":
            return self._array(path), None
        channels = 1 if self.order == "gray" else 3
        if len(self.shape) != 4 or self.shape[1] != channels:
            raise ArgumentError(
                "the image has other channels than the network's input",
                given={"channel_order": self.order, "input": self.shape},
                required=f"(N, {channels}, H, W): {self.shape}",
                hint="--channel-order gray, bgr or rgb; or a .npy array of the input's shape",
            )
        image = load_image(path, color=channels == 3)
        size = (image.shape[1], image.shape[2])
        return self._images(size)(image)[None], size

    def _images(self, size: Size) -> Transformer:
        """The transformer for an image of this height and width."""
        if self.sides is None:
            return self.images
        scale = _scale(size, self.sides)
        return replace(self.images, size=(max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)))

    def info(self, fed: tuple[int, ...], size: Size | None) -> Array:
        """(1, 3): height and width of an input (N, C, H, W), and how many times larger it is than its image of `size`."""
        if len(fed) != 4:
            raise ArrayError("an input without height and width has no im_info", given={"input": fed}, required="(N, C, H, W)")
        scale = 1.0
        if size is not None:
            whole = self.images.size or size
            scale = whole[0] / size[0] if self.sides is None else _scale(size, self.sides)
        return np.array([[fed[2], fed[3], scale]], np.float32)

    def place(self, boxes: Array, size: Size | None) -> Array:
        """Boxes (N, 4) in parts of the input, x0 y0 x1 y1, in pixels of an image of `size` (height, width) it was made from.

        Without a size they stay as they are.
        """
        if size is None:
            return boxes
        images = self._images(size)
        whole = images.size or size
        seen = images.crop or whole
        scaled = []
        for axis in (1, 0):  # x, then y
            start = (whole[axis] - seen[axis]) // 2
            scaled.append((start + boxes[:, [1 - axis, 3 - axis]] * seen[axis]) * size[axis] / whole[axis])
        (x0, x1), (y0, y1) = (pair.T for pair in scaled)
        return np.stack([x0, y0, x1, y1], axis=1)

    def _array(self, path: Path) -> Array:
        values, axes = _array(path), len(self.shape)
        if values.ndim == axes - 1 or (axes == 4 and values.ndim == 2):
            values = values.reshape((1,) * (axes - values.ndim) + values.shape)
        if values.ndim != axes or values.dtype.kind not in "fiub":
            raise ArrayError(
                "the array does not fit the network's input",
                given={path.name: values},
                required=f"numbers, as many axes as {self.shape}, the first may be missing",
            )
        values = values.astype(np.float32)
        return self.arrays.batch(values) if axes == 4 and len(values) else values

    def to_dict(self) -> dict[str, Any]:
        """What is done to image files, as plain data."""
        t = self.images
        return {
            "input": list(self.shape),
            "size": t.size,
            "sides": self.sides,
            "channel_order": self.order,
            "raw_scale": t.raw_scale,
            "mean": self._mean_text or None,
            "crop": t.crop,
            "scale": t.scale,
            "sources": self.recipe.sources,
        }

    def __str__(self) -> str:
        t = self.images
        steps = [
            f"resized to {shape_text(t.size)}" if t.size else "",
            f"shorter side {self.sides[0]}, longer at most {self.sides[1]}" if self.sides else "",
            f"channels {self.order}",
            f"0..1 times {t.raw_scale:g}",
            f"minus {self._mean_text}" if self._mean_text else "",
            f"centre {shape_text(t.crop)}" if t.crop else "",
            f"times {t.scale:g}" if t.scale != 1 else "",
        ]
        return ", ".join(step for step in steps if step)

    @property
    def _mean_text(self) -> str:
        mean = self.recipe.mean
        if mean is None or isinstance(mean, str):
            return mean or ""
        return ",".join(f"{value:g}" for value in mean)


def _scale(size: Size, sides: Size) -> float:
    """What brings the shorter side to the first, or if the longer would pass the second, that one to it."""
    scale = sides[0] / min(size)
    return sides[1] / max(size) if round(scale * max(size)) > sides[1] else scale


def _mean(recipe: Recipe) -> Any:
    """The mean's numbers, None for none."""
    given = recipe.mean
    return None if given is None or (not isinstance(given, str) and len(given) == 0) else load_mean(given)


INFO = "im_info"


def info_of(net: Net, given: Iterable[str]) -> str | None:
    """The input (1, 3) that Faster R-CNN's networks have for the image's height, width and scale, unless it is given."""
    here = INFO in net.inputs and INFO not in given and net.blobs[INFO].shape == (1, 3)
    return INFO if here else None


def arrays_of(net: Net, files: Mapping[str, Path]) -> dict[str, Array]:
    """The arrays of inputs that no image goes into. Raises ArgumentError: no such input; ArrayError: other axes."""
    found = {}
    for name, path in files.items():
        if name not in net.inputs:
            raise ArgumentError(
                "the network has no such input",
                given={"input": name},
                required=f"one of {', '.join(net.inputs)}",
                hint=nearest(name, net.inputs),
            )
        values, shape = _array(path), net.blobs[name].shape
        if values.ndim == len(shape) - 1:
            values = values[None]
        if values.ndim != len(shape) or values.dtype.kind not in "fiub":
            raise ArrayError(
                "the array does not fit the network's input",
                given={path.name: values},
                required=f"numbers, as many axes as {name} {shape}, the first may be missing",
            )
        found[name] = values.astype(np.float32)
    return found


def _array(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except FileNotFoundError:
        raise ModelFileError("there is no such array file", given={"path": str(path)}, hint="check the path") from None
    except (ValueError, EOFError, OSError) as error:
        raise ModelFileError(
            "not a NumPy array file", given={"path": str(path)}, because=str(error), hint="numpy.save"
        ) from error


def input_of(net: Net, fed: Collection[str | None] = ()) -> str:
    """The one input that images go into, beside those that are fed otherwise."""
    left = [name for name in net.inputs if name not in fed]
    if len(left) != 1:
        raise ArgumentError(
            "the network does not have exactly one input for images",
            given={"inputs": left, "data layers": list(net.sources)},
            required=f"one input: {len(left)}",
            hint="--input NAME=FILE.npy for the others"
            if left
            else "a deploy prototxt, whose input is an Input layer; astride test runs a network with a data layer",
        )
    return left[0]


def outputs_of(net: Net, asked: list[str]) -> list[str]:
    """The blobs to keep: those asked for, else Faster R-CNN's three, else the network's outputs."""
    for name in asked:
        if name not in net.blobs:
            raise ArgumentError(
                "the network has no such blob",
                given={"output": name},
                required=f"one of {', '.join(net.blobs)}",
                hint=nearest(name, net.blobs),
            )
    return asked or (list(REGIONS) if set(REGIONS) <= set(net.blobs) else list(net.outputs))
