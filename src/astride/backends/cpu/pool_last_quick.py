"""Pooling of windows that are whole where the channels come last: their taps are written out, each number a constant.

A unit is one row of output pixels. Windows that lie inside the input altogether are taken here; those at the edges, and a
vector with a NaN in it that the rule minds, go tap by tap, as `pool_last` has them. Windows of many taps are walked, in
more vectors at once, so that each pixel is read in long pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...plan.kinds import Nan, Start, Tie
from .contraction import prefetch
from .extremes import FIRST_TAP_STARTS, Extreme, Matching, Scan
from .ir import Function, Value, module
from .machine import Machine
from .pool_last import TABLES, blocks, over_channels, over_taps, width, without_taps
from .sums import Sum
from .window import (
    CHANNELS,
    DILATION,
    KERNEL,
    OUT,
    SIZE,
    Place,
    Spec,
    State,
    Window,
    begin,
    fields,
    finish,
    kernel_function,
    new_state,
)

MOST_TAPS = 27
"""Taps of a window up to which they are written out."""

LONG = 16
"""Vectors taken at once where taps are walked."""

AHEAD = 2
"""Pixels ahead of which the cache is told."""

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Whole:
    """The window that kernels are written for; None where its taps are walked."""

    kernel: Triple | None


def way_of(spec: Spec, kernel: Sequence[int]) -> Whole | None:
    """How these windows are taken; None where this way is not written for them."""
    if isinstance(spec, Matching) or (isinstance(spec, Sum) and spec.scaled) or math.prod(kernel) == 0:
        return None
    if math.prod(kernel) > MOST_TAPS:
        return Whole(None) if isinstance(spec, Sum) else None
    if isinstance(spec, Extreme):
        apart = spec.tie in FIRST_TAP_STARTS and spec.start is not Start.FIRST_TAP
        if apart or spec.tie is Tie.LAST:
            return None
    return Whole((kernel[0], kernel[1], kernel[2]))


def forward(spec: Spec, whole: Whole, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets; units are rows (image, depth, height) of y."""
    return module(forward_rows("forward", spec, whole, machine))


def forward_rows(name: str, spec: Spec, whole: Whole, machine: Machine, *, private: bool = False) -> Function:
    """The function of `forward`, under a name of its own."""
    f = kernel_function(name, private=private)
    channels, lanes = f.field(f.geometry, CHANNELS), width(spec, machine)
    size, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    pixel = channels * spec.number.bytes
    steps = [dilation[0] * size[1] * size[2] * pixel, dilation[1] * size[2] * pixel, dilation[2] * pixel]
    with f.loop(f.begin, f.end) as unit:
        image, row = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth, height = Window.read(f, tables[0], row // out[1]), Window.read(f, tables[1], row % out[1])
        line = ((image * size[0] + depth.pixel) * size[1] + height.pixel) * size[2]
        with f.loop(0, out[2]) as column:
            axes = (depth, height, Window.read(f, tables[2], column))
            x = f.at(f.a, (line + axes[2].pixel) * pixel)
            place = (unit * out[2] + column) * channels
            results = Place(f.b, f.c).moved(f, spec, place)
            with f.when((axes[0].count * axes[1].count * axes[2].count) > 0, likely=True) as none:
                far = steps[2] * AHEAD if whole.kernel is None and machine.vector_bytes == 64 else None
                tapwise = over_taps(f, spec, axes, kernel, steps, x, place, results, far)
                if whole.kernel is None:
                    over_channels(f, channels, lanes, LONG if machine.registers == 32 else 4, tapwise)
                else:
                    here = [axis.count.eq(k) for axis, k in zip(axes, whole.kernel, strict=True)]
                    with f.when(here[0] & here[1] & here[2], likely=True) as partly:
                        window = Taps(f, spec, whole.kernel, axes, kernel, steps, x, place, results)
                        over_channels(f, channels, lanes, blocks(machine), window.block)
                        with partly.otherwise():
                            over_channels(f, channels, lanes, blocks(machine), tapwise)
                with none.otherwise():
                    over_channels(f, channels, lanes, 1, without_taps(f, spec, axes, results))
    return f


class Taps:
    """A whole window at one place."""

    def __init__(
        self,
        f: Function,
        spec: Spec,
        taps: Triple,
        axes: tuple[Window, Window, Window],
        kernel: list[Value],
        steps: list[Value],
        x: Value,
        place: Value,
        results: Place,
    ) -> None:
        self.f, self.spec, self.axes, self.kernel, self.place, self.results = f, spec, axes, kernel, place, results
        self.exactly = over_taps(f, spec, axes, kernel, steps, x, place, results)
        # The columns that the windows before had not read: behind them lies what the next ones will read.
        self.ahead, latest = steps[2] * (2 * AHEAD), range(max(taps[2] - 2, 0), taps[2])
        self.latest = {n for n in range(math.prod(taps)) if n % taps[2] in latest}
        self.pointers = [
            f.at(x, steps[0] * a + steps[1] * b + steps[2] * c)
            for a in range(taps[0])
            for b in range(taps[1])
            for c in range(taps[2])
        ]

    def block(self, c: Value, lanes: int, blocks: int) -> None:
        """`blocks` vectors of channels from c on."""
        f, spec, number = self.f, self.spec, self.spec.number
        states = [new_state(f, spec, lanes) for _ in range(blocks)]
        seen = [Ordered(f, spec, lanes) for _ in states]
        for n, pointer in enumerate(self.pointers):
            for k, state in enumerate(states):
                here = f.at(pointer, (c + k * lanes) * number.bytes)
                if n in self.latest:
                    prefetch(f, f.at(here, self.ahead))
                tap = number.load(f, here, lanes)
                if n == 0:
                    begin(f, state, tap, f.value("i64", 0), self.place + c + k * lanes)
                _take(f, spec, state, tap, n)
                seen[k].take(tap)
        for k, state in enumerate(states):
            finish(f, spec, state, self.axes, self.kernel, self.results.moved(f, spec, c + k * lanes))
        if seen[0].minds:
            some = seen[0].nan()
            for other in seen[1:]:
                some = some | other.nan()
            with f.when(f.any(some), likely=False):
                for k in range(blocks):
                    self.exactly(c + k * lanes, lanes, 1)


def _take(f: Function, spec: Spec, state: State, tap: Value, n: int) -> None:
    """Tap number n of a window without NaN: one comparison serves the value and its place."""
    number = f.value("i64", n)
    if not isinstance(state, Scan) or not isinstance(spec, Extreme) or spec.tie is None:
        if isinstance(state, Scan) and isinstance(spec, Extreme):
            tap, best = state.of(tap), state.value.get()
            state.value.set(f.select(spec.beats(tap, best), tap, best))
        else:
            state.take(tap, number)
        return
    tap, best = state.of(tap), state.value.get()
    wins = spec.beats(tap, best)
    state.value.set(f.select(wins, tap, best))
    state.place.set(f.select(wins, f.splat(number.to(spec.index), state.lanes), state.place.get()))


class Ordered:
    """Whether a NaN was among the taps, where the rule minds: two taps a comparison."""

    def __init__(self, f: Function, spec: Spec, count: int) -> None:
        self.f = f
        floating = isinstance(spec, Extreme) and spec.number.floating
        self.minds = floating and isinstance(spec, Extreme) and not (
            spec.nan is Nan.COMPARED and spec.tie in (None, Tie.FIRST)
        )
        self._before: Value | None = None
        self._found: Value | None = None

    def take(self, tap: Value) -> None:
        """Look at the next tap."""
        if not self.minds:
            return
        if self._before is None:
            self._before = tap
            return
        self._note(tap.compare("uno", self._before))
        self._before = None

    def _note(self, found: Value) -> None:
        self._found = found if self._found is None else self._found | found

    def nan(self) -> Value:
        """The lanes that have one."""
        if self._before is not None:
            self._note(self._before.is_nan())
            self._before = None
        assert self._found is not None
        return self._found
