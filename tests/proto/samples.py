"""Messages to test with: a small network, and any message hypothesis can think of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from astride import proto
from astride.proto.schema import Field

RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1)}

NET = """
name: "small"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape { dim: [1, 3, 8, 8] } }
}
layer {
  name: "conv"
  type: "Convolution"
  bottom: "data"
  top: "conv"
  param { lr_mult: 1 }
  param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }
}
layer {
  name: "pool"
  type: "Pooling"
  bottom: "conv"
  top: "pool"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 }
}
"""


def weights() -> list[list[np.ndarray]]:
    """The blobs of NET, layer by layer."""
    draw = np.random.default_rng(7)
    return [[], [draw.standard_normal((4, 3, 3, 3)).astype("f4"), np.arange(4, dtype="f4")], []]


def write_net(path: Path) -> bytes:
    """NET with its weights, as a file; returns the file's bytes."""
    proto.write_caffemodel(path, proto.parse(NET, "NetParameter").message, weights())
    return path.read_bytes()


@st.composite
def messages(draw: st.DrawFn, name: str, schema: proto.Schema | None = None, depth: int = 4) -> Any:
    """Any message of one type, up to `depth` messages deep."""
    schema = schema or proto.Schema.bvlc()
    entry = schema.type(name)
    message = schema.message(name)()
    usable = [field for field in entry.fields.values() if depth > 1 or field.kind != "message"]
    required = [field for field in usable if field.required]
    chosen = draw(st.lists(st.sampled_from(usable), max_size=5, unique=True)) if usable else []
    for field in {**dict.fromkeys(chosen), **dict.fromkeys(required)}:
        count = draw(st.integers(0, 3)) if field.repeated else 1
        for _ in range(count):
            if field.kind == "message":
                inner = draw(messages(field.type, schema, depth - 1))
                target = getattr(message, field.name)
                (target.add() if field.repeated else target).CopyFrom(inner)
                if not field.repeated:
                    target.SetInParent()
            elif field.repeated:
                getattr(message, field.name).append(draw(values(schema, name, field)))
            else:
                setattr(message, field.name, draw(values(schema, name, field)))
    return message


def values(schema: proto.Schema, owner: str, field: Field) -> st.SearchStrategy[Any]:
    """Any value of a scalar or enum field."""
    if field.kind == "enum":
        return st.sampled_from(sorted(schema.enum_values(owner, field).values()))
    if field.type in RANGES:
        return st.integers(*RANGES[field.type])
    # NaN is left out only because no message with one equals itself.
    return {
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bool": st.booleans(),
        "string": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        "bytes": st.binary(max_size=20),
    }[field.type]
