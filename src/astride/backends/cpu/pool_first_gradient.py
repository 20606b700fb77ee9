"""The gradient of pooling where the channels come first: lanes are input columns, one phase of the stride at a time.

A unit is one row of dx. For each row of windows that covers it, dy and what forward saved go into buffers with nothing
left and right of them; then column q * stride + phase - pad gathers from the windows q, q - 1, ... and no load needs a mask.
"""

from __future__ import annotations

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import size, vector
from .line import BUFFER, Across
from .machine import Machine
from .window import FIRST_FREE, KERNEL, OUT, SIZE, Cover, blocks, fields, kernel_function, saved_part

COVERS, PAD, TILE, SHARES = FIRST_FREE + 4, FIRST_FREE + 1, FIRST_FREE + 2, FIRST_FREE + 10
"""Fields: the covers' first entries and entries; the padding at the left; windows of one tile; the columns' shares as the
type sums are formed in."""


def tile(across: Across, lanes: int) -> int:
    """Windows whose columns fit the buffers."""
    return (BUFFER - 4 * lanes * across.stride) // across.stride - across.kernel


def takes(spec: Gradient, across: Across, lanes: int) -> bool:
    """Whether the quick way is written for this window."""
    from ...plan.kinds import ZeroWindow

    if spec.kind == "norm" and spec.zero_window is not ZeroWindow.ZERO:
        return False
    return across.dilation == 1 and across.kernel <= 16 and across.stride <= 4 and tile(across, lanes) >= lanes


def backward(spec: Gradient, across: Across | None, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are rows (plane, depth, height) of dx.

    Without `across` every pixel gathers by itself.
    """
    f = kernel_function("backward")
    rows = Rows(f, spec, across, machine)
    size_, bytes_ = rows.size, spec.number.bytes
    with f.loop(f.begin, f.end) as unit:
        plane, row = unit // (size_[0] * size_[1]), unit % (size_[0] * size_[1])
        depths = Cover.range(f, rows.firsts[0], row // size_[1])
        heights = Cover.range(f, rows.firsts[1], row % size_[1])
        dx, x = f.at(f.a, unit * size_[2] * bytes_), f.at(f.d, unit * size_[2] * bytes_)
        if across is None:
            rows.one_by_one(plane, depths, heights, dx, x)
        else:
            count = (size_[2] - 1 + f.field(f.geometry, PAD)) // across.stride + 1
            step = f.field(f.geometry, TILE)
            with f.loop(0, count, step) as start:
                rows.tile(plane, depths, heights, dx, x, start, f.smaller(count - start, step))
    return module(f)


class Rows:
    """The code of one row of dx."""

    def __init__(self, f: Function, spec: Gradient, across: Across | None, machine: Machine) -> None:
        self.f, self.spec, self.across = f, spec, across
        self.size, self.out, self.kernel = (fields(f, start) for start in (SIZE, OUT, KERNEL))
        self.firsts = [f.at(f.geometry, f.field(f.geometry, COVERS + axis)) for axis in range(3)]
        self.entries = [f.at(f.geometry, f.field(f.geometry, COVERS + 3 + axis)) for axis in range(3)]
        self.taps = self.kernel[0] * self.kernel[1] * self.kernel[2]
        self.lanes = machine.lanes(spec.index if spec.offsets else spec.accumulate)
        if across is not None:
            self.dy = f.scratch(spec.accumulate, BUFFER, 64)
            self.other = f.scratch(self._other_kind, BUFFER, 64) if spec.kind != "share" else None
            self.x = f.scratch(spec.accumulate, BUFFER, 64) if spec.reads_x else None
            self.sums = [f.scratch(spec.accumulate, BUFFER, 64) for _ in range(across.stride)]
            self.row = f.scratch(spec.accumulate, BUFFER, 64)

    @property
    def _other_kind(self) -> str:
        return self.spec.index if self.spec.kind == "offsets" else self.spec.accumulate

    def one_by_one(
        self, plane: Value, depths: tuple[Value, Value], heights: tuple[Value, Value], dx: Value, x: Value
    ) -> None:
        """Every pixel asks its windows."""
        f, spec, number = self.f, self.spec, self.spec.number
        with f.loop(0, self.size[2]) as column:
            state = Gather(f, spec, 1, self.taps)
            here = f.at(x, column * number.bytes)
            state.start(spec.wide(f, number.load(f, here, 1)) if spec.reads_x else None)
            widths = Cover.range(f, self.firsts[2], column)
            with f.loop(*depths) as i, f.loop(*heights) as j:
                depth, height = Cover.read(f, self.entries[0], i), Cover.read(f, self.entries[1], j)
                line = ((plane * self.out[0] + depth.window) * self.out[1] + height.window) * self.out[2]
                layer = (depth.number * self.kernel[1] + height.number) * self.kernel[2]
                with f.loop(*widths) as w:
                    width = Cover.read(f, self.entries[2], w)
                    share = (depth.share * height.share * width.share * f.field(f.geometry, FIRST_FREE)).to(spec.share)
                    window = line + width.window
                    dy = spec.wide(f, number.load(f, f.at(f.b, window * number.bytes), 1))
                    state.take(state.scaled(dy, share), layer + width.number, saved_part(f, spec, window, 1))
            f.store(spec.narrow(f, state.result()), f.at(dx, column * number.bytes))

    def tile(
        self,
        plane: Value,
        depths: tuple[Value, Value],
        heights: tuple[Value, Value],
        dx: Value,
        x: Value,
        start: Value,
        count: Value,
    ) -> None:
        """The columns of windows start to start + count: q * stride + phase - pad for all phases."""
        f, spec, across, n = self.f, self.spec, self.across, self.lanes
        assert across is not None
        zero = f.value(vector(n, spec.accumulate), 0)
        with f.loop(0, count, n) as q:
            for sums in self.sums:
                f.store(zero, self._at(sums, q))
        first = start * across.stride - f.field(f.geometry, PAD)
        if spec.reads_x:
            self._copy_x(x, first, count * across.stride)
        with f.loop(*depths) as i, f.loop(*heights) as j:
            depth, height = Cover.read(f, self.entries[0], i), Cover.read(f, self.entries[1], j)
            line = ((plane * self.out[0] + depth.window) * self.out[1] + height.window) * self.out[2]
            layer = (depth.number * self.kernel[1] + height.number) * self.kernel[2]
            self._copy_windows(line, depth.share * height.share * f.field(f.geometry, FIRST_FREE), start, count)
            with f.loop(0, count, n) as q:
                self._gather(q, layer)
        with f.loop(0, count, n) as q:
            phases = [f.load(vector(n, spec.accumulate), self._at(sums, q)) for sums in self.sums]
            self._interleave(phases, self._at(self.row, q * across.stride))
        self._copy_out(dx, first, count * across.stride)

    @property
    def _before(self) -> int:
        """Windows before the tile's first that reach into it."""
        assert self.across is not None
        return -(-self.across.kernel // self.across.stride) - 1

    def _at(self, buffer: Value, i: Value, kind: str = "") -> Value:
        return self.f.at(buffer, i * size(kind or self.spec.accumulate))

    def _copy_windows(self, line: Value, factor: Value, start: Value, count: Value) -> None:
        """dy, scaled, and what was saved of windows start - before to start + count; nothing where there is no window."""
        f, spec, n = self.f, self.spec, self.lanes
        first = start - self._before
        left, right = f.larger(-first, 0), f.smaller(self.out[2] - first, count + self._before)
        zero, none = f.value(vector(n, spec.accumulate), 0), f.value(vector(n, self._other_kind), -1 if spec.offsets else 0)
        for lo, hi in ((f.value("i64", 0), left), (f.larger(right, 0), count + self._before + n)):
            with f.loop(lo, hi, n) as i:
                f.store(zero, self._at(self.dy, i))
                if self.other is not None:
                    f.store(none, self._at(self.other, i, self._other_kind))
        state = Gather(f, spec, n, self.taps)
        single = Gather(f, spec, 1, self.taps)

        def block(i: Value, lanes: int) -> None:
            window = first + i
            dy = spec.wide(f, spec.number.load(f, f.at(f.b, (line + window) * spec.number.bytes), lanes))
            if spec.kind != "offsets":
                table = f.at(f.geometry, f.field(f.geometry, SHARES))
                along = f.load(vector(lanes, spec.share), f.at(table, window * size(spec.share)))
                share = along * f.splat(factor.to(spec.share), lanes)
                dy = (state if lanes > 1 else single).scaled(dy, share)
            f.store(dy, self._at(self.dy, i))
            other = saved_part(f, spec, line + window, lanes)
            if other is not None and self.other is not None:
                f.store(other, self._at(self.other, i, self._other_kind))

        blocks(f, n, left, right, block)

    def _copy_x(self, x: Value, first: Value, count: Value) -> None:
        """The row's columns from `first` on, 0 outside the image."""
        f, spec, n = self.f, self.spec, self.lanes
        assert self.x is not None
        left, right = f.larger(-first, 0), f.smaller(self.size[2] - first, count)
        buffer = self.x
        with f.loop(0, left, n) as i:
            f.store(f.value(vector(n, spec.accumulate), 0), self._at(buffer, i))
        with f.loop(f.larger(right, 0), count + n * len(self.sums), n) as i:
            f.store(f.value(vector(n, spec.accumulate), 0), self._at(buffer, i))

        def block(i: Value, lanes: int) -> None:
            value = spec.number.load(f, f.at(x, (first + i) * spec.number.bytes), lanes)
            f.store(spec.wide(f, value), self._at(buffer, i))

        blocks(f, n, left, right, block)

    def _copy_out(self, dx: Value, first: Value, count: Value) -> None:
        """The finished columns that lie in the image."""
        f, spec = self.f, self.spec
        left, right = f.larger(-first, 0), f.smaller(self.size[2] - first, count)

        def block(i: Value, lanes: int) -> None:
            value = f.load(vector(lanes, spec.accumulate), self._at(self.row, i))
            f.store(spec.narrow(f, value), f.at(dx, (first + i) * spec.number.bytes))

        blocks(f, self.lanes, left, right, block)

    def _gather(self, q: Value, layer: Value) -> None:
        """What one row of windows gives to one vector of each phase's columns."""
        f, spec, across, n = self.f, self.spec, self.across, self.lanes
        assert across is not None
        kind = vector(n, spec.accumulate)
        columns = self._phases(q) if spec.reads_x else []
        loaded: dict[int, tuple[Value, Value | None]] = {}
        for phase, sums in enumerate(self.sums):
            state = Gather(f, spec, n, self.taps)
            state.start(columns[phase] if spec.reads_x else None)
            state.total.set(f.load(kind, self._at(sums, q)))
            for back, tap in enumerate(range(phase, across.kernel, across.stride)):
                if back not in loaded:
                    place = q + (self._before - back)
                    other = None
                    if self.other is not None:
                        other = f.load(vector(n, self._other_kind), self._at(self.other, place, self._other_kind))
                    loaded[back] = (f.load(kind, self._at(self.dy, place)), other)
                dy, other = loaded[back]
                state.take(dy, layer + tap, other)
            f.store(state.result(), self._at(sums, q))

    def _phases(self, q: Value) -> list[Value]:
        """x at the columns of each phase."""
        f, n = self.f, self.lanes
        assert self.across is not None and self.x is not None
        s, kind = self.across.stride, vector(n, self.spec.accumulate)
        parts = [f.load(kind, self._at(self.x, q * s + k * n)) for k in range(s)]
        whole = f.joined(parts)
        return [whole] if s == 1 else [f.shuffle(whole, whole, [r + s * lane for lane in range(n)]) for r in range(s)]

    def _interleave(self, phases: list[Value], pointer: Value) -> None:
        """Phases back to columns in order."""
        f, n, s = self.f, self.lanes, len(phases)
        if n == 1:
            for k, value in enumerate(phases):
                f.store(value, f.at(pointer, k * size(value.type)))
            return
        whole = f.joined(phases)
        if s > 1:
            whole = f.shuffle(whole, whole, [(k % s) * n + k // s for k in range(n * s)])
        f.store(whole, pointer)
