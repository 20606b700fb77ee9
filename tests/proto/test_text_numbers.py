"""Runs of plain numbers, and where they end."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from astride import proto
from astride.errors import PrototxtError

PIECES = [
    "1",
    "-2.5",
    "0",
    "1e3",
    "-1.5E-7",
    "0.125",
    "3.40282347e+38",
    "1e999",
    ".5",
    "5.",
    "1f",
    "inf",
    "-inf",
    "nan",
    "007",
]


def numbers(text: str) -> list[float]:
    return list(proto.parse(text, "BlobProto").message.data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data: 1 data: 2 data: -3.5", [1, 2, -3.5]),
        ("data: 1\ndata:2\r\n\tdata : 3 shape { dim: 3 } data: 4 data: 5", [1, 2, 3, 4, 5]),
        ("data: [1, 2, 3] data: 4 data: 5 data: [6]", [1, 2, 3, 4, 5, 6]),
        ("data: [1, 2 , .5, 4f, 5, 6 # the end\n, 7]", [1, 2, 0.5, 4, 5, 6, 7]),
        ("data: 1; data: 2, data: 3 data: 4", [1, 2, 3, 4]),
        ("data: 1 diff: 9 data: 2", [1, 2]),
        ("data: []", []),
    ],
)
def test_runs(text: str, expected: list[float]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    "text",
    ["data: [1, 2,]", "data: [1, 2 3]", "data: [1, , 2]", "data: 1 data: 2x", "data: [1, 02]", "data: 1 data 2", "data: [1, 2"],
)
def test_what_ends_a_run_badly_is_placed(text: str) -> None:
    with pytest.raises(PrototxtError) as caught:
        numbers(text)
    assert caught.value.line == 1 and caught.value.column is not None


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12), st.booleans())
def test_as_protobuf_reads_them(pieces: list[str], listed: bool) -> None:
    text = f"data: [{', '.join(pieces)}]" if listed else " ".join(f"data: {piece}" for piece in pieces)
    if "007" in pieces:
        with pytest.raises(PrototxtError, match=r"leading 0|decimal"):
            numbers(text)
        return
    theirs = text_format.Parse(text, proto.message("BlobProto")())
    np.testing.assert_array_equal(numbers(text), list(theirs.data))


def test_a_million_numbers_keep_their_order_and_place() -> None:
    text = "double_data: [" + ", ".join(map(str, range(1_000_000))) + "] num: 1\n num: 2"
    with pytest.raises(PrototxtError, match="num is set a second time") as caught:
        proto.parse(text, "BlobProto")
    assert caught.value.line == 2
    read = proto.parse(text.rsplit(" num", 1)[0], "BlobProto")
    assert read.message.double_data[999_999] == 999_999 and read.where("double_data").column == 1


def test_values_have_a_bound() -> None:
    with pytest.raises(PrototxtError, match="more than 250000 values"):
        proto.parse("input_dim: 1\n" * 250_001, "NetParameter")
    with pytest.raises(PrototxtError, match="more than 250000 values"):
        proto.parse("nobody: [" + "1, " * 260_000 + "1]", "NetParameter", allow_unknown_fields=True)
