"""V0 and V1 brought to the current format: every step by example, whole networks against what Caffe's own tool prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe, load_solver, upgrade, upgrade_solver
from astride.caffe import upgrade_v0 as v0
from astride.caffe import upgrade_v1 as v1
from astride.errors import ArgumentError, PrototxtError
from astride.proto import Parsed, Schema, format, parse, read_prototxt

from .texts import CONV_IP

LEGACY = Path(__file__).resolve().parents[3] / "shared" / "goldens" / "caffe" / "legacy"
recorded = pytest.mark.skipif(not LEGACY.is_dir(), reason="the recorded files of Caffe's older formats are not here")

V0 = """
name: "old"  # 2013
input: "data"
input_dim: 2
input_dim: 3
input_dim: 6
input_dim: 6
layers { layer { name: "pad" type: "padding" pad: 1 } bottom: "data" top: "pad" }
layers {
  layer { name: "conv" type: "conv" num_output: 4 kernelsize: 3 biasterm: false weight_filler { type: "xavier" } blobs_lr: 1 }
  bottom: "pad"
  top: "conv"
}
layers { layer { name: "pool" type: "pool" pool: AVE kernelsize: 2 stride: 2 } bottom: "conv" top: "pool" }
layers { layer { name: "ip" type: "innerproduct" num_output: 5 weight_decay: 1 weight_decay: 0 } bottom: "pool" top: "ip" }
layers { layer { name: "prob" type: "softmax" } bottom: "ip" top: "prob" }
"""

V1 = """
name: "old"
input: "data"
input_dim: 2
input_dim: 3
input_dim: 6
input_dim: 6
layers {
  name: "conv" type: CONVOLUTION bottom: "data" top: "conv" blobs_lr: 1
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } }
}
layers { name: "pool" type: POOLING bottom: "conv" top: "pool" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layers {
  name: "ip" type: INNER_PRODUCT bottom: "pool" top: "ip" weight_decay: 1 weight_decay: 0
  inner_product_param { num_output: 5 }
}
layers { name: "prob" type: SOFTMAX bottom: "ip" top: "prob" }
"""

V2 = """name: "old"
layer {
  name: "input"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 2
      dim: 3
      dim: 6
      dim: 6
    }
  }
}
layer {
  name: "conv"
  type: "Convolution"
  bottom: "data"
  top: "conv"
  param {
    lr_mult: 1
  }
  convolution_param {
    num_output: 4
    bias_term: false
    pad: 1
    kernel_size: 3
    weight_filler {
      type: "xavier"
    }
  }
}
layer {
  name: "pool"
  type: "Pooling"
  bottom: "conv"
  top: "pool"
  pooling_param {
    pool: AVE
    kernel_size: 2
    stride: 2
  }
}
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "pool"
  top: "ip"
  param {
    decay_mult: 1
  }
  param {
    decay_mult: 0
  }
  inner_product_param {
    num_output: 5
  }
}
layer {
  name: "prob"
  type: "Softmax"
  bottom: "ip"
  top: "prob"
}
"""


def parsed(text: str) -> Parsed:
    return parse(text, "NetParameter", source="net.prototxt")


def layers(text: str) -> str:
    """The upgraded text of one old layer that reads data."""
    given = parsed('input: "data" input_dim: [1, 1, 4, 4] ' + text)
    return format(upgrade(given.message, given).message.layer[1])


@pytest.mark.parametrize("text", [V0, V1], ids=["V0", "V1"])
def test_the_same_network_in_three_formats(text: str) -> None:
    given = parsed(text)
    before = given.message.SerializeToString()
    upgraded = upgrade(given.message, given)
    assert format(upgraded.message) == V2
    assert given.message.SerializeToString() == before, "the given message stays as it was"
    assert upgraded.lost == []
    again = upgrade(upgraded.message)
    assert again.message is upgraded.message and again.notes == [] and again.origins == list(range(5))


@recorded
@pytest.mark.parametrize("version", ["v0", "v1"])
def test_recorded_text(version: str) -> None:
    given = read_prototxt(LEGACY / f"{version}.prototxt")
    assert format(upgrade(given.message, given).message) == (LEGACY / f"{version}_upgraded.prototxt").read_text()


@recorded
@pytest.mark.parametrize("version", ["v0", "v1"])
def test_recorded_outputs(version: str) -> None:
    with np.load(LEGACY / f"{version}.npz") as file:
        values = dict(file)
    net = load_caffe(LEGACY / f"{version}.prototxt", LEGACY / f"{version}.caffemodel")
    net.forward(data=values["in_data"])
    for key in (key for key in values if key.startswith("out_")):
        name, expected = key.removeprefix("out_"), values[key]
        np.testing.assert_allclose(net.blobs[name].data, expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=name)


def test_every_step_is_told_with_its_line() -> None:
    given = parsed(V0)
    notes = upgrade(given.message, given).notes
    assert [note.line for note in notes] == [8, None, None, 3]
    assert str(notes[0]) == 'line 8: padding layer "pad" is now pad: 1 of "conv"'
    assert str(notes[1]) == "4 V0 layers (layers { layer { ... } }) are now V1 layers"
    assert str(notes[2]) == "4 V1 layers (layers { ... }) are now current ones (layer { ... })"
    assert str(notes[3]) == "line 3: input data is now an Input layer"


def test_origins_lead_to_the_old_layers() -> None:
    assert upgrade(parsed(V0).message).origins == [None, 1, 2, 3, 4]
    assert upgrade(parsed(V1).message).origins == [None, 0, 1, 2, 3]


@pytest.mark.parametrize(("text", "lines"), [(V0, [3, 9, 14, 15, 16]), (V1, [3, 8, 12, 13, 17])], ids=["V0", "V1"])
def test_a_loaded_network_knows_the_old_lines(text: str, lines: list[int]) -> None:
    net = load_caffe(text)
    assert [node.line for node in net.nodes] == lines
    bad = text.replace("kernelsize: 3", "kernelsize: 30").replace("kernel_size: 3", "kernel_size: 30")
    with pytest.raises(ArgumentError, match=r'layer "conv" \(Convolution\)') as caught:
        load_caffe(bad)
    assert caught.value.given["line"] == lines[1]


def test_a_loaded_network_runs_and_writes_itself_in_the_current_format() -> None:
    old, new = load_caffe(V0, seed=1), load_caffe(V1, seed=1)
    x = np.random.RandomState(0).rand(2, 3, 6, 6)
    np.testing.assert_array_equal(old.forward(data=x)["prob"], new.forward(data=x)["prob"])
    assert old.to_prototxt() == V2
    assert [p.decay_mult for p in old.params["ip"]] == [1, 0]


# -- V0


def test_every_v0_type_is_one_of_v1() -> None:
    entry = Schema.bvlc().type("V1LayerParameter")
    assert set(v0.TYPES.values()) <= set(entry.enums["LayerType"])
    assert set(v1.TYPES) - {"BN", "UNPOOLING"} == set(entry.enums["LayerType"])  # SegNet's and DeconvNet's


def test_every_v0_field_leads_somewhere_that_exists() -> None:
    schema = Schema.bvlc()
    known = set(schema.type("V0LayerParameter").fields)
    assert set(v0.FIELDS) <= known
    # Caffe has no place for these either, and `name`, `type` and the lists are copied.
    assert known - set(v0.FIELDS) == {"name", "type", "blobs", "blobs_lr", "weight_decay", "new_num", "new_channels"}
    for places in v0.FIELDS.values():
        for kind, path in places.items():
            assert kind in v0.TYPES or kind == "any type"
            message = "V1LayerParameter"
            for name in path.split("."):
                message = schema.type(message).fields[name].type


def test_v0_data_layers() -> None:
    text = layers(
        'layers { layer { name: "d" type: "data" source: "x" batchsize: 3 scale: 0.5'
        ' cropsize: 2 mirror: true meanfile: "m" } top: "d" }'
    )
    assert 'data_param {\n  source: "x"\n  batch_size: 3\n}' in text
    assert 'transform_param {\n  scale: 0.5\n  mirror: true\n  crop_size: 2\n  mean_file: "m"\n}' in text


def test_v0_pooling_takes_padding() -> None:
    text = layers(
        'layers { layer { name: "p" type: "padding" pad: 2 } bottom: "data" top: "p" }'
        'layers { layer { name: "q" type: "pool" kernelsize: 3 pool: MAX } bottom: "p" top: "q" }'
    )
    assert 'bottom: "data"' in text and "pad: 2" in text


def test_v0_says_what_it_left_out() -> None:
    given = parsed(
        'input: "a" input_dim: [1,1,2,2] layers {\n'
        'layer { name: "r" type: "relu" num_output: 3 new_num: 1 } bottom: "a" top: "r" name: "x" }'
    )
    upgraded = upgrade(given.message, given)
    assert [note.text.split(" left out")[0] for note in upgraded.lost] == ["num_output", "new_num", "name"]
    assert [note.line for note in upgraded.lost] == [1, 1, 1]
    assert upgraded.message.layer[1].name == "r"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (V0.replace('type: "softmax"', 'type: "softmix"'), 16, 'V0 has no layer type "softmix"'),
        (V0.replace('bottom: "conv"', 'bottom: "cnov"'), 14, 'no layer before it makes the bottom "cnov"'),
        (V0.replace('name: "conv" type: "conv"', 'name: "conv" type: "relu"'), 9, "not into a layer of type"),
        (V0.replace('bottom: "pad"', 'bottom: "pad" bottom: "data"'), 9, "exactly one bottom"),
        (V0.replace('top: "pad"', 'top: "pad" top: "two"'), 9, "exactly one top"),
        (V0 + 'layers { name: "r" type: RELU bottom: "prob" top: "r" }', 17, "stands among V0 layers"),
        (V1 + 'layer { name: "r" type: "ReLU" bottom: "prob" top: "r" }', 8, "layers in two formats"),
    ],
)
def test_what_is_refused_names_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(PrototxtError, match=problem) as caught:
        load_caffe(text)
    assert caught.value.line == line


def test_a_misspelt_type_gets_a_hint() -> None:
    with pytest.raises(PrototxtError) as caught:
        load_caffe(V0.replace('type: "innerproduct"', 'type: "inner_product"'))
    assert caught.value.hint == 'type: "innerproduct"'


# -- V1


def test_v1_parameters() -> None:
    text = layers(
        'layers { name: "i" type: INNER_PRODUCT bottom: "data" top: "i" param: "w" param: "b" blob_share_mode: STRICT'
        " blob_share_mode: PERMISSIVE blobs_lr: 1 blobs_lr: 2 blobs_lr: 3 weight_decay: 0.5 loss_weight: 2"
        ' include { phase: TRAIN } exclude { stage: "s" } inner_product_param { num_output: 2 } }'
    )
    assert text == (
        'name: "i"\ntype: "InnerProduct"\nbottom: "data"\ntop: "i"\nloss_weight: 2\n'
        'param {\n  name: "w"\n  share_mode: STRICT\n  lr_mult: 1\n  decay_mult: 0.5\n}\n'
        'param {\n  name: "b"\n  share_mode: PERMISSIVE\n  lr_mult: 2\n}\nparam {\n  lr_mult: 3\n}\n'
        'include {\n  phase: TRAIN\n}\nexclude {\n  stage: "s"\n}\ninner_product_param {\n  num_output: 2\n}\n'
    )


@pytest.mark.parametrize("kind", ["DATA", "IMAGE_DATA", "WINDOW_DATA"])
def test_v1_transformations(kind: str) -> None:
    param = f"{kind.lower()}_param"
    given = parsed(
        f'layers {{ name: "d" type: {kind} top: "d"\n'
        f'{param} {{ source: "x" scale: 0.5 mean_file: "m" crop_size: 3 mirror: true }} }}'
    )
    upgraded = upgrade(given.message, given)
    layer = upgraded.message.layer[0]
    assert (layer.transform_param.scale, layer.transform_param.crop_size, layer.transform_param.mirror) == (0.5, 3, True)
    assert layer.transform_param.mean_file == "m"
    assert format(getattr(layer, param)) == 'source: "x"\n'
    assert upgraded.notes[0].line == 1 and f"moved from {param} to transform_param" in upgraded.notes[0].text


def test_v1_shares_its_parameter_messages_with_today() -> None:
    schema = Schema.bvlc()
    today = schema.type("LayerParameter").fields
    for name, field in schema.type("V1LayerParameter").fields.items():
        if name.endswith("_param"):
            assert today[name].type == field.type


def test_a_v1_layer_without_a_type_is_an_unknown_one() -> None:
    with pytest.raises(Exception, match='of type ""'):
        load_caffe('input: "x" input_dim: [1,1,1,1] layers { name: "n" bottom: "x" top: "n" }')


def test_blobs_in_the_text_come_along() -> None:
    weights = f"blobs {{ num: 1 channels: 1 height: 5 width: 36 {'data: 0 ' * 180} }}"
    bias = "blobs { num: 1 channels: 1 height: 1 width: 5 data: [1, 2, 3, 4, 5] }"
    net = load_caffe(V1.replace("weight_decay: 1 weight_decay: 0", weights + bias))
    np.testing.assert_array_equal(net.params["ip"][1].data, [1, 2, 3, 4, 5])


# -- inputs and BatchNorm


def test_input_shapes() -> None:
    given = parsed(
        'input: "a" input: "b" input_shape { dim: 1 } input_shape { dim: [2, 3] }'
        'layer { name: "s" type: "Silence" bottom: "a" bottom: "b" }'
    )
    upgraded = upgrade(given.message, given)
    assert [list(shape.dim) for shape in upgraded.message.layer[0].input_param.shape] == [[1], [2, 3]]
    assert upgraded.origins == [None, 0] and not upgraded.message.input and not upgraded.message.input_shape


def test_weights_may_have_inputs_without_sizes() -> None:
    given = parsed('input: "data" layers { name: "r" type: RELU bottom: "data" top: "r" }')
    upgraded = upgrade(given.message, sized=False)
    assert [layer.type for layer in upgraded.message.layer] == ["ReLU"] and "says no size" in upgraded.notes[-1].text
    with pytest.raises(PrototxtError, match="four input_dim"):
        upgrade(given.message)


def test_batch_norm_leaves_its_sums_to_itself() -> None:
    specs = 'param { lr_mult: 1 } param { name: "n" } param { decay_mult: 0 }'
    text = f'layer {{ name: "bn" type: "BatchNorm" bottom: "a" top: "bn" {specs} }}'
    given = parsed(text)
    upgraded = upgrade(given.message, given)
    frozen = upgraded.message.layer[0].param
    assert [(spec.lr_mult, spec.decay_mult, spec.name) for spec in frozen] == [(0, 0, ""), (0, 0, "n"), (0, 0, "")]
    assert [spec.lr_mult for spec in given.message.layer[0].param] == [1, 1, 1]
    assert str(upgraded.notes[0]).startswith('line 1: BatchNorm "bn"')
    assert upgrade(upgraded.message).notes == []
    two = parsed(text.replace("param { decay_mult: 0 }", ""))
    assert upgrade(two.message).message is two.message


# -- solvers


@pytest.mark.parametrize("name", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_solver_types(name: str) -> None:
    given = parse(f"base_lr: 0.1\nsolver_type: {name.upper()}", "SolverParameter")
    upgraded = upgrade_solver(given.message, given)
    assert format(upgraded.message) == f'base_lr: 0.1\ntype: "{name}"\n'
    assert str(upgraded.notes[0]) == f'line 2: solver_type is now type: "{name}"'
    assert upgrade_solver(upgraded.message).message is upgraded.message


def test_a_solver_with_both_types_is_refused() -> None:
    text = 'net: "x" base_lr: 0.1 lr_policy: "fixed" type: "SGD" solver_type: ADAM'
    with pytest.raises(ArgumentError, match="given twice"):
        load_solver(text, net=CONV_IP)
