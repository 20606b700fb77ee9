"""The inner functions of Winograd's convolution: products in registers, and tiles transformed a vector of channels at a time.

Tiles lie in blocks of as many as the largest tile of sums has rows; of one block, one vector of its channels after the other,
in it a row for each tile. So a product reads with one pointer and constant offsets.
"""

from __future__ import annotations

from .contraction import Contraction, fused, mask_below
from .ending import NUMBERS, rectified, spilled
from .ir import Function, Value, Variable
from .ir_types import size as bytes_of
from .ir_types import vector
from .machine import Machine
from .winograd_forms import Matrix, transformed

PIECES = {2: 64, 4: 32}
"""Terms that are added up one by one, by the side of a tile: transforms enlarge what rounding there is, larger ones more, and
shorter pieces halve it for 1 to 5 % of the time."""

LINE = 64
"""Bytes of a cache line."""

PAGE, SKEW = 4096, 320
"""Bytes at which places share a set of the nearest cache, and what points of a tile are moved apart by."""

UNROLLED = 8
"""Terms of a product that are written one after the other."""


class Fielded:
    """Code that is written for one unit. The geometry's fields, by name in `fields`, are attributes."""

    fields: dict[str, Value]

    def __getattr__(self, name: str) -> Value:
        fields = self.__dict__.get("fields", {})
        if name not in fields:
            raise AttributeError(name)
        value: Value = fields[name]
        return value


class Products:
    """The functions of one module that multiply transformed tiles.

    C[m][n] (+)= sum_r A[m][r] B[r][n]: m `count` places `row` bytes apart, n one block of channels; r runs of `run` numbers
    side by side in A, `step` bytes from one run to the next. Sums are cut every `piece` terms.
    """

    def __init__(self, spec: Contraction, machine: Machine, row: int, run: int, piece: int) -> None:
        self.spec, self.row, self.run, self.piece = spec, row, run, piece
        self.lanes, self.vectors, self.rows = spec.lanes(machine), spec.vectors(machine), spec.rows(machine)
        self.functions = [self._product(rows) for rows in self.rows]

    def call(self, f: Function, rest: Value, *arguments: Value) -> None:
        """The product of the next `rest` places, as many as the largest has. Arguments: A, B, C, runs, step, add."""
        for size, smaller in zip(self.rows, (*self.rows[1:], 0), strict=True):
            enough = (rest > smaller) & (rest <= size) if size != self.rows[0] else rest > smaller
            with f.when(enough):
                f.call("void", f"product_{size}", *arguments)

    def _product(self, rows: int) -> Function:
        f = Function(f"product_{rows}", private=True, a="ptr", b="ptr", c="ptr", runs="i64", step="i64", add="i64")
        spec, kind, width = self.spec, vector(self.lanes, self.spec.kind), self.lanes * self.spec.bytes
        block, piece, unrolled = width * self.vectors, max(self.piece // self.run, 1), min(UNROLLED, self.run)
        sums = [[f.variable(kind, 0) for _ in range(self.vectors)] for _ in range(rows)]
        a_at, b_at, add = f.variable("ptr", f.a), f.variable("ptr", f.b), f.variable("i64", f.add)
        with f.loop(0, f.runs, piece) as first:
            for row in sums:
                for total in row:
                    total.set(0)
            with f.loop(first, f.smaller(first + piece, f.runs)):
                a = a_at.get()
                with f.loop(0, self.run * spec.bytes, unrolled * spec.bytes) as part:
                    b = b_at.get()
                    for r in range(unrolled):
                        values = [f.load(kind, f.at(b, r * block + k * width)) for k in range(self.vectors)]
                        for m, row in enumerate(sums):
                            place = f.at(f.at(a, part), m * self.row + r * spec.bytes)
                            one = f.splat(f.load(spec.kind, place), self.lanes)
                            for total, value in zip(row, values, strict=True):
                                total.set(fused(f, one, value, total.get()))
                    b_at.set(f.at(b, unrolled * block))
                a_at.set(f.at(a, f.step))
            self._flush(f, sums, add.get())
            add.set(1)
        return f

    def _flush(self, f: Function, sums: list[list[Variable]], add: Value) -> None:
        """Bring the sums to C, added to what is there or instead of it."""
        kind, width = sums[0][0].type, self.lanes * self.spec.bytes
        places = [(f.at(f.c, nth * width), total) for nth, total in enumerate(total for row in sums for total in row)]
        with f.when(add.ne(0)):
            for place, total in places:
                total.set(f.load(kind, place) + total.get())
        for place, total in places:
            f.store(total.get(), place)


def spread(name: str, spec: Contraction, machine: Machine, matrix: Matrix) -> Function:
    """The function `name`: a tile of pixels transformed, vectors of channels one after the other.

    `pixels` is a table of addresses, row by row, `skip` bytes before what is read; `to` the place of the first channels at
    the first point, from where it is `point` bytes to the next point and `step` to the next vector. Channels from `channels`
    on count as zeros.
    """
    f = Function(name, private=True, pixels="ptr", skip="i64", to="ptr", point="i64", step="i64", channels="i64")
    size, width, bytes_ = len(matrix[0]), spec.lanes(machine), spec.bytes
    kind = vector(width, spec.kind)

    def one(first: Value, mask: Value | None) -> None:
        def get(i: int, j: int) -> Value:
            place = f.load("ptr", f.at(f.pixels, 8 * (i * size + j)))
            return f.load(kind, f.at(place, f.skip + first * bytes_), mask=mask)

        to = f.variable("ptr", f.at(f.to, first // width * f.step))
        for row in transformed(f, matrix, get):
            for value in row:
                f.store(value, to.get())
                to.set(f.at(to.get(), f.point))

    whole = f.channels // width * width
    with f.loop(0, whole, width) as first:
        one(first, None)
    with f.when(whole < f.channels):
        one(whole, mask_below(f, width, f.channels - whole))
    return f


def gathered(spec: Contraction, machine: Machine, matrix: Matrix) -> Function:
    """The function `gathered`: products of one tile and one vector of channels as outputs, bias added. 1 if all are finite.
    `how` and `numbers` say what is done with them before they are stored (ending.py).

    `of` is the place of the first point, from where it is `point` bytes to the next; `to` the first output, from where it is
    `row` bytes to the next row and `pixel` to the next column. Only the first `rows`, `columns` and `channels` are there.
    """
    arguments = {"of": "ptr", "point": "i64", "bias": "ptr", "to": "ptr", "row": "i64", "pixel": "i64"}
    counts = {"rows": "i64", "columns": "i64", "channels": "i64", "how": "i64", "numbers": "ptr"}
    f = Function("gathered", private=True, result="i1", **arguments, **counts)
    size, width = len(matrix[0]), spec.lanes(machine)
    kind = vector(width, spec.kind)

    def get(i: int, j: int) -> Value:
        return f.load(kind, f.at(f.of, f.point * (i * size + j)))

    bias = f.load(kind, f.bias)
    values = [[value + bias for value in row] for row in transformed(f, matrix, get)]
    odd = [value - value for row in values for value in row]  # NaN where one is not finite, else 0
    finite = odd[0]
    for value in odd[1:]:
        finite = finite + value
    inside = mask_below(f, width, f.channels)
    with f.when((f.how & NUMBERS).eq(0), likely=True) as rare:
        sums = [[f.variable(kind, value) for value in row] for row in values]
        rectified(f, f.how, [total for row in sums for total in row])
        whole = [[total.get() for total in row] for row in sums]
        with f.when(f.channels >= width, likely=True) as ragged:
            _put(f, whole, None)
            with ragged.otherwise():
                _put(f, whole, inside)
        with rare.otherwise():
            _finish(f, values)
    f.give(~f.any(finite.is_nan() & inside))
    return f


def _finish(f: Function, values: list[list[Value]]) -> None:
    """Finish and store a tile of outputs one by one, as far as it is there."""
    room, table, one = spilled(f, [value for row in values for value in row]), f.scratch("ptr", 1), f.value("i64", 1)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            with f.when((f.rows > i) & (f.columns > j)):
                f.store(f.at(f.at(f.to, f.row * i), f.pixel * j), table)
                of = f.at(room, (i * len(row) + j) * bytes_of(value.type))
                f.call("void", "finish", of, table, one, one, f.how, f.numbers, f.channels)


def _put(f: Function, values: list[list[Value]], mask: Value | None) -> None:
    """Store a tile of outputs as far as it is there."""
    with f.when((f.rows >= len(values)) & (f.columns >= len(values)), likely=True) as edge:
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                f.store(value, f.at(f.at(f.to, f.row * i), f.pixel * j), mask=mask)
        with edge.otherwise():
            for i, row in enumerate(values):
                for j, value in enumerate(row):
                    with f.when((f.rows > i) & (f.columns > j)):
                        f.store(value, f.at(f.at(f.to, f.row * i), f.pixel * j), mask=mask)


def addresses(
    f: Function,
    table: Value,
    size: int,
    at: tuple[Value, Value],
    sizes: tuple[Value, Value],
    image: Value,
    steps: tuple[Value, Value],
    zeros: Value,
) -> None:
    """Fill a table with the places of size x size pixels from row and column `at` on: `zeros` for those outside the image."""
    (top, left), (height, width), (row, pixel) = at, sizes, steps
    for i in range(size):
        inside, line = (top + i).below(height), f.at(image, (top + i) * row)
        for j in range(size):
            place = f.select(inside & (left + j).below(width), f.at(line, (left + j) * pixel), zeros)
            f.store(place, f.at(table, 8 * (i * size + j)))


def apart(step: int) -> int:
    """At least so many bytes, so that what lies a few steps further falls into other sets of the cache."""
    return -(-step // PAGE) * PAGE + SKEW


def steps_of(name: str, sizes: tuple[int, int], channels: int, of_group: int, bytes_: int, first: bool = False) -> dict[str, int]:
    """Bytes from an image, row, pixel, channel and group to the next; channels `first` or last."""
    height, width = sizes
    pixel, channel = (bytes_, height * width * bytes_) if first else (channels * bytes_, bytes_)
    image = height * width * channels * bytes_
    steps = {"image": image, "row": width * pixel, "pixel": pixel, "channel": channel, "group": of_group * channel}
    return {f"{name}_{step}": value for step, value in steps.items()}
