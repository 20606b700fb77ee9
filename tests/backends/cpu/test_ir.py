"""Every building block against NumPy, through a kernel that is compiled and run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.backends.cpu.compiled import KINDS, call, lanes_of, skip_unread

from astride.backends.cpu.ir import Function
from astride.backends.cpu.ir_types import element, is_float, lanes, literal, size, vector

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-40, -3.0e38, 2.5, 7.0, -7.0, 0.1, 3.0, -2.0, 65504.0]
WHOLE = [0, 1, -1, 2, -2, 7, -7, 127, -128, 100, -100, 3, 5, -5, 63, 64]


def samples(kind: str) -> tuple[Any, Any]:
    """Sixteen values and each of the other sixteen beside them: 256 pairs."""
    values = np.array(SPECIAL if is_float(kind) else WHOLE, np.float64 if is_float(kind) else np.int64)
    with np.errstate(all="ignore"):
        values = values.astype(KINDS[kind])
    return np.repeat(values, 16), np.tile(values, 16)


def assert_same_bits(actual: Any, wanted: Any) -> None:
    """Equal, the sign of zero included; a NaN is a NaN."""
    np.testing.assert_array_equal(actual, wanted)
    if actual.dtype.kind == "f":
        kept = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(actual)[kept], np.signbit(wanted)[kept])


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
FEW_KINDS = ("float", "double", "i8", "i32", "i64")


@pytest.mark.parametrize("kind", FEW_KINDS)
@pytest.mark.parametrize("word", ARITHMETIC)
def test_arithmetic(word: str, kind: str) -> None:
    a, b = samples(kind)
    with np.errstate(all="ignore"):
        wanted = ARITHMETIC[word](a, b)
    for count in (1, 8):
        assert_same_bits(lanes_of(count, kind, kind, lambda f, x, y: ARITHMETIC[word](x, y), a, b), wanted)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_division_and_negation(kind: str) -> None:
    a, b = samples(kind)
    with np.errstate(all="ignore"):
        assert_same_bits(lanes_of(4, kind, kind, lambda f, x, y: x / y, a, b), a / b)
    assert_same_bits(lanes_of(4, kind, kind, lambda f, x: -x, a), -a)


def test_whole_division_goes_toward_zero() -> None:
    a = np.array([7, -7, 7, -7, 6, 0, 1, -1])
    b = np.array([2, 2, -2, -2, 3, 5, 9, 9])
    quotient = lanes_of(1, "i64", "i64", lambda f, x, y: x // y, a, b)
    assert quotient.tolist() == [3, -3, -3, 3, 2, 0, 0, 0]
    assert lanes_of(1, "i64", "i64", lambda f, x, y: x % y, a, b).tolist() == (a - quotient * b).tolist()
    assert lanes_of(1, "i64", "i64", lambda f, x: -x, a).tolist() == (-a).tolist()


@pytest.mark.parametrize("word", ["and_", "or_", "xor"])
def test_bitwise(word: str) -> None:
    a, b = samples("i32")
    op = getattr(operator, word)
    np.testing.assert_array_equal(lanes_of(8, "i32", "i32", lambda f, x, y: op(x, y), a, b), op(a, b))


def test_shifts_and_complement() -> None:
    a, _ = samples("i32")
    np.testing.assert_array_equal(lanes_of(8, "i32", "i32", lambda f, x: x << 3, a), a << 3)
    np.testing.assert_array_equal(lanes_of(8, "i32", "i32", lambda f, x: x >> 3, a).view(np.uint32), a.view(np.uint32) >> 3)
    np.testing.assert_array_equal(lanes_of(8, "i32", "i32", lambda f, x: ~x, a), ~a)
    np.testing.assert_array_equal(lanes_of(8, "i32", "i8", lambda f, x: ~(x > 0), a), (a <= 0).astype(np.int8))


COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "<": (operator.lt, operator.lt),
    "<=": (operator.le, operator.le),
    ">": (operator.gt, operator.gt),
    ">=": (operator.ge, operator.ge),
    "==": (lambda x, y: x.eq(y), operator.eq),
    "!=": (lambda x, y: x.ne(y), operator.ne),
}


@pytest.mark.parametrize("kind", ["float", "double", "i8", "i64"])
@pytest.mark.parametrize("word", COMPARISONS)
def test_comparisons(word: str, kind: str) -> None:
    a, b = samples(kind)
    ours, numpys = COMPARISONS[word]
    for count in (1, 16):
        np.testing.assert_array_equal(
            lanes_of(count, kind, "i8", lambda f, x, y: ours(x, y), a, b), numpys(a, b).astype(np.int8), err_msg=str(count)
        )


def test_unsigned_comparison_and_nan() -> None:
    a, b = samples("i64")
    np.testing.assert_array_equal(
        lanes_of(4, "i64", "i8", lambda f, x, y: x.below(y), a, b), (a.view(np.uint64) < b.view(np.uint64)).astype(np.int8)
    )
    x, _ = samples("float")
    np.testing.assert_array_equal(lanes_of(4, "float", "i8", lambda f, v: v.is_nan(), x), np.isnan(x).astype(np.int8))


@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64", "float", "double"])
@pytest.mark.parametrize("source", ["i8", "i32", "i64", "float", "double"])
def test_conversion(source: str, target: str) -> None:
    values = np.array([0, 1, -1, 5, -5, 100, -100, 27], KINDS[source])
    if is_float(source):
        values = values + KINDS[source](0.75) * np.sign(values)  # cut off on the way to an integer
    for count in (1, 8):
        np.testing.assert_array_equal(
            lanes_of(count, source, target, lambda f, x: x.to(target), values), values.astype(KINDS[target])
        )


def test_narrowing_rounds_to_even() -> None:
    x = np.array([1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-24 + 2.0**-50, 1e39, -1e-60, np.nan, 0.1, -0.0])
    with np.errstate(over="ignore"):
        assert_same_bits(lanes_of(8, "double", "float", lambda f, v: v.to("float"), x), x.astype(np.float32))


def test_half_both_ways() -> None:
    skip_unread("float16")
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.0, 65520.0, 6e-8, 2.9e-8, -0.0, np.nan], np.float32)
    with np.errstate(over="ignore"):
        halves = x.astype(np.float16)
    assert_same_bits(lanes_of(8, "float", "half", lambda f, v: v.to("half"), x), halves)
    assert_same_bits(lanes_of(8, "half", "float", lambda f, v: v.to("float"), halves), halves.astype(np.float32))


def test_widening_without_sign_and_bits() -> None:
    x = np.array(WHOLE, np.int8)
    wide = lanes_of(16, "i8", "i32", lambda f, v: v.widened("i32"), x)
    np.testing.assert_array_equal(wide, x.view(np.uint8).astype(np.int32))
    a, _ = samples("float")
    np.testing.assert_array_equal(lanes_of(8, "float", "i32", lambda f, v: v.bits("<8 x i32>"), a), a.view(np.int32))


@pytest.mark.parametrize(("name", "numpys"), [("fabs", np.abs), ("sqrt", np.sqrt), ("floor", np.floor)])
def test_intrinsics_of_floats(name: str, numpys: Callable[[Any], Any]) -> None:
    a, b = samples("float")
    with np.errstate(all="ignore"):
        assert_same_bits(lanes_of(8, "float", "float", lambda f, x: f.unary(name, x), a), numpys(a))
    assert_same_bits(lanes_of(8, "float", "float", lambda f, x, y: f.binary("copysign", x, y), a, b), np.copysign(a, b))


def test_intrinsic_of_integers() -> None:
    a, _ = samples("i32")
    counts = np.array([bin(int(v) & 0xFFFFFFFF).count("1") for v in a])
    np.testing.assert_array_equal(lanes_of(4, "i32", "i32", lambda f, x: f.unary("ctpop", x), a), counts)


def test_select_smaller_larger_any() -> None:
    a, b = samples("i64")
    np.testing.assert_array_equal(lanes_of(4, "i64", "i64", lambda f, x, y: f.smaller(x, y), a, b), np.minimum(a, b))
    np.testing.assert_array_equal(lanes_of(4, "i64", "i64", lambda f, x, y: f.larger(x, y), a, b), np.maximum(a, b))
    chosen = lanes_of(4, "i64", "i64", lambda f, x, y: f.select(x > y, x, 9), a, b)
    np.testing.assert_array_equal(chosen, np.where(a > b, a, 9))

    def whole(f: Function, x: Any, y: Any) -> Any:
        return f.select(f.any(x > y), x, y)  # one condition for all lanes

    some = np.repeat((a > b).reshape(-1, 4).any(1), 4)
    np.testing.assert_array_equal(lanes_of(4, "i64", "i64", whole, a, b), np.where(some, a, b))


def test_shuffles() -> None:
    a, b = np.arange(8), np.arange(10, 18)
    picked = lanes_of(8, "i64", "i64", lambda f, x, y: f.shuffle(x, y, [0, 8, 1, 9, 2, 10, 3, 15]), a, b)
    assert picked.tolist() == [0, 10, 1, 11, 2, 12, 3, 17]
    assert lanes_of(8, "i64", "i64", lambda f, x: f.splat(f.lane(x, 5), 8), a).tolist() == [5] * 8

    def turned(f: Function, x: Any) -> Any:
        return f.joined([f.splat(f.shuffle(x, x, [k]), 2) for k in (7, 6, 5, 4)])

    assert lanes_of(8, "i64", "i64", turned, a).tolist() == [7, 7, 6, 6, 5, 5, 4, 4]
    numbers = lanes_of(1, "i64", "i64", lambda f, x, y: f.lane(f.shuffle(x, y, [1, -1, 0, 1]), 3), a, b)  # of single numbers
    assert numbers.tolist() == b.tolist()
    assert lanes_of(1, "i64", "i64", lambda f, x: f.splat(f.lane(x, 0), 1), a).tolist() == a.tolist()


@pytest.mark.parametrize("kind", ["float", "double", "i8", "i64"])
def test_masks_touch_no_lane_that_is_off(kind: str) -> None:
    x = np.arange(1, 17).astype(KINDS[kind])
    y = np.full(16, 99, KINDS[kind])
    f = Function("masked", y="ptr", x="ptr")
    kinds = vector(8, kind)
    mask = f.value("<8 x i1>", [1, 0, 1, 1, 0, 0, 0, 1])
    loaded = f.load(kinds, f.x, mask=mask, other=50)
    f.store(loaded, f.y)
    f.store(f.load(kinds, f.at(f.x, 8 * x.itemsize)), f.at(f.y, 8 * x.itemsize), mask=mask)
    call(f, y, x)
    assert y.tolist() == [1, 50, 3, 4, 50, 50, 50, 8, 9, 99, 11, 12, 99, 99, 99, 16]


def test_a_masked_load_may_start_outside_memory() -> None:
    """The edge of an image: lanes that are off are never read, wherever they lie."""
    y = np.zeros(8, np.float32)
    f = Function("nowhere", y="ptr", place="i64")
    pointer = f.emit("ptr", "inttoptr i64 %place to ptr")
    f.store(f.load("<8 x float>", pointer, mask=f.value("<8 x i1>", 0), other=-1.0), f.y)
    call(f, y, 8)
    assert y.tolist() == [-1] * 8


def test_streaming_stores_arrive() -> None:
    memory = np.zeros(64 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    y, x = memory[start : start + 64].view(np.float32), np.arange(16, dtype=np.float32)
    f = Function("stream", y="ptr", x="ptr")
    f.store(f.load("<16 x float>", f.x), f.y, streaming=True)
    call(f, y, x)
    assert y.tolist() == x.tolist()


def test_loops_branches_and_variables() -> None:
    """Collatz's steps of each number: a loop in a loop, both branches, places that change, room in the frame."""

    def steps(n: int) -> int:
        count = 0
        while n != 1 and count < 1000:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    y = np.zeros(30, np.int64)
    f = Function("collatz", y="ptr", n="i64")
    seen = f.scratch("i64", 2, align=16)
    with f.loop(0, f.n) as i:
        f.store(i + 1, seen)
        count = f.variable("i64", 0)
        with f.loop(0, 1000):
            value = f.load("i64", seen)
            with f.when(value > 1, likely=True):
                with f.when((value & 1).eq(0)) as odd:
                    f.store(value >> 1, seen)
                    with odd.otherwise():
                        f.store(value * 3 + 1, seen)
                count.set(count.get() + 1)
        f.store(count.get(), f.at(f.y, i * 8))
    call(f, y, 30)
    assert y.tolist() == [steps(n) for n in range(1, 31)]


def test_loops_count_by_their_step_and_may_not_run() -> None:
    y = np.zeros(3, np.int64)
    f = Function("loops", y="ptr", end="i64")
    for place, (begin, by) in enumerate([(0, 3), (5, 1), (10, 1)]):
        total = f.variable("i64", 0)
        with f.loop(begin, f.end, by) as i:
            total.set(total.get() + i + 1)
        f.store(total.get(), f.at(f.y, 8 * place))
    call(f, y, 10)
    assert y.tolist() == [1 + 4 + 7 + 10, 6 + 7 + 8 + 9 + 10, 0]


def test_one_function_calls_another() -> None:
    twice = Function("twice", private=True, result="i64", x="i64")
    twice.give(twice.x * 2)
    f = Function("caller", y="ptr")
    f.store(f.call("i64", "twice", f.value("i64", 21)), f.y)
    y = np.zeros(1, np.int64)
    call(f, y, others=(twice,))
    assert y[0] == 42


def test_fields_of_a_table() -> None:
    table, y = np.array([3, 5, 7]), np.zeros(1, np.int64)
    f = Function("fields", y="ptr", geometry="ptr")
    f.store(f.field(f.geometry, 0) * f.field(f.geometry, 2), f.y)
    call(f, y, table)
    assert y[0] == 21


@pytest.mark.parametrize("kind", ["half", "float", "double", "i8", "i64"])
def test_constants_come_out_as_they_went_in(kind: str) -> None:
    values = [0, 1, -1, 100, -128, 3, 5, 9] if kind.startswith("i") else [0.0, -0.0, 0.1, -np.inf, np.nan, 1e-7, 65504.0, -2.5]
    y = np.zeros(8, KINDS[kind])
    f = Function("constant", y="ptr")
    f.store(f.value(vector(8, kind), values), f.y)
    call(f, y)
    assert_same_bits(y, np.array(values, KINDS[kind]))


def test_types() -> None:
    assert vector(1, "float") == "float" and vector(8, "float") == "<8 x float>"
    assert (element("<8 x float>"), lanes("<8 x float>"), size("<8 x float>")) == ("float", 8, 32)
    assert (element("i64"), lanes("i64"), size("i64")) == ("i64", 1, 8)
    assert is_float("<2 x half>") and not is_float("<2 x i16>")
    assert literal("<2 x i1>", True) == "<i1 true, i1 true>" and literal("ptr", 0) == "null"


def test_types_that_differ_are_refused_while_writing() -> None:
    f = Function("wrong", x="ptr", n="i64", s="float")
    with pytest.raises(TypeError, match="i64 where float is needed in wrong"):
        f.s + f.n
    with pytest.raises(AttributeError):
        f.absent  # noqa: B018
