"""The one inner kernel of convolution: a tile of sums of products, kept in registers while it grows.

    C[m][n] (+)= sum_r A[m, r] * B[r][n]

m are up to a dozen places, each with an address of its own, n a few vectors that lie side by side, r a nest of four loops
of constant strides. Forward, m are output pixels, n output channels and r taps times input channels; for the gradient of
the weights, m are input channels, n output channels and r output pixels; for 1x1 windows over planes, m are output
channels, n pixels and r input channels. In a `lanewise` contraction A is a vector as well (depthwise: m are pixels, n
channels, r taps).

Sums are cut about every PIECE terms and the parts added in C, which keeps the rounding of long sums near that of short
ones. How a sum is cut depends on the nest alone, so that a number does not depend on the tile it is computed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .ending import ADD, finisher, stored
from .ir import Function, Value, Variable
from .ir_types import BITS, SHORT, element, lanes, vector
from .machine import Machine

PIECE = 128
"""Terms that are added up one by one."""

FAR = 4
"""How much larger than a tile the next one is where one or two places more were measured faster as a tile of their own than by
the next one: of a map of 7x7 most classes have 5 places at an edge."""

NEST = 12
"""Numbers of a nest: four counts, four strides of A and four of B in bytes, the outermost loop first."""

AHEAD, AHEAD_NEST = 16, NEST + 3
"""Terms between which a tile that looks ahead asks for AHEAD lines of memory, and the numbers of its nest: the address of the
first of these lines, the bytes from one to the next, and from the first to that of the next terms."""

ANNOUNCED, AT_ONCE = 4, 64
"""How often a tile that announces C has asked for some of its rows when it has asked for all; and the terms of sums that end so
soon that all is asked for when they begin."""

LINE = 64
"""Bytes of a line of the cache."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """What a tile computes with: the type of A, B and C, and whether A is a vector, not one number for all lanes. Tiles that look
    `ahead` ask, while they compute, for what will be needed later; those that `announce` ask for C's lines. With a `tail` tiles
    with fewer numbers than others have so many half vectors side by side."""

    kind: str
    lanewise: bool = False
    ahead: bool = False
    announce: bool = False
    tail: int = 0

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8

    def rows(self, machine: Machine) -> tuple[int, ...]:
        """How many places tiles have, the largest first; the last is 1."""
        return (12, 8, 4, 2, 1) if machine.vector_bytes >= 64 else (6, 4, 2, 1)

    def vectors(self, machine: Machine) -> int:
        """Vectors a tile has side by side: as many as leave room for B and for one of A."""
        return max((machine.registers - 4) // self.rows(machine)[0], 1)

    def lanes(self, machine: Machine) -> int:
        """Numbers of one vector; two at least, since single numbers have no masks."""
        return max(machine.lanes(self.kind), 2)

    def block(self, machine: Machine) -> int:
        """Numbers a tile has side by side."""
        return self.vectors(machine) * self.lanes(machine)

    def ending(self, count: int, machine: Machine) -> int:
        """The tail for so many numbers side by side: where the last vector is at most half full, half of it is multiplied twice
        as fast if vectors are of 64 bytes. 0 where that is not so."""
        rest, half = count % self.block(machine), self.lanes(machine) // 2
        halves = -(-rest // half)
        fast = machine.vector_bytes >= 64 and machine.triple.startswith("x86") and not self.lanewise
        return halves if fast and halves % 2 else 0


class Tiles:
    """The functions of one module that compute tiles, written when they are first called."""

    def __init__(self, spec: Contraction, machine: Machine) -> None:
        self.spec, self.machine = spec, machine
        self.rows, self.vectors, self.lanes = spec.rows(machine), spec.vectors(machine), spec.lanes(machine)
        self.block = spec.block(machine)
        self.functions = [finisher(vector(self.lanes, spec.kind))]
        self._known: dict[tuple[int, int, bool], str] = {}

    def call(self, f: Function, rest: Value, lanes: Value, *arguments: Value) -> None:
        """Compute the tile of the next `rest` places, as many as the largest has, and of the next `lanes` numbers.

        `arguments` are those of `_tile` before `lanes`. Places past the last one must repeat it.
        """
        most = max(self.rows)
        steps = [n for n, larger in zip(self.rows[1:], self.rows, strict=False) if larger - n >= FAR]
        if not steps:
            self._largest(f, self.rows, rest, lanes, arguments)
            return
        # One or two places more than a size whose next one is far are a tile of their own.
        over = rest & (FAR - 1)
        apart = (rest > min(steps)) & (rest < most) & (over > 0) & (over <= 2)
        whole = f.select(apart, rest - over, rest)
        self._largest(f, self.rows, whole, lanes, arguments)
        with f.when(apart, likely=False):
            a, c, *others = arguments
            left = (f.at(a, whole * 8), f.at(c, whole * 8), *others)
            self._largest(f, tuple(n for n in self.rows if n <= 2), over, lanes, left)

    def _largest(self, f: Function, sizes: tuple[int, ...], rest: Value, lanes: Value, arguments: tuple[Value, ...]) -> None:
        """The tile of one of these sizes that has places for all of the rest, or else the largest."""
        for size, next_size in zip(sizes, (*sizes[1:], 0), strict=True):
            enough = (rest > next_size) & (rest <= size) if size != sizes[0] else rest > next_size
            with f.when(enough), f.when(lanes >= self.block, likely=True) as ragged:
                f.call("void", self._name(size, self.vectors, False), *arguments, lanes)
                with ragged.otherwise():
                    self._ragged(f, size, lanes, arguments)

    def _ragged(self, f: Function, size: int, lanes: Value, arguments: tuple[Value, ...]) -> None:
        if self.spec.tail:
            f.call("void", self._name(size, -(-self.spec.tail // 2), True), *arguments, lanes)
            return
        if self.vectors == 1:
            f.call("void", self._name(size, 1, True), *arguments, lanes)
            return
        with f.when(lanes <= self.lanes) as more:
            f.call("void", self._name(size, 1, True), *arguments, lanes)
            with more.otherwise():
                f.call("void", self._name(size, self.vectors, True), *arguments, lanes)

    def _name(self, rows: int, vectors: int, masked: bool) -> str:
        key = (rows, vectors, masked)
        if key not in self._known:
            self._known[key] = f"tile_{rows}_{vectors}{'_masked' if masked else ''}"
            self.functions.append(_tile(self._known[key], self.spec, self.lanes, *key))
        return self._known[key]


def _tile(name: str, spec: Contraction, width: int, rows: int, vectors: int, masked: bool) -> Function:
    """`a` and `c` are tables of addresses, one a place; `b` and `begin`, what sums begin with, are shared. `how` and
    `numbers` say what is done with sums (ending.py). Masked tiles touch only the first `lanes` numbers of their vectors."""
    f = Function(name, private=True, a="ptr", c="ptr", b="ptr", begin="ptr", nest="ptr", how="i64", numbers="ptr", lanes="i64")
    kind = vector(width, spec.kind)
    step = width * spec.bytes
    widths = [width] * (vectors - 1) + [width // 2 if masked and spec.tail else width]
    kinds = [vector(n, spec.kind) for n in widths]
    masks = [mask_below(f, n, f.lanes - k * width) if masked else None for k, n in enumerate(widths)]
    a, c = ([f.load("ptr", f.at(table, 8 * m)) for m in range(rows)] for table in (f.a, f.c))
    begin = [(kinds[k], f.at(f.begin, k * step), masks[k]) for k in range(vectors)]
    sums = [[f.variable(kind, f.load(kind, place, mask=mask)) for kind, place, mask in begin] for _ in range(rows)]
    counts, a_steps, b_steps = ([f.load("i64", f.at(f.nest, 8 * (4 * part + k))) for k in range(4)] for part in range(3))
    add, look = f.variable("i64", f.how & ADD), _looking(f, spec, rows, vectors * step)

    def flush(*, last: bool = False) -> None:
        """Bring the sums to C. All of it is read before any of it is written: places may be the same."""
        with f.when(add.get().ne(0)):
            for row, place in zip(sums, c, strict=True):
                for k, total in enumerate(row):
                    total.set(f.load(kinds[k], f.at(place, k * step), mask=masks[k]) + total.get())
        if not last:
            put(sums, masks)
            return
        ready, within = sums, masks
        if widths[-1] < width:
            ready = [[*row[:-1], f.variable(kind, _doubled(f, row[-1].get()))] for row in sums]
            within = [*masks[:-1], mask_below(f, width, f.lanes - (vectors - 1) * width)]
        with stored(f, f.how, f.numbers, [total for row in ready for total in row], lambda: f.c, vectors, f.lanes):
            put(ready, within)

    def put(sums: list[list[Variable]], masks: list[Value | None]) -> None:
        for row, place in zip(sums, c, strict=True):
            for k, total in enumerate(row):
                f.store(total.get(), f.at(place, k * step), mask=masks[k])

    def piece(a_offset: Value, b: Value, begin: Value, end: Value) -> None:
        start = a_offset + begin * a_steps[3]
        # Of one vector there are as many addresses as products: here it is better that LLVM steps each of them.
        a_at = f.variable("i64", opaque(f, start) if vectors > 1 else start)
        b_at = f.variable("ptr", f.at(b, begin * b_steps[3]))
        if not (spec.ahead or spec.announce):
            terms(begin, end, a_at, b_at)
            return
        with f.loop(begin, end, AHEAD) as first:
            look()
            terms(first, f.smaller(first + AHEAD, end), a_at, b_at)

    def terms(begin: Value, end: Value, a_at: Variable, b_at: Variable) -> None:
        with f.loop(begin, end):
            there = b_at.get()
            values = [f.load(kinds[k], f.at(there, k * step), mask=masks[k]) for k in range(vectors)]
            offset = a_at.get()
            for row, place in zip(sums, a, strict=True):
                here = f.at(place, offset)
                one = None if spec.lanewise else f.splat(f.load(spec.kind, here), widths[0])
                if one is not None and widths[-1] < widths[0]:  # else LLVM reads it once more for the half vector
                    one = f.emit(one.type, f'call {one.type} asm "", "=v,0"({one.type} {one.text})')
                for k, total in enumerate(row):
                    factor = f.load(kind, f.at(here, k * step), mask=masks[k]) if one is None else one
                    if widths[k] < widths[0]:
                        factor = f.shuffle(factor, factor, range(widths[k]))
                    total.set(fused(f, factor, values[k], total.get()))
            a_at.set(offset + a_steps[3])
            b_at.set(f.at(there, b_steps[3]))

    def begin_again() -> None:
        flush()
        add.set(1)
        for row in sums:
            for total in row:
                total.set(0)

    if spec.announce:
        with f.when((counts[0] * counts[1] * counts[2] * counts[3]) < AT_ONCE, likely=False), f.loop(0, ANNOUNCED):
            look()
    _nest(f, counts, a_steps, b_steps, piece, None if spec.lanewise else begin_again)
    flush(last=True)
    return f


def _doubled(f: Function, value: Value) -> Value:
    """A vector twice as wide, of which the upper half is open."""
    count = lanes(value.type)
    return f.shuffle(value, value, [*range(count), *[-1] * count])


def opaque(f: Function, value: Value) -> Value:
    """The same number, of which LLVM knows nothing: else it makes a dozen addresses of it, and steps each of them in every loop
    of a nest."""
    return f.emit(value.type, f'call {value.type} asm "", "=r,0"({value.type} {value.text})')


def _looking(f: Function, spec: Contraction, rows: int, bytes_: int) -> Callable[[], None]:
    """What asks, every AHEAD terms, for the next lines ahead or for those of some more of C's rows, of so many bytes: all at once
    would keep whatever else is missing waiting."""
    if spec.announce:
        return _announcing(f, rows, bytes_)
    if not spec.ahead:
        return lambda: None
    place = f.variable("ptr", f.load("ptr", f.at(f.nest, 8 * NEST)))
    line, step = (f.load("i64", f.at(f.nest, 8 * (NEST + k))) for k in (1, 2))

    def look() -> None:
        here = place.get()
        for _ in range(AHEAD):
            prefetch(f, here, near=False)
            here = f.at(here, line)
        place.set(f.at(place.get(), step))

    return look


def _announcing(f: Function, rows: int, bytes_: int) -> Callable[[], None]:
    count = -(-rows // ANNOUNCED)
    first = f.variable("i64", 0)

    def look() -> None:
        for k in range(count):
            place = f.load("ptr", f.at(f.c, first.get() * 8 + 8 * k))
            for line in range(0, bytes_, LINE):
                prefetch(f, f.at(place, line), write=True)
        first.set(f.smaller(first.get() + count, f.value("i64", rows - count)))

    return look


def _nest(
    f: Function,
    counts: list[Value],
    a_steps: list[Value],
    b_steps: list[Value],
    piece: Callable[[Value, Value, Value, Value], None],
    begin_again: Callable[[], None] | None,
) -> None:
    """The loops over r, the innermost one in pieces; `begin_again` comes before one that would make a sum too long."""
    terms = f.variable("i64", 0)
    with f.loop(0, counts[0]) as i, f.loop(0, counts[1]) as j, f.loop(0, counts[2]) as k:
        a = i * a_steps[0] + j * a_steps[1] + k * a_steps[2]
        b = f.at(f.b, i * b_steps[0] + j * b_steps[1] + k * b_steps[2])
        with f.loop(0, counts[3], PIECE) as first:
            end = f.smaller(first + PIECE, counts[3])
            if begin_again is not None:
                with f.when(((terms.get() + (end - first)) > PIECE) & (terms.get() > 0), likely=False):
                    begin_again()
                    terms.set(0)
                terms.set(terms.get() + (end - first))
            piece(a, b, first, end)


def mask_below(f: Function, width: int, lanes: Value) -> Value:
    """The lanes below a number."""
    return f.value(vector(width, "i64"), range(width)) < f.splat(lanes, width)


def mask_inside(f: Function, width: int, first: Value, count: Value, step: int = 1) -> Value:
    """The lanes whose numbers, `first` and every `step`-th behind it, are not negative and below a count."""
    return (f.splat(first, width) + f.value(vector(width, "i64"), range(0, width * step, step))).below(f.splat(count, width))


def fused(f: Function, a: Value, b: Value, c: Value) -> Value:
    """a * b + c, rounded once where the CPU can."""
    return f.call(a.type, f"llvm.fmuladd.v{lanes(a.type)}{SHORT[element(a.type)]}", a, b, c)


def added_up(f: Function, value: Value, width: int) -> Value:
    """The sum of all lanes, halves added until one is left."""
    while width > 1:
        width //= 2
        value = f.shuffle(value, value, range(width)) + f.shuffle(value, value, range(width, 2 * width))
    return value


def prefetch(f: Function, place: Value, *, write: bool = False, near: bool = True) -> None:
    """Ask for a line of memory, which may be anywhere, before it is needed: into the nearest cache, or the one behind it."""
    f.call("void", "llvm.prefetch.p0", place, *[f.value("i32", n) for n in (int(write), 3 if near else 2, 1)])
