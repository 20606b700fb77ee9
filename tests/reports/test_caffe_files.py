"""Field reports about Caffe's files and about what its layers compute: each with the values its reporter should get."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride import proto
from astride.caffe import load_caffe
from astride.caffe.convert import upgrade_file
from astride.caffe.dialects import schema
from astride.errors import ModelFileError, PrototxtError
from astride.layers import LAYERS
from astride.net import Net


def net(shape: str, *layers: str, more: str = "", phase: str = "TEST") -> Net:
    """Layers in a row, each `Type { fields }`, on one input `data` of this shape."""
    text = f'layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: [{shape}] }} }} }}\n'
    bottom = "data"
    for number, layer in enumerate(layers):
        kind, _, fields = layer.partition(" ")
        top = f"l{number}"
        text += f'layer {{ name: "{top}" type: "{kind}" bottom: "{bottom}" {more} top: "{top}" {fields} }}\n'
        bottom = top
    return load_caffe(text, phase=phase, seed=1)


def out(made: Net, *shape: int) -> np.ndarray:
    """What comes out of 1, 2, 3, ... filled row by row."""
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    return next(iter(made.forward(data=x).values()))


BVLC = {
    "AbsVal", "Accuracy", "ArgMax", "BNLL", "BatchNorm", "BatchReindex", "Bias", "Clip", "Concat", "ContrastiveLoss",
    "Convolution", "Crop", "Data", "Deconvolution", "Dropout", "DummyData", "ELU", "Eltwise", "Embed", "EuclideanLoss",
    "Exp", "Filter", "Flatten", "HDF5Data", "HDF5Output", "HingeLoss", "Im2col", "ImageData", "InfogainLoss",
    "InnerProduct", "Input", "LRN", "LSTM", "Log", "MVN", "MemoryData", "MultinomialLogisticLoss", "PReLU", "Parameter",
    "Pooling", "Power", "Python", "RNN", "ReLU", "Reduction", "Reshape", "SPP", "Scale", "Sigmoid",
    "SigmoidCrossEntropyLoss", "Silence", "Slice", "Softmax", "SoftmaxWithLoss", "Split", "Swish", "TanH", "Threshold",
    "Tile", "WindowData",
}  # fmt: skip


def test_caf_04_every_layer_type_of_bvlc_is_known() -> None:
    """LSTMUnit and RNN's inner layers aside, what BVLC's registry has."""
    assert set(LAYERS) >= BVLC


@pytest.mark.parametrize(("size", "kernel", "stride", "pad", "expected"), [
    (112, 3, 2, 0, 56), (112, 3, 2, 1, 57), (129, 2, 2, 0, 65), (54, 3, 2, 0, 27), (7, 7, 7, 0, 1), (64, 3, 2, 1, 33),
])  # fmt: skip
def test_caf_06_pooling_sizes_round_up(size: int, kernel: int, stride: int, pad: int, expected: int) -> None:
    fields = f"kernel_size: {kernel} stride: {stride} pad: {pad}"
    made = net(f"1, 1, {size}, {size}", f"Pooling pooling_param {{ {fields} }}")
    assert made.blobs["l0"].shape == (1, 1, expected, expected)
    floor = net("1, 1, 64, 64", "Pooling pooling_param { kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR }")
    assert floor.blobs["l0"].shape[-1] == 32


def test_caf_09_convolution_rounds_down_and_pooling_up() -> None:
    convolution = net("1, 1, 64, 64", "Convolution convolution_param { num_output: 1 kernel_size: 3 stride: 2 pad: 1 }")
    pooling = net("1, 1, 64, 64", "Pooling pooling_param { kernel_size: 3 stride: 2 pad: 1 }")
    assert (convolution.blobs["l0"].shape[-1], pooling.blobs["l0"].shape[-1]) == (32, 33)


def test_caf_11_the_divisor_counts_the_padding() -> None:
    made = net("1, 1, 5, 5", "Pooling pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 }")
    y = made.forward(data=np.ones((1, 1, 5, 5), np.float32))["l0"][0, 0]
    np.testing.assert_allclose([y[0, 0], y[0, 2], y[2, 2]], [4 / 9, 6 / 9, 1], rtol=1e-6)


def test_caf_12_the_last_window_counts_to_the_padded_edge() -> None:
    made = net("1, 1, 4, 4", "Pooling pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }")
    expected = [[14 / 9, 10 / 3, 2], [19 / 3, 11, 6], [4.5, 7.5, 4]]
    np.testing.assert_allclose(out(made, 1, 1, 4, 4)[0, 0], expected, rtol=1e-6)


def test_caf_13_one_window_of_the_whole() -> None:
    assert net("1, 1024, 7, 7", "Pooling pooling_param { pool: AVE kernel_size: 7 stride: 7 }").blobs["l0"].shape == (
        1,
        1024,
        1,
        1,
    )


def test_caf_14_a_forks_ceil_mode() -> None:
    pool = "Pooling pooling_param { kernel_size: 3 stride: 2 pad: 1 CEIL }"
    sizes = [
        net("1, 1, 112, 112", pool.replace("CEIL", word)).blobs["l0"].shape[-1]
        for word in ("", "ceil_mode: false", "ceil_mode: true")
    ]
    assert sizes == [57, 56, 57]


def test_caf_16_batch_norm_divides_by_its_third_blob() -> None:
    made = net("1, 2, 2, 2", "BatchNorm batch_norm_param { use_global_stats: true }")
    for parameter, values in zip(made.params["l0"], ([1, 2], [4, 9], [0.5]), strict=True):
        parameter.data[...] = values
    expected = [-0.35355, 0, 0.35355, 0.70711, 0.2357, 0.4714, 0.70711, 0.94281]
    np.testing.assert_allclose(out(made, 1, 2, 2, 2).reshape(-1), expected, atol=1e-5)
    made.params["l0"][2].data[...] = 0
    assert np.isfinite(out(made, 1, 2, 2, 2)).all()


def test_caf_21_local_response_within_a_channel() -> None:
    fields = "LRN lrn_param { local_size: 3 alpha: 1 beta: 0.75 norm_region: WITHIN_CHANNEL }"
    x = np.tile(np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4), (1, 2, 1, 1))
    y = net("1, 2, 4, 4", fields).forward(data=x)["l0"]
    np.testing.assert_allclose(y[0, 0, 0], [0.2039, 0.2654, 0.3083, 0.4923], atol=1e-4)


def test_caf_22_crop_by_an_offset() -> None:
    text = "".join(
        f'layer {{ name: "{n}" type: "Input" top: "{n}" input_param {{ shape {{ dim: [1, 1, {s}, {s}] }} }} }}'
        for n, s in (("data", 4), ("like", 2))
    )
    text += "force_backward: true "
    text += 'layer { name: "c" type: "Crop" bottom: "data" bottom: "like" top: "c" crop_param { axis: 2 offset: 1 } }'
    made = load_caffe(text)
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    assert made.forward(data=x, like=np.zeros((1, 1, 2, 2)))["c"].reshape(-1).tolist() == [6, 7, 10, 11]
    gradients = made.backward(c=np.ones((1, 1, 2, 2), np.float32))
    assert gradients["data"].sum() == 4 and (gradients["data"][0, 0, 1:3, 1:3] == 1).all()


def test_caf_24_reductions() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    for operation, expected in (
        ("MEAN", [5.0, 17.0]),
        ("SUM", [30.0, 102.0]),
        ("ASUM", [30.0, 102.0]),
        ("SUMSQ", [110.0, 902.0]),
    ):
        made = net("1, 2, 2, 3", f"Reduction reduction_param {{ operation: {operation} axis: 2 coeff: 2 }}")
        assert made.forward(data=x)["l0"].reshape(-1).tolist() == expected


AGES = {
    "V0": """layers { layer { name: "pad" type: "padding" pad: 1 } bottom: "data" top: "pad" }
             layers { layer { name: "conv" type: "conv" num_output: 2 kernelsize: 3 } bottom: "pad" top: "conv" }""",
    "V1": """layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv"
             convolution_param { num_output: 2 kernel_size: 3 pad: 1 } }""",
    "V2": """layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
             convolution_param { num_output: 2 kernel_size: 3 pad: 1 } }""",
}


@pytest.mark.parametrize("age", AGES)
def test_caf_29_networks_of_every_age(age: str, tmp_path: Path) -> None:
    """The same network, weights and output from text and binary of all three formats; old blobs have four dimensions."""
    draw = np.random.default_rng(29)
    w, b = draw.standard_normal((2, 3, 3, 3)).astype("f4"), np.array([3, -2], "f4")
    x = draw.standard_normal((1, 3, 5, 5)).astype("f4")
    text = 'input: "data" input_dim: [1, 3, 5, 5]\n' + AGES[age]
    message = proto.parse(text, "NetParameter").message
    old = age != "V2"
    blobs = [
        proto.BlobArray((2, 3, 3, 3), w, legacy=old),
        proto.BlobArray((1, 1, 1, 2), b.reshape(1, 1, 1, 2), legacy=True) if old else b,
    ]
    layers = message.layers or message.layer
    holders = [layer.layer if age == "V0" else layer for layer in layers]
    proto.write_caffemodel(tmp_path / "n.caffemodel", message, [blobs if holder.name == "conv" else [] for holder in holders])
    made = load_caffe(text, tmp_path / "n.caffemodel")
    current = load_caffe('input: "data" input_dim: [1, 3, 5, 5]\n' + AGES["V2"])
    for parameter, values in zip(current.params["conv"], (w, b), strict=True):
        parameter.data[...] = values
    np.testing.assert_array_equal(made.forward(data=x)["conv"], current.forward(data=x)["conv"])
    assert [node.name for node in made.nodes if node.layer is not None][-1] == "conv"


def test_caf_31_comments_survive_an_upgrade(tmp_path: Path) -> None:
    (tmp_path / "old.prototxt").write_text(
        '# VGG, 2014\ninput: "data" input_dim: [1, 3, 5, 5]\n' + AGES["V1"] + "  # the first\n# end\n"
    )
    upgrade_file(tmp_path / "old.prototxt", tmp_path / "new.prototxt")
    text = (tmp_path / "new.prototxt").read_text()
    assert all(comment in text for comment in ("# VGG, 2014", "# the first", "# end")) and "layers" not in text
    assert load_caffe(text).blobs["conv"].shape == (1, 2, 5, 5)


def test_caf_34_more_than_protobuf_can_hold_is_refused_at_once(tmp_path: Path) -> None:
    """The reader by the declared size, before any memory; the writer before the first byte, with what to do instead."""
    with pytest.raises(ModelFileError, match="cut off"):
        proto.read_caffemodel(b"\xa2\x06\xff\xff\xff\xff\x07\x3a")
    made = proto.parse('layer { name: "a" }', "NetParameter").message
    with pytest.raises(ModelFileError, match="protobuf files end at") as caught:
        proto.write_caffemodel(tmp_path / "n", made, [[np.broadcast_to(np.float32(1), (2**29,))]])
    assert "HDF5" in str(caught.value.hint) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("legacy", [True, False])
def test_caf_35_mean_files_in_either_form(legacy: bool, tmp_path: Path) -> None:
    mean = np.arange(60, dtype="f4").reshape(1, 3, 5, 4)
    proto.write_blob(tmp_path / "mean.binaryproto", mean, legacy=legacy)
    raw = (tmp_path / "mean.binaryproto").read_bytes()
    assert raw.startswith(b"\x08\x01\x10\x03") == legacy
    read = proto.read_blob(raw)
    assert read.shape == (1, 3, 5, 4)
    np.testing.assert_array_equal(read.data, mean)


def test_caf_39_half_precision_of_nvcaffe() -> None:
    message = schema("nvcaffe").message("NetParameter")()
    layer = message.layer.add(name="ip", type="InnerProduct")
    for values in ([[1, 2, 0.5]], [3]):
        array = np.array(values, "<f2")
        blob = layer.blobs.add(raw_data_type=2, raw_data=array.tobytes())
        blob.shape.dim.extend(array.shape)
    made = load_caffe(
        'input: "data" input_dim: [1, 3, 1, 1] layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"'
        " inner_product_param { num_output: 1 } }",
        message.SerializeToString(),
    )
    assert made.params["ip"][0].data.tolist() == [[1, 2, 0.5]] and made.params["ip"][0].data.dtype == np.float32
    assert out(made, 1, 3, 1, 1).tolist() == [[1 + 4 + 1.5 + 3]]


def test_caf_53_fields_of_ones_own(tmp_path: Path) -> None:
    """No build, no path to a library: the field is known from the .proto file that declares it."""
    (tmp_path / "own.proto").write_text(
        "message LayerParameter { optional MineParameter mine_param = 900; } message MineParameter { optional float low = 1; }"
    )
    text = 'input: "data" input_dim: [1, 1, 1, 1] layer { name: "r" type: "ReLU" bottom: "data" top: "r" mine_param { low: 2 } }'
    with pytest.raises(PrototxtError, match="LayerParameter has no field mine_param"):
        load_caffe(text)
    assert "low: 2" in load_caffe(text, dialect=str(tmp_path / "own.proto")).to_prototxt()
