from __future__ import annotations

import subprocess
import sys

import pytest

from astride import proto
from astride.errors import ArgumentError

# Written down from the public caffe.proto, independently of the table: message, field, number, type, repeated, default.
FACTS = [
    ("BlobShape", "dim", 1, "int64", True, None),
    ("BlobProto", "shape", 7, "BlobShape", False, None),
    ("BlobProto", "data", 5, "float", True, None),
    ("BlobProto", "diff", 6, "float", True, None),
    ("BlobProto", "double_data", 8, "double", True, None),
    ("BlobProto", "width", 4, "int32", False, 0),
    ("Datum", "data", 4, "bytes", False, None),
    ("Datum", "encoded", 7, "bool", False, False),
    ("FillerParameter", "type", 1, "string", False, "constant"),
    ("FillerParameter", "sparse", 7, "int32", False, -1),
    ("FillerParameter", "variance_norm", 8, "VarianceNorm", False, 0),
    ("NetParameter", "layer", 100, "LayerParameter", True, None),
    ("NetParameter", "layers", 2, "V1LayerParameter", True, None),
    ("NetParameter", "input_shape", 8, "BlobShape", True, None),
    ("NetParameter", "force_backward", 5, "bool", False, False),
    ("SolverParameter", "net", 24, "string", False, None),
    ("SolverParameter", "test_iter", 3, "int32", True, None),
    ("SolverParameter", "clip_gradients", 35, "float", False, -1.0),
    ("SolverParameter", "type", 40, "string", False, "SGD"),
    ("SolverParameter", "solver_mode", 17, "SolverMode", False, 1),
    ("SolverParameter", "random_seed", 20, "int64", False, -1),
    ("SolverParameter", "snapshot_format", 37, "SnapshotFormat", False, 1),
    ("SolverParameter", "layer_wise_reduce", 41, "bool", False, True),
    ("SolverParameter", "weights", 42, "string", True, None),
    ("SolverParameter", "solver_type", 30, "SolverType", False, 0),
    ("SolverState", "history", 3, "BlobProto", True, None),
    ("SolverState", "current_step", 4, "int32", False, 0),
    ("NetState", "phase", 1, "Phase", False, 1),
    ("NetStateRule", "not_stage", 5, "string", True, None),
    ("ParamSpec", "lr_mult", 3, "float", False, 1.0),
    ("LayerParameter", "blobs", 7, "BlobProto", True, None),
    ("LayerParameter", "propagate_down", 11, "bool", True, None),
    ("LayerParameter", "convolution_param", 106, "ConvolutionParameter", False, None),
    ("LayerParameter", "pooling_param", 121, "PoolingParameter", False, None),
    ("LayerParameter", "batch_norm_param", 139, "BatchNormParameter", False, None),
    ("LayerParameter", "recurrent_param", 146, "RecurrentParameter", False, None),
    ("LayerParameter", "swish_param", 147, "SwishParameter", False, None),
    ("LayerParameter", "clip_param", 148, "ClipParameter", False, None),
    ("ConvolutionParameter", "kernel_size", 4, "uint32", True, None),
    ("ConvolutionParameter", "group", 5, "uint32", False, 1),
    ("ConvolutionParameter", "dilation", 18, "uint32", True, None),
    ("ConvolutionParameter", "force_nd_im2col", 17, "bool", False, False),
    ("PoolingParameter", "kernel_size", 2, "uint32", False, None),
    ("PoolingParameter", "pool", 1, "PoolMethod", False, 0),
    ("PoolingParameter", "global_pooling", 12, "bool", False, False),
    ("PoolingParameter", "round_mode", 13, "RoundMode", False, 0),
    ("LRNParameter", "beta", 3, "float", False, 0.75),
    ("MVNParameter", "eps", 3, "float", False, 1e-9),
    ("ReductionParameter", "operation", 1, "ReductionOp", False, 1),
    ("ReshapeParameter", "num_axes", 3, "int32", False, -1),
    ("CropParameter", "axis", 1, "int32", False, 2),
    ("InnerProductParameter", "transpose", 6, "bool", False, False),
    ("WindowDataParameter", "crop_mode", 11, "string", False, "warp"),
    ("DataParameter", "prefetch", 10, "uint32", False, 4),
    ("V1LayerParameter", "blobs", 6, "BlobProto", True, None),
    ("V1LayerParameter", "pooling_param", 19, "PoolingParameter", False, None),
    ("V1LayerParameter", "blob_share_mode", 1002, "DimCheckMode", True, None),
    ("V1LayerParameter", "layer", 1, "V0LayerParameter", False, None),
    ("V0LayerParameter", "kernelsize", 8, "uint32", False, None),
    ("V0LayerParameter", "blobs", 50, "BlobProto", True, None),
    ("V0LayerParameter", "det_crop_mode", 59, "string", False, "warp"),
    ("V0LayerParameter", "hdf5_output_param", 1001, "HDF5OutputParameter", False, None),
]


@pytest.mark.parametrize(("owner", "name", "number", "kind", "repeated", "default"), FACTS, ids=lambda value: str(value))
def test_field(owner: str, name: str, number: int, kind: str, repeated: bool, default: object) -> None:
    field = proto.Schema.bvlc().type(owner).fields[name]
    assert (field.number, field.type, field.repeated) == (number, kind, repeated)
    message = proto.message(owner)()
    assert message.DESCRIPTOR.fields_by_name[name].number == number
    if default is not None:
        assert getattr(message, name) == (pytest.approx(default, rel=1e-6) if isinstance(default, float) else default)


def test_enums_of_the_old_layer_types() -> None:
    values = proto.Schema.bvlc().type("V1LayerParameter").enums["LayerType"]
    assert len(values) == 40
    assert sorted(values.values()) == list(range(40))
    assert (values["CONVOLUTION"], values["POOLING"], values["SOFTMAX_LOSS"], values["DECONVOLUTION"]) == (4, 17, 21, 39)


def test_layer_parameter_numbers_are_complete() -> None:
    numbers = {field.number for field in proto.Schema.bvlc().type("LayerParameter").fields.values()}
    assert numbers == set(range(1, 12)) | set(range(100, 149))
    old = {field.number for field in proto.Schema.bvlc().type("V1LayerParameter").fields.values()}
    assert old == set(range(1, 28)) | set(range(29, 43)) | {1001, 1002}


def test_packed_fields_are_the_blobs_only() -> None:
    packed = {f"{m.name}.{f.name}" for m in proto.Schema.bvlc().messages.values() for f in m.fields.values() if f.packed}
    assert packed == {"BlobShape.dim", "BlobProto.data", "BlobProto.diff", "BlobProto.double_data", "BlobProto.double_diff"}


def test_every_message_can_be_made() -> None:
    made = proto.messages()
    assert len(made) == len(proto.Schema.bvlc().messages) > 60
    for name, cls in made.items():
        assert cls.DESCRIPTOR.full_name == f"caffe.{name}"
        assert proto.Schema.of(cls()) is proto.Schema.bvlc()


def test_lives_beside_anybody_elses_caffe_pb2() -> None:
    from google.protobuf import descriptor_pb2, descriptor_pool

    other = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe")
    other.message_type.add(name="NetParameter")
    descriptor_pool.Default().AddSerializedFile(other.SerializeToString())
    assert "layer" in proto.message("NetParameter").DESCRIPTOR.fields_by_name
    stranger = descriptor_pool.Default().FindMessageTypeByName("caffe.NetParameter")
    assert "layer" not in stranger.fields_by_name


def test_a_strangers_message_is_refused() -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    with pytest.raises(ArgumentError, match=r"not made by astride's schema"):
        proto.format(Timestamp(seconds=1))


def test_import_costs_no_protobuf() -> None:
    code = "import sys, astride.proto; print('google.protobuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_extended_adds_and_leaves_the_original() -> None:
    fork = proto.Schema.bvlc().extended(
        "ssd",
        {
            "LayerParameter": "202 permute_param PermuteParameter",
            "PermuteParameter": "1 order uint32*",
            "PoolingParameter": "13 ceil_mode bool = true\nenum PoolMethod LP=9",
        },
        without={"PoolingParameter": ["round_mode"]},
    )
    net = proto.parse(
        "layer { permute_param { order: [0, 2, 3, 1] } pooling_param { pool: LP ceil_mode: false } }", "NetParameter", schema=fork
    )
    assert list(net.message.layer[0].permute_param.order) == [0, 2, 3, 1]
    assert net.message.layer[0].pooling_param.pool == 9
    assert fork.message("PoolingParameter")().ceil_mode is True
    assert proto.format(net.message).splitlines()[2] == "    pool: LP"
    assert "permute_param" not in proto.Schema.bvlc().type("LayerParameter").fields
    assert fork.message("NetParameter") is not proto.message("NetParameter")


def test_extended_can_lead_to_blobs_by_new_ways() -> None:
    fork = proto.Schema.bvlc().extended("x", {"Extra": "1 kept BlobProto*", "NetParameter": "300 extra Extra"})
    assert fork.blob_carriers["NetParameter"].keys() == {2, 100, 300}


@pytest.mark.parametrize(
    ("messages", "without", "text"),
    [
        ({"PoolingParameter": "13 ceil_mode bool"}, {}, "field 13 ceil_mode of PoolingParameter is already taken by round_mode"),
        ({"PoolingParameter": "pool_size uint32"}, {}, "cannot read the table line 'pool_size uint32' of PoolingParameter"),
        ({"PoolingParameter": "14 x BlobProtto"}, {}, "unknown type BlobProtto of field PoolingParameter.x"),
        ({}, {"PoolingParameter": ["round_mod"]}, "PoolingParameter has no field round_mod to drop"),
        ({"PoolingParameter": "enum PoolMethod A"}, {}, "cannot read 'A' in the enum PoolingParameter.PoolMethod"),
    ],
)
def test_bad_tables_are_refused(messages: dict[str, str], without: dict[str, list[str]], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        proto.Schema.bvlc().extended("bad", messages, without=without)
    assert caught.value.problem == text


def test_unknown_message_names_the_nearest() -> None:
    with pytest.raises(ArgumentError) as caught:
        proto.message("NetParamter")
    assert caught.value.hint == "NetParameter"
