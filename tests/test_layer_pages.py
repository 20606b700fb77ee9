"""Every layer type has its page, whose example is a network that loads and runs, and whose text is made from the class."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from astride.caffe import load_caffe
from astride.layers import LAYERS, layer_class
from astride.layers.memory_data import MemoryData

DOCS = Path(__file__).resolve().parent.parent / "docs"


def loaded(name: str) -> ModuleType:
    """A module of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = loaded("layer_pages")


def plain_table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(" | ".join(row) for row in [head, *rows]) + "\n"


def missing_pages(folder: Path) -> list[str]:
    return [kind for kind, module in LAYERS.items() if not (folder / f"{module}.md").is_file()]


def test_every_type_has_a_page() -> None:
    assert missing_pages(DOCS / "layers") == []
    written = {path.stem for path in (DOCS / "layers").glob("*.md")} - {"index"}
    assert written == set(LAYERS.values()), "a page of a layer that is not there"


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    for kind, module in LAYERS.items():
        if kind != "ReLU":
            (tmp_path / f"{module}.md").touch()
    assert missing_pages(tmp_path) == ["ReLU"]


@pytest.mark.parametrize("kind", LAYERS)
def test_page(kind: str) -> None:
    text = (DOCS / "layers" / f"{LAYERS[kind]}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {kind}\n") and f"../_generated/layers/{LAYERS[kind]}.md" in text


@pytest.mark.parametrize("kind", LAYERS)
def test_example_runs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them writes
    if kind == "HDF5Output":
        pytest.importorskip("h5py")
    net = pages.network(kind)
    assert kind in {node.layer.type for node in net.nodes}
    planned = {name: blob.shape for name, blob in net.blobs.items()}
    again = load_caffe(net.to_prototxt(), **pages.GIVEN.get(kind, {}))
    assert {name: blob.shape for name, blob in again.blobs.items()} == planned
    if not any(isinstance(layer, MemoryData) for layer in net.layers):
        out = net.forward()
        # how many a Filter or a Proposal passes on is known only when it has run
        varies = kind in ("Filter", "Proposal", "YoloDetectionOutput", "Yolov3DetectionOutput")
        assert varies or {name: value.shape for name, value in out.items()} == {n: planned[n] for n in net.outputs}


@pytest.mark.parametrize("kind", LAYERS)
def test_class_says_where_it_is_from(kind: str) -> None:
    """The docstring is the page: its source stands last, and is a file of Caffe."""
    lines = (inspect.getdoc(layer_class(kind)) or "").splitlines()
    assert layer_class(kind).__doc__ is not layer_class(kind).__base__.__doc__
    sources = [line for line in lines if line.startswith("Source  ")]
    assert len(sources) == 1 and "Caffe, " in sources[0] and "pp" in sources[0]


def test_written_pages_hold_fields_and_shapes(tmp_path: Path) -> None:
    pages.write(tmp_path, plain_table)
    assert {path.stem for path in tmp_path.glob("*.md")} == {"toctree", "common", *LAYERS.values()}
    text = (tmp_path / "inner_product.md").read_text()
    for expected in ("bottom `x` | (1, 3, 8, 8)", "parameter 0 | (10, 192)", "`axis` | int32 | `1`", "- bottoms: 1\n"):
        assert expected in text
    assert (
        "`normalization` | `FULL` `VALID` `BATCH_SIZE` `NONE` `PRE_FIXED` | `VALID`" in (tmp_path / "softmax_loss.md").read_text()
    )
    assert "None of its own." in (tmp_path / "abs_val.md").read_text()
    contents = (tmp_path / "toctree.md").read_text().split()
    assert [name for name in contents if name in LAYERS.values()] == [LAYERS[kind] for kind in sorted(LAYERS, key=str.lower)]


def test_a_split_in_the_example_keeps_the_names_of_the_text() -> None:
    text = """
    input: "x" input_shape { dim: 2 dim: 3 }
    layer { name: "a" type: "ReLU" bottom: "x" top: "a" }
    layer { name: "b" type: "TanH" bottom: "x" top: "b" }
    """
    assert pages.shapes(load_caffe(text), "TanH") == [["bottom `x`", "(2, 3)"], ["top `b`", "(2, 3)"]]


@pytest.mark.parametrize("kind", LAYERS)
def test_fields_are_those_the_translation_reads(kind: str) -> None:
    """Its own at least, unless there is nothing in it but the engine, which nobody reads."""
    read = pages.messages_of(kind, pages.example(kind))
    own = f"{LAYERS[kind]}_param"
    fields = set(pages.schema().type("LayerParameter").fields)
    assert set(read) <= fields
    if own in fields and set(pages.schema().type(pages.schema().type("LayerParameter").fields[own].type).fields) != {"engine"}:
        assert own in read


def test_a_page_without_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "relu.md").write_text("# ReLU\n```python\nx\n```\n")
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    with pytest.raises(ValueError, match=r"relu\.md has no"):
        pages.example("ReLU")


# From docstrings to Markdown

DOCSTRING = """y = a * b_c, `a_b` as it is.

More of it
over two lines.

    y = x * [w]

Bottoms     x and
            z
Options     first
            second_one: more
rule        a -> b
Source      Caffe, src/caffe/layers/relu_layer.cpp
"""
MARKDOWN = r"""y = a \* b\_c, `a_b` as it is.

More of it over two lines.

```text
y = x * [w]
```

Bottoms
: x and z

Options
: first
: second\_one: more

`rule`
: a -\> b

Source
: Caffe, `src/caffe/layers/relu_layer.cpp`
"""


def test_docstring_to_markdown() -> None:
    assert pages.described(DOCSTRING) == MARKDOWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-sum of x", r"\-sum of x"), ("a - b", "a - b"), ("(N, ...)", "(N, ...)"), ("`x_y` x_y", r"`x_y` x\_y"), ("|x|", "|x|")],
)
def test_escapes(text: str, expected: str) -> None:
    assert pages.escaped(text) == expected


@pytest.mark.parametrize(("limits", "expected"), [((1, 1), "1"), ((1, 2), "1 to 2"), ((0, None), "0 or more")])
def test_counts(limits: Any, expected: str) -> None:
    assert pages.counted(limits) == expected
