"""load_caffe: inputs old and new, phases, levels and stages, data layers, multipliers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.caffe import build_net, load_caffe
from astride.errors import ArgumentError, ArrayError, ModelFileError, PrototxtError
from astride.layers import ArraySource
from astride.net import Net, Phase
from astride.proto import message, parse

from .texts import CONV_IP, TRAIN_TEST

RANDOM = np.random.RandomState(12)


def names(net: Net) -> list[str]:
    return [node.name for node in net.nodes]


def test_every_form_of_source(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(CONV_IP)
    x = RANDOM.rand(2, 3, 6, 6)
    expected = load_caffe(CONV_IP, seed=1).forward(data=x)["prob"]
    for source in (path, str(path), CONV_IP.encode(), io.StringIO(CONV_IP), io.BytesIO(CONV_IP.encode())):
        np.testing.assert_array_equal(load_caffe(source, seed=1).forward(data=x)["prob"], expected)


def test_the_parts_of_a_net() -> None:
    net = load_caffe(CONV_IP)
    assert net.name == "small" and net.phase is Phase.TEST
    assert net.inputs == ["data"] and net.outputs == ["prob"]
    assert names(net) == ["input", "conv", "relu", "ip", "prob"]
    assert list(net.params) == ["conv", "ip"] and [p.shape for p in net.params["conv"]] == [(4, 3, 3, 3), (4,)]
    assert net.blobs["ip"].shape == (2, 5) and net.batch_size == 2
    assert (net.params["ip"][1].data == 0.5).all()
    np.testing.assert_allclose(net.forward(data=RANDOM.rand(1, 3, 6, 6))["prob"].sum(), 1, rtol=1e-6)


@pytest.mark.parametrize(
    "head",
    [
        'input: "a" input_dim: [1, 2, 3, 4] input: "b" input_dim: 5 input_dim: 6 input_dim: 7 input_dim: 8',
        'input: "a" input: "b" input_shape { dim: [1, 2, 3, 4] } input_shape { dim: [5, 6, 7, 8] }',
        'layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: [1,2,3,4] } shape { dim: [5,6,7,8] } } }',
    ],
)
def test_inputs(head: str) -> None:
    net = load_caffe(head + ' layer { name: "r" type: "ReLU" bottom: "b" top: "r" }')
    assert net.inputs == ["a", "b"] and net.blobs["a"].shape == (1, 2, 3, 4) and net.blobs["r"].shape == (5, 6, 7, 8)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ('input: "a" input_dim: 1', r"len\(input_dim\) == 4 \* 1: 1"),
        ('input: "a"', "four input_dim, or an input_shape"),
        ('input: "a" input: "b" input_shape { dim: 1 }', "2 shapes: 1"),
    ],
)
def test_inputs_without_their_sizes(head: str, problem: str) -> None:
    with pytest.raises(PrototxtError, match=problem):
        load_caffe(head + ' layer { name: "r" type: "ReLU" bottom: "a" top: "r" }')


def test_phases() -> None:
    train, test = load_caffe(TRAIN_TEST, phase="TRAIN"), load_caffe(TRAIN_TEST)
    assert train.batch_size == 4 and test.batch_size == 2
    assert "accuracy" not in names(train) and "accuracy" in names(test)
    assert train.layer("drop").random and not test.layer("drop").random
    assert load_caffe(TRAIN_TEST, None, Phase.TRAIN).phase is Phase.TRAIN
    with pytest.raises(ArgumentError, match="TRAIN or TEST"):
        load_caffe(TRAIN_TEST, phase="train")


RULED = """
input: "x" input_shape { dim: 1 dim: 2 }
layer { name: "%s" type: "ReLU" bottom: "x" top: "y" %s }
layer { name: "always" type: "ReLU" bottom: "x" top: "z" }
"""


@pytest.mark.parametrize(
    ("rules", "state", "kept"),
    [
        ("", {}, True),
        ("include { }", {}, True),
        ("exclude { }", {}, False),
        ("include { phase: TRAIN }", {}, False),
        ("exclude { phase: TRAIN }", {}, True),
        ("include { phase: TRAIN } include { phase: TEST }", {}, True),
        ("exclude { phase: TRAIN } exclude { phase: TEST }", {}, False),
        ("include { min_level: 2 }", {"level": 1}, False),
        ("include { min_level: 2 }", {"level": 2}, True),
        ("include { max_level: 2 }", {"level": 3}, False),
        ("include { min_level: 1 max_level: 2 }", {"level": 2}, True),
        ("exclude { max_level: -1 }", {"level": -1}, False),
        ('include { stage: "a" }', {}, False),
        ('include { stage: "a" }', {"stages": ["a", "c"]}, True),
        ('include { stage: "a" stage: "b" }', {"stages": ["a"]}, False),
        ('include { stage: "a" } include { stage: "b" }', {"stages": ["b"]}, True),
        ('include { not_stage: "a" }', {"stages": ["a"]}, False),
        ('include { stage: "b" not_stage: "a" }', {"stages": ["b"]}, True),
        ('include { phase: TEST stage: "a" min_level: 1 }', {"stages": ["a"], "level": 0}, False),
    ],
)
def test_rules(rules: str, state: dict[str, Any], kept: bool) -> None:
    assert ("ruled" in names(load_caffe(RULED % ("ruled", rules), **state))) is kept


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (dict(level="x"), "a level is a whole number"),
        (dict(level=1.5), "a level is a whole number"),
        (dict(stages=[1]), "stages are chosen by their names"),
        (dict(stages=None), "stages are chosen by their names"),
    ],
)
def test_no_state(state: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        load_caffe('name: "n"', **state)


def test_the_text_adds_stages() -> None:
    assert "ruled" in names(load_caffe('state { stage: "a" } ' + RULED % ("ruled", 'include { stage: "a" }')))


def test_rules_of_both_kinds() -> None:
    with pytest.raises(PrototxtError, match='layer "ruled" has include and exclude rules') as caught:
        load_caffe(RULED % ("ruled", "include { } exclude { phase: TRAIN }"))
    assert caught.value.given["line"] == 3


def test_a_layers_own_phase_is_stronger() -> None:
    text = 'input: "x" input_shape { dim: 1 dim: 200 } layer { name: "d" type: "Dropout" bottom: "x" top: "d" phase: TRAIN }'
    assert load_caffe(text).layer("d").random


def test_nothing_left() -> None:
    with pytest.raises(PrototxtError, match="no layers in this state") as caught:
        load_caffe('layer { name: "d" type: "ReLU" include { phase: TRAIN } }')
    assert caught.value.hint == 'phase="TRAIN"'


def test_data_and_labels() -> None:
    net = load_caffe(TRAIN_TEST, phase="TRAIN", seed=3)
    net.set_input_arrays(RANDOM.rand(8, 1, 5, 5), np.arange(8) % 3)
    first = net.forward()
    assert net.loss == pytest.approx(float(first["loss"]))
    net.backward()
    assert net.params["ip"][0].diff.any()


def test_sources_feed_data_layers_of_any_kind() -> None:
    text = TRAIN_TEST.replace("MemoryData", "Data").replace(
        "memory_data_param { batch_size: 4 channels: 1 height: 5 width: 5 }", 'data_param { source: "some_lmdb" batch_size: 4 }'
    )
    source = ArraySource(RANDOM.rand(8, 1, 5, 5), np.arange(8) % 3)
    net = load_caffe(text, phase="TRAIN", sources={"data": source})
    assert net.sources["data"] is source and net.blobs["data"].shape == (4, 1, 5, 5)
    assert np.isfinite(net.forward()["loss"])
    images_only = text.replace('top: "data" top: "label" include { phase: TRAIN }', 'top: "data"').split("layer {")[1]
    assert load_caffe("layer {" + images_only, sources={"data": source}).outputs == ["data"]


def test_sources_must_have_a_layer() -> None:
    source = ArraySource(RANDOM.rand(8, 1, 5, 5), np.arange(8) % 3)
    with pytest.raises(ArgumentError, match="does not have"):
        load_caffe(TRAIN_TEST, phase="TRAIN", sources={"images": source})
    with pytest.raises(ArrayError, match=r"\(\(1, 5, 5\), \(\)\)"):
        load_caffe(TRAIN_TEST, phase="TRAIN", sources={"data": ArraySource(RANDOM.rand(8, 5, 5), np.arange(8))})
    with pytest.raises(ArgumentError, match="a source is for a data layer"):
        load_caffe(TRAIN_TEST, phase="TRAIN", sources={"ip": source})


def test_multipliers_and_shared_names() -> None:
    text = """
    input: "x" input_shape { dim: 2 dim: 3 }
    layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" inner_product_param { num_output: 3 }
            param { name: "w" lr_mult: 2 decay_mult: 0 } param { lr_mult: 0 } }
    layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" inner_product_param { num_output: 3 } param { name: "w" } }
    """
    net = load_caffe(text)
    assert net.params["b"][0] is net.params["a"][0] and len(net.learnable) == 3
    assert [(p.lr_mult, p.decay_mult) for p in net.params["a"]] == [(2, 0), (0, 1)]


def test_loss_weight_and_propagate_down() -> None:
    text = TRAIN_TEST.replace('top: "loss"', 'top: "loss" loss_weight: 0.25 propagate_down: true propagate_down: false')
    net = load_caffe(text, phase="TRAIN")
    assert net.nodes[-1].loss_weights == [0.25] and net.nodes[-1].propagate_down == [True, False]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("", "valid"),
        ("loss_param { normalization: FULL }", "full"),
        ("loss_param { normalize: false }", "batch_size"),
        ("loss_param { normalize: true }", "valid"),
        ("loss_param { normalize: false normalization: NONE }", "none"),
    ],
)
def test_normalizations(field: str, expected: str) -> None:
    net = load_caffe(TRAIN_TEST.replace('top: "loss"', f'top: "loss" {field}'))
    layer: Any = net.layer("loss")
    assert layer.normalization == expected


def test_a_seed_or_a_generator() -> None:
    generator = np.random.RandomState(5)
    one, two = load_caffe(CONV_IP, seed=5), load_caffe(CONV_IP, seed=generator)
    np.testing.assert_array_equal(one.params["conv"][0].data, two.params["conv"][0].data)
    third = load_caffe(CONV_IP, seed=generator)
    assert not np.array_equal(third.params["conv"][0].data, two.params["conv"][0].data)


def test_xavier_numbers_are_caffes() -> None:
    """The first 32-bit words of the Mersenne Twister, seeded with 5, through Caffe's formula."""
    words = np.random.RandomState(5).randint(0, 2**32, size=108, dtype=np.uint32).astype(np.float32)
    scale = np.float32(np.sqrt(3 / 27))
    expected = words / np.float32(2**32) * (np.nextafter(scale, np.float32(2)) + scale) - scale
    np.testing.assert_array_equal(load_caffe(CONV_IP, seed=5).params["conv"][0].data.reshape(-1), expected)


def test_blobs_in_the_text_stand_in_for_the_fillers() -> None:
    weights, bias = ", ".join(["2"] * 320), "1, 2, 3, 4, 5"
    blobs = f"blobs {{ shape {{ dim: [5, 64] }} data: [{weights}] }} blobs {{ data: [{bias}] }}"
    text = CONV_IP.replace('top: "ip"\n', f'top: "ip" {blobs}\n')
    net = load_caffe(text)
    assert (net.params["ip"][0].data == 2).all() and net.params["ip"][1].data.tolist() == [1, 2, 3, 4, 5]
    assert "blobs" not in net.to_prototxt()


@pytest.mark.parametrize(
    "shape",
    ["shape { dim: [64, 5] }", "num: 1 channels: 1 height: 64 width: 5", "shape { dim: 320 }", "", "shape { dim: [-5, -64] }"],
)
def test_blobs_in_the_text_of_another_shape_are_refused(shape: str) -> None:
    """As many numbers in another order would be wrong numbers."""
    blobs = f"blobs {{ {shape} data: [{', '.join(['2'] * 320)}] }} blobs {{ data: [1, 2, 3, 4, 5] }}"
    with pytest.raises(ModelFileError, match=r'text of layer "ip"'):
        load_caffe(CONV_IP.replace('top: "ip"\n', f'top: "ip" {blobs}\n'))


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5], ids=repr)
def test_a_seed_has_32_bits(seed: object) -> None:
    with pytest.raises(ArgumentError, match="a seed has 32 bits"):
        load_caffe(CONV_IP, seed=seed)  # type: ignore[arg-type]


def test_one_stage_by_its_name() -> None:
    text = CONV_IP.replace('name: "ip"', 'name: "ip" include { stage: "deploy" }')
    assert "ip" in load_caffe(text, stages="deploy").params


def test_build_net_from_a_message() -> None:
    built = build_net(parse(CONV_IP, "NetParameter").message, "TRAIN", seed=1, dtype="float64")
    assert built.blobs["prob"].dtype == "float64" and built.phase is Phase.TRAIN
    empty = message("NetParameter")()
    with pytest.raises(PrototxtError, match="no layers"):
        build_net(empty, "TEST")


def test_unknown_fields_can_be_passed_over() -> None:
    text = CONV_IP.replace("num_output: 4", "num_output: 4 fork_field: 3")
    with pytest.raises(PrototxtError, match="fork_field"):
        load_caffe(text)
    assert load_caffe(text, allow_unknown_fields=True).outputs == ["prob"]


def test_unknown_fields_and_unknown_layers_are_said_together() -> None:
    text = CONV_IP.replace("num_output: 4", "num_output: 4 fork_field: 3 num_ouput: 5").replace('"Softmax"', '"Sofmax"')
    with pytest.raises(PrototxtError) as caught:
        load_caffe(text)
    message = str(caught.value)
    line = 1 + text[: text.index("fork_field")].count("\n")
    assert f"{line}:" in message and "fork_field" in message and "num_ouput; nearest: num_output" in message
    assert 'of type "Sofmax", perhaps Softmax' in message


def test_dialects_are_known_by_name() -> None:
    with pytest.raises(ArgumentError, match="one of bvlc"):
        load_caffe(CONV_IP, dialect="theano")
    assert load_caffe(CONV_IP, dialect="bvlc").outputs == ["prob"]
