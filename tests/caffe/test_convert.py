"""Files upgraded and converted: text, binary, comments, legacy blobs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.convert import Kind, convert_file, recognise, upgrade_file
from astride.errors import ArgumentError, AstrideError, ModelFileError, PrototxtError, UnsupportedError
from astride.proto import message, read_caffemodel
from astride.proto.sniff import open_model

from .test_upgrade import LEGACY, V0, V1, V2, recorded
from .texts import CONV_IP

X = np.random.RandomState(0).rand(2, 3, 6, 6)


def legacy_weights(path: Path, format: str) -> None:
    """The weights of V0 or V1 as files of 2014 have them: four dimensions each."""
    net = load_caffe(V2, seed=3)
    file = message("NetParameter")(name="old")
    if format == "V0":
        file.input.append("data")
    for node in net.nodes[1:]:
        layer = file.layers.add()
        if format == "V0":
            layer = layer.layer
            layer.type = {"Convolution": "conv", "Pooling": "pool", "InnerProduct": "innerproduct", "Softmax": "softmax"}[
                node.layer.type
            ]
        layer.name = node.name
        for parameter in node.layer.params:
            shape = (1,) * (4 - len(parameter.shape)) + parameter.shape
            blob = layer.blobs.add(num=shape[0], channels=shape[1], height=shape[2], width=shape[3])
            blob.data.extend(parameter.data.reshape(-1).tolist())
    path.write_bytes(file.SerializeToString())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (V0, Kind.NET_TEXT),
        (V2, Kind.NET_TEXT),
        ('# base_lr: 1\nname: "base_lr: 2" layer { type: "ReLU" }', Kind.NET_TEXT),
        ('net: "x.prototxt"\nbase_lr: 0.1', Kind.SOLVER_TEXT),
        ('net_param { layer { name: "x" } }', Kind.SOLVER_TEXT),
        ("\0\1", Kind.NET_BINARY),
    ],
)
def test_kinds_are_recognised(text: str, kind: Kind) -> None:
    assert recognise(open_model(text.encode(), expect="Caffe file")) is kind


@pytest.mark.parametrize("text", [V0, V1], ids=["V0", "V1"])
def test_upgrade_text(text: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old.prototxt", tmp_path / "new.prototxt"
    old.write_text(text)
    written = upgrade_file(old, new)
    assert new.read_text() == V2.replace('name: "old"\n', 'name: "old"  # 2013\n' if text is V0 else 'name: "old"\n')
    assert (written.kind, written.layers, written.lost) == (Kind.NET_TEXT, 5, []) and len(written.notes) > 1
    load_caffe(new)


def test_upgrade_in_place_and_once_more(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(V1)
    upgrade_file(path, path)
    path.write_text("# mine   \n\n" + path.read_text())
    before = path.read_bytes()
    assert upgrade_file(path, path).notes == [] and path.read_bytes() == before


def test_upgrade_solver(tmp_path: Path) -> None:
    path = tmp_path / "solver.prototxt"
    path.write_text('net: "x"  # the net\nsolver_type: ADAM\n')
    written = upgrade_file(path, tmp_path / "new.prototxt")
    assert written.kind is Kind.SOLVER_TEXT
    assert (tmp_path / "new.prototxt").read_text() == 'net: "x"  # the net\ntype: "Adam"\n'
    with pytest.raises(PrototxtError, match="NetParameter has no field"):
        upgrade_file(path, tmp_path / "other.prototxt", kind=Kind.NET_TEXT)
    assert not (tmp_path / "other.prototxt").exists()


@pytest.mark.parametrize("format", ["V0", "V1"])
def test_upgrade_binary(format: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old.caffemodel", tmp_path / "new.caffemodel"
    legacy_weights(old, format)
    written = upgrade_file(old, new)
    assert written.kind is Kind.NET_BINARY and written.lost == []
    assert any("input data left out" in note.text for note in written.notes) == (format == "V0")
    before, after = read_caffemodel(old), read_caffemodel(new)
    assert [layer.name for layer in after.message.layer] == ["conv", "pool", "ip", "prob"] and not after.message.layers
    assert [[(b.shape, b.legacy) for b in own] for own in after.blobs] == [[(b.shape, True) for b in own] for own in before.blobs]
    # Caffe tells (1, 1, 1, 5) for (5,) from a misfit by these fields.
    assert after.message.layer[2].blobs[1].width == 5 and not after.message.layer[2].blobs[1].HasField("shape")
    outputs = [load_caffe(V2, path).forward(data=X)["prob"] for path in (old, new)]
    np.testing.assert_array_equal(*outputs)
    assert upgrade_file(new, tmp_path / "again.caffemodel").notes == []
    assert (tmp_path / "again.caffemodel").read_bytes() == new.read_bytes()


@recorded
@pytest.mark.parametrize("version", ["v0", "v1"])
def test_upgrade_recorded_files(version: str, tmp_path: Path) -> None:
    upgrade_file(LEGACY / f"{version}.prototxt", tmp_path / "net.prototxt")
    assert (tmp_path / "net.prototxt").read_bytes() == (LEGACY / f"{version}_upgraded.prototxt").read_bytes()
    upgrade_file(LEGACY / f"{version}.caffemodel", tmp_path / "net.caffemodel")
    convert_file(tmp_path / "net.caffemodel", tmp_path / "of_weights.prototxt")
    assert (tmp_path / "of_weights.prototxt").read_bytes() == (tmp_path / "net.prototxt").read_bytes()


def test_unknown_fields_are_told(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(V1.replace("num_output: 4", "num_output: 4 fork: 1"))
    with pytest.raises(PrototxtError, match="fork"):
        upgrade_file(path, tmp_path / "new.prototxt")
    written = upgrade_file(path, tmp_path / "new.prototxt", allow_unknown_fields=True)
    assert [(note.line, note.text[:13]) for note in written.lost] == [(10, "fork left out")]


def test_text_with_weights_to_binary(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(V1)
    legacy_weights(tmp_path / "w.caffemodel", "V1")
    written = convert_file(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", weights=tmp_path / "w.caffemodel")
    assert any("weights of 2 layers" in note.text for note in written.notes) and written.lost == []
    file = read_caffemodel(tmp_path / "net.caffemodel")
    assert [len(own) for own in file.blobs] == [0, 1, 0, 2, 0] and file.message.layer[1].convolution_param.num_output == 4
    np.testing.assert_array_equal(
        load_caffe(V2, tmp_path / "net.caffemodel").forward(data=X)["prob"], load_caffe(V2, seed=3).forward(data=X)["prob"]
    )
    convert_file(tmp_path / "net.caffemodel", tmp_path / "back.prototxt")
    assert (tmp_path / "back.prototxt").read_text() == V2


def test_weights_without_a_place_are_told(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(CONV_IP)
    legacy_weights(tmp_path / "w.caffemodel", "V1")
    text = V1.replace('name: "ip"', 'name: "fc"')
    (tmp_path / "other.prototxt").write_text(text)
    written = convert_file(tmp_path / "other.prototxt", tmp_path / "o.caffemodel", weights=tmp_path / "w.caffemodel")
    assert [note.text for note in written.lost] == ["weights left out, as the text has no such layers: ip"]


def test_blobs_in_text(tmp_path: Path) -> None:
    net = load_caffe(V2, seed=4)
    net.save(tmp_path / "w.caffemodel")
    bare = convert_file(tmp_path / "w.caffemodel", tmp_path / "bare.prototxt")
    count = sum(parameter.count for parameter in net.learnable)
    assert bare.notes[-1].text.startswith(f"{count} numbers of weights left out") and bare.lost == []
    assert (tmp_path / "bare.prototxt").read_text() == V2
    convert_file(tmp_path / "w.caffemodel", tmp_path / "full.prototxt", with_blobs=True)
    np.testing.assert_array_equal(load_caffe(tmp_path / "full.prototxt").forward(data=X)["prob"], net.forward(data=X)["prob"])
    convert_file(tmp_path / "full.prototxt", tmp_path / "again.caffemodel")
    assert (tmp_path / "again.caffemodel").read_bytes() == (tmp_path / "w.caffemodel").read_bytes()


def test_fields_of_forks_come_along(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(
        'input: "x" input_dim: [1, 2, 3, 4]'
        'layer { name: "p" type: "Permute" bottom: "x" top: "p" permute_param { order: [0, 2, 3, 1] } }'
    )
    convert_file(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")
    convert_file(tmp_path / "net.caffemodel", tmp_path / "back.prototxt")
    assert load_caffe(tmp_path / "back.prototxt").blobs["p"].shape == (1, 3, 4, 2)


def test_too_many_numbers_for_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astride.caffe.convert.MAX_TEXT_BYTES", 1000)
    load_caffe(V2).save(tmp_path / "w.caffemodel")
    with pytest.raises(ModelFileError, match="too many for a text"):
        convert_file(tmp_path / "w.caffemodel", tmp_path / "full.prototxt", with_blobs=True)


@pytest.mark.parametrize(
    ("target", "error", "problem"),
    [
        ("net.onnx", UnsupportedError, "ONNX"),
        ("net", ArgumentError, "does not say what it is to hold"),
        ("missing/net.caffemodel", ModelFileError, "create the folder first"),
    ],
)
def test_targets_that_cannot_be(target: str, error: type[AstrideError], problem: str, tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(V2)
    with pytest.raises(error, match=problem):
        convert_file(tmp_path / "net.prototxt", tmp_path / target)


def test_sources_that_cannot_be(tmp_path: Path) -> None:
    for content, problem in ((b"<html><body>", "an HTML page"), (b"", "is empty"), (b"\x08\x01\x10\x02", "is no network")):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ModelFileError, match=problem):
            upgrade_file(tmp_path / "x", tmp_path / "y.prototxt")
    (tmp_path / "solver.prototxt").write_text('net: "x"')
    with pytest.raises(ArgumentError, match="only networks have a binary form"):
        convert_file(tmp_path / "solver.prototxt", tmp_path / "y.caffemodel")
    assert not list(tmp_path.glob("y*"))
