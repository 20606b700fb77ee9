"""Arrays for data layers: files to sources, and sources to the data layers of networks and solvers, whatever their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..caffe.inputs import EVERY
from ..errors import ArgumentError, ArrayError, ModelFileError
from ..layers import ArraySource, Source
from ..net import Net

Array = npt.NDArray[Any]
Built = TypeVar("Built")
IMAGES, LABELS = ("data", "images", "x", "X"), ("labels", "label", "targets", "y")


def load_samples(data: Path, labels: Path | None, scale: float) -> tuple[Array, Array]:
    """Images (N, C, H, W), multiplied by `scale`, and labels (N,), from .npy files or one .npz. (N, H, W) gets one channel."""
    if data.suffix == ".npz":
        found = _open(data)
        images, truth = _named(found, IMAGES, data), _named(found, LABELS, data) if labels is None else _open(labels)
    else:
        if labels is None:
            raise ArgumentError(
                "images need their labels",
                given={"data": str(data)},
                required="--labels labels.npy, or one .npz that holds both (data, labels)",
                hint="--labels labels.npy",
            )
        images, truth = _open(data), _open(labels)
    if images.ndim == 3:
        images = images[:, None]
    if images.ndim != 4 or len(images) != truth.size:
        raise ArrayError(
            "images and labels do not fit each other",
            given={"images": images, "labels": truth},
            required=f"(N, C, H, W) and N labels: {images.shape} and {truth.size}",
        )
    return images.astype(np.float32) * np.float32(scale), truth.reshape(-1)


def _open(path: Path) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            return found
        with found:
            return dict(found)
    except FileNotFoundError:
        raise ModelFileError("there is no such array file", given={"path": str(path)}, hint="check the path") from None
    except (ValueError, EOFError, OSError) as error:
        raise ModelFileError(
            "not a NumPy array file", given={"path": str(path)}, because=str(error), hint="numpy.save"
        ) from error


def _named(found: Any, names: tuple[str, ...], path: Path) -> Array:
    for name in names:
        if name in found:
            return np.asarray(found[name])
    raise ModelFileError(
        "the archive lacks an array",
        given={"path": str(path), "arrays": list(found)},
        required=f"one called {' or '.join(names)}",
        hint=f"numpy.savez(path, {IMAGES[0]}=..., {LABELS[0]}=...)",
    )


def split(images: Array, labels: Array, share: float, seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(to learn from, held out): `share` of the samples, chosen by the seed."""
    count = round(len(images) * share)
    if not 0 < count < len(images):
        raise ArgumentError(
            "nothing is held out, or everything",
            given={"hold_out": share, "samples": len(images)},
            required=f"0 < held out < {len(images)}: {count}",
            hint="--hold-out 0.1",
        )
    order = np.random.default_rng(seed).permutation(len(images))
    out, kept = np.sort(order[:count]), np.sort(order[count:])
    return (images[kept], labels[kept]), (images[out], labels[out])


def fed_net(build: Callable[[Mapping[str, Source] | None], Built], source: Source | None) -> Built:
    """Build with `source` for every data layer, where it is given; without, they draw from what the text names."""
    return build(None if source is None else {EVERY: source})


def fed_solver(
    build: Callable[[Mapping[str, Source] | None, Mapping[str, Source] | None], Built], source: Source | None, test: Source | None
) -> Built:
    """The same for a solver: one source for its train net, one for its test nets."""
    return build(None if source is None else {EVERY: source}, None if test is None else {EVERY: test})


def labelled(images: Array, labels: Array) -> ArraySource:
    """Samples in their own order."""
    return ArraySource(images, labels)


def attach(net: Net, source: Source) -> None:
    """Let every data layer of the network that has no source yet draw from this one."""
    if not net.sources:
        raise ArgumentError(
            "the network has no data layer to feed",
            given={"inputs": net.inputs},
            required="a data layer, as in a train_val.prototxt",
            hint="astride run feeds images into a network with inputs",
        )
    for name, present in net.sources.items():
        if present is None:
            net.set_source(name, source)
