from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from astride import proto
from astride.errors import ArgumentError, ModelFileError
from astride.proto.wire_fields import encode_varint

from .samples import NET, weights, write_net

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODELS = sorted(SHARED.rglob("*.caffemodel"))
STATES = sorted(SHARED.rglob("*.solverstate"))


def length(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


def blob(content: bytes, name: bytes = b"conv") -> bytes:
    """A network of one layer with one blob."""
    return length(100, length(1, name) + length(7, content))


def failure(raw: bytes) -> ModelFileError:
    with pytest.raises(ModelFileError) as caught:
        proto.read_caffemodel(raw, name="net.caffemodel")
    return caught.value


def test_round_trip(tmp_path: Path) -> None:
    raw = write_net(tmp_path / "net.caffemodel")
    net = proto.read_caffemodel(tmp_path / "net.caffemodel")
    assert net.message.name == "small"
    assert [layer.name for layer in net.layers] == ["data", "conv", "pool"]
    assert [[blob.shape for blob in blobs] for blobs in net.blobs] == [[], [(4, 3, 3, 3), (4,)], []]
    for blobs, arrays in zip(net.blobs, weights(), strict=True):
        for found, array in zip(blobs, arrays, strict=True):
            assert found.data.dtype == np.float32
            assert not found.data.flags.writeable
            assert found.diff is None
            np.testing.assert_array_equal(found.data, array)
    assert not net.layers[1].blobs[0].data
    assert list(net.layers[1].blobs[0].shape.dim) == [4, 3, 3, 3]
    proto.write_caffemodel(tmp_path / "copy.caffemodel", net.message, net.blobs)
    assert (tmp_path / "copy.caffemodel").read_bytes() == raw


def test_written_bytes_are_protobufs_own(tmp_path: Path) -> None:
    raw = write_net(tmp_path / "net.caffemodel")
    expected = proto.parse(NET, "NetParameter").message
    for layer, arrays in zip(expected.layer, weights(), strict=True):
        for array in arrays:
            entry = layer.blobs.add()
            entry.shape.dim.extend(array.shape)
            entry.data.extend(array.ravel().tolist())
    assert proto.message("NetParameter").FromString(raw) == expected
    assert raw == expected.SerializeToString()
    proto.write_caffemodel(tmp_path / "whole.caffemodel", expected)
    assert (tmp_path / "whole.caffemodel").read_bytes() == raw


@pytest.mark.skipif(not MODELS, reason="no caffemodel in ../shared")
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_real_files(path: Path, tmp_path: Path) -> None:
    raw = path.read_bytes()
    whole = proto.message("NetParameter").FromString(raw)
    net = proto.read_caffemodel(path)
    count = 0
    for layer, blobs in zip(whole.layers or whole.layer, net.blobs, strict=True):
        own = [*layer.blobs, *(layer.layer.blobs if layer.DESCRIPTOR.name == "V1LayerParameter" else ())]
        for expected, found in zip(own, blobs, strict=True):
            np.testing.assert_array_equal(np.array(expected.data, "f4"), found.data.ravel())
            if expected.diff:
                np.testing.assert_array_equal(np.array(expected.diff, "f4"), found.diff.ravel())
            count += 1
    assert count > 0
    proto.write_caffemodel(tmp_path / "copy", net.message, net.blobs)
    copy = proto.read_caffemodel(tmp_path / "copy")
    for before, after in zip(net.blobs, copy.blobs, strict=True):
        for first, second in zip(before, after, strict=True):
            np.testing.assert_array_equal(first.data, second.data)
    if not whole.layers and all(not b.HasField("num") for layer in whole.layer for b in layer.blobs):
        assert (tmp_path / "copy").read_bytes() == raw


@pytest.mark.skipif(not STATES, reason="no solverstate in ../shared")
@pytest.mark.parametrize("path", STATES, ids=lambda path: path.name)
def test_real_solver_states(path: Path, tmp_path: Path) -> None:
    whole = proto.message("SolverState").FromString(path.read_bytes())
    state = proto.read_solverstate(path)
    assert (state.message.iter, state.message.learned_net) == (whole.iter, whole.learned_net)
    for expected, found in zip(whole.history, state.history, strict=True):
        np.testing.assert_array_equal(np.array(expected.data, "f4"), found.data.ravel())
    proto.write_solverstate(tmp_path / "state", state.message, state.history)
    again = proto.read_solverstate(tmp_path / "state")
    assert (again.message.iter, len(again.history)) == (whole.iter, len(whole.history))
    np.testing.assert_array_equal(again.history[0].data, state.history[0].data)


def test_solver_state_round_trip(tmp_path: Path) -> None:
    state = proto.message("SolverState")(iter=7, learned_net="net_iter_7.caffemodel", current_step=2)
    history = [np.ones((2, 3), "f4"), np.zeros((), "f8")]
    proto.write_solverstate(tmp_path / "s.solverstate", state, history)
    back = proto.read_solverstate(tmp_path / "s.solverstate")
    assert (back.message.iter, back.message.learned_net, back.message.current_step) == (7, "net_iter_7.caffemodel", 2)
    assert [(b.shape, b.data.dtype) for b in back.history] == [((2, 3), np.float32), ((), np.float64)]


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_mean_files(tmp_path: Path, legacy: bool, dtype: str, rng: np.random.Generator) -> None:
    mean = rng.standard_normal((1, 3, 4, 5)).astype(dtype)
    proto.write_blob(tmp_path / "mean.binaryproto", mean, legacy=legacy)
    raw = (tmp_path / "mean.binaryproto").read_bytes()
    message = proto.message("BlobProto").FromString(raw)
    assert message.HasField("num") is legacy
    assert message.SerializeToString() == raw
    back = proto.read_blob(tmp_path / "mean.binaryproto")
    assert (back.shape, back.data.dtype) == (mean.shape, mean.dtype)
    np.testing.assert_array_equal(back.data, mean)


def test_diffs_and_doubles(tmp_path: Path, rng: np.random.Generator) -> None:
    single, double = rng.standard_normal((2, 2)).astype("f4"), rng.standard_normal(5)
    net = proto.parse("layer { name: 'a' } layer { name: 'b' }", "NetParameter").message
    blobs = [[proto.BlobArray.of(single, single * 2)], [proto.BlobArray.of(double, double * 3)]]
    proto.write_caffemodel(tmp_path / "n", net, blobs)
    assert (tmp_path / "n").read_bytes() == proto.message("NetParameter").FromString(
        (tmp_path / "n").read_bytes()
    ).SerializeToString()
    (first,), (second,) = proto.read_caffemodel(tmp_path / "n").blobs
    np.testing.assert_array_equal(first.diff, single * 2)
    np.testing.assert_array_equal(second.diff, double * 3)
    assert second.data.dtype == np.float64


@pytest.mark.parametrize("array", [np.arange(12, dtype="f4").reshape(3, 4).T, np.arange(4, dtype=">f4"), np.empty((0, 3), "f4")])
def test_arrays_of_any_layout(tmp_path: Path, array: np.ndarray) -> None:
    proto.write_blob(tmp_path / "b", array)
    np.testing.assert_array_equal(proto.read_blob(tmp_path / "b").data, array)


def test_numbers_written_one_by_one() -> None:
    values = np.arange(1000, dtype="<f4")
    shape = length(7, length(1, encode_varint(1000)))
    single = b"".join(b"\x2d" + value.tobytes() for value in values)
    np.testing.assert_array_equal(proto.read_caffemodel(blob(single + shape)).blobs[0][0].data, values)
    mixed = single[:15] + length(5, values[3:500].tobytes()) + shape + length(5, b"") + single[2500:]
    np.testing.assert_array_equal(proto.read_caffemodel(blob(mixed)).blobs[0][0].data, values)
    doubles = b"".join(b"\x41" + value.astype("<f8").tobytes() for value in values)
    np.testing.assert_array_equal(proto.read_caffemodel(blob(doubles + shape)).blobs[0][0].data, values)


def test_old_dimensions_count_before_the_shape() -> None:
    entry = proto.message("BlobProto")(num=1, channels=1, height=2, width=3, data=[0.0] * 6)
    entry.shape.dim.extend([6])
    assert proto.read_caffemodel(blob(entry.SerializeToString())).blobs[0][0].shape == (1, 1, 2, 3)


def test_a_blob_without_a_shape() -> None:
    message = proto.message("BlobProto")
    assert proto.read_caffemodel(blob(message(data=[1.0]).SerializeToString())).blobs[0][0].shape == ()
    assert proto.read_caffemodel(blob(b"")).blobs[0][0].shape == (0,)
    assert "2 numbers without a shape" in failure(blob(message(data=[1.0, 2.0]).SerializeToString())).problem


def test_old_formats_keep_their_blobs_where_caffe_looks(tmp_path: Path) -> None:
    text = "layers { name: 'v1' type: RELU } layers { layer { name: 'v0' type: 'relu' } }"
    net = proto.parse(text, "NetParameter").message
    proto.write_caffemodel(tmp_path / "n", net, [[np.ones(2, "f4")], [np.zeros(3, "f4"), np.ones(1, "f4")]])
    back = proto.read_caffemodel(tmp_path / "n")
    assert [[b.shape for b in blobs] for blobs in back.blobs] == [[(2,)], [(3,), (1,)]]
    assert [len(layer.blobs) for layer in back.layers] == [1, 0]
    assert len(back.layers[1].layer.blobs) == 2


def test_unknown_fields_of_forks_are_kept() -> None:
    fork = proto.Schema.bvlc().extended("f", {"LayerParameter": "202 extra string"})
    raw = fork.message("NetParameter")(layer=[dict(name="a", extra="kept")]).SerializeToString()
    assert b"kept" in proto.read_caffemodel(raw).message.SerializeToString()
    assert proto.read_caffemodel(raw, schema=fork).message.layer[0].extra == "kept"


@pytest.mark.parametrize(
    ("dims", "count", "problem"),
    [
        ([2, 3], 5, "the shape (2, 3) has 6 elements, its data 5"),
        ([2, -3], 6, "the shape (2, -3) has a negative dimension"),
        ([2**40, 2**40], 1, f"the shape (1099511627776, 1099511627776) has {2**80} elements, its data 1"),
        ([1] * 33, 1, "a shape of 33 axes; Caffe allows 32"),
    ],
)
def test_shapes_that_do_not_fit(dims: list[int], count: int, problem: str) -> None:
    entry = proto.message("BlobProto")(data=[0.0] * count)
    entry.shape.dim.extend(dims)
    assert failure(blob(entry.SerializeToString())).problem == (
        f"net.caffemodel: layer 'conv' (NetParameter.layer[0].blobs[0]): {problem}"
    )


def test_a_diff_that_does_not_fit() -> None:
    entry = proto.message("BlobProto")(data=[0.0] * 3, diff=[0.0] * 2, num=1, channels=1, height=1, width=3)
    assert "has 3 elements, its diff 2" in failure(blob(entry.SerializeToString())).problem


@pytest.mark.parametrize(("kind", "dtype"), [(0, "<f8"), (1, "<f4"), (2, "<f2")])
def test_raw_numbers_of_nvcaffe(kind: int, dtype: str) -> None:
    """CAF-39: 1, 2 and 0.5 in any of the three types; half precision comes as float32."""
    numbers = np.array([1, 2, 0.5], dtype)
    shape = length(7, length(1, b"\x03"))
    types = bytes([10 << 3, kind, 11 << 3, kind])
    read = proto.read_caffemodel(blob(shape + types + length(12, numbers.tobytes()) + length(13, (-numbers).tobytes()))).blobs[0][
        0
    ]
    assert read.data.tolist() == [1, 2, 0.5] and read.data.dtype == ("<f8" if kind == 0 else "<f4")
    assert read.diff is not None and read.diff.tolist() == [-1, -2, -0.5]
    assert not read.data.flags.writeable


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (length(12, bytes(8)), "raw_data has no type"),
        (b"\x50\x03" + length(12, bytes(8)), "raw_data has type 3"),
        (b"\x50\x02" + length(12, bytes(7)), "raw_data is 7 bytes long, no multiple of 2"),
        (b"\x50\x02" + length(12, bytes(6)), "the shape (4,) has 4 elements, its data 3"),
        (b"", "the shape (4,) has 4 elements, its data 0"),
    ],
)
def test_raw_numbers_that_do_not_fit(content: bytes, problem: str) -> None:
    assert problem in failure(blob(length(7, length(1, b"\x04")) + content)).problem


def test_required_fields_may_be_missing_where_only_the_weights_matter() -> None:
    """Ristretto's quantization_param has the number of BVLC's clip_param, whose min and max are required."""
    raw = length(
        100,
        length(1, b"c")
        + length(148, b"\x10\x00")
        + length(7, length(7, length(1, b"\x01")) + length(5, np.float32(7).tobytes())),
    )
    assert "required fields are missing" in failure(raw).problem
    assert proto.read_caffemodel(raw, partial=True).blobs[0][0].data.tolist() == [7]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (length(5, b"12345"), "data is 5 bytes long, no multiple of 4"),
        (length(8, b"1234"), "double_data is 4 bytes long, no multiple of 8"),
        (b"\x29" + bytes(8), "data holds numbers of 8 bytes instead of 4"),
        (encode_varint(5 << 3 | 2) + encode_varint(10**9), "field 5 is 1000000000 bytes long and only 0 follow"),
        (b"\x2d\x00", "field 5 is cut off"),
        (b"\x07", "field number 0, which no message can have"),
        (b"\x0e", "wire type 6, which does not exist"),
        (b"\x0c", "the end of a group that never began"),
        (b"\x0b\x0b\x0c", "a group is never closed"),
        (b"\x0b\x14", "a group is closed by another one's end"),
        (b"\x0b" * 40 + b"\x0c" * 40, "groups are nested too deep"),
        (b"\x08" + b"\xff" * 10, "a number of more than ten bytes"),
    ],
)
def test_damaged_blobs(content: bytes, problem: str) -> None:
    error = failure(blob(content))
    assert f"in layer 'conv' (NetParameter.layer[0].blobs[0]): {problem}" in error.problem
    assert "damaged at byte" in error.problem


def test_strings_that_are_not_utf8() -> None:
    error = failure(length(100, length(1, b"conv") + length(3, b"ab\xff")))
    assert "the string of bottom is not UTF-8" in error.problem
    assert error.given["byte"] == 13


def test_scattered_numbers_are_refused() -> None:
    assert "more than 10000 pieces" in failure(blob(length(5, bytes(4)) * 10_001)).problem


def test_required_fields_are_asked_for() -> None:
    assert "layer[0].clip_param.max" in failure(length(100, length(148, b"\x0d" + bytes(4)))).problem


def test_writing_checks_its_arguments(tmp_path: Path) -> None:
    net = proto.parse(NET, "NetParameter").message
    with pytest.raises(ArgumentError, match="one list of blobs per layer"):
        proto.write_caffemodel(tmp_path / "n", net, [[]])
    with pytest.raises(ArgumentError, match="float32 or float64"):
        proto.write_blob(tmp_path / "n", np.zeros(3, "i4"))
    with pytest.raises(ArgumentError, match="shape and type of its data"):
        proto.BlobArray.of(np.zeros(3, "f4"), np.zeros(3))
    with pytest.raises(ArgumentError, match="four dimensions"):
        proto.write_blob(tmp_path / "n", np.zeros(3, "f4"), legacy=True)
    assert not list(tmp_path.iterdir())


def test_writing_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mean.binaryproto"
    proto.write_blob(path, np.zeros(3, "f4"))
    before = path.read_bytes()

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(ModelFileError, match="No space left on device"):
        proto.write_blob(path, np.ones(9, "f4"))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["mean.binaryproto"]


def test_writing_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        proto.write_blob(tmp_path / "missing" / "b", np.zeros(3, "f4"))
    assert caught.value.hint == "create the folder first"


def test_writing_over_the_file_being_read(tmp_path: Path) -> None:
    path = tmp_path / "net.caffemodel"
    write_net(path)
    net = proto.read_caffemodel(path)
    before = net.blobs[1][0].data.copy()
    proto.write_caffemodel(path, net.message, [[], [net.blobs[1][0].data * 2, net.blobs[1][1]], []])
    np.testing.assert_array_equal(net.blobs[1][0].data, before)
    np.testing.assert_array_equal(proto.read_caffemodel(path).blobs[1][0].data, before * 2)


def test_too_much_for_protobuf_is_refused_before_writing(tmp_path: Path) -> None:
    net = proto.parse("layer { name: 'a' }", "NetParameter").message
    huge = np.broadcast_to(np.float32(1), (2**29,))
    with pytest.raises(ModelFileError) as caught:
        proto.write_caffemodel(tmp_path / "n", net, [[huge]])
    assert "protobuf files end at 2147483647 bytes" in caught.value.problem
    assert caught.value.given["size"] > 2**31
    assert caught.value.hint is not None
    assert not list(tmp_path.iterdir())


MEASURE = """
import re, sys, numpy as np
from astride import proto
proto.parse("name: 'warm'", "NetParameter")
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
before = peak()
net = proto.read_caffemodel(sys.argv[1])
total = sum(float(blob.data.sum()) for blobs in net.blobs for blob in blobs)
print(peak() - before, total)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_of_a_large_file(tmp_path: Path) -> None:
    """70 MiB of weights, all of them read: the peak grows by the mapped file and little else."""
    net = proto.parse("".join(f"layer {{ name: 'l{i}' }}" for i in range(7)), "NetParameter").message
    part = np.ones((10, 256, 1024), "f4")
    path = tmp_path / "large.caffemodel"
    proto.write_caffemodel(path, net, [[part]] * 7)
    size = path.stat().st_size
    assert size > 70 * 2**20
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    grown, total = done.stdout.split()
    assert float(total) == 7 * part.size
    assert int(grown) < 1.3 * size


def sparse(path: Path, size: int) -> int:
    """A file of one layer with one blob of zeros, `size` bytes in all, that takes no room on the disk; returns their count."""

    def opened(number: int, content: int) -> bytes:
        return encode_varint(number << 3 | 2) + encode_varint(content)

    name = length(1, b"fc")
    room = size
    for count in range((size - 64) // 4, 0, -1):
        shape = length(7, length(1, encode_varint(count)))
        blob_size = len(shape) + len(opened(5, 4 * count)) + 4 * count
        layer_size = len(name) + len(opened(7, blob_size)) + blob_size
        head = opened(100, layer_size) + name + opened(7, blob_size) + shape + opened(5, 4 * count)
        if len(head) + 4 * count <= size:
            room = count
            break
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 4 * room)
    return room


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems may fill the holes")
def test_the_largest_file_of_all_is_not_copied(tmp_path: Path) -> None:
    """2 GiB less a byte or so: the reader maps it, and looks only at what it needs."""
    path = tmp_path / "huge.caffemodel"
    count = sparse(path, 2**31 - 1)
    assert path.stat().st_size > 2**31 - 64
    read = proto.read_caffemodel(path).blobs[0][0]
    assert read.shape == (count,) and read.data[-1] == 0
    with path.open("r+b") as file:
        file.truncate(2**31)
    with pytest.raises(ModelFileError, match="too long for a protobuf file"):
        proto.read_caffemodel(path)


LOAD = """
import sys, tracemalloc
from astride.caffe import load_caffe
text = 'input: "data" input_dim: [1, 1024, 1, 1] layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" '
text += 'inner_product_param { num_output: 51200 bias_term: false } }'
net = load_caffe(text)
tracemalloc.start()
from astride.caffe.weights import load_weights
load_weights(net, sys.argv[1])
print(tracemalloc.get_traced_memory()[1], float(net.params["fc"][0].data[-1, -1]))
"""


@pytest.mark.slow
def test_weights_of_200_mib_go_straight_into_the_network(tmp_path: Path) -> None:
    """From the mapped file into the parameter: what is allocated on the way is small."""
    message = proto.parse("layer { name: 'fc' }", "NetParameter").message
    path = tmp_path / "large.caffemodel"
    proto.write_caffemodel(path, message, [[np.broadcast_to(np.float32(3), (51200, 1024))]])
    assert path.stat().st_size > 200 * 2**20
    done = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True)
    peak, last = done.stdout.split()
    assert float(last) == 3 and int(peak) < 2**20
