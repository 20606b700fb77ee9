"""Strategies for hostile files: whole texts by the schema, and good files with something done to them."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from astride import proto
from astride.caffe.dialects import schema
from astride.layers import LAYERS
from astride.proto.schema import Field, MessageType

NUMBERS = ["0", "1", "-1", "2", "3", "7", "255", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "1099511627776"]
NUMBERS += [
    "9223372036854775807",
    "18446744073709551616",
    "-2147483648",
    "1e30",
    "1e999",
    "-0",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e-45",
]
WORDS = ["data", "conv", "pool", "a", "b", "", "x" * 300, "\\0", "../../etc/passwd", "/dev/zero", "\\377", "ä", "layer"]
BYTES = [
    b"",
    b"\x00",
    b"\xff" * 9,
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    b"\x08",
    b"\x0b",
    b"\x0c",
    b"\xa2\x06",
    b"{",
    b"}",
]
BYTES += [
    b"[",
    b"]",
    b"layer {",
    b'"',
    b"#",
    b":",
    b"-",
    b"1e9999",
    b"2147483647",
    b"99999999999",
    b"dim: 1000000",
    b"\n",
    b"<",
    b">",
]


@cache
def corpus() -> dict[str, list[bytes]]:
    """Good files for each target, to do something to."""
    folder = Path(__file__).parent
    small = (folder / "small.prototxt").read_bytes()
    net = proto.parse(small, "NetParameter").message
    draw = np.random.default_rng(1)
    shapes = {"conv": [(4, 3, 3, 3), (4,)], "bn": [(4,), (4,), (1,)], "scale": [(4,), (4,)]}
    shapes |= {"up": [(4, 2, 2, 2), (4,)], "ip": [(5, 100), (5,)]}
    blobs = [[draw.standard_normal(shape).astype("f4") for shape in shapes.get(layer.name, [])] for layer in net.layer]
    models = [_written(lambda path: proto.write_caffemodel(path, net, blobs))]
    record = proto.message("SolverState")(iter=3, learned_net="x", current_step=1)
    states = [_written(lambda path: proto.write_solverstate(path, record, [a for own in blobs for a in own]))]
    means = [_written(lambda path: proto.write_blob(path, np.ones((1, 3, 4, 5), "f4"), legacy=True))]
    hdf5 = _hdf5({layer.name: own for layer, own in zip(net.layer, blobs, strict=True) if own})
    texts = [small, *(path.read_bytes() for path in sorted(folder.glob("*.prototxt")) if path.name != "small.prototxt")]
    return {
        "text": texts,
        "solver": [_SOLVER + b"net_param {" + small + b"}", _SOLVER],
        "weights": models + hdf5,
        "binary": [*models, net.SerializeToString()],
        "state": states,
        "blob": means,
        "message": [proto.parse(_SOLVER, "SolverParameter").message.SerializeToString()],
    }


_SOLVER = b"""base_lr: 0.01 lr_policy: "step" gamma: 0.5 stepsize: 10 momentum: 0.9 weight_decay: 0.0005 max_iter: 100
type: "Adam" iter_size: 2 clip_gradients: 10 snapshot_prefix: "x" random_seed: 1 solver_mode: CPU display: 10 """


def _written(write: object) -> bytes:
    import tempfile

    assert callable(write)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        write(path)
        return path.read_bytes()


def _hdf5(layers: dict[str, list[np.ndarray]]) -> list[bytes]:
    try:
        import h5py
    except ImportError:
        return []
    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        for name, arrays in layers.items():
            for index, array in enumerate(arrays):
                file[f"data/{name}/{index}"] = array
    return [out.getvalue()]


@st.composite
def mutated(draw: st.DrawFn, target: str) -> bytes:
    """A good file with one to six things done to it."""
    content = bytearray(draw(st.sampled_from(corpus()[target])))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 2, 3, 6]))):
        size = len(content)
        at = draw(st.integers(0, max(size - 1, 0)))
        end = min(size, at + draw(st.sampled_from([1, 1, 2, 4, 8, 32, 200])))
        if target in ("text", "solver") and draw(st.booleans()):
            _retouch(draw, content)
            continue
        match draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6, 7])):
            case 0 if size:
                content[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del content[at:end]
            case 2:
                content[at:at] = content[at:end] * draw(st.integers(1, 3))
            case 3:
                content[at:at] = draw(st.sampled_from(BYTES))
            case 4:
                content[at:end] = draw(st.sampled_from(BYTES))
            case 5:
                del content[at:]
            case 6:
                other = draw(st.integers(0, max(size - 1, 0)))
                content[at:at] = content[other : other + (end - at)]
            case _:
                content[at:end] = draw(st.binary(min_size=end - at, max_size=end - at))
    return bytes(content)


def _retouch(draw: st.DrawFn, content: bytearray) -> None:
    """Another number, word or line in the place of one that is there."""
    tokens = list(re.finditer(rb'(?<=[: \[])-?[0-9.]+(?=[ \],\n}])|"[^"\n]*"|\b[a-z_]+(?=:| \{)', content))
    if not tokens:
        return
    token = draw(st.sampled_from(tokens))
    if token[0].startswith(b'"'):
        new = draw(st.sampled_from([t[0] for t in tokens if t[0].startswith(b'"')] + [f'"{w}"'.encode() for w in WORDS]))
    elif token[0][:1].isalpha() or token[0].startswith(b"_"):
        new = draw(st.sampled_from([t[0] for t in tokens if t[0][:1].isalpha()]))
    else:
        new = draw(st.sampled_from(NUMBERS)).encode()
    content[token.start() : token.end()] = new


@st.composite
def networks(draw: st.DrawFn) -> bytes:
    """A text that is nearly a network: real layer types and parameters, with anything as their values."""
    tops = ["data"]
    dims = draw(st.sampled_from(["2, 3, 9, 9", "1, 4, 8, 8", "1, 1, 1, 1", "3, 5", "0, 3, 4, 4", "1, 6, 16, 16"]))
    lines = [f'layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: [{dims}] }} }} }}']
    for index in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(_types()))
        bottoms = [draw(st.sampled_from(tops)) for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2, 2, 3])))]
        count = draw(st.sampled_from([1, 1, 1, 0, 2]))
        outs = [draw(st.sampled_from([f"t{index}", f"t{index}b", *tops])) for _ in range(count)]
        body = [f'name: "l{index}"', f'type: "{kind}"', *(f'bottom: "{b}"' for b in bottoms), *(f'top: "{t}"' for t in outs)]
        wanted = _parameter_of(kind)
        chosen = {*wanted[:1], draw(st.sampled_from(_layer_fields()))} if draw(st.integers(0, 3)) == 0 else {*wanted[:1]}
        for name in sorted(chosen):
            body.append(draw(_field(_layer().fields[name], "LayerParameter", 3)))
        lines.append("layer { " + " ".join(body) + " }")
        tops += outs
    return "\n".join(lines).encode()


@st.composite
def messages(draw: st.DrawFn, name: str) -> bytes:
    """A text of any fields of one message, with likely and unlikely values."""
    entry = schema().type(name)
    fields = draw(st.lists(st.sampled_from(sorted(entry.fields)), max_size=6, unique=True))
    return "\n".join(draw(_field(entry.fields[field], name, 4)) for field in fields).encode("utf-8", "surrogateescape")


@st.composite
def _field(draw: st.DrawFn, field: Field, owner: str, depth: int) -> str:
    if field.kind == "message":
        entry = schema().type(field.type)
        some = st.lists(st.sampled_from(sorted(entry.fields)), max_size=4, unique=True)
        names = [*draw(some if depth else st.just([])), *(name for name, inside in entry.fields.items() if inside.required)]
        names = list(dict.fromkeys(names))
        inner = " ".join(draw(_field(entry.fields[name], field.type, depth - 1)) for name in names)
        return f"{field.name} {{ {inner} }}"
    values = draw(st.lists(_value(field, owner), min_size=1, max_size=4 if field.repeated else 1))
    return f"{field.name}: {values[0]}" if len(values) == 1 else f"{field.name}: [{', '.join(values)}]"


def _value(field: Field, owner: str) -> st.SearchStrategy[str]:
    if field.kind == "enum":
        return st.sampled_from([*list(schema().enum_values(owner, field)) * 20, "NONSENSE", "7"])
    if field.type == "bool":
        return st.sampled_from([*["true", "false", "0", "1"] * 10, "2"])
    if field.type in ("string", "bytes"):
        return st.sampled_from([f'"{word}"' for word in WORDS])
    likely = ["1", "2", "3", "0", "-1"] if field.type.startswith(("int", "uint")) else ["0.5", "1", "0", "-2"]
    return st.sampled_from(likely * 30 + NUMBERS)


@cache
def _types() -> list[str]:
    return sorted(LAYERS)


@cache
def _layer() -> MessageType:
    return schema().type("LayerParameter")


@cache
def _layer_fields() -> list[str]:
    return sorted(name for name in _layer().fields if name not in ("name", "type", "bottom", "top", "blobs"))


@cache
def _parameter_of(kind: str) -> list[str]:
    """The parameter messages that sound like a layer's type."""
    stems = {name: name.removesuffix("_param").replace("_", "") for name in _layer_fields() if name.endswith("_param")}
    return [name for name, stem in stems.items() if stem in kind.lower() or kind.lower() in stem]


INPUTS: dict[str, st.SearchStrategy[tuple[str, bytes]]] = {
    "networks": networks().map(lambda content: ("text", content)),
    "text": mutated("text").map(lambda content: ("text", content)),
    "any text": messages("NetParameter").map(lambda content: ("text", content)),
    "solver": st.one_of(mutated("solver"), messages("SolverParameter")).map(lambda content: ("solver", content)),
    "weights": mutated("weights").map(lambda content: ("weights", content)),
    "binary": mutated("binary").map(lambda content: ("binary", content)),
    "state": mutated("state").map(lambda content: ("state", content)),
    "blob": mutated("blob").map(lambda content: ("blob", content)),
    "message": mutated("message").map(lambda content: ("message", content)),
}
