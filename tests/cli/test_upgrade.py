"""astride upgrade and astride convert as typed: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from astride.cli import app

OLD = """# digits
input: "data"
input_dim: [1, 1, 4, 4]
layers { layer { name: "p" type: "padding" pad: 1 } bottom: "data" top: "p" }
layers {
  layer { name: "c" type: "conv" num_output: 2 kernelsize: 3 }  # the only one
  bottom: "p"
  top: "c"
}
"""

NEW = """# digits
layer {
  name: "input"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 1
      dim: 1
      dim: 4
      dim: 4
    }
  }
}
layer {
  name: "c"
  type: "Convolution"
  bottom: "data"
  top: "c"
  convolution_param {
    num_output: 2
    pad: 1
    kernel_size: 3
  }
}  # the only one
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.prototxt").write_text(OLD)
    return tmp_path


def astride(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_upgrade(folder: Path) -> None:
    code, out, err = astride("upgrade", "old.prototxt", "new.prototxt")
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == [
        "new.prototxt: network (text), 2 layers",
        "line",
        '   4  padding layer "p" is now pad: 1 of "c"',
        "      1 V0 layers (layers { layer { ... } }) are now V1 layers",
        "      1 V1 layers (layers { ... }) are now current ones (layer { ... })",
        "   2  input data is now an Input layer",
    ]
    assert (folder / "new.prototxt").read_text() == NEW
    code, out, _ = astride("upgrade", "new.prototxt", "new.prototxt")
    assert (code, out.splitlines()[1]) == (0, "current already, copied as it was")


def test_upgrade_as_json() -> None:
    code, out, err = astride("upgrade", "old.prototxt", "new.prototxt", "--json")
    data = json.loads(out)
    assert (code, err, data["type"], data["layers"]) == (0, "", "net-text", 2)
    assert data["notes"][0] == {"line": 4, "text": 'padding layer "p" is now pad: 1 of "c"', "lost": False}


def test_what_is_lost_makes_it_fail(folder: Path) -> None:
    (folder / "odd.prototxt").write_text(OLD.replace("kernelsize: 3", "kernelsize: 3 alpha: 2"))
    code, out, _ = astride("upgrade", "odd.prototxt", "new.prototxt")
    assert code == 1 and 'lost  alpha left out: a layer of type "conv" has no such field' in out
    assert (folder / "new.prototxt").read_text() == NEW


def test_upgrade_by_type(folder: Path) -> None:
    (folder / "solver.prototxt").write_text("solver_type: ADAM")
    code, out, _ = astride("upgrade", "solver.prototxt", "new.prototxt", "--type", "solver-text")
    assert code == 0 and out.startswith("new.prototxt: solver (text)\n")
    code, _, err = astride("upgrade", "solver.prototxt", "new.prototxt", "--type", "text")
    assert code == 2 and "net-text, net-binary" in err


def test_errors_are_messages() -> None:
    code, out, err = astride("upgrade", "gone.prototxt", "new.prototxt")
    assert (code, out) == (1, "") and "there is no file gone.prototxt" in err and "Traceback" not in err


def test_convert(folder: Path) -> None:
    code, out, _ = astride("convert", "old.prototxt", "net.caffemodel")
    assert code == 0 and out.startswith("net.caffemodel: network (binary), 2 layers\n")
    code, out, _ = astride("convert", "net.caffemodel", "again.prototxt")
    assert (code, out.splitlines()) == (0, ["again.prototxt: network (text), 2 layers", "nothing was lost on the way"])
    assert (folder / "again.prototxt").read_text() == NEW.replace("# digits\n", "").replace("  # the only one", "")


def test_convert_says_what_it_cannot_write() -> None:
    code, _, err = astride("convert", "old.prototxt", "net.onnx")
    assert code == 1 and "ONNX" in err
    code, _, err = astride("convert", "old.prototxt", "net.bin")
    assert code == 1 and "does not say what it is to hold" in err
    code, _, err = astride("convert", "old.prototxt", "net.bin", "--to", "xml")
    assert code == 2 and "neither text nor binary" in err
    code, out, _ = astride("convert", "old.prototxt", "net.bin", "--to", "binary", "--json")
    assert code == 0 and json.loads(out)["type"] == "net-binary"


def test_bytes_that_ask_for_a_dialect(folder: Path) -> None:
    data = 'layer { name: "d" type: "Input" top: "d" input_param { shape { dim: [1, 1, 5, 5] } } }'
    pool = 'layer { name: "p" type: "Pooling" bottom: "d" top: "p" pooling_param { kernel_size: 2 stride: 2 ceil_mode: false } }'
    (folder / "fork.prototxt").write_text(data + pool)
    assert astride("convert", "fork.prototxt", "fork.caffemodel")[0] == 0
    code, _, err = astride("convert", "fork.caffemodel", "again.prototxt")
    assert code == 1 and "--dialect bvlc" in err and not (folder / "again.prototxt").exists()
    assert astride("convert", "fork.caffemodel", "again.prototxt", "--dialect", "ceil_mode")[0] == 0
    assert "ceil_mode: false" in (folder / "again.prototxt").read_text()
    assert astride("upgrade", "fork.prototxt", "same.prototxt", "--dialect", "ceil_mode")[0] == 0
    code, _, err = astride("show", "fork.prototxt", "--dialect", "bvlc")
    assert code == 1 and 'dialect="ceil_mode"' in err
    code, out, _ = astride("show", "fork.prototxt", "--json")
    assert code == 0 and "[1, 1, 2, 2]" in json.dumps(json.loads(out)["layers"][1])
