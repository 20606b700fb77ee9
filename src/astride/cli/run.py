"""astride run: images through a Caffe network; classes, detections, labels of pixels or any blob out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, print_json

if TYPE_CHECKING:
    from ..net import Net

EXAMPLES = (
    "astride run deploy.prototxt weights.caffemodel cat.jpg dog.jpg --labels synset_words.txt",
    "astride run ssd.prototxt ssd.caffemodel street.jpg --threshold 0.4 --save found.png",
    "astride run fcn.prototxt fcn.caffemodel frames/ --save drawn/",
    "astride run deploy.prototxt weights.caffemodel photo.jpg --size 256 --crop 224 --mean mean.binaryproto --top 3",
    "astride run deploy.prototxt weights.caffemodel batch.npy --output pool5 --save features.npz",
    "astride run fast_rcnn.prototxt fast_rcnn.caffemodel photo.jpg --input rois=proposals.npy",
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
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=FILE.npy", help="Another input than that for images, the same for all; may be repeated."
    ),
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
    inputs: Inputs = None,
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

    An input im_info (1, 3), which Faster R-CNN has, is given each image's height, width and scale.

    A file that cannot be read is reported and passed over; the exit status is 1 then.
    """
    from ..caffe import load_caffe
    from ..settings import use
    from . import _preparing as preparing
    from ._findings import Reader
    from ._inputs import expand
    from ._recipe import label_names
    from ._running import Running
    from ._saving import check_target

    net = load_caffe(prototxt, weights, dialect=dialect, python_layers=arguments.python_layers(python_layer))
    more = preparing.arrays_of(net, _arrays(inputs or []))
    info = preparing.info_of(net, more)
    name = preparing.input_of(net, {*more, info})
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
    known = _recipe(net, name, [Path(prototxt), Path(weights)], flags, recipe)
    prepared = preparing.Preparation.of(net.blobs[name].shape, known)
    reader = Reader(net, name, label_names(known.labels), top, threshold)
    outputs = preparing.outputs_of(net, output or [])
    running = Running(net, name, outputs, prepared, reader, save, more, info, quiet=json)
    with use(backend=backend):
        running.run(files)
    if json:
        saved = None if save is None else str(save)
        print_json({"preparation": prepared.to_dict(), "results": running.results, "failed": running.failed, "saved": saved})
    if running.failed:
        raise typer.Exit(1)


def _recipe(net: Net, image: str, files: list[Path], flags: dict[str, Any], wanted: str) -> Any:
    from ._recipe import CUSTOMS, recipe

    names = ["auto", "none", *(custom.name for custom in CUSTOMS)]
    if wanted not in names:
        raise typer.BadParameter(f"there is no recipe {wanted!r}: one of {', '.join(names)}", param_hint="--recipe")
    return recipe(net, image, files, flags, wanted)


def _arrays(given: list[str]) -> dict[str, Path]:
    """`NAME=FILE.npy`: input -> file."""
    found = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not name or not equals or not path.endswith(".npy"):
            raise typer.BadParameter(f"{text!r} is not NAME=FILE.npy", param_hint="--input")
        found[name] = Path(path)
    return found


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
