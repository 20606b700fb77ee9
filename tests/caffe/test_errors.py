"""Errors by example: what a user sees for the mistakes that users make."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, AstrideError, ModelFileError, PrototxtError, UnknownLayerError

from .texts import CONV_IP

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc123\nsize 243862414\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>"


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("net.caffemodel", "x")
    return buffer.getvalue()


def test_unknown_layers_all_at_once() -> None:
    text = CONV_IP + 'layer { name: "n" type: "Lrnn" bottom: "ip" top: "n" }\n'
    text += 'layer { name: "p" type: "Polling" bottom: "ip" top: "p" }'
    with pytest.raises(UnknownLayerError, match="2 layers are of types that are not known here") as caught:
        load_caffe(text)
    assert caught.value.unknown == [(21, 19, "n", "Lrnn"), (22, 19, "p", "Polling")]
    shown = str(caught.value)
    assert 'line 21, column 19: layer "n" of type "Lrnn"' in shown
    assert 'line 22, column 19: layer "p" of type "Polling", perhaps Pooling' in shown
    assert " Accuracy, " in shown and " Convolution, " in shown


def test_unknown_layers_of_the_other_phase_do_not_matter() -> None:
    text = CONV_IP + 'layer { name: "n" type: "Mystery" bottom: "ip" top: "n" include { phase: TRAIN } }'
    assert load_caffe(text).outputs == ["prob"]
    with pytest.raises(UnknownLayerError, match="a layer is of a type that is not known here"):
        load_caffe(text, phase="TRAIN")


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(PrototxtError) as caught:
        load_caffe(CONV_IP.replace('name: "relu"', 'name "relu"'))
    assert (caught.value.line, caught.value.column) == (12, 14)


@pytest.mark.parametrize(("content", "name"), [(HTML, "an HTML page"), (LFS, "a Git LFS pointer"), (archive(), "a zip archive")])
def test_a_file_that_is_something_else(content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.caffemodel"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=name) as caught:
        load_caffe(CONV_IP, path)
    assert caught.value.hint and str(path) in str(caught.value)
    with pytest.raises(ModelFileError, match=name):
        load_caffe(path)


def test_a_pointer_names_what_it_points_to() -> None:
    with pytest.raises(ModelFileError, match="oid sha256:abc123, size 243862414") as caught:
        load_caffe(CONV_IP, LFS)
    assert caught.value.hint == "git lfs pull"


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"there is no file .*deploy\.prototxt"):
        load_caffe(tmp_path / "deploy.prototxt")
    with pytest.raises(ModelFileError, match=r"there is no file .*weights\.caffemodel"):
        load_caffe(CONV_IP, tmp_path / "weights.caffemodel")


def test_files_the_wrong_way_round(tmp_path: Path) -> None:
    weights = tmp_path / "w.caffemodel"
    load_caffe(CONV_IP).save(weights)
    with pytest.raises(ModelFileError, match="a prototxt"):
        load_caffe(CONV_IP, CONV_IP)
    with pytest.raises(ModelFileError, match="binary"):
        load_caffe(weights)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    """Layer and both shapes, all layers in one message, and how to go on."""
    weights = tmp_path / "w.caffemodel"
    load_caffe(CONV_IP).save(weights)
    with pytest.raises(ModelFileError, match="do not fit the network") as caught:
        load_caffe(CONV_IP.replace("num_output: 4", "num_output: 6"), weights)
    shown = str(caught.value)
    assert 'layer "conv" (Convolution), parameter 0: network (6, 3, 3, 3), file (4, 3, 3, 3)' in shown
    assert 'layer "ip" (InnerProduct), parameter 0: network (5, 96), file (5, 64)' in shown
    assert "another name" in shown and "allow_missing=True" in shown
    with pytest.raises(ModelFileError, match=r'layer "conv" .* has 1 parameters, the file 2'):
        load_caffe(CONV_IP.replace("num_output: 4", "num_output: 4 bias_term: false"), weights)


def test_missing_layers_are_listed(tmp_path: Path) -> None:
    weights = tmp_path / "w.caffemodel"
    load_caffe(CONV_IP).save(weights)
    renamed = CONV_IP.replace('name: "ip"', 'name: "fc"').replace('name: "conv"', 'name: "conv0"')
    with pytest.raises(ModelFileError, match="lacks weights of 2 of the network's 2 layers") as caught:
        load_caffe(renamed, weights)
    assert '"conv0" (Convolution)' in str(caught.value) and "2 layers with weights: conv, ip" in str(caught.value)
    assert load_caffe(renamed, weights, allow_missing=True).outputs == ["prob"]


def test_a_truncated_file(tmp_path: Path) -> None:
    weights = tmp_path / "w.caffemodel"
    load_caffe(CONV_IP).save(weights)
    whole = weights.read_bytes()
    for size in (1, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ModelFileError):
            load_caffe(CONV_IP, whole[:size])


def test_a_layers_error_says_where() -> None:
    text = CONV_IP.replace("kernel_size: 3", "kernel_size: 9")
    with pytest.raises(ArgumentError, match=r'layer "conv" \(Convolution\)') as caught:
        load_caffe(text)
    assert caught.value.given["line"] == 5 and caught.value.given['bottom "data"'] == (2, 3, 6, 6)


def test_a_wrong_filler_says_where() -> None:
    with pytest.raises(ArgumentError, match=r'layer "conv" \(Convolution\): there is no filler of that type') as caught:
        load_caffe(CONV_IP.replace("xavier", "xaver"))
    assert caught.value.given["line"] == 5


@pytest.mark.parametrize("size", ["99999999999", "70000", "-1"])
def test_sizes_no_network_has(size: str) -> None:
    with pytest.raises(AstrideError, match="no blob has such a shape"):
        load_caffe(CONV_IP.replace("dim: 6 dim: 6", f"dim: {size} dim: 70000"))


def test_memory_is_refused_before_it_is_taken() -> None:
    with pytest.raises(ArgumentError, match="more memory than it may take") as caught:
        load_caffe(CONV_IP.replace("num_output: 5", "num_output: 20000000"), max_memory=2**30)
    assert 'layer "ip"' in str(caught.value)
    net = load_caffe(CONV_IP, max_memory=20_000)
    with pytest.raises(ArgumentError, match="more memory"):
        net.forward(data=np.zeros((500, 3, 6, 6), np.float32))


def test_unknown_v0_layers_all_at_once() -> None:
    text = """input: "d" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { layer { name: "a" type: "convolutin" } bottom: "d" top: "a" }
layers { layer { name: "b" type: "poool" } bottom: "a" top: "b" }
layers { layer { name: "c" type: "relu" } bottom: "b" top: "c" }"""
    with pytest.raises(PrototxtError, match="2 layers are of types that V0 lacks") as caught:
        load_caffe(text)
    shown = str(caught.value)
    assert 'line 2, column 28: layer "a" of type "convolutin"\n' in shown
    assert 'line 3, column 28: layer "b" of type "poool", perhaps pool' in shown
    assert caught.value.line == 2
