"""astride run: which files are images, and how they become inputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride, stripes
from tests.cv2dnn.generated import conv, data, ip, layer

from astride.caffe import load_caffe
from astride.cli._inputs import expand
from astride.cli._recipe import CUSTOMS, customary
from astride.errors import ModelFileError

RUN = ("run", "deploy.prototxt", "stripes_iter_30.caffemodel")
SCALE = ("--scale", 1 / 255)


def picture(path: Path, label: int = 0) -> Path:
    images, labels = stripes(20, 5)
    image = images[list(labels).index(label), 0]
    path.parent.mkdir(exist_ok=True)
    Image.fromarray((np.clip(image, 0, 1) * 255).astype(np.uint8)).save(path)
    return path


# Files


def test_folders_lists_and_frames(shop: Path) -> None:
    for i in (1, 2, 10):
        picture(Path(f"frames/f{i}.png"), i % 2)
    Path("frames/notes.txt").write_text("not an image")
    Path("list.txt").write_text("f10.png 1\nf2.png 0\n\nframes/f1.png\n")
    Path("frames/list.txt").write_text("f10.png 1\nf2.png 0\n")
    names = ["frames/f1.png", "frames/f2.png", "frames/f10.png"]
    for given, expected in (
        ("frames", names),
        ("frames/f%d.png", names),
        ("frames/f%02d.png", names),
        ("frames/list.txt", ["frames/f10.png", "frames/f2.png"]),
    ):
        results = astride(*RUN, given, *SCALE, "--top", 1, "--json").data()["results"]
        assert [result["image"] for result in results] == expected
        assert [result["top"][0]["class"] for result in results] == [int(Path(name).stem[1:]) % 2 for name in expected]
    assert [str(path) for path in expand([Path("list.txt")])] == ["f10.png", "f2.png", "frames/f1.png"]


@pytest.mark.parametrize("given", ["empty", "none.txt", "bad.txt", "blank.txt", "empty/f%d.png"])
def test_where_there_are_no_images(shop: Path, given: str) -> None:
    Path("empty").mkdir()
    Path("bad.txt").write_bytes(b"\xff\xfe\x00")
    Path("blank.txt").write_text("\n\n")
    with pytest.raises(ModelFileError):
        expand([Path(given)])
    assert "error:" in astride(*RUN, given, status=1).err


def test_a_frame_that_cannot_be_read_does_not_stop_the_others(shop: Path) -> None:
    for i in (1, 2, 3):
        picture(Path(f"frames/f{i}.png"), i % 2)
    Path("frames/f2.png").write_bytes(Path("frames/f1.png").read_bytes()[:60])
    done = astride(*RUN, "frames", "gone.png", *SCALE, "--top", 1, "--json", "--save", "out.npz", status=1)
    data = done.data()
    assert [result["image"] for result in data["results"]] == ["frames/f1.png", "frames/f3.png"]
    assert [one["image"] for one in data["failed"]] == ["frames/f2.png", "gone.png"]
    assert "there is no such image file" in data["failed"][1]["error"] and data["failed"][1]["error"] in done.err
    assert "error: not an image that can be read" in done.err and "2 of 4 files could not be read" in done.err
    with np.load("out.npz") as found:
        assert found["images"].tolist() == ["frames/f1.png", "frames/f3.png"] and found["prob"].shape == (2, 2)
    drawn = astride(*RUN, "frames", *SCALE, "--save", "drawn", status=1)
    assert sorted(p.name for p in Path("drawn").iterdir()) == ["f1.png", "f3.png"] and "f3.png  prob" in drawn.out
    alone = astride(*RUN, "frames/f2.png", "--save", "none.npz", status=1)
    assert alone.out == "" and not Path("none.npz").exists()


# Recipes


def transform(**fields: Any) -> str:
    said = " ".join(f"{name}: {value}" for name, value in fields.items())
    return f'name: "samples" type: "Data" top: "data" top: "label" transform_param {{ {said} }}'


def preparation(*words: object) -> Any:
    return astride(*RUN, "a.png", "--json", *words).data()["preparation"]


def test_a_training_text_beside_the_network(shop: Path) -> None:
    picture(Path("a.png"))
    text = Path("net.prototxt").read_text()
    first = text.index("layer {")
    rest = text[text.index('layer { name: "conv"') :]
    Path("train_val.prototxt").write_text(f"{text[:first]}layer {{ {transform(scale=0.5, mean_value=7, crop_size=6)} }}\n{rest}")
    found = preparation()
    assert (found["scale"], found["mean"], found["crop"]) == (0.5, "7", [6, 6])
    assert found["sources"]["scale"] == "transform_param in train_val.prototxt"
    assert "from transform_param in train_val.prototxt" in astride(*RUN, "a.png").err
    flagged = preparation("--scale", 0.25)
    assert flagged["scale"] == 0.25 and flagged["sources"]["scale"] == "flag" and flagged["mean"] == "7"
    assert preparation("--recipe", "none")["scale"] == 1.0
    other = rest.replace('"conv"', '"conv_other"').replace('"ip"', '"ip_other"')
    Path("train_val.prototxt").write_text(f"layer {{ {transform(scale=0.5)} }}\n{other}")
    assert preparation()["scale"] == 1.0, "another network's"


def test_a_mean_file_beside_the_network(shop: Path) -> None:
    picture(Path("a.png"))
    np.save("stripes_mean.npy", np.full((1, 8, 8), 25, np.float32))
    found = preparation()
    assert (found["mean"], found["size"], found["crop"]) == ("stripes_mean.npy", [8, 8], [6, 6])
    np.save("color_mean.npy", np.zeros((3, 8, 8), np.float32))
    assert preparation()["mean"] == "stripes_mean.npy", "the other has other channels"
    np.save("other_mean.npy", np.zeros((1, 6, 6), np.float32))
    assert preparation()["mean"] is None, "which of two is not known"


def network(name: str, *, channels: int = 3, side: int = 32, classes: int = 10, more: str = "") -> str:
    body = data(1, channels, side, side) + conv("c", "data", 2, 3, stride=8)
    return f'name: "{name}"\n' + body + ip("fc", "c", classes) + layer("prob", "Softmax", "fc", "prob") + more


@pytest.mark.parametrize(
    ("text", "custom"),
    [
        (network("MOBILENET_V2"), "mobilenet"),
        (network("DENSENET_121"), "mobilenet"),
        (network("VGG_ILSVRC_16_layers"), "vgg"),
        (network("GoogleNet"), "imagenet"),
        (network("any", classes=1000), "imagenet"),
        (network("CaffeNet", side=227, classes=8), "age-gender"),
        (network("CaffeNet", side=227), "imagenet"),
        (network("LeNet", channels=1, side=28), "lenet"),
        (network("ONet"), "mtcnn"),
        (network("mine"), None),
        (network("VGG grey", channels=1), None),
    ],
)
def test_what_is_customary(text: str, custom: str | None) -> None:
    found = customary(load_caffe(text))
    assert (None if found is None else found.name) == custom


def test_every_custom_is_a_recipe(shop: Path) -> None:
    Path("color.prototxt").write_text(network("mine", side=224))
    load_caffe("color.prototxt").save("color.caffemodel")
    Image.fromarray(np.zeros((300, 400, 3), np.uint8)).save("a.png")
    run = ("run", "color.prototxt", "color.caffemodel", "a.png")
    for custom in CUSTOMS:
        found = astride(*run, "--recipe", custom.name, "--json").data()["preparation"]
        assert found["scale"] == custom.values.get("scale", 1.0)
        if "size" in custom.values:
            assert found["size"] == [256, 256] and found["crop"] == [224, 224]
    done = astride(*run, "--recipe", "vgg")
    assert "minus 103.939,116.779,123.68, centre 224x224" in done.err.replace("\n", " ") and "VGG's authors" in done.err
    assert "none of" not in done.err
    assert "--recipe" in astride(*run, "--recipe", "nosuch", status=2).err


def test_names_of_classes_beside_the_network(shop: Path) -> None:
    picture(Path("a.png"), 1)
    Path("synset_words.txt").write_text("n01440764 vertical, upright\nn01443537 horizontal\n")
    top = astride(*RUN, "a.png", *SCALE, "--json").data()["results"][0]["top"]
    assert {t["class"]: t["label"] for t in top} == {0: "vertical, upright", 1: "horizontal"}
    Path("mine.txt").write_text("up\nacross\n")
    assert astride(*RUN, "a.png", *SCALE, "--labels", "mine.txt", "--json").data()["results"][0]["top"][0]["label"] == "across"
    Path("labelmap.prototxt").write_text('item { name: "x" label: 1 display_name: "flat" } item { name: "u" label: 0 }')
    done = astride(*RUN, "a.png", *SCALE, "--labels", "labelmap.prototxt", "--json")
    assert [t["label"] for t in done.data()["results"][0]["top"]] == ["flat", "u"]


def test_a_file_of_names_that_cannot_be_read(shop: Path) -> None:
    """It only stands there; one that is asked for is an error."""
    picture(Path("a.png"), 1)
    Path("labels.txt").write_bytes(b"\xff\xfe")
    assert astride(*RUN, "a.png", "--json").data()["results"][0]["top"][0]["label"] is None
    assert "labels cannot be read" in astride(*RUN, "a.png", "--labels", "labels.txt", status=1).err


def test_the_manual_lists_every_custom(root: Path) -> None:
    text = (root / "docs" / "running.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w[\w-]*)` \|", text, re.MULTILINE) == [custom.name for custom in CUSTOMS]
