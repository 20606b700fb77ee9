"""Winograd's tiles where the channels come first: those of one row, some at a time, are brought in and out through small arrays
with the channels last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .contraction import Contraction, prefetch
from .conv_move import mover
from .ending import finish_lines
from .ir import Function, Value
from .ir_types import vector
from .machine import Machine
from .winograd_forms import FORMS
from .winograd_parts import LINE
from .winograd_units import Form, Unit

TOGETHER = 31
"""Tiles of one row that are moved together."""


def room(spec: Contraction, tile: int, machine: Machine) -> int:
    """Bytes of scratch memory that moving takes: pixels one vector of channels at a time, or outputs one block at a time."""
    size = FORMS[tile].points
    pixels = size * (TOGETHER * tile + size) * spec.lanes(machine)
    return max(pixels, tile * TOGETHER * tile * spec.block(machine)) * spec.bytes


class Window:
    """Writes how pixels of some tiles of one row become a small array of one vector of channels: a tile has `size` x `size`
    pixels, and it is `tile` pixels from one to the next."""

    def __init__(self, f: Function, spec: Contraction, lanes: int, tile: int, size: int) -> None:
        self.f, self.spec, self.lanes, self.tile, self.size = f, spec, lanes, tile, size
        self.vector, self.columns = lanes * spec.bytes, TOGETHER * tile + size - tile

    def bring(
        self,
        moved: Value,
        x: Value,
        at: tuple[Value, Value],
        sizes: tuple[Value, Value],
        steps: tuple[Value, Value],
        tiles: Value,
        channels: Value,
    ) -> None:
        """The pixels of so many tiles from row and column `at` of an image on; zeros outside. `steps` are the bytes from a row
        and from a channel to the next."""
        f, (top, left), zero = self.f, at, self.f.value("i64", 0)
        columns = tiles * self.tile + (self.size - self.tile)
        begin = f.smaller(f.larger(-left, 0), columns)
        end = f.larger(f.smaller(sizes[1] - left, columns), begin)
        for i in range(self.size):
            to = f.at(moved, i * self.columns * self.vector)
            with f.when((top + i).below(sizes[0]), likely=True) as outside:
                self._clear(to, zero, begin)
                of = f.at(x, (top + i) * steps[0] + (left + begin) * self.spec.bytes)
                here, vector_ = f.at(to, begin * self.vector), f.value("i64", self.vector)
                f.call("void", "move", of, here, channels, end - begin, steps[1], vector_, zero)
                self._clear(to, end, columns)
                with outside.otherwise():
                    self._clear(to, zero, columns)

    def _clear(self, to: Value, begin: Value, end: Value) -> None:
        with self.f.loop(begin, end) as column:
            self.f.store(self.f.value(vector(self.lanes, self.spec.kind), 0), self.f.at(to, column * self.vector))

    def fill(self, table: Value, moved: Value, nth: Value) -> None:
        """Fill a table with the places of a tile's pixels."""
        for k in range(self.size**2):
            i, j = divmod(k, self.size)
            place = self.f.at(moved, (nth * self.tile + (i * self.columns + j)) * self.vector)
            self.f.store(place, self.f.at(table, 8 * k))


@contextmanager
def parts(f: Function, in_row: Value, first: Value, last: Value) -> Iterator[tuple[Value, Value]]:
    """Tiles `first` to `last` in parts that lie in one row each: a part's first tile and its end."""
    with f.loop(first // in_row, (last - 1) // in_row + 1) as row:
        begin, end = f.larger(row * in_row, first), f.smaller((row + 1) * in_row, last)
        with f.loop(begin, end, TOGETHER) as start:
            yield start, f.smaller(start + TOGETHER, end)


class UnitFirst(Unit):
    """Writes what is done for one unit. Between scratch memory and planes `move` transposes."""

    def __init__(self, f: Function, form: Form, machine: Machine) -> None:
        super().__init__(f, form, machine)
        self.functions.append(mover(form.spec.kind, machine))
        self.window = Window(f, form.spec, self.lanes, self.tile, self.size)

    def transform(self, first: Value, last: Value, group: Value, memory: Value) -> None:
        """Transform the pixels of tiles `first` to `last`."""
        f, bytes_, tile = self.f, self.spec.bytes, self.tile
        moved = f.at(memory, (self.point + self.product) * self.size**2)
        sizes, steps = (self.height, self.width), (self.x_row, self.x_channel)
        with parts(f, self.in_row, first, last) as (begin, end), f.loop(0, self.inputs, self.lanes) as channel:
            n, row, column = self._place(begin)
            x = f.at(f.a, n * self.x_image + group * self.x_group + channel * self.x_channel)
            channels = f.smaller(self.inputs - channel, f.value("i64", self.lanes))
            at = (row * tile - self.pad_y, column * tile - self.pad_x)
            self.window.bring(moved, x, at, sizes, steps, end - begin, channels)
            with f.loop(begin, end) as t:
                self.window.fill(self.pixels, moved, t - begin)
                self.spread(f.at(memory, self.offset(t - first) + channel * (self.rows * bytes_)), channels)

    def give(self, chunk: tuple[Value, Value], group: Value, block: Value, products: Value) -> None:
        """Transform one block's products into the chunk's outputs."""
        f, tile, pixel = self.f, self.tile, self.block * self.spec.bytes
        moved = f.at(products, self.product * self.size**2)
        steps = f.value("i64", TOGETHER * tile * pixel), f.value("i64", pixel)
        whole = f.value("i64", tile), f.value("i64", tile)
        channels = f.smaller(self.outputs - block * self.block, f.value("i64", self.block))
        with parts(f, self.in_row, *chunk) as (begin, end):
            with f.loop(begin, end) as t:
                of = f.at(products, (t - chunk[0]) * pixel)
                self.gather(t, of, group, block, f.at(moved, (t - begin) * (tile * pixel)), steps, whole)
            n, row, column = self._place(begin)
            top, left = row * tile, column * tile
            columns = f.smaller((end - begin) * tile, self.out_width - left)
            y = f.at(f.d, n * self.y_image + group * self.y_group + block * self.block * self.y_channel)
            with f.loop(0, f.smaller(self.out_height - top, f.value("i64", tile))) as i:
                to = f.at(y, (top + i) * self.y_row + left * self.spec.bytes)
                of, zero = f.at(moved, i * steps[0]), f.value("i64", 0)
                f.call("void", "move", of, to, columns, channels, steps[1], self.y_channel, zero)
                kind, lines = vector(self.lanes, self.spec.kind), (channels, columns, self.y_channel)
                finish_lines(f, kind, *self.ending(), to, lines)

    def ahead(self, chunk: tuple[Value, Value], group: Value, block: Value) -> Callable[[], None]:
        """What brings on, in as many steps as there are products, what comes next: a block's share of the channels of the next
        chunk, and this block's planes of this chunk."""
        f, (first, last), pixels = self.f, chunk, self.tile**2 * self.spec.bytes
        steps = (last - first + (self.rows - 1)) // self.rows * self.size**2
        lines = (last - first) * pixels // LINE + 1
        share = self.inputs // self.blocks + 1
        x = f.at(f.a, last // self.in_image * self.x_image + group * self.x_group + block * share * self.x_channel)
        x = f.at(x, last % self.in_image * pixels + self.x_row)
        y = f.at(f.d, first // self.in_image * self.y_image + group * self.y_group + block * self.block * self.y_channel)
        y = f.at(y, first % self.in_image * pixels)
        streams = [(x, self.x_channel, share, False), (y, self.y_channel, f.value("i64", self.block), True)]
        at = [f.variable("i64", 0) for _ in streams]

        def one() -> None:
            for (place, step, channels, write), done in zip(streams, at, strict=True):
                begin = done.get()
                end = begin + (channels * lines // steps + 1)
                with f.loop(begin, end) as k:
                    prefetch(f, f.at(place, k // lines * step + k % lines * LINE), write=write)
                done.set(end)

        return one
