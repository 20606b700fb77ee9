"""Comments survive an upgrade, beside or before what they were about, and never change what the text says."""

from __future__ import annotations

import pytest

from astride.caffe.comments import carry
from astride.caffe.upgrade import upgrade, upgrade_solver
from astride.proto import format, parse

OLD = """# header

name: "n"  # the name
# the input
input: "data"  # in
input_dim: 1  # batch
input_dim: 3
input_dim: 5
input_dim: 5
# first layer
layers {  # opening
  # about the name
  name: "conv"  # its name
  type: CONVOLUTION
  bottom: "data" top: "conv"  # two on a line
  blobs_lr: 1  # weights
  blobs_lr: 2  # bias
  convolution_param {
    num_output: 4  # four "maps"
    kernel_size: 3
    weight_filler { type: "xavier" }  # filler
    bias_filler { type: "constant" }
    # end of parameters
  }  # closing
  # end of layer
}  # layer closed
# switched off:
# layers { name: "x#y" }
layers { name: "a#b" type: RELU bottom: "conv" top: "conv" }  # relu
# the end
"""

NEW = """# header
name: "n"  # the name
# the input
layer {  # in  # batch
  name: "input"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 1
      dim: 3
      dim: 5
      dim: 5
    }
  }
}
# first layer
layer {  # opening
  # about the name
  name: "conv"  # its name
  type: "Convolution"
  bottom: "data"
  top: "conv"  # two on a line
  param {
    lr_mult: 1  # weights
  }
  param {
    lr_mult: 2  # bias
  }
  convolution_param {
    num_output: 4  # four "maps"
    kernel_size: 3
    weight_filler {
      type: "xavier"
    }  # filler
    bias_filler {
      type: "constant"
    }
    # end of parameters
  }  # closing
  # end of layer
}  # layer closed
# switched off:
# layers { name: "x#y" }
layer {
  name: "a#b"
  type: "ReLU"
  bottom: "conv"
  top: "conv"
}  # relu
# the end
"""


def upgraded(old: str) -> str:
    given = parse(old, "NetParameter")
    result = upgrade(given.message, given)
    new = carry(old, format(result.message), result.origins)
    assert parse(new, "NetParameter").message == result.message, "comments change nothing"
    return new


def test_every_comment_keeps_its_place() -> None:
    assert upgraded(OLD) == NEW


def test_a_text_without_comments_stays_as_it_is() -> None:
    assert carry("name: 'a#b'", "text", []) == "text"


def test_v0() -> None:
    old = """
input: "data" input_dim: [1,  # batch
  3, 4, 4]
# pads
layers { layer { name: "p" type: "padding" pad: 1 } bottom: "data" top: "p" }  # gone
layers {
  layer {  # inner
    type: "conv"
    kernelsize: 3  # three
    # rate
    blobs_lr: 2
    weight_decay: 0  # no decay
    num_output: 2
  }
  bottom: "p"
  top: "c"
}
"""
    lines = upgraded(old).splitlines()
    assert lines[0] == "layer {  # batch"
    at = lines.index("# pads")
    assert lines[at : at + 3] == ["# pads", "# gone", "layer {  # inner"], "what is gone leaves them before the next layer"
    assert "    kernel_size: 3  # three" in lines and "    decay_mult: 0  # no decay" in lines
    assert lines[lines.index("    # rate") + 1] == "    lr_mult: 2"


def test_a_field_that_is_gone_leaves_its_comment_to_its_layer() -> None:
    old = 'input: "a" input_dim: [1, 1, 1, 1]\nlayers { layer { type: "relu"\n num_output: 3  # odd\n } bottom: "a" top: "b" }\n'
    lines = upgraded(old).splitlines()
    assert lines[lines.index("  # odd") - 1] == "layer {"


def test_moved_fields() -> None:
    old = 'layers {\n  type: DATA top: "d"\n  data_param {\n    source: "x"\n    scale: 0.5  # of bytes\n  }\n}\n'
    assert "  transform_param {\n    scale: 0.5  # of bytes\n  }" in upgraded(old)


def test_lists_of_messages() -> None:
    old = """
input: ["a", "b"] input_shape: [{ dim: 1 }, { dim: 2 }]  # both
layer: [{ type: "Silence" bottom: "a" },  # one
        { type: "Silence" bottom: "b" }]  # two
"""
    closing = [line for line in upgraded(old).splitlines() if line.startswith("}")]
    assert closing == ["}  # both", "}  # one", "}  # two"]


def test_solver() -> None:
    old = "# how to learn\nbase_lr: 0.1  # high\nsolver_type: ADAM  # the kind\n"
    given = parse(old, "SolverParameter")
    new = carry(old, format(upgrade_solver(given.message, given).message), [])
    assert new == '# how to learn\nbase_lr: 0.1  # high\ntype: "Adam"  # the kind\n'


@pytest.mark.parametrize("line", range(len(OLD.splitlines()) + 1))
def test_a_comment_anywhere_is_kept(line: int) -> None:
    """Before every line and beside every line of the old text."""
    lines = OLD.splitlines()
    assert "# here" in upgraded("\n".join([*lines[:line], "    # here", *lines[line:]]))
    if line < len(lines):
        assert "# here" in upgraded("\n".join([*lines[:line], f"{lines[line]} # here", *lines[line + 1 :]]))
