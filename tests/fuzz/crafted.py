# ruff: noqa: E501
"""Hostile files made by hand, by family: each a name, a target of `targets.py` and the bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from astride import proto
from astride.proto.wire_fields import encode_varint

from .inputs import corpus

Case = tuple[str, str, bytes]
INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [1, 3, 8, 8] } } }\n'
SIZES = [0, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64, 10**30]


def crafted() -> list[Case]:
    """All of them; more than three hundred. None is a sound file, except where its family says so."""
    families = [sizes, nesting, graphs, texts, wire, blobs, cut_off, flipped, hdf5, states, others]
    return [(f"{family.__name__}: {name}", target, content) for family in families for name, target, content in family()]


def length(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


def conv(fields: str, kind: str = "Convolution", param: str = "convolution_param") -> bytes:
    return f'{INPUT}layer {{ name: "c" type: "{kind}" bottom: "data" top: "c" {param} {{ {fields} }} }}'.encode()


def sizes() -> Iterator[Case]:
    """Numbers that no real network has, wherever a size is given."""
    for value in SIZES:
        yield (
            f"dim {value}",
            "text",
            f'layer {{ name: "d" type: "Input" top: "d" input_param {{ shape {{ dim: [1, {value}] }} }} }}'.encode(),
        )
        yield (
            f"input_dim {value}",
            "text",
            f'input: "d" input_dim: [1, 1, {value}, {value}] layer {{ name: "a" type: "ReLU" bottom: "d" top: "d" }}'.encode(),
        )
        yield f"num_output {value}", "text", conv(f"num_output: {value} kernel_size: 1")
        yield f"kernel {value}", "text", conv(f"num_output: 1 kernel_size: {value}")
        yield (
            f"pad {value}",
            "text",
            conv(f"num_output: 1 kernel_size: 3 pad: {value}") if value else conv("num_output: 1 kernel_size: 3 pad: -0x1"),
        )
        yield f"group {value}", "text", conv(f"num_output: 1 kernel_size: 1 group: {value}")
        yield f"pool kernel {value}", "text", conv(f"kernel_size: {value}", "Pooling", "pooling_param")
        yield f"axis {value}", "text", conv(f"axis: {value if value else 9}", "Softmax", "softmax_param")
    for a in (10**5, 10**6, 10**9):
        yield (
            f"many numbers {a}",
            "text",
            f'layer {{ name: "d" type: "Input" top: "d" input_param {{ shape {{ dim: [{a}, {a}] }} }} }}'.encode(),
        )
        yield (
            f"inner product {a}",
            "text",
            conv(f"num_output: {a}", "InnerProduct", "inner_product_param")
            if a > 10**6
            else conv(f"num_output: {10**9 + a}", "InnerProduct", "inner_product_param"),
        )
        yield f"tiles {a}", "text", conv(f"tiles: {a * 10**4}", "Tile", "tile_param")
    yield "upsampled without end", "text", conv("num_output: 1 kernel_size: 1 stride: 1000000", "Deconvolution")
    yield "pyramid", "text", conv("pyramid_height: 40", "SPP", "spp_param")
    yield (
        "axes",
        "text",
        f'layer {{ name: "d" type: "Input" top: "d" input_param {{ shape {{ dim: [{", ".join("1" * 40)}] }} }} }}'.encode(),
    )


def nesting() -> Iterator[Case]:
    """Brackets in brackets."""
    for depth in (65, 1_000, 100_000, 5_000_000):
        yield f"unknown {depth}", "text", b"x { " * depth
        yield f"lists {depth}", "text", b"x: " + b"[" * depth
        yield f"solver net {depth}", "solver", b"net_param { " * depth
    for depth in (65, 500, 20_000):
        content = b""
        for _ in range(depth):
            content = length(1, content) if len(content) < 2**20 else content
        yield f"binary {depth}", "binary", length(2, length(1, content)) + b"\x0b" * min(depth, 100)
        yield f"groups {depth}", "weights", b"\x0b" * depth


def graphs() -> Iterator[Case]:
    """Loops, names given twice, blobs nobody makes."""

    def relu(name: str, bottom: str, top: str) -> str:
        return f'layer {{ name: "{name}" type: "ReLU" bottom: "{bottom}" top: "{top}" }}\n'

    yield "loop of two", "text", (INPUT + relu("a", "y", "x") + relu("b", "x", "y")).encode()
    yield "itself", "text", (INPUT + relu("a", "a", "a")).encode()
    yield "before it is made", "text", (relu("a", "data", "x") + INPUT).encode()
    yield "a top made twice", "text", (INPUT + relu("a", "data", "x") + relu("b", "data", "x")).encode()
    yield "two inputs of a name", "text", (INPUT + INPUT).encode()
    yield (
        "top twice in one layer",
        "text",
        (INPUT + 'layer { name: "s" type: "Split" bottom: "data" top: "x" top: "x" }').encode(),
    )
    yield (
        "in place and not",
        "text",
        (INPUT + 'layer { name: "s" type: "Concat" bottom: "data" bottom: "data" top: "data" }').encode(),
    )
    yield "no bottoms", "text", (INPUT + 'layer { name: "s" type: "Eltwise" top: "x" }').encode()
    yield (
        "shared by the wrong shape",
        "text",
        (
            INPUT
            + 'layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { name: "w" } inner_product_param { num_output: 2 } }'
            + 'layer { name: "b" type: "InnerProduct" bottom: "data" top: "b" param { name: "w" } inner_product_param { num_output: 3 } }'
        ).encode(),
    )
    yield "both rules", "text", (INPUT + relu("a", "data", "x").replace("top:", "include { } exclude { } top:")).encode()
    yield "both formats", "text", (INPUT + "layers { type: RELU }").encode()
    yield "unknown layer", "text", (INPUT + relu("a", "data", "x").replace("ReLU", "Nobody")).encode()
    yield (
        "python",
        "text",
        (
            INPUT + 'layer { name: "p" type: "Python" bottom: "data" top: "p" python_param { module: "os" layer: "system" } }'
        ).encode(),
    )
    yield "forty thousand layers", "text", (INPUT + relu("a", "data", "data") * 40_000).encode()


def texts() -> Iterator[Case]:
    """Broken syntax and values of the wrong kind."""
    for text in (
        "layer", "layer {", "layer }", "}", "{", "layer { name }", "layer { name: }", 'layer { name: "x }', "layer { name: 'x\n' }",
        "layer { name: x }", "layer { top: [ }", "layer { top: [,] }", "layer { phase: 7 }", "layer { phase: TRIAN }", 'name: "\\xZZ"',
        'name: "\\400"', 'name: "\\u12"', 'name: "\\ud800"', "name: 3", "force_backward: maybe", "input_dim: 1.5", "input_dim: 99999999999",
        "input_dim: -99999999999", "input_dim: 0x", "input_dim: 1e5", "input_dim: nan", "state { level: [1, 2] }", "name: \"a\" name: \"b\"",
        "layer { layer { } }", "[caffe.ext]: 1", "any { [type.googleapis.com/x] { } }", "a=1", "// c", "/* c */", "layer: { : }", "\x00\x01",
        "layer { loss_weight: 1f1 }", "layer { loss_weight: . }", "layer { loss_weight: -- 1 }", "layer < name: 'a' }", "name: \"" + "x" * 100,
        ": : :", "layer { blobs { data: [1, 2] shape { dim: 3 } } }", "unknown_field: 1", "layer { unknown_field { a { b: 1 } } }",
    ):  # fmt: skip
        yield text[:30], "text", text.encode()
    yield "bytes that are no text", "text", b'name: "\xff\xfe"'
    yield "a mebibyte of quotes", "text", b'name: "' + b'\\"' * 2**19
    yield "ten thousand unknown fields", "text", b"".join(b"field_%d: 1\n" % i for i in range(10_000))
    yield "a long name", "text", b"a" * 2**20 + b": 1"
    yield "a number of a million digits", "text", b"input_dim: " + b"9" * 10**6


def wire() -> Iterator[Case]:
    """Bytes that are no protobuf, or not as long as they say."""
    for size in (1, 100, 2**31 - 1, 2**31, 2**32, 2**40, 2**63, 2**64 - 1):
        yield f"a layer of {size} bytes", "weights", encode_varint(100 << 3 | 2) + encode_varint(size)
        yield (
            f"a name of {size} bytes",
            "weights",
            length(100, encode_varint(1 << 3 | 2) + encode_varint(size) + b"x" * (size == 2)),
        )
        yield f"data of {size} bytes", "weights", length(100, length(7, encode_varint(5 << 3 | 2) + encode_varint(size)))
        yield f"raw data of {size} bytes", "weights", length(100, length(7, encode_varint(12 << 3 | 2) + encode_varint(size)))
        yield f"a state of {size} bytes", "state", encode_varint(3 << 3 | 2) + encode_varint(size)
    for name, content in {
        "varint without end": b"\xa2\x06" + b"\xff" * 20, "field number 0": b"\x02\x00", "wire type 6": b"\x0e", "wire type 7": b"\x0f",
        "group without end": b"\x0b", "group without begin": b"\x0c", "other group's end": b"\x0b\x14", "only a tag": b"\xa2",
    }.items():  # fmt: skip
        yield name, "weights", content
        yield f"{name}, in a layer", "binary", length(100, content)
    yield "a million layers", "weights", b"\xa2\x06\x00" * 10**6
    yield "a million blobs", "weights", length(100, b"\x3a\x00" * 10**6)
    yield "a million unknown fields", "binary", length(100, b"\x90\x3f\x01" * 10**6)
    yield "a million pieces", "weights", length(100, length(7, (b"\x2a\x04" + bytes(4)) * 10**6))
    yield "begins with a number", "weights", b"\x08\x01"


def blobs() -> Iterator[Case]:
    """Shapes that do not fit their numbers."""
    for dims in ([2**40], [2**31, 2**31], [-1], [-2, -3], [0, 2**60], [1] * 33, [2**62, 4], [3], []):
        message = proto.message("BlobProto")(data=[1.0, 2.0])
        message.shape.dim.extend(dims)
        entry = message.SerializeToString()
        yield f"shape {dims}"[:60], "weights", length(100, length(1, b"conv") + length(7, entry))
        yield f"mean of {dims}"[:60], "blob", entry
    for old in (-1, 2**31 - 1, 0):
        message = proto.message("BlobProto")(num=old, channels=old, height=2, width=3, data=[0.0] * 6)
        yield f"old dimensions {old}", "weights", length(100, length(1, b"conv") + length(7, message.SerializeToString()))
    for kind in (3, 4, 9, 2**35):
        raw = b"\x50" + encode_varint(kind) + length(12, bytes(8))
        yield f"raw type {kind}", "weights", length(100, length(1, b"conv") + length(7, length(7, length(1, b"\x02")) + raw))
    yield (
        "another shape",
        "weights",
        length(100, length(1, b"conv") + length(7, length(7, length(1, b"\x01")) + length(5, bytes(4)))),
    )


def cut_off() -> Iterator[Case]:
    """Good files that end early."""
    for target in ("weights", "binary", "text", "solver", "state", "blob", "message"):
        for number, content in enumerate(corpus()[target]):
            for part in range(1, 6):
                yield f"{target} {number} at {part}/6", target, content[: len(content) * part // 6]


def flipped() -> Iterator[Case]:
    """Good files with bits turned over: some still are sound files of other weights."""
    draw = random.Random(5)
    for target in ("weights", "binary", "state", "text", "blob", "message"):
        for number, content in enumerate(corpus()[target]):
            for turn in range(6):
                raw = bytearray(content)
                for _ in range(1 + turn):
                    raw[draw.randrange(min(len(raw), 400))] ^= 1 << draw.randrange(8)
                yield f"{target} {number}, {1 + turn} bits, {turn}", target, bytes(raw)


def hdf5() -> Iterator[Case]:
    """What HDF5 can be made to say: the signature alone, and the corpus' file with its address fields overwritten."""
    yield "signature", "weights", b"\x89HDF\r\n\x1a\n"
    yield "signature and zeros", "weights", b"\x89HDF\r\n\x1a\n" + bytes(4096)
    yield "signature and ones", "weights", b"\x89HDF\r\n\x1a\n" + b"\xff" * 4096
    for content in corpus()["weights"][1:]:
        for at in range(8, 808, 40):
            yield f"ones at {at}", "weights", content[:at] + b"\xff" * 8 + content[at + 8 :]


def states() -> Iterator[Case]:
    """Solvers that contradict themselves."""
    small = corpus()["solver"][0]
    for fields in (
        b"", b"base_lr: nan", b"max_iter: -1", b"lr_policy: 'nobody'", b"type: 'Nobody'", b"solver_type: SGD", b"stepsize: 0",
        b"iter_size: 0", b"iter_size: -3", b"test_iter: 5", b"max_iter: 1.5", b"weights: '/nowhere'", b"random_seed: -5",
        b"momentum: 1e999", b"type: 'SGD' type: 'SGD'", b"average_loss: 0", b"display: -1", b"test_state { } test_state { }",
    ):  # fmt: skip
        yield fields.decode() or "twice", "solver", small + fields if fields else small * 2


def others() -> Iterator[Case]:
    """Files of another kind entirely."""
    kinds = {
        "html": b"<!DOCTYPE html><html>not found</html>", "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "zip": b"PK\x03\x04" + bytes(60), "pytorch": b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "pickle": b"\x80\x04\x95" + bytes(8),
        "gzip": b"\x1f\x8b\x08" + bytes(20), "png": b"\x89PNG\r\n\x1a\n" + bytes(9), "json": b'{"message": "Not Found"}', "empty": b"",
        "elf": b"\x7fELF" + bytes(60), "xml": b"<?xml version='1.0'?><net/>", "npy": b"\x93NUMPY\x01\x00", "bom": "\ufeffname".encode("utf-16"),
    }  # fmt: skip
    for name, content in kinds.items():
        for target in ("text", "weights", "state"):
            yield f"{name} as {target}", target, content
