"""astride run: images through a Caffe network; classes, detections, labels of pixels or any blob out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, note, print_json, to_stderr, to_stdout

if TYPE_CHECKING:
    from ..net import Net
    from ._findings import Finding
    from ._preparing import Preparation

EXAMPLES = (
    "astride run deploy.prototxt weights.caffemodel cat.jpg dog.jpg --labels synset_words.txt",
    "astride run ssd.prototxt ssd.caffemodel street.jpg --threshold 0.4 --save found.png",
    "astride run fcn.prototxt fcn.caffemodel frames/ --save drawn/",
    "astride run deploy.prototxt weights.caffemodel photo.jpg --size 256 --crop 224 --mean mean.binaryproto --top 3",
    "astride run deploy.prototxt weights.caffemodel batch.npy --output pool5 --save features.npz",
)


Prototxt = Annotated[str, typer.Argument(metavar="PROTOTXT", help="The network's text (deploy.prototxt).")]
Weights = Annotated[str, typer.Argument(metavar="WEIGHTS", help="Its weights (.caffemodel).")]
Images = Annotated[
    list[Path],
    typer.Argument(metavar="IMAGE...", help="Image files, folders of them, lists (.txt), frame_%04d.png, or .npy arrays."),
]
Mean = Annotated[
    str | None, typer.Option("--mean", metavar="FILE|N,N,N", help="Subtract it: .binaryproto, .npy, or one number per channel.")
]
RawScale = Annotated[
    float | None,
    typer.Option("--raw-scale", metavar="N", help="Multiply before the mean. Default: 255 for image files, 1 for arrays."),
]
Scale = Annotated[float | None, typer.Option("--scale", metavar="N", help="Multiply after the mean.")]
Size = Annotated[str | None, typer.Option("--size", metavar="N|HxW", help="Resize images to this. Default: the network's input.")]
Crop = Annotated[
    str | None,
    typer.Option("--crop", metavar="N|HxW", help="Then cut the centre. Default: the network's input, if --size is larger."),
]
ChannelOrder = Annotated[
    str | None, typer.Option("--channel-order", metavar="bgr|rgb|gray", help="Default: bgr for three channels, gray for one.")
]
Labels = Annotated[Path | None, typer.Option("--labels", metavar="FILE", help="Names of the classes, one a line.")]
Top = Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many classes to show.")]
Output = Annotated[
    list[str] | None, typer.Option("--output", metavar="BLOB", help="A blob instead of the network's output; may be repeated.")
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help=".npz: the output blobs. .png, .jpg or a folder: images with what was found."),
]
Threshold = Annotated[float, typer.Option("--threshold", metavar="N", help="Detections with a higher score are shown.")]
Custom = Annotated[
    str,
    typer.Option("--recipe", metavar="NAME", help="auto, none (the flags alone), or a kind of network: mobilenet, vgg, ssd, ..."),
]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Who computes, as reference:loops2.")]


def run(
    prototxt: Prototxt,
    weights: Weights,
    images: Images,
    mean: Mean = None,
    raw_scale: RawScale = None,
    scale: Scale = None,
    size: Size = None,
    crop: Crop = None,
    channel_order: ChannelOrder = None,
    labels: Labels = None,
    top: Top = 5,
    output: Output = None,
    save: Save = None,
    threshold: Threshold = 0.5,
    recipe: Custom = "auto",
    backend: Backend = None,
    dialect: arguments.Dialect = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """Run a Caffe network on images and print what it found: the top classes, detections, or the labels of pixels.

    Image files are prepared as Caffe's own tools do: resized, in the channel order the network learned (blue, green, red
    unless told otherwise), times --raw-scale, minus --mean, cropped, times --scale. What no flag says is taken from the
    network's transform_param, from a training text or mean file beside it, or from what is customary for networks like it;
    what was taken is said. Arrays from .npy files are taken as they are; only what is asked for is done to them.
    """
    from ..caffe import load_caffe
    from ..settings import use
    from . import _preparing as preparing
    from ._findings import Reader
    from ._inputs import expand
    from ._recipe import label_names
    from ._saving import check_target

    net = load_caffe(prototxt, weights, dialect=dialect, python_layers=arguments.python_layers(python_layer))
    name = preparing.input_of(net)
    files = expand(images)
    if save is not None:
        check_target(save, len(files))
    flags = {
        "mean": _mean(mean),
        "raw_scale": raw_scale,
        "scale": scale,
        "size": _pair(size, "--size"),
        "crop": _pair(crop, "--crop"),
        "order": channel_order,
        "labels": labels,
    }
    known = _recipe(net, [Path(prototxt), Path(weights)], flags, recipe)
    prepared = preparing.Preparation.of(net.blobs[name].shape, known)
    reader = Reader(net, label_names(known.labels), top, threshold)
    outputs = preparing.outputs_of(net, output or [])
    with use(backend=backend):
        results = _run(net, outputs, files, prepared, reader, save, quiet=json)
    if json:
        print_json({"preparation": prepared.to_dict(), "results": results, "saved": None if save is None else str(save)})


def _recipe(net: Net, files: list[Path], flags: dict[str, Any], wanted: str) -> Any:
    from ._recipe import CUSTOMS, recipe

    names = ["auto", "none", *(custom.name for custom in CUSTOMS)]
    if wanted not in names:
        raise typer.BadParameter(f"there is no recipe {wanted!r}: one of {', '.join(names)}", param_hint="--recipe")
    return recipe(net, files, flags, wanted)


def _run(
    net: Net, outputs: list[str], files: list[Path], prepared: Preparation, reader: Any, save: Path | None, *, quiet: bool
) -> list[dict[str, Any]]:
    """Every file through the network; what was found is printed at once unless `quiet`, and returned as data."""
    from rich.progress import track

    from . import _saving as saving

    program = net.compile(outputs)
    detected = [blob for blob in outputs if reader.detects(blob)]
    kept = saving.Blobs(save) if save is not None and save.suffix == ".npz" else None
    said = [file.suffix.lower() != ".npy" for file in files]
    if any(said):
        taken = prepared.recipe.said()
        note(f"images {prepared}" + (f" ({taken})" if taken else ""))
    results: list[dict[str, Any]] = []
    written: set[Path] = set()
    console, progress = to_stdout(), to_stderr()
    hidden = len(files) < 2 or not progress.is_terminal
    for file in track(files, "running", console=progress, transient=True, disable=hidden):
        inputs, size = prepared.load(file)
        for i, sample in enumerate(_samples(program, inputs, one_by_one=bool(detected))):
            found = {blob: reader(blob, values, partial(prepared.place, size=size)) for blob, values in sample.items()}
            which = f" [{i}]" if len(inputs) > 1 else ""
            for blob, finding in found.items():
                shape = list(sample[blob].shape)
                results.append({"image": str(file), "index": i, "output": blob, "shape": shape} | finding.to_dict())
                if not quiet:
                    console.print(f"{file}{which}  {blob}", style="bold", markup=False)
                    console.print(finding.shown())
            if kept is not None:
                kept.add(str(file), sample, detected)
        if save is not None and kept is None:
            _draw(save, file, None if size is None else list(found.values()), results, written)
    if kept is not None:
        kept.write(detected)
        if not quiet:
            console.print(f"wrote {save}", markup=False)
    return results


def _draw(save: Path, file: Path, findings: list[Finding] | None, results: list[dict[str, Any]], written: set[Path]) -> None:
    """Draw the findings of an image; there are none to draw of an array."""
    from ._saving import draw

    path = None if findings is None else draw(save, file, findings, written)
    note(f"wrote {path}" if path is not None else f"{file}: nothing to draw")
    results[-1]["drawn"] = None if path is None else str(path)


MAX_BATCH = 64


def _samples(program: Any, inputs: Any, *, one_by_one: bool) -> Iterator[dict[str, Any]]:
    """The program's outputs of each of the inputs (N, ...), run in batches of at most MAX_BATCH."""
    import numpy as np

    (name,) = program.inputs
    step = 1 if one_by_one else MAX_BATCH
    for start in range(0, len(inputs), step):
        batch = inputs[start : start + step]
        outputs = {blob: np.atleast_1d(values) for blob, values in program(**{name: batch}).items()}
        if one_by_one:
            # A table of detections has the image in its rows, and no axis for it.
            yield {blob: values[0] if len(values) == 1 else values for blob, values in outputs.items()}
            continue
        for i in range(len(batch)):
            yield {blob: values[i] for blob, values in outputs.items()}


def _pair(text: str | None, option: str) -> tuple[int, int] | None:
    value = arguments.per_axis(text, option)
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else value
    if len(pair) != 2 or min(pair) < 1:
        raise typer.BadParameter(f"{text!r} is no size, as 224 or 480x640", param_hint=option)
    return pair[0], pair[1]


def _mean(text: str | None) -> Any:
    """A file, or numbers."""
    if text is None or Path(text).is_file() or text.endswith((".npy", ".binaryproto")):
        return text
    return arguments.numbers(text, "--mean")
