"""Crop layers of texts older than Caffe's own: what they would be cut from, and what is said of it."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from astride.caffe import load_caffe
from astride.caffe.dialects.choose import read_binary
from astride.errors import ArgumentError
from astride.net import Net
from astride.proto import parse


def data(size: str) -> str:
    return f'layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: [1, 1, {size}] }} }} }}\n'


def window(name: str, bottom: str, fields: str, kind: str = "Convolution") -> str:
    what = "pooling_param" if kind == "Pooling" else "convolution_param"
    more = "" if kind == "Pooling" else "num_output: 1"
    return f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{name}" {what} {{ {more} {fields} }} }}\n'


def crop(bottom: str, like: str, fields: str = "", name: str = "crop") -> str:
    return f'layer {{ name: "{name}" type: "Crop" bottom: "{bottom}" bottom: "{like}" top: "{name}" {fields} }}\n'


UP = window("up", "pool", "kernel_size: 4 stride: 2", "Deconvolution")
TEXT = (
    data("16, 20")
    + window("conv", "data", "kernel_size: 3 pad: 5 ")
    + window("pool", "conv", "kernel_size: 2 stride: 2", "Pooling")
    + UP
)
"""Position i of data is i + 4 of conv, (i + 4 - 0.5) / 2 of pool, and twice that plus 1.5, i + 5, of up."""


def offsets(net: Net) -> list[tuple[int, ...]]:
    return [node.layer.offsets for node in net.nodes if node.layer.type == "Crop"]  # type: ignore[attr-defined]


def test_the_offset_that_aligns() -> None:
    net = load_caffe(TEXT + crop("up", "data"), dialect="autocrop")
    assert offsets(net) == [(5, 5)] and net.blobs["crop"].shape == (1, 1, 16, 20)


def test_each_axis_has_its_own() -> None:
    text = data("16, 20") + window("c", "data", "kernel_h: 3 kernel_w: 1 pad_h: 4 pad_w: 1 dilation: [2, 1]") + crop("c", "data")
    assert offsets(load_caffe(text, dialect="autocrop")) == [(2, 1)]


def test_a_crop_of_a_crop() -> None:
    text = TEXT + crop("up", "conv", name="first") + crop("first", "data")
    assert offsets(load_caffe(text, dialect="autocrop")) == [(1, 1), (4, 4)]
    said = TEXT + crop("up", "conv", "crop_param { offset: [1, 1] }", name="first") + crop("first", "data")
    assert offsets(load_caffe(said, dialect="autocrop")) == [(1, 1), (4, 4)]


@pytest.mark.parametrize("name", ["hed", "fcn8s", "unet"])
def test_what_was_written_down_later(root: Path, name: str) -> None:
    """The offsets of the published networks in Caffe's own Crop are those that the older one found."""
    text = (root / "examples" / "zoo" / f"{name}.prototxt").read_text()
    expected = [(int(n), int(n)) for n in re.findall(r"crop_param \{[^}]*offset: (\d+)", text)]
    text = re.sub(r"(dim: \d+ dim: \d+ )dim: \d+ dim: \d+", r"\1dim: 188 dim: 188", text, count=1)
    text = re.sub(r"crop_param \{[^}]*\}", "", text)
    text = re.sub(r"num_output: \d{2,}", "num_output: 2", text)
    assert len(expected) > 2 and offsets(load_caffe(text, dialect="autocrop")) == expected


def test_a_text_that_may_be_older_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    net = load_caffe(TEXT + crop("up", "data"))
    assert offsets(net) == [()]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert 'line 5: Crop "crop" gives no offset' in record.getMessage() and "crop_param { offset: 5 }" in record.getMessage()
    assert 'dialect="autocrop"' in record.getMessage()


@pytest.mark.parametrize(
    "text",
    [
        TEXT + crop("up", "data", "crop_param { axis: 2 }"),  # Caffe's own field
        TEXT + crop("up", "data", "crop_param { offset: 0 }"),
        data("16, 20") + window("c", "data", "kernel_size: 3 pad: 1") + crop("c", "data"),  # 0 aligns
        data("16, 20") + window("c", "data", "kernel_size: 3 stride: 2 pad: 20") + crop("c", "data"),  # no offset aligns
        data("16, 20") + data("2, 2").replace('"data"', '"like"') + crop("data", "like"),
    ],
)
def test_others_are_not(text: str, caplog: pytest.LogCaptureFixture) -> None:
    load_caffe(text)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "required"),
    [
        (data("16, 20") + window("c", "data", "kernel_size: 3 stride: 2 pad: 20") + crop("c", "data"), "pixels of one size"),
        (data("16, 20") + window("c", "data", "kernel_size: 3") + crop("c", "data"), "not negative: -1"),
        (data("16, 20") + window("c", "data", "kernel_size: 2 pad: 3") + crop("c", "data"), "whole offset .* 2.5"),
        (data("16, 20") + data("2, 2").replace('"data"', '"like"') + crop("data", "like"), "from one blob"),
    ],
)
def test_what_cannot_be_aligned(text: str, required: str) -> None:
    with pytest.raises(ArgumentError, match=required) as caught:
        load_caffe(text, dialect="autocrop")
    assert caught.value.operator == 'layer "crop" (Crop)' and caught.value.given["line"] == text.count("\n")


def test_bytes_are_never_taken_for_it() -> None:
    """It has no field that bytes could show."""
    message = parse(TEXT + crop("up", "data"), "NetParameter").message
    assert read_binary(message.SerializeToString()).message.layer[4].name == "crop"
