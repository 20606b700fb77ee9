"""Our text codec and protobuf's own, on the same texts and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astride import proto
from astride.errors import PrototxtError

from .samples import NET, messages

SHARED = Path(__file__).resolve().parents[3] / "shared"
TEXTS = sorted(SHARED.rglob("*.prototxt"))
ROOTS = [
    "NetParameter",
    "SolverParameter",
    "LayerParameter",
    "V1LayerParameter",
    "V0LayerParameter",
    "Datum",
    "BlobProto",
    "SolverState",
]


def theirs(text: str | bytes, name: str) -> Any:
    return text_format.Parse(text, proto.message(name)())


@pytest.mark.skipif(not TEXTS, reason="no prototxt in ../shared")
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_reads_real_networks_as_protobuf_does(path: Path) -> None:
    text = path.read_bytes()
    try:
        expected = theirs(text, "NetParameter")
    except text_format.ParseError as refused:
        # A fork's network: protobuf stops at the first unknown field, we name them all, beginning with the same.
        with pytest.raises(PrototxtError) as caught:
            proto.parse(text, "NetParameter")
        assert caught.value.line == refused.GetLine()
        parsed = proto.parse(text, "NetParameter", allow_unknown_fields=True)
        assert parsed.message == text_format.Parse(text, proto.message("NetParameter")(), allow_unknown_field=True)
        assert len(parsed.unknown) > 1
        return
    parsed = proto.read_prototxt(path)
    assert parsed.message == expected
    assert not parsed.unknown
    written = proto.format(parsed.message)
    assert theirs(written, "NetParameter") == expected
    lines = text.decode().splitlines()
    for layer in parsed.message.layer or parsed.message.layers:
        line = parsed.line_of(layer)
        assert line is not None
        assert lines[line - 1].lstrip().startswith("layer")


@pytest.mark.skipif(not TEXTS, reason="no prototxt in ../shared")
@pytest.mark.parametrize("name", ["v0_upgraded", "v1_upgraded"])
def test_writes_what_caffes_own_tool_wrote(name: str) -> None:
    text = (SHARED / f"goldens/caffe/legacy/{name}.prototxt").read_text()
    assert proto.format(proto.parse(text, "NetParameter").message) == text


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ROOTS).flatmap(messages))
def test_any_message_survives_both_ways(message: Any) -> None:
    name = message.DESCRIPTOR.name
    ours = proto.format(message)
    assert proto.parse(ours, name).message == message
    assert theirs(ours, name) == message
    for text in (
        text_format.MessageToString(message),
        text_format.MessageToString(message, as_one_line=True),
        text_format.MessageToString(message, as_utf8=True, pointy_brackets=True, use_short_repeated_primitives=True),
    ):
        assert proto.parse(text, name).message == message


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_agrees_on_damaged_texts(data: st.DataObject) -> None:
    """What protobuf refuses we refuse; what both read is the same. Where we are stricter, the table in test_text.py says so."""
    at = data.draw(st.integers(0, len(NET)))
    length = data.draw(st.integers(0, 4))
    text = NET[:at] + data.draw(st.text("{}<>[]:,;-.#'\"0x1fe \nTEST", max_size=3)) + NET[at + length :]
    try:
        ours = proto.parse(text, "NetParameter").message
    except PrototxtError as error:
        assert error.line is not None
        return
    assert ours == theirs(text, "NetParameter")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(ROOTS).flatmap(messages))
def test_any_message_survives_the_binary_form(message: Any) -> None:
    raw = message.SerializeToString()
    assert proto.parse_binary(raw, message.DESCRIPTOR.name) == message
