"""Number types on the way between memory and registers, integer quotients and cube roots."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.backends.cpu.compiled import call, lanes_of, skip_unread

from astride.backends.cpu.ir import Function
from astride.backends.cpu.numbers import NUMBERS, converted
from astride.backends.cpu.sums import cube_root, whole_quotient
from astride.plan.kinds import Rounding


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values_of(name: str) -> Any:
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([0, 1] * 8, bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 5, 7, 100, 127, limits.max, limits.min, limits.max - 1, 9, 11, 13, 17, 19], dtype)
    return np.array([0, -0.0, 1, -1.5, np.inf, -np.inf, 0.1, 3, 7, 100, 1e-3, -2, 0.3, 5, -9, 11]).astype(dtype)


@pytest.mark.parametrize("name", NUMBERS)
def test_memory_and_back(name: str) -> None:
    skip_unread(name)
    x = values_of(name)
    y = np.zeros_like(x)
    number = NUMBERS[name]
    assert number.bytes == x.itemsize
    f = Function("copy", y="ptr", x="ptr")
    number.store(f, number.load(f, f.x, 16), f.y)
    call(f, y, x)
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize(
    ("name", "kind"),
    [(n, k) for n in NUMBERS for k in ("float", "double", "i64") if k != "i64" or not NUMBERS[n].floating],
)
def test_in_the_type_of_sums(name: str, kind: str) -> None:
    skip_unread(name)
    x = values_of(name)
    number = NUMBERS[name]
    wanted_type = {"float": np.float32, "double": np.float64, "i64": np.int64}[kind]
    y = np.zeros(16, wanted_type)
    f = Function("widen", y="ptr", x="ptr")
    f.store(converted(f, number.load(f, f.x, 16), number, kind), f.y)
    call(f, y, x)
    np.testing.assert_array_equal(y, x.astype(wanted_type))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rounding_to_the_narrow_types(name: str, rng: np.random.Generator) -> None:
    """Nearest, ties to even, overflow to infinity, subnormals, NaN: every pattern's middle, as NumPy rounds it."""
    skip_unread(name)
    bits = rng.integers(0, 2**32, 4096, dtype=np.uint64).astype(np.uint32)
    bits[::4] &= 0xFFFF0000  # exact in bfloat16
    bits[1::4] = bits[1::4] & 0xFFFF0000 | 0x8000  # the middle between two of them
    bits[2::4] = bits[2::4] & 0xFFFFE000 | 0x1000  # the middle between two of float16's
    x = bits.view(np.float32)
    number, y = NUMBERS[name], np.zeros(4096, np.float32)
    f = Function("round", y="ptr", x="ptr", n="i64")
    with f.loop(0, f.n, 8) as i:
        f.store(number.rounded(f, f.load("<8 x float>", f.at(f.x, i * 4))), f.at(f.y, i * 4))
    call(f, y, x, 4096)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, x.astype(dtype_of(name)).astype(np.float32))


@pytest.mark.parametrize("name", NUMBERS)
def test_constants_are_rounded_as_the_type_rounds(name: str) -> None:
    if NUMBERS[name].floating:
        assert NUMBERS[name].constant(0.1) == float(np.array(0.1).astype(dtype_of(name)))
    assert NUMBERS[name].constant(1) == 1


@pytest.mark.parametrize("rounding", [Rounding.TRUNCATE, Rounding.HALF_AWAY])
def test_integer_quotients(rounding: Rounding) -> None:
    a = np.repeat(np.array([0, 1, 5, 6, 7, -1, -5, -6, -7, 2**40, -(2**40), 2**62]), 8)
    b = np.tile(np.array([1, 2, 3, 4, -2, -4, 0, 9]), 12)

    def wanted(x: int, y: int) -> int:
        if y == 0:
            return 0
        n, d = abs(x), abs(y)
        magnitude = n // d if rounding is Rounding.TRUNCATE else (n + d // 2) // d
        return magnitude if (x < 0) == (y < 0) else -magnitude

    y = lanes_of(4, "i64", "i64", lambda f, x, d: whole_quotient(f, x, d, True, rounding), a, b)
    # A divisor of 0 divides by 1 in the kernel, which its caller then does not use.
    kept = b != 0
    assert y[kept].tolist() == [wanted(int(m), int(n)) for m, n in zip(a[kept], b[kept], strict=True)]


def test_cube_roots(rng: np.random.Generator) -> None:
    """Within 2 units in the last place, from the smallest subnormal to the greatest number of each type."""
    for kind, real in (("double", np.float64), ("float", np.float32)):
        limits = np.finfo(real)
        some = 2.0 ** rng.uniform(limits.minexp - limits.nmant, limits.maxexp, 4080)
        ends = [0.0, np.inf, np.nan, 1.0, 8.0, 27.0, 1000.0, limits.max, limits.max * 0.9, limits.max / 3, limits.tiny]
        ends += [limits.smallest_subnormal, 2.0, 3.0, 4.0, 5.0]
        given = np.concatenate([some, ends]).astype(real)
        y = lanes_of(8, kind, kind, lambda f, v: cube_root(f, v), given)
        finite = np.isfinite(given) & (given > 0)
        wanted = np.cbrt(given[finite].astype(np.float64 if real == np.float32 else np.longdouble))
        assert np.max(np.abs(y[finite] - wanted) / np.spacing(wanted.astype(real))) <= 2
        np.testing.assert_array_equal(y[~finite], given[~finite])
