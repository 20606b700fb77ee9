"""A dialect from a caffe.proto of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from astride.caffe import load_caffe
from astride.caffe.dialects import schema
from astride.caffe.dialects.from_proto import from_proto
from astride.errors import ArgumentError, ModelFileError, PrototxtError
from astride.proto import Schema, parse

OWN = """syntax = "proto2";
package caffe;
// Of one laboratory only.
message LayerParameter {
  optional string name = 1; // the layer's name
  optional MineParameter mine_param = 777;
  optional BlobProto extra = 778;
  /* as packed
     floats */ repeated float weights = 779 [packed = true, deprecated = true];
  reserved 800 to 900;
}
message MineParameter {
  enum Mode { FIRST = 1; SECOND = 2 [deprecated = true]; }
  optional Mode mode = 1 [default = SECOND];
  optional string word = 2 [default = 'x y'];
  required sint32 size = 3;
  optional float low = 4 [default = -1.5];
  message Inner { optional uint32 n = 1; }
  repeated Inner inner = 5;
}
message OtherParameter { optional MineParameter.Mode mode = 1 [default = FIRST]; }
enum Colour { RED = 0; BLUE = 1; }
message PoolingParameter { optional Colour colour = 13; optional bool ceil_mode = 50; }
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "caffe.proto"
    path.write_text(OWN)
    return str(path)


def test_its_fields_and_defaults(own: str) -> None:
    mine = schema(own)
    text = 'layer { name: "a" mine_param { mode: FIRST size: 3 inner { n: 2 } } weights: [1, 2] pooling_param { colour: BLUE } }'
    net = parse(text, "NetParameter", schema=mine).message
    assert net.layer[0].mine_param.inner[0].n == 2 and list(net.layer[0].weights) == [1, 2]
    assert net.layer[0].SerializeToString().count(b"\xda\x30") == 1
    empty = mine.message("MineParameter")()
    assert (empty.mode, empty.word, empty.low) == (2, "x y", -1.5)
    assert mine.message("OtherParameter")().mode == 1
    assert mine.type("PoolingParameter").fields["colour"].number == 13


def test_it_loads_a_network_beside_other_dialects(own: str) -> None:
    """CAF-53: one registry, extended at run time; versions that contradict each other side by side in one process."""
    data = 'layer { name: "d" type: "Input" top: "d" input_param { shape { dim: [1, 1, 5, 5] } } }'
    pool = 'layer { name: "p" type: "Pooling" bottom: "d" top: "p" pooling_param { KEPT ceil_mode: false COLOUR } }'.replace(
        "KEPT", "kernel_size: 2 stride: 2"
    )
    mine = load_caffe(data + pool.replace("COLOUR", "colour: RED"), dialect=own)
    other = load_caffe(data + pool.replace("COLOUR", ""), dialect="ceil_mode")
    assert mine.blobs["p"].shape == other.blobs["p"].shape == (1, 1, 2, 2)
    assert "colour: RED" in mine.to_prototxt()
    numbers = [schema(name).type("PoolingParameter").fields["ceil_mode"].number for name in (own, "ceil_mode")]
    assert numbers == [50, 13]
    assert schema(f"ssd+{own}").type("LayerParameter").fields["permute_param"].number == 202
    with pytest.raises(PrototxtError, match="PoolingParameter has no field colour"):
        load_caffe(data + pool.replace("COLOUR", "colour: RED"))


def test_bvlcs_own_file_gives_bvlcs_schema(shared: Path, tmp_path: Path) -> None:
    """Our table, written as a .proto file and read back, is our table."""
    lines = ['syntax = "proto2"; package caffe;']
    lines += [
        f"enum {name} {{ {'; '.join(f'{k} = {v}' for k, v in values.items())}; }}" for name, values in Schema.bvlc().enums.items()
    ]
    for name, entry in Schema.bvlc().messages.items():
        lines.append(f"message {name} {{")
        lines += [f"enum {e} {{ {'; '.join(f'{k} = {v}' for k, v in vs.items())}; }}" for e, vs in entry.enums.items()]
        for f in entry.fields.values():
            label = "repeated" if f.repeated else "required" if f.required else "optional"
            options = ["packed = true"] * f.packed + ([] if f.default is None else [f"default = {_literal(f.type, f.default)}"])
            lines.append(f"{label} {f.type} {f.name} = {f.number}" + (f" [{', '.join(options)}]" if options else "") + ";")
        lines.append("}")
    (tmp_path / "bvlc.proto").write_text("\n".join(lines))
    read = schema(str(tmp_path / "bvlc.proto"))
    assert read.messages == Schema.bvlc().messages and read.enums == Schema.bvlc().enums


def _literal(kind: str, default: str) -> str:
    return f'"{default}"' if kind == "string" else default


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("message A { optional int32 x = 1 }", "expected ;, found }"),
        ("message A { optional int32 x = -1; }", "is no field"),
        ("message A { optional int32 x = 1;", "the end of the file in A"),
        ("message A { int32 x = 1; }", "fields begin with optional, repeated, required"),
        ("service S { }", "service is not read here"),
        ("message A { optional int32 x = 1; } ?", "unexpected character '?'"),
        ("enum E { A = -1; }", "no value of an enumeration here"),
        ("message A " + "{ message B " * 100, "messages are nested too deep"),
    ],
)
def test_what_cannot_be_read_is_placed(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "x.proto").write_text(text)
    with pytest.raises(PrototxtError) as caught:
        from_proto(tmp_path / "x.proto")
    assert problem in str(caught.value) and caught.value.line == 1


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot open"):
        schema(str(tmp_path / "nowhere.proto"))
    with (tmp_path / "large.proto").open("wb") as file:
        file.truncate(2**23)
    with pytest.raises(ModelFileError, match="too large"):
        schema(str(tmp_path / "large.proto"))
    (tmp_path / "type.proto").write_text("message A { optional Nothing x = 1; }")
    with pytest.raises(ArgumentError, match="unknown type Nothing"):
        schema(str(tmp_path / "type.proto"))
