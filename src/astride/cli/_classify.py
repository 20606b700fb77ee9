"""What `astride run` does: files to inputs, inputs through the network, outputs as classes or arrays."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Transformer, load_image, load_mean
from ..errors import ArgumentError, ArrayError, ModelFileError
from ..net import Net
from ..net.program import Program
from ..proto import atomic_write, nearest
from ._output import note, shape_text, table, to_stdout

Array = npt.NDArray[Any]
Blobs = dict[str, Array]
ORDERS = ("bgr", "rgb", "gray")
MAX_BATCH = 64
BAR = 30


@dataclass(frozen=True, eq=False)
class Preparation:
    """How files become inputs: one transformer for image files, one for arrays, which are changed only where asked."""

    shape: tuple[int, ...]
    order: str
    images: Transformer
    arrays: Transformer
    mean: Any

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        *,
        mean: Any,
        raw_scale: float | None,
        scale: float,
        size: tuple[int, int] | None,
        crop: tuple[int, int] | None,
        order: str | None,
    ) -> Preparation:
        """For an input blob (N, C, H, W). Raises ArgumentError: no such channel order."""
        channels, wanted = (shape[1], (shape[2], shape[3])) if len(shape) == 4 else (0, None)
        order = order or ("gray" if channels == 1 else "bgr")
        if order not in ORDERS:
            problem = "there is no such channel order"
            raise ArgumentError(problem, given={"channel_order": order}, required=f"one of {', '.join(ORDERS)}")
        if crop is None and size is not None and wanted is not None and size != wanted:
            crop = wanted if size[0] >= wanted[0] and size[1] >= wanted[1] else None
        loaded = None if mean is None else load_mean(mean)
        arrays = Transformer(
            raw_scale=1.0 if raw_scale is None else raw_scale, mean=loaded, crop=crop, scale=scale, crop_mean=True
        )
        images = replace(
            arrays,
            size=size or crop or wanted,
            raw_scale=255.0 if raw_scale is None else raw_scale,
            channel_swap=(2, 1, 0) if order == "bgr" else None,
        )
        return cls(shape, order, images, arrays, mean)

    def load(self, path: Path) -> Array:
        """The inputs (N, ...) that a file holds: one image, or as many as an array says."""
        if path.suffix.lower() == ".npy":
            return self._array(path)
        channels = 1 if self.order == "gray" else 3
        if len(self.shape) != 4 or self.shape[1] != channels:
            raise ArgumentError(
                "the image has other channels than the network's input",
                given={"channel_order": self.order, "input": self.shape},
                required=f"(N, {channels}, H, W): {self.shape}",
                hint="--channel-order gray, bgr or rgb; or a .npy array of the input's shape",
            )
        return self.images(load_image(path, color=channels == 3))[None]

    def _array(self, path: Path) -> Array:
        try:
            values = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise ModelFileError("there is no such array file", given={"path": str(path)}, hint="check the path") from None
        except (ValueError, EOFError, OSError) as error:
            raise ModelFileError(
                "not a NumPy array file", given={"path": str(path)}, because=str(error), hint="numpy.save"
            ) from error
        axes = len(self.shape)
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
            "channel_order": self.order,
            "raw_scale": t.raw_scale,
            "mean": self.mean,
            "crop": t.crop,
            "scale": t.scale,
        }

    def __str__(self) -> str:
        t = self.images
        steps = [
            f"resized to {shape_text(t.size)}" if t.size else "",
            f"channels {self.order}",
            f"0..1 times {t.raw_scale:g}",
            "" if self.mean is None else f"minus {self.mean}",
            f"centre {shape_text(t.crop)}" if t.crop else "",
            f"times {t.scale:g}" if t.scale != 1 else "",
        ]
        return ", ".join(step for step in steps if step)


def input_of(net: Net) -> str:
    """The one input that images go into."""
    if len(net.inputs) != 1:
        raise ArgumentError(
            "the network does not have exactly one input for images",
            given={"inputs": net.inputs, "data layers": list(net.sources)},
            required=f"one input: {len(net.inputs)}",
            hint="a deploy prototxt, whose input is an Input layer; astride test runs a network with a data layer",
        )
    return net.inputs[0]


def outputs_of(net: Net, asked: list[str]) -> list[str]:
    """The blobs to keep: those asked for, else the network's outputs."""
    for name in asked:
        if name not in net.blobs:
            raise ArgumentError(
                "the network has no such blob",
                given={"output": name},
                required=f"one of {', '.join(net.blobs)}",
                hint=nearest(name, net.blobs),
            )
    return asked or list(net.outputs)


def run_file(program: Program, path: Path, preparation: Preparation) -> Blobs:
    """The program's outputs (N, ...) for what the file holds, in batches of at most MAX_BATCH."""
    inputs = preparation.load(path)
    (name,) = program.inputs
    parts: dict[str, list[Array]] = {blob: [] for blob in program.outputs}
    for start in range(0, max(len(inputs), 1), MAX_BATCH):
        outputs = program(**{name: inputs[start : start + MAX_BATCH]})
        for blob in program.outputs:
            parts[blob].append(np.atleast_1d(outputs[blob]))
    return {blob: np.concatenate(arrays) for blob, arrays in parts.items()}


def read_labels(path: Path | None) -> list[str]:
    """Names of classes, one a line."""
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        raise ModelFileError("there is no such labels file", given={"path": str(path)}, hint="check the path") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ModelFileError(
            "the labels cannot be read", given={"path": str(path)}, because=str(error), hint="a UTF-8 text file"
        ) from error


def is_scores(sample: Array) -> bool:
    """Whether an output is one number a class: (C,), (C, 1, 1)."""
    return sample.size > 1 and sample.size == max(sample.shape)


def best(sample: Array, top: int) -> list[int]:
    """The classes with the highest scores, the best first; of equals the lower number."""
    return [int(i) for i in np.argsort(-sample.reshape(-1), kind="stable")[:top]]


def save(path: Path, found: list[tuple[str, Blobs]]) -> None:
    """All blobs to one .npz, images in order along the first axis; `images` names the file of each."""
    if path.suffix != ".npz":
        raise ArgumentError(
            "blobs are saved as .npz", given={"save": str(path)}, required="a name that ends in .npz", hint=f"{path}.npz"
        )
    arrays: dict[str, Any] = {}
    for blob in found[0][1]:
        parts = [blobs[blob] for _, blobs in found]
        if len({part.shape[1:] for part in parts}) > 1:
            raise ArrayError(
                "the images have outputs of different shapes, which do not fit one array",
                given={"output": blob, "shapes": sorted({part.shape[1:] for part in parts})},
                hint="one image at a time, or --size",
            )
        arrays[blob] = np.concatenate(parts)
    first = next(iter(found[0][1]))
    arrays["images"] = np.array([file for file, blobs in found for _ in range(len(blobs[first]))])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    atomic_write(path, [buffer.getvalue()])


def show(preparation: Preparation, found: list[tuple[str, Blobs]], names: list[str], top: int, saved: Path | None) -> None:
    """The best classes of each image with bars; of other outputs their shape and range."""
    console = to_stdout()
    if any(Path(file).suffix.lower() != ".npy" for file, _ in found):
        note(f"images {preparation}")
    for file, blobs in found:
        for blob, values in blobs.items():
            for i, sample in enumerate(values):
                which = f" [{i}]" if len(values) > 1 else ""
                console.print(f"{file}{which}  {blob}", style="bold", markup=False)
                if is_scores(sample):
                    console.print(_bars(sample, names, top))
                else:
                    console.print(
                        f"  {shape_text(sample.shape)}, from {sample.min():.6g} to {sample.max():.6g}, mean {sample.mean():.6g}"
                    )
    if saved is not None:
        console.print(f"wrote {saved}", markup=False)


def _bars(sample: Array, names: list[str], top: int) -> Any:
    from rich.text import Text

    scores = sample.reshape(-1).astype(np.float64)
    likely = scores.min() >= 0 and abs(scores.sum() - 1) < 1e-3
    low, high = (0.0, 1.0) if likely else (min(float(scores.min()), 0.0), float(scores.max()))
    made = table("probability" if likely else "score", "", "class", "", right=("probability", "score", "class"))
    for place in best(sample, top):
        length = round(BAR * (scores[place] - low) / (high - low)) if high > low else 0
        bar = Text(("█" * length or "▏").ljust(BAR), style="cyan")
        made.add_row(f"{scores[place]:.2%}" if likely else f"{scores[place]:.5g}", bar, str(place), _name(names, place))
    return made


def _name(names: list[str], place: int) -> Any:
    from rich.text import Text

    return Text(names[place] if place < len(names) else "")
