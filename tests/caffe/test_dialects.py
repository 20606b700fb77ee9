"""The dialects of forks: their numbers, and which of them a file is in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.convert import convert_file
from astride.caffe.dialects import ANY, DIALECTS, FORKS, schema
from astride.caffe.dialects.choose import read_binary, read_text, text_dialect
from astride.errors import ArgumentError, ModelFileError, PrototxtError, UnsupportedError
from astride.proto import Schema
from astride.proto.merge import MOVED

# Written down from the public caffe.proto of each fork, independently of the tables: message, field, number, default.
FACTS = [
    ("ssd", "LayerParameter", "permute_param", 202, None),
    ("ssd", "LayerParameter", "norm_param", 206, None),
    ("ssd", "MultiBoxLossParameter", "code_type", 14, 1),
    ("ssd", "DetectionOutputParameter", "keep_top_k", 7, -1),
    ("ssd", "PriorBoxParameter", "offset", 13, 0.5),
    ("ssd", "TransformationParameter", "distort_param", 13, None),
    ("refinedet", "DetectionOutputParameter", "objectness_score", 24, pytest.approx(0.01)),
    ("faster_rcnn", "LayerParameter", "roi_pooling_param", 8266711, None),
    ("rfcn", "LayerParameter", "psroi_pooling_param", 10001, None),
    ("rfcn", "LayerParameter", "box_annotator_ohem_param", 10000, None),
    ("pspnet", "LayerParameter", "bn_param", 137, None),
    ("pspnet", "LayerParameter", "interp_param", 163, None),
    ("pspnet", "LayerParameter", "scale_param", 160, None),
    ("pspnet", "BNParameter", "momentum", 7, pytest.approx(0.9)),
    ("pspnet", "ConvolutionParameter", "hole_w", 19, 1),
    ("deeplab", "LayerParameter", "interp_param", 153, None),
    ("deeplab", "LayerParameter", "dense_crf_param", 152, None),
    ("segnet", "LayerParameter", "bn_param", 45, None),
    ("segnet", "LayerParameter", "upsample_param", 137, None),
    ("enet", "LayerParameter", "upsample_param", 147, None),
    ("enet", "LossParameter", "normalization", 5, 1),
    ("yolo", "LayerParameter", "reorg_param", 149, None),
    ("yolo", "LayerParameter", "upsample_param", 150, None),
    ("yolo", "UpsampleParameter", "scale", 1, 1),
    ("shufflenet", "LayerParameter", "shuffle_channel_param", 164, None),
    ("flownet", "LayerParameter", "correlation_param", 150, None),
    ("flownet", "CorrelationParameter", "single_direction", 8, 0),
    ("flownet", "ResampleParameter", "antialias", 4, True),
    ("nvcaffe", "BlobProto", "raw_data_type", 10, 0),
    ("nvcaffe", "LayerParameter", "forward_type", 145, 1),
    ("nvcaffe", "ConvolutionParameter", "cudnn_convolution_algo_seeker", 19, 1),
    ("nvcaffe", "ConvolutionParameter", "conv_algos_override", 20, "-1,-1,-1"),
    ("nvcaffe", "DataParameter", "parser_threads", 12, 0),
    ("ristretto", "QuantizationParameter", "exp_max", 12, -1),
    ("openpose", "LayerParameter", "op_transform_param", 149, None),
    ("intel", "PoolingParameter", "kernel_size", 3, None),
    ("intel", "PoolingParameter", "avg_include_pad", 13, True),
    ("intel", "LayerParameter", "roi_pooling_param", 154, None),
    ("ceil_mode", "PoolingParameter", "ceil_mode", 13, True),
    ("yolo2", "LayerParameter", "region_param", 148, None),
    ("yolo2", "LayerParameter", "detection_output_param", 204, None),
    ("yolo2", "DetectionOutputParameter", "classes", 2, 20),
    ("yolo2", "RegionParameter", "boxes_of_each_grid", 3, 5),
    ("rtpose", "LayerParameter", "imresize_param", 148, None),
    ("rtpose", "NmsParameter", "max_peaks", 3, 20),
    ("cambricon", "LayerParameter", "crelu_param", 100022, None),
    ("noise", "LayerParameter", "noise_param", 147, None),
    ("noise", "NoiseParameter", "uniform_range", 2, 0),
    ("cascade_rcnn", "LayerParameter", "decode_bbox_param", 155, None),
    ("cascade_rcnn", "BBoxRegParameter", "cls_aware", 3, True),
]


@pytest.mark.parametrize(("dialect", "message", "field", "number", "default"), FACTS)
def test_numbers_of_the_forks(dialect: str, message: str, field: str, number: int, default: object) -> None:
    found = schema(dialect).message(message).DESCRIPTOR.fields_by_name[field]
    assert found.number == number
    if default is not None:
        assert found.default_value == default


def test_every_fork_has_a_source_and_no_moved_number_of_its_own() -> None:
    assert {fact[0] for fact in FACTS} <= set(FORKS)
    for name, fork in FORKS.items():
        assert fork.about and fork.sources
        own = schema(name)
        for message, text in fork.messages.items():
            for line in text.split("\n"):
                words = line.split()
                if words and words[0] != "enum":
                    assert own.type(message).fields[words[1]].number == int(words[0]), (name, message, line)
        for key in fork.refused:
            message, field = key.split(".")
            assert field.partition("=")[0] in own.type(message).fields


def test_the_schema_of_all_has_every_name_and_bvlcs_numbers() -> None:
    everything = schema()
    for name in FORKS:
        for message, entry in schema(name).messages.items():
            assert set(entry.fields) <= set(everything.type(message).fields)
    for message, entry in Schema.bvlc().messages.items():
        for field in entry.fields.values():
            assert everything.type(message).fields[field.name] == field


def test_two_dialects_in_one() -> None:
    both = schema("segnet+yolo").message("LayerParameter").DESCRIPTOR.fields_by_name
    assert both["upsample_param"].number == 137 and both["reorg_param"].number == 149
    assert schema("yolo+segnet").message("LayerParameter").DESCRIPTOR.fields_by_name["upsample_param"].number == 150
    with pytest.raises(ArgumentError, match="no such dialect") as caught:
        schema("ssd+segnett")
    assert caught.value.hint == "segnet"


NET = 'name: "n" layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: [1, 4, 7, 7] }} }} }} {}'


def layer(type_: str, fields: str, bottom: str = "data", top: str = "out") -> str:
    return f'layer {{ name: "{top}" type: "{type_}" bottom: "{bottom}" top: "{top}" {fields} }}'


@pytest.mark.parametrize(
    ("dialect", "type_", "fields"),
    [
        ("bvlc", "Pooling", "pooling_param { kernel_size: 2 round_mode: FLOOR }"),
        ("ceil_mode", "Pooling", "pooling_param { kernel_size: 2 ceil_mode: false }"),
        ("ssd", "Permute", "permute_param { order: [0, 2, 3, 1] }"),
        ("faster_rcnn", "ROIPooling", "roi_pooling_param { pooled_h: 7 pooled_w: 7 spatial_scale: 0.0625 }"),
        ("rfcn", "PSROIPooling", "psroi_pooling_param { spatial_scale: 0.0625 output_dim: 21 group_size: 7 }"),
        ("rfcn", "SoftmaxWithLoss", "loss_param { normalization: PRE_FIXED }"),
        ("pspnet", "BN", "bn_param { slope_filler { value: 1 } }".replace("slope", "scale")),
        ("pspnet", "Interp", "interp_param { interp_type: 'bilinear' }"),
        ("segnet", "BN", "bn_param { bn_mode: INFERENCE }"),
        ("segnet", "Upsample", "upsample_param { scale: 2 pad_out_h: true }"),
        ("deeplab", "DenseCRF", "dense_crf_param { max_iter: 10 }"),
        ("pspnet", "Convolution", "convolution_param { kernel_size: 3 hole: 2 num_output: 2 }"),
        ("yolo", "Reorg", "reorg_param { stride: 2 }"),
        ("yolo2", "Region", "region_param { boxes_of_each_grid: 5 }"),
        ("region", "Region", "region_param { num: 5 }"),
        ("yolo2", "DetectionOutput", "detection_output_param { classes: 20 biases: [1, 2] }"),
        ("ssd", "DetectionOutput", "detection_output_param { num_classes: 21 }"),
        ("rtpose", "ImResize", "imresize_param { factor: 8 }"),
        ("cambricon", "CReLU", "crelu_param { concat_axis: 1 }"),
        ("noise", "Noise", "noise_param { gaussian_std: 0.1 }"),
        ("cascade_rcnn", "DecodeBBox", "bbox_reg_param { bbox_mean: [0, 0, 0, 0] }"),
        ("centernet", "CenterObjectLoss", "center_object_loss_param { num_class: 2 }"),
        ("shufflenet", "ShuffleChannel", "shuffle_channel_param { group: 2 }"),
        ("flownet", "Correlation", "correlation_param { kernel_size: 1 max_displacement: 4 }"),
        ("nvcaffe", "ReLU", "forward_type: FLOAT16"),
        ("nvcaffe", "Convolution", "convolution_param { cudnn_convolution_algo_seeker: FINDEX }"),
        ("ristretto", "ReLU", "quantization_param { bw_layer_in: 8 }"),
        ("openpose", "OPData", "op_transform_param { stride: 8 }"),
        ("intel", "ReLU", "relu_param { engine: MKL2017 }"),
        ("ssd+ceil_mode", "Permute", "permute_param { order: 0 } } layer { pooling_param { ceil_mode: true }"),
    ],
)
def test_the_dialect_is_chosen_by_the_fields(dialect: str, type_: str, fields: str) -> None:
    parsed = read_text(NET.format(layer(type_, fields)))
    assert text_dialect(parsed.used) == dialect
    chosen = "any" if dialect == "bvlc" else dialect
    assert Schema.of(parsed.message).name in (dialect, chosen)


def test_a_fork_field_in_bvlcs_dialect_names_the_fork() -> None:
    with pytest.raises(PrototxtError, match="permute_param") as caught:
        load_caffe(NET.format(layer("Permute", "permute_param { order: 0 }")), dialect="bvlc")
    assert caught.value.hint == 'dialect="ssd", or none, to have it chosen'


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [("", 4), ("ceil_mode: true", 4), ("ceil_mode: false", 3), ("round_mode: FLOOR", 3), ("round_mode: CEIL", 4)],
)
def test_pooling_sizes_by_either_name(rounding: str, expected: int) -> None:
    """CAF-14: forks' ceil_mode is the opposite of round_mode, under the same number."""
    net = load_caffe(NET.format(layer("Pooling", f"pooling_param {{ kernel_size: 2 stride: 2 {rounding} }}")))
    assert net.blobs["out"].shape == (1, 4, expected, expected)


def test_caf14_densenet() -> None:
    text = NET.replace("7, 7", "112, 112")
    pool = "pooling_param {{ pool: MAX kernel_size: 3 stride: 2 pad: 1 {} }}"
    assert load_caffe(text.format(layer("Pooling", pool.format("ceil_mode: false")))).blobs["out"].shape[-1] == 56
    assert load_caffe(text.format(layer("Pooling", pool.format("")))).blobs["out"].shape[-1] == 57


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(ArgumentError, match="say the same thing"):
        load_caffe(NET.format(layer("Pooling", "pooling_param { kernel_size: 2 ceil_mode: true round_mode: CEIL }")))
    with pytest.raises(ArgumentError, match="say the same thing"):
        load_caffe(NET.format(layer("Convolution", "convolution_param { num_output: 1 kernel_size: 3 hole: 2 dilation: 2 }")))


@pytest.mark.parametrize(
    ("holes", "dilation"),
    [("hole: 2", "dilation: 2"), ("hole_h: 3", "dilation: [3, 1]"), ("hole: 1 hole_w: 2", "dilation: [1, 2]")],
)
def test_holes_are_dilation(holes: str, dilation: str) -> None:
    text = NET.format(
        layer("Convolution", "convolution_param { num_output: 1 kernel_size: 3 weight_filler { type: 'xavier' } HOLES }")
    )
    x = np.arange(196, dtype="f4").reshape(1, 4, 7, 7)
    one, two = (load_caffe(text.replace("HOLES", words), seed=1).forward(data=x)["out"] for words in (holes, dilation))
    np.testing.assert_array_equal(one, two)


def test_intels_pooling_by_axis() -> None:
    fields = "pooling_param { kernel_size: 2 kernel_size: 3 stride: 1 pad: 0 engine: MKL2017 }"
    net = load_caffe(NET.format(layer("Pooling", fields)), dialect="intel")
    assert net.blobs["out"].shape == (1, 4, 6, 5)
    with pytest.raises(ArgumentError, match="two spatial axes"):
        load_caffe(NET.format(layer("Pooling", "pooling_param { kernel_size: [2, 2, 2] }")), dialect="intel")


def test_what_a_fork_asks_for_and_nothing_computes_is_said() -> None:
    conv = layer("Convolution", "convolution_param { num_output: 1 kernel_size: 3 relu: true negative_slope: 0.1 }")
    pool = layer("Pooling", "pooling_param { pool: AVE kernel_size: 2 avg_include_pad: false }", top="pool")
    with pytest.raises(UnsupportedError, match="2 fields of this fork") as caught:
        load_caffe("\n".join([NET.format(""), conv, pool]), dialect="intel")
    assert caught.value.given["fields"] == [
        'line 2: "out" relu: True (a convolution with a ReLU in it)',
        'line 3: "pool" avg_include_pad: False (an average that leaves the padding out)',
    ]
    assert load_caffe(NET.format(conv.replace("relu: true negative_slope: 0.1", "relu: false")), dialect="intel").outputs == [
        "out"
    ]


def _bytes(fields: str, type_: str = "Pooling", dialect: str | None = None) -> bytes:
    return read_text(NET.format(layer(type_, fields)), dialect=dialect).message.SerializeToString()


def test_bytes_with_field_13_ask_for_the_dialect() -> None:
    raw = _bytes("pooling_param { kernel_size: 2 stride: 2 ceil_mode: true }")
    with pytest.raises(ArgumentError, match="field 13 of PoolingParameter") as caught:
        read_binary(raw, name="net.caffemodel")
    assert caught.value.required == "one of bvlc, ceil_mode" and "--dialect bvlc" in str(caught.value)
    assert read_binary(raw, dialect="ceil_mode").message.layer[1].pooling_param.ceil_mode is True
    assert read_binary(raw, dialect="bvlc").message.layer[1].pooling_param.round_mode == 1


def test_bytes_choose_their_dialect() -> None:
    assert Schema.of(read_binary(_bytes("pooling_param { kernel_size: 2 }")).message).name == "bvlc"
    ssd = read_binary(_bytes("permute_param { order: [0, 2, 3, 1] }", "Permute"))
    assert Schema.of(ssd.message).name == "ssd" and list(ssd.message.layer[1].permute_param.order) == [0, 2, 3, 1]
    flow = read_binary(_bytes("correlation_param { kernel_size: 1 do_abs: true correlation_type: SUBTRACT }", "Correlation"))
    assert flow.message.layer[1].correlation_param.kernel_size == 1
    up = read_binary(_bytes("upsample_param { scale: 2 }", "Upsample", "segnet"))
    assert Schema.of(up.message).name == "segnet" and up.message.layer[1].upsample_param.scale == 2
    odd = _bytes("upsample_param { scale: 2 }", "Mine", "segnet")
    with pytest.raises(ArgumentError, match="several forks gave to different fields") as caught:
        read_binary(odd)
    assert "bvlc" in str(caught.value.required) and "segnet" in str(caught.value.required)


def test_bytes_that_no_dialect_explains() -> None:
    raw = _bytes("pooling_param { kernel_size: 2 }") + b"\xa2\x06\x0c\n\x01x\x12\x01T\xf2?\x03abc"
    with pytest.raises(ModelFileError, match="no dialect here explains") as caught:
        read_binary(raw, name="net.caffemodel")
    assert caught.value.given["fields"] == ['field 1022 of LayerParameter in layer "x" is unknown']
    assert len(read_binary(raw, allow_unknown_fields=True).message.layer) == 3


def test_fields_that_no_dialect_explains_are_listed_where_they_are_left_out(tmp_path: Path) -> None:
    raw = _bytes("pooling_param { kernel_size: 2 }") + b"\xa2\x06\x0c\n\x01x\x12\x01T\xf2?\x03abc"
    (tmp_path / "n.caffemodel").write_bytes(raw)
    written = convert_file(tmp_path / "n.caffemodel", tmp_path / "n.prototxt", allow_unknown_fields=True)
    assert [note.text for note in written.lost] == ['field 1022 of LayerParameter in layer "x" is unknown: left out']


def test_text_to_bytes_and_back(tmp_path: Path) -> None:
    (tmp_path / "a.prototxt").write_text(NET.format(layer("Permute", "permute_param { order: [0, 2, 3, 1] }")))
    convert_file(tmp_path / "a.prototxt", tmp_path / "a.caffemodel")
    convert_file(tmp_path / "a.caffemodel", tmp_path / "b.prototxt")
    assert "permute_param" in (tmp_path / "b.prototxt").read_text()
    (tmp_path / "c.prototxt").write_text(NET.format(layer("Pooling", "pooling_param { kernel_size: 2 ceil_mode: false }")))
    convert_file(tmp_path / "c.prototxt", tmp_path / "c.caffemodel")
    with pytest.raises(ArgumentError, match="do not say"):
        convert_file(tmp_path / "c.caffemodel", tmp_path / "d.prototxt")
    convert_file(tmp_path / "c.caffemodel", tmp_path / "d.prototxt", dialect="ceil_mode")
    assert "ceil_mode: false" in (tmp_path / "d.prototxt").read_text()


def test_weights_of_any_fork_load() -> None:
    """Ristretto's files set a field whose number is BVLC's clip_param; the weights are where they always are."""
    fields = "inner_product_param { num_output: 2 } quantization_param { bw_layer_in: 8 }"
    net = load_caffe(NET.format(layer("InnerProduct", fields)), seed=1)
    ristretto = schema("ristretto").message("NetParameter")()
    ristretto.ParseFromString(_bytes(fields, "InnerProduct"))
    for array in (np.ones((2, 196), "f4"), np.array([3, 4], "f4")):
        entry = ristretto.layer[1].blobs.add()
        entry.shape.dim.extend(array.shape)
        entry.data.extend(array.reshape(-1).tolist())
    again = load_caffe(net.to_prototxt(), ristretto.SerializeToString())
    assert again.params["out"][1].data.tolist() == [3, 4]


def test_names_of_dialects() -> None:
    assert DIALECTS[0] == "bvlc" and ANY not in DIALECTS
    assert all(field.number < MOVED for field in schema("ssd").type("LayerParameter").fields.values())


def test_every_old_layer_type_of_a_fork_has_a_name_of_today() -> None:
    from astride.caffe.upgrade_v1 import TYPES

    assert set(schema().type("V1LayerParameter").enums["LayerType"]) == set(TYPES)


@pytest.mark.parametrize(
    ("dialect", "fields", "problem"),
    [
        ("rfcn", "loss_param { normalization: PRE_FIXED }", "normalization: PRE_FIXED (a loss divided by a number of its own)"),
        ("pspnet", "data_param { shuffle: true }", "shuffle: True (samples of a database in another order)"),
        ("nvcaffe", "data_param { cache: true shuffle: true }", "shuffle: True (samples of a database in another order)"),
        ("nvcaffe", "batch_norm_param { scale_bias: true }", "scale_bias: True (a BatchNorm with its own scale and bias)"),
    ],
)
def test_values_that_change_numbers_are_refused(dialect: str, fields: str, problem: str) -> None:
    text = NET.format(layer("Softmax", fields))
    assert text_dialect(read_text(text).used) == dialect
    with pytest.raises(UnsupportedError) as caught:
        load_caffe(text)
    assert any(problem in field for field in caught.value.given["fields"])


def test_a_part_that_another_fork_has_as_a_list_is_only_absent() -> None:
    """Found by random files: resize_param is a message of SSD's and a list of another fork's."""
    with pytest.raises(ArgumentError, match="names no database"):
        load_caffe('layer { name: "d" type: "AnnotatedData" top: "data" }')


def test_a_shuffled_database_of_intel_is_refused_too() -> None:
    with pytest.raises(UnsupportedError) as caught:
        load_caffe(NET.format(layer("Softmax", "data_param { shuffle: true }")), dialect="intel")
    assert any("samples of a database in another order" in field for field in caught.value.given["fields"])


@pytest.mark.parametrize("dialect", [None, "ssd"])
def test_a_layer_of_one_fork_beside_fields_of_another(dialect: str | None) -> None:
    """ShuffleChannel with its default beside SSD's Permute: both find their fields; the numbers are SSD's."""
    text = NET.format(
        layer("Permute", "permute_param { order: [0, 2, 3, 1] }", top="p") + layer("ShuffleChannel", "", bottom="p")
    )
    net = load_caffe(text, dialect=dialect)
    assert net.blobs["out"].shape == (1, 7, 7, 4)
    parsed = read_text(text, dialect=dialect)
    assert parsed.message.layer[1].DESCRIPTOR.fields_by_name["permute_param"].number == 202
    assert parsed.message.layer[2].shuffle_channel_param.group == 1


def test_messages_that_no_fork_changes_are_read_once() -> None:
    assert schema() is schema(ANY) and schema("bvlc").messages["BlobShape"] is Schema.bvlc().messages["BlobShape"]
    assert schema().messages["BlobShape"] is schema("ssd").messages["BlobShape"]
    one_by_one = Schema.bvlc()
    for fork in FORKS.values():
        one_by_one = one_by_one.merged(ANY, fork.messages, enums=fork.enums, wins=False)
    assert one_by_one.messages == schema().messages and one_by_one.enums == schema().enums
