"""caffe_pb2: messages and constants, as generated code would have them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from astride.proto import Schema, table_layers, table_legacy, table_net
from astride.pycaffe.proto import caffe_pb2

from .texts import SMALL


def test_every_message_of_the_schema_is_there() -> None:
    names = {*table_net.MESSAGES, *table_layers.MESSAGES, *table_legacy.MESSAGES}
    assert {"NetParameter", "LayerParameter", "V1LayerParameter", "Datum", "BlobProtoVector", "SolverState"} <= names
    for name in names:
        made = getattr(caffe_pb2, name)()
        assert isinstance(made, Message) and made.DESCRIPTOR.full_name == f"caffe.{name}"
        known = Schema.bvlc().messages[name].fields
        assert set(known) <= set(made.DESCRIPTOR.fields_by_name), name


def test_constants() -> None:
    assert (caffe_pb2.TRAIN, caffe_pb2.TEST) == (0, 1)
    assert caffe_pb2.Phase.Name(1) == "TEST" and caffe_pb2.Phase.Value("TRAIN") == 0
    assert (caffe_pb2.PoolingParameter.MAX, caffe_pb2.PoolingParameter.AVE) == (0, 1)
    assert caffe_pb2.V1LayerParameter.CONVOLUTION == 4
    assert caffe_pb2.V1LayerParameter.LayerType.Name(4) == "CONVOLUTION"
    assert caffe_pb2.DataParameter.DB.Value("LMDB") == caffe_pb2.DataParameter.LMDB == 1
    assert caffe_pb2.SolverParameter.SolverMode.Value("GPU") == 1
    assert "NetParameter" in caffe_pb2.DESCRIPTOR.message_types_by_name
    assert {"TRAIN", "NetParameter"} <= set(caffe_pb2.__all__)
    with pytest.raises(AttributeError, match="no message or constant Nothing"):
        getattr(caffe_pb2, "Nothing")  # noqa: B009


def test_a_file_is_read_edited_and_written(tmp_path: Path) -> None:
    net = caffe_pb2.NetParameter()
    text_format.Merge(SMALL, net)
    assert [layer.type for layer in net.layer] == [
        "Convolution",
        "ReLU",
        "Pooling",
        "Pooling",
        "Eltwise",
        "InnerProduct",
        "Softmax",
    ]
    net.layer[0].convolution_param.num_output = 7
    del net.layer[-1]
    net.layer.add(name="more", type="ReLU", bottom=["ip"], top=["ip"])
    text = text_format.MessageToString(net)
    again = text_format.Parse(text, caffe_pb2.NetParameter())
    assert again == net and str(net) == text and "num_output: 7" in text
    binary = caffe_pb2.NetParameter.FromString(net.SerializeToString())
    assert binary == net
    other = caffe_pb2.NetParameter()
    other.CopyFrom(net)
    assert copy.deepcopy(other) == net and other.HasField("force_backward") and not other.HasField("state")


def test_a_field_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(text_format.ParseError, match="has no field named"):
        text_format.Merge('nme: "x"', caffe_pb2.NetParameter())
    with pytest.raises(AttributeError):
        caffe_pb2.NetParameter().nme = "x"


def test_defaults_are_caffes() -> None:
    solver = caffe_pb2.SolverParameter()
    assert (solver.delta, solver.type, solver.random_seed, solver.iter_size) == (pytest.approx(1e-8), "SGD", -1, 1)
    assert caffe_pb2.PoolingParameter().stride == 1 and caffe_pb2.LRNParameter().local_size == 5


def test_fields_of_forks_are_there() -> None:
    layer = caffe_pb2.LayerParameter()
    text_format.Merge('type: "Permute" permute_param { order: 0 order: 2 }', layer)
    assert list(layer.permute_param.order) == [0, 2]
