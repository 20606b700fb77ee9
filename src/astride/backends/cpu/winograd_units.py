"""What Winograd's kernel does for one unit, a chunk of tiles of one group, channels last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import slots
from .contraction import Contraction, prefetch
from .ending import finisher, without_residual
from .ir import Function, Value
from .ir_types import vector
from .machine import Machine
from .winograd_forms import FORMS
from .winograd_parts import LINE, PIECES, Fielded, Products, addresses, gathered, spread


@dataclass(frozen=True, slots=True)
class Form:
    """What a kernel depends on: what it computes with, the outputs of a tile's row, and whether channels come first."""

    spec: Contraction
    tile: int
    first: bool = False


FIELDS = (
    "tiles", "in_image", "in_row", "chunks", "blocks_of_tiles", "slot",
    "height", "width", "pad_y", "pad_x", "out_height", "out_width",
    "x_image", "x_row", "x_pixel", "x_group", "y_image", "y_row", "y_pixel", "y_group",
    "x_channel", "y_channel", "inputs", "outputs", "vectors", "blocks", "point", "product",
)  # fmt: skip
"""Fields of the geometry, then the offset of a table of zeros, which pixels outside the image read. Sizes are in bytes where
they are steps through x, y or scratch memory: `slot` of one slot, `point` from one point of transformed pixels to the next,
with the products behind the last, `product` the same for those. `vectors` of inputs, `blocks` of outputs, each in a group."""

BIAS, FLAGS, HOW = range(slots.FIRST_FREE, slots.FIRST_FREE + 3)
"""Words of a call: where the bias lies; a byte for each tile, 1 where something is not finite; and what is done with sums,
behind which come the numbers for that (ending.py)."""


class Unit(Fielded):
    """Writes what is done for one unit. The geometry's fields are attributes."""

    def __init__(self, f: Function, form: Form, machine: Machine) -> None:
        spec, matrices = form.spec, FORMS[form.tile]
        self.f, self.spec, self.tile, self.size = f, spec, form.tile, matrices.points
        self.rows, self.lanes, self.block = spec.rows(machine)[0], spec.lanes(machine), spec.block(machine)
        self.vector, self.first = self.lanes * spec.bytes, form.first
        self.products = Products(spec, machine, self.vector, self.lanes, PIECES[form.tile])
        spread_, gathered_ = spread("spread", spec, machine, matrices.inputs), gathered(spec, machine, matrices.outputs)
        self.functions = [*self.products.functions, spread_, gathered_, finisher(vector(self.lanes, spec.kind))]
        self.fields = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        self.zeros = f.at(f.geometry, f.field(f.geometry, len(FIELDS)))
        self.pixels = f.scratch("ptr", self.size**2)

    def unit(self, unit: Value, memory: Value) -> None:
        """A chunk of the tiles of one group."""
        f, group, chunk = self.f, unit // self.chunks, unit % self.chunks
        first = chunk * self.blocks_of_tiles // self.chunks * self.rows
        last = f.smaller((chunk + 1) * self.blocks_of_tiles // self.chunks * self.rows, self.tiles)
        self.transform(first, last, group, memory)
        with f.loop(0, self.blocks) as block:
            self._multiply((first, last), group, block, memory)
            self.give((first, last), group, block, f.at(memory, self.point * self.size**2))

    def transform(self, first: Value, last: Value, group: Value, memory: Value) -> None:
        """Transform the pixels of tiles `first` to `last`."""
        f = self.f
        with f.loop(first, last) as t:
            n, row, column = self._place(t)
            x = f.at(f.a, n * self.x_image + group * self.x_group)
            at = row * self.tile - self.pad_y, column * self.tile - self.pad_x
            sizes, steps = (self.height, self.width), (self.x_row, self.x_pixel)
            addresses(f, self.pixels, self.size, at, sizes, x, steps, self.zeros)
            self.spread(f.at(memory, self.offset(t - first)), self.inputs)

    def offset(self, nth: Value) -> Value:
        """The byte of a chunk's tile at the first point, first channel."""
        return nth // self.rows * self.vectors * (self.rows * self.vector) + nth % self.rows * self.vector

    def spread(self, to: Value, channels: Value) -> None:
        """Transform the tile whose pixels are in the table."""
        f = self.f
        step = f.value("i64", self.rows * self.vector)
        f.call("void", "spread", self.pixels, f.value("i64", 0), to, self.point, step, channels)

    def give(self, chunk: tuple[Value, Value], group: Value, block: Value, products: Value) -> None:
        """Transform one block's products into the chunk's outputs."""
        f, (first, last), block_bytes = self.f, chunk, self.block * self.spec.bytes
        with f.loop(first, last) as t:
            n, row, column = self._place(t)
            top, left = row * self.tile, column * self.tile
            y = f.at(f.d, n * self.y_image + top * self.y_row + left * self.y_pixel + group * self.y_group)
            of, size = f.at(products, (t - first) * block_bytes), (self.out_height - top, self.out_width - left)
            self.gather(t, of, group, block, f.at(y, block * block_bytes), (self.y_row, self.y_pixel), size)

    def gather(
        self, t: Value, of: Value, group: Value, block: Value, y: Value, steps: tuple[Value, Value], size: tuple[Value, Value]
    ) -> None:
        """Transform one tile's products with one block into outputs, as many rows and columns as there are."""
        f, bytes_ = self.f, self.spec.bytes
        rest = f.smaller(self.outputs - block * self.block, f.value("i64", self.block))
        bias = f.at(f.load("ptr", f.at(f.c, BIAS * 8)), (group * self.blocks + block) * (self.block * bytes_))
        with f.loop(0, rest, self.lanes) as lane:
            here = [f.at(place, lane * bytes_) for place in (of, bias, y)]
            how, numbers = self.ending()
            ending = without_residual(f, how) if self.first else how, numbers
            finite = f.call("i1", "gathered", here[0], self.product, *here[1:], *steps, *size, rest - lane, *ending)
            with f.when(~finite, likely=False):
                f.store(f.value("i8", 1), f.at(f.load("ptr", f.at(f.c, FLAGS * 8)), t))

    def ending(self) -> tuple[Value, Value]:
        """What is done with sums, and the numbers for it."""
        return self.f.load("i64", self.f.at(self.f.c, HOW * 8)), self.f.at(self.f.c, (HOW + 1) * 8)

    def _multiply(self, chunk: tuple[Value, Value], group: Value, block: Value, memory: Value) -> None:
        """Multiply a chunk's tiles by one block's weights, point by point."""
        f, count, points, block_bytes = self.f, chunk[1] - chunk[0], self.size**2, self.block * self.spec.bytes
        weights = f.at(f.b, (group * self.blocks + block) * (self.vectors * (points * self.block * self.vector)))
        ahead, step = self.ahead(chunk, group, block), f.value("i64", self.rows * self.vector)
        with f.loop(0, points) as point, f.loop(0, count, self.rows) as at:
            ahead()
            a = f.at(memory, point * self.point + self.offset(at))
            b = f.at(weights, point * (self.vectors * (self.block * self.vector)))
            c = f.at(memory, self.point * points + point * self.product + at * block_bytes)
            self.products.call(f, count - at, a, b, c, self.vectors, step, f.value("i64", 0))

    def ahead(self, chunk: tuple[Value, Value], group: Value, block: Value) -> Callable[[], None]:
        """What brings on, in as many steps as there are products, what comes next: a block's share of the pixels of the next
        chunk, and the places of this block's outputs."""
        f, (first, last), points, pixels = self.f, chunk, self.size**2, self.tile**2
        steps = (last - first + (self.rows - 1)) // self.rows * points
        share = ((last - first) * pixels * self.x_pixel // (steps * self.blocks) + LINE) & -LINE
        x = f.at(f.a, last * pixels * self.x_pixel + self.x_row * (self.size - 1) + group * self.x_group)
        y = f.at(f.d, first * pixels * self.y_pixel + group * self.y_group + block * (self.block * self.spec.bytes))
        x_at, y_at = f.variable("ptr", f.at(x, block * steps * share)), f.variable("ptr", y)

        def one() -> None:
            with f.loop(0, share, LINE) as line:
                prefetch(f, f.at(x_at.get(), line))
            x_at.set(f.at(x_at.get(), share))
            for _ in range(-(-self.rows * pixels // points)):
                for nth in range(0, self.block * self.spec.bytes, LINE):
                    prefetch(f, f.at(y_at.get(), nth), write=True)
                y_at.set(f.at(y_at.get(), self.y_pixel))

        return one

    def _place(self, t: Value) -> tuple[Value, Value, Value]:
        """The image, row and column of a tile."""
        rest = t % self.in_image
        return t // self.in_image, rest // self.in_row, rest % self.in_row
