"""astride check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.console import astride

from astride import dispatch


def test_an_operator_under_two_rules() -> None:
    done = astride("check", "conv", "--rules", "caffe,mps", "--rank", 1)
    rows = [line.split() for line in done.lines]
    assert rows[0] == ["operator", "rules", "argument", "error", "tried", "kinks"]
    assert rows[1][:3] == ["conv", "caffe", "x"] and rows[2][0] == "w" and rows[3][0] == "b"
    assert sum(row[-1] == "agrees" for row in rows) == 6
    assert rows[-1][:3] == ["all", "2", "agree"]


def test_json() -> None:
    data = astride("check", "max_pool", "--rank", 1, "--json").data()
    assert data["good"] and {check["rules"] for check in data["checks"]} >= {"caffe", "pytorch"}
    assert all(argument["error"] < 1e-6 for check in data["checks"] for argument in check["arguments"])


def test_a_wrong_gradient_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dispatch.backward

    def off(*arguments: Any, **keywords: Any) -> Any:
        dx, dw, db = right(*arguments, **keywords)
        return dx, dw * 1.001, db

    monkeypatch.setattr(dispatch, "backward", off)
    done = astride("check", "conv", "--rules", "caffe", "--rank", 1, status=1)
    assert [line.split()[0] for line in done.lines if "DIFFERS" in line] == ["w"]
    assert "1 of 1 differ" in done.out


@pytest.mark.parametrize(("words", "said"), [(["max_pol"], "max_pool"), (["max_pool", "-r", "cafe"], "caffe")])
def test_what_does_not_exist_is_named_with_what_does(words: list[str], said: str) -> None:
    assert said in astride("check", *words, status=1).err


def test_a_network_that_is_right(shop: Path) -> None:
    done = astride("check", "net.prototxt", "--weights", "stripes_iter_30.caffemodel")
    assert done.lines[0].startswith("fits  phase TRAIN") and done.lines[1].startswith("fits  phase TEST")
    assert done.lines[2].startswith("fits  weights") and done.lines[-1] == "nothing wrong was found"


def test_a_networks_gradients(shop: Path) -> None:
    done = astride("check", "net.prototxt", "--gradients", "--json")
    data = done.data()
    assert data["good"] and {layer["layer"] for layer in data["layers"]} >= {"conv", "relu", "pool", "ip", "loss"}
    assert "agrees" in astride("check", "net.prototxt", "--gradients").out


def test_everything_wrong_is_listed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.prototxt"
    file.write_text(
        'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }\n'
        'layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_outputs: 3 kernel_size: 3 } }\n'
        'layer { name: "b" type: "Nothing" bottom: "a" top: "b" nothing_param { x: 1 } }\n'
        'layer { name: "c" type: "Nought" bottom: "b" top: "c" }\n'
    )
    done = astride("check", file, status=1)
    assert "num_outputs" in done.out and "num_output" in done.out and "nothing_param" in done.out
    assert 'layer "b" of type "Nothing"' in done.out and 'layer "c" of type "Nought"' in done.out
    data = astride("check", file, "--json", status=1).data()
    assert not data["good"] and len(data["problems"]) == 3


def test_syntax_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.prototxt"
    file.write_text('name: "x"\nlayer { name: \n')
    assert "bad.prototxt:3:1" in astride("check", file, status=1).out


def test_weights_that_do_not_fit(shop: Path) -> None:
    text = (shop / "deploy.prototxt").read_text().replace("num_output: 2", "num_output: 3")
    (shop / "other.prototxt").write_text(text)
    done = astride("check", "other.prototxt", "--weights", "stripes_iter_30.caffemodel", status=1)
    assert "wrong weights" in done.out and "(3, 16)" in done.out


def test_a_missing_file() -> None:
    assert "no file" in astride("check", "none.prototxt", status=1).err


def test_what_may_be_meant_otherwise_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "old.prototxt"
    path.write_text(
        'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [1, 1, 8, 8] } } }\n'
        'layer { name: "c" type: "Convolution" bottom: "data" top: "c" '
        "convolution_param { num_output: 1 kernel_size: 1 pad: 3 } }\n"
        'layer { name: "crop" type: "Crop" bottom: "c" bottom: "data" top: "crop" }\n'
    )
    done = astride("check", path)
    assert done.out.count('line 3: Crop "crop" gives no offset') == 1 and "offset: 3" in done.out and done.err == ""
    assert "nothing wrong was found" in done.out
    assert len(astride("check", path, "--json").data()["remarks"]) == 1
    assert astride("check", path, "--dialect", "autocrop", "--json").data()["remarks"] == []
