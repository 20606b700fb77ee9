"""astride run: images through a Caffe network, the top classes or any blob out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, print_json

if TYPE_CHECKING:
    from ._classify import Preparation

EXAMPLES = (
    "astride run deploy.prototxt weights.caffemodel cat.jpg dog.jpg --mean 104,117,123 --labels synset_words.txt",
    "astride run deploy.prototxt weights.caffemodel photo.jpg --size 256 --crop 224 --mean mean.binaryproto --top 3",
    "astride run lenet.prototxt lenet_iter_400.caffemodel digit.png --scale 0.00390625 --json",
    "astride run deploy.prototxt weights.caffemodel batch.npy --output pool5 --save features.npz",
)


Prototxt = Annotated[str, typer.Argument(metavar="PROTOTXT", help="The network's text (deploy.prototxt).")]
Weights = Annotated[str, typer.Argument(metavar="WEIGHTS", help="Its weights (.caffemodel).")]
Images = Annotated[
    list[Path], typer.Argument(metavar="IMAGE...", help="Image files, or .npy arrays (N,C,H,W), (C,H,W) or (H,W).")
]
Mean = Annotated[
    str | None, typer.Option("--mean", metavar="FILE|N,N,N", help="Subtract it: .binaryproto, .npy, or one number per channel.")
]
RawScale = Annotated[
    float | None,
    typer.Option("--raw-scale", metavar="N", help="Multiply before the mean. Default: 255 for image files, 1 for arrays."),
]
Scale = Annotated[float, typer.Option("--scale", metavar="N", help="Multiply after the mean.")]
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
Save = Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Write the output blobs to this .npz file.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Who computes, as reference:loops2.")]


def run(
    prototxt: Prototxt,
    weights: Weights,
    images: Images,
    mean: Mean = None,
    raw_scale: RawScale = None,
    scale: Scale = 1.0,
    size: Size = None,
    crop: Crop = None,
    channel_order: ChannelOrder = None,
    labels: Labels = None,
    top: Top = 5,
    output: Output = None,
    save: Save = None,
    backend: Backend = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """Run a Caffe network on images and print the top classes, or save any of its blobs.

    Image files are prepared as Caffe's own tools do: resized, in the channel order the network learned (blue, green, red
    unless told otherwise), times --raw-scale, minus --mean, cropped, times --scale. Arrays from .npy files are taken as they
    are; only what is asked for is done to them.
    """
    from ..caffe import load_caffe
    from ..settings import use
    from . import _classify as classify

    net = load_caffe(prototxt, weights, python_layers=arguments.python_layers(python_layer))
    name = classify.input_of(net)
    names = classify.read_labels(labels)
    prepared = classify.Preparation.of(
        net.blobs[name].shape,
        mean=_mean(mean),
        raw_scale=raw_scale,
        scale=scale,
        size=_pair(size, "--size"),
        crop=_pair(crop, "--crop"),
        order=channel_order,
    )
    program = net.compile(classify.outputs_of(net, output or []))
    with use(backend=backend):
        found = [(str(path), classify.run_file(program, path, prepared)) for path in images]
    if save is not None:
        classify.save(save, found)
    if json:
        print_json(_as_data(prepared, found, names, top, save))
    else:
        classify.show(prepared, found, names, top, save)


def _as_data(
    prepared: Preparation, found: list[tuple[str, dict[str, Any]]], names: list[str], top: int, save: Path | None
) -> Any:
    from . import _classify as classify

    results = []
    for path, blobs in found:
        for blob, values in blobs.items():
            for i, sample in enumerate(values):
                data: dict[str, Any] = {"image": path, "index": i, "output": blob, "shape": list(sample.shape)}
                if classify.is_scores(sample):
                    data["top"] = [
                        {
                            "class": place,
                            "label": names[place] if place < len(names) else None,
                            "score": float(sample.reshape(-1)[place]),
                        }
                        for place in classify.best(sample, top)
                    ]
                results.append(data)
    return {"preparation": prepared.to_dict(), "results": results, "saved": None if save is None else str(save)}


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
