"""Damaged and hostile files: never a crash, never a wrong network without a word, never much memory."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from astride import proto
from astride.errors import AstrideError, ModelFileError
from astride.proto.wire_fields import encode_varint

from .samples import NET, write_net

SHARED = Path(__file__).resolve().parents[3] / "shared"
REAL = [
    path
    for name in ("caffe/legacy/v0.caffemodel", "caffe/legacy/v1.caffemodel", "caffe/solvers/sgd_fixed_iter_6.caffemodel")
    if (path := SHARED / "goldens" / name).exists()
]


@pytest.fixture
def small(tmp_path: Path) -> bytes:
    return write_net(tmp_path / "net.caffemodel")


def length(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


def ends(raw: bytes) -> set[int]:
    """Where a file may end and still be one: after each field at its top."""
    from astride.proto.wire_fields import fields

    return {field.stop for field in fields(memoryview(raw), 0, len(raw))}


def check_truncations(raw: bytes, step: int) -> None:
    whole = ends(raw)
    for size in range(1, len(raw), step):
        if size in whole:
            assert len(proto.read_caffemodel(raw[:size]).layers) < len(proto.read_caffemodel(raw).layers)
            continue
        with pytest.raises(ModelFileError) as caught:
            proto.read_caffemodel(raw[:size])
        assert f"cut off at byte {size}" in caught.value.problem
        assert "NetParameter" in caught.value.problem


def test_truncated_anywhere(small: bytes) -> None:
    check_truncations(small, 1)


@pytest.mark.skipif(not (SHARED / "models").is_dir(), reason="no models in ../shared")
@pytest.mark.parametrize("name", ["mtcnn/det1.caffemodel"])
def test_real_file_truncated_at_every_fiftieth_byte(name: str) -> None:
    check_truncations((SHARED / "models" / name).read_bytes(), 50)


def test_truncation_names_the_layer(small: bytes) -> None:
    with pytest.raises(ModelFileError) as caught:
        proto.read_caffemodel(small[:300], name="net.caffemodel")
    assert str(caught.value).splitlines()[0] == (
        "net.caffemodel: the file is cut off at byte 300, in layer 'conv' (NetParameter.layer[1]): "
        f"at least {len(small) - 300 - 39} bytes are missing at its end"  # the 39 are the layer after it
    )
    assert caught.value.hint == "download or copy the file again"


def attempt(read: Callable[[], Any]) -> bool:
    """Whether it could be read; anything but an AstrideError passes through and fails the test."""
    try:
        read()
    except AstrideError:
        return False
    return True


@pytest.mark.parametrize("path", [None, *REAL], ids=lambda path: path.name if path else "small")
def test_random_bit_flips(path: Path | None, small: bytes) -> None:
    raw = path.read_bytes() if path else small
    draw = random.Random(1)
    survived = 0
    for _ in range(1500):
        damaged = bytearray(raw)
        for _ in range(draw.choice([1, 1, 2, 8])):
            at = draw.randrange(len(damaged))
            damaged[at] ^= 1 << draw.randrange(8)
        survived += attempt(lambda damaged=damaged: proto.format(proto.read_caffemodel(bytes(damaged)).message))
    # Most bits are weights, where a flip is a different number and nothing else; some must be noticed.
    assert 0 < survived < 1500


def test_random_bytes() -> None:
    draw = random.Random(2)
    for _ in range(1000):
        raw = draw.randbytes(draw.randrange(1, 200))
        for read in (proto.read_caffemodel, proto.read_solverstate, proto.read_blob, proto.read_prototxt):
            attempt(lambda raw=raw, read=read: read(raw))
        attempt(lambda raw=raw: proto.parse_binary(raw, "SolverParameter"))


def test_damaged_texts() -> None:
    draw = random.Random(3)
    survived = 0
    for _ in range(1500):
        damaged = bytearray(NET.encode())
        for _ in range(draw.choice([1, 1, 3])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        survived += attempt(lambda damaged=damaged: proto.parse(bytes(damaged), "NetParameter"))
    assert 0 < survived < 1500


LYING = {
    "a layer of 2 GiB": b"\x0a\x01a" + encode_varint(100 << 3 | 2) + encode_varint(2**31 - 20),
    "a blob of 1 GiB": length(100, length(1, b"c") + encode_varint(7 << 3 | 2) + encode_varint(2**30)),
    "a shape of 2^60": length(100, length(1, b"c") + length(7, length(7, length(1, encode_varint(2**60))))),
    "numbers of 2^62 bytes": length(100, length(7, encode_varint(5 << 3 | 2) + encode_varint(2**62))),
    "a length of 2^64": b"\x0a\x01a" + encode_varint(100 << 3 | 2) + encode_varint(2**64 - 1),
}


@pytest.mark.parametrize("raw", LYING.values(), ids=LYING.keys())
def test_declared_sizes_are_not_believed(raw: bytes) -> None:
    proto.message("NetParameter")
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            proto.read_caffemodel(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 256 * 1024


MEASURE = """
import re, sys
from astride import proto
from astride.errors import AstrideError
proto.parse("layer {}", "NetParameter")
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
before = peak()
try:
    (proto.read_prototxt if sys.argv[2] == "text" else proto.read_caffemodel)(sys.argv[1])
    print("read", peak() - before)
except AstrideError as error:
    print("refused", peak() - before)
"""

GREEDY = {
    "empty layers": ("binary", length(100, b"") * 4_000_000),
    "empty rules in one layer": ("binary", length(100, length(8, b"") * 6_000_000)),
    "numbers one by one in turns": ("binary", length(100, length(7, (b"\x2d" + bytes(4) + b"\x35" + bytes(4)) * 1_200_000))),
    "much that is no number": ("binary", length(100, length(1, b"x" * 80_000_000))),
    "empty layers as text": ("text", b"layer{}" * 2_000_000),
    "unknown fields as text": ("text", b"bad:1\n" * 2_000_000),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("kind", "raw"), GREEDY.values(), ids=GREEDY.keys())
def test_greedy_files_are_refused_cheaply(kind: str, raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net"
    path.write_bytes(raw)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), kind], capture_output=True, text=True, check=True, timeout=60
    )
    verdict, grown = done.stdout.split()
    assert verdict == "refused"
    assert int(grown) < 4 * len(raw) + 2**25
