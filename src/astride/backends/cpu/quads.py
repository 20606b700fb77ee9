"""Products of bytes, four by four: int32 lanes of four unsigned bytes, times lanes of four signed ones, added to int32 sums.

Every way is exact and wraps around like int32: none goes through the sixteen-bit sums that saturate.
"""

from __future__ import annotations

from .ir import Function, Value
from .ir_types import BITS, element, lanes, vector
from .machine import Machine

VNNI = {4: "128", 8: "256", 16: "512"}
"""Lanes of an int32 vector -> the instruction's width."""

PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""Lanes -> the instruction that multiplies signed sixteen-bit numbers and adds neighbours."""


def way(machine: Machine) -> str:
    """How this machine multiplies: "vnni", "pairs" (of sixteen bits), or "" in plain steps."""
    features = machine.features.split(",")
    if machine.vector_bytes == 64 and "+avx512vnni" in features:
        return "vnni"
    x86 = machine.triple.startswith("x86_64")
    return "pairs" if x86 and machine.vector_bytes >= 32 else ""


def dot(f: Function, how: str, a: Value, b: Value, total: Value) -> Value:
    """total + the four products of each lane; a's bytes are unsigned, b's signed."""
    count = lanes(total.type)
    if how == "vnni":
        return f.call(total.type, f"llvm.x86.avx512.vpdpbusd.{VNNI[count]}", total, a, b)
    halves = vector(count * 2, "i16")
    even_a, odd_a = (a & _bytes(f, a)).bits(halves), ((a >> _eight(f, a)) & _bytes(f, a)).bits(halves)
    wide_b = b.bits(halves)
    eight = f.value(halves, [8] * (count * 2))
    even_b = _signed_shift(f, f.emit(halves, f"shl {halves} {wide_b.text}, {eight.text}"), eight)
    odd_b = _signed_shift(f, wide_b, eight)
    for x, y in ((even_a, even_b), (odd_a, odd_b)):
        total = total + (f.call(total.type, PAIRS[count], x, y) if how == "pairs" else _pairs(f, x, y, total.type))
    return total


def _bytes(f: Function, a: Value) -> Value:
    """The lower byte of each half."""
    return f.value(a.type, [0x00FF00FF] * lanes(a.type))


def _eight(f: Function, a: Value) -> Value:
    return f.value(a.type, [8] * lanes(a.type))


def _signed_shift(f: Function, a: Value, by: Value) -> Value:
    return f.emit(a.type, f"ashr {a.type} {a.text}, {by.text}")


def _pairs(f: Function, x: Value, y: Value, kind: str) -> Value:
    """Products of sixteen-bit numbers that hold bytes fit into sixteen bits; neighbours are added in thirty-two."""
    products = (x * y).bits(kind)
    half = f.value(kind, [BITS[element(kind)] // 2] * lanes(kind))
    low = _signed_shift(f, f.emit(kind, f"shl {kind} {products.text}, {half.text}"), half)
    return low + _signed_shift(f, products, half)
