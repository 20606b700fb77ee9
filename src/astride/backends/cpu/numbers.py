"""Number types in kernels: what lies in memory, what registers compute with, and the way between the two."""

from __future__ import annotations

from dataclasses import dataclass

from .ir import Function, Value
from .ir_types import BITS, element, is_float, lanes, vector
from .machine import machine


@dataclass(frozen=True, slots=True)
class Number:
    """A dtype. `stored` is the IR type in memory, `computed` the one registers hold it as; integers stay what they are."""

    name: str
    stored: str
    computed: str
    signed: bool = True

    @property
    def bytes(self) -> int:
        return BITS[self.stored] // 8

    @property
    def floating(self) -> bool:
        return self.computed in ("float", "double")

    def load(self, f: Function, pointer: Value, count: int) -> Value:
        """`count` numbers from memory, as registers hold them."""
        value = f.load(vector(count, self.stored), pointer)
        if self.name == "bfloat16":
            return (value.widened("i32") << 16).bits(vector(count, "float"))
        return value.to(self.computed)

    def store(self, f: Function, value: Value, pointer: Value) -> None:
        """Numbers back to memory, rounded to nearest even where they are wider in registers."""
        f.store(self.narrow(f, value), pointer)

    def narrow(self, f: Function, value: Value) -> Value:
        """A register's numbers as they are in memory."""
        if self.name == "bfloat16":
            return _to_bfloat16(f, value)
        return value.to(self.stored)

    def rounded(self, f: Function, value: Value) -> Value:
        """A register's numbers as memory would hold them, still in registers."""
        if self.stored == self.computed:
            return value
        stored = self.narrow(f, value)
        if self.name == "bfloat16":
            return (stored.widened("i32") << 16).bits(value.type)
        return stored.to(self.computed)

    def constant(self, value: float) -> float:
        """A number rounded to this type."""
        import numpy as np

        return float(np.dtype(self.name).type(value)) if self.name != "bfloat16" else _bfloat16(value)


def _bfloat16(value: float) -> float:
    import ml_dtypes

    return float(ml_dtypes.bfloat16(value))


NUMBERS = {
    number.name: number
    for number in (
        Number("float32", "float", "float"),
        Number("float64", "double", "double"),
        Number("float16", "half", "float"),
        Number("bfloat16", "i16", "float"),
        Number("int8", "i8", "i8"),
        Number("int16", "i16", "i16"),
        Number("int32", "i32", "i32"),
        Number("int64", "i64", "i64"),
        Number("uint8", "i8", "i8", signed=False),
        Number("uint16", "i16", "i16", signed=False),
        Number("uint32", "i32", "i32", signed=False),
        Number("uint64", "i64", "i64", signed=False),
        Number("bool", "i8", "i8", signed=False),
    )
}


def lacks(dtype: str) -> str | None:
    """Why there are no kernels for numbers of a dtype on this machine; None if there are."""
    if dtype == "float16" and not machine().halves:
        return "no kernels for float16 on a CPU that cannot read it"
    return None if dtype in NUMBERS else f"no kernels for {dtype}"


def _to_bfloat16(f: Function, value: Value) -> Value:
    """The upper half of a float, rounded to nearest even; a NaN keeps its sign and becomes the quiet one."""
    n = lanes(value.type)
    bits = value.bits(vector(n, "i32"))
    upper = bits >> 16
    rounded = (bits + ((upper & 1) + 0x7FFF)) >> 16
    quiet = (upper & 0x8000) | 0x7FC0
    return f.select(value.is_nan(), quiet, rounded).to("i16")


def absolute(f: Function, value: Value) -> Value:
    """The magnitude of floating-point numbers, or of signed integers, of which the lowest stays what it is."""
    return f.unary("fabs", value) if is_float(value.type) else f.select(value < 0, -value, value)


def converted(f: Function, value: Value, number: Number, kind: str) -> Value:
    """Numbers in the type sums are formed in."""
    if number.floating or element(value.type) == kind:
        return value.to(kind)
    if kind in ("float", "double"):
        wide = vector(lanes(value.type), kind)
        return f.emit(wide, f"{'sitofp' if number.signed else 'uitofp'} {value.type} {value.text} to {wide}")
    if BITS[kind] < BITS[element(value.type)]:
        return value.to(kind)
    return value.to(kind) if number.signed else value.widened(kind)
