"""Scans: variables, loops that change them, and what becomes of them at the end; in one dispatch, or in several.

Some drivers stop an invocation's loops silently after 65,535 turns. Longer scans run in parts, each over a range of the first
axis's turns, and hand their variables on through a tensor of bits: the arithmetic and its order are those of one loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .device import LOOP_MAX
from .windows import Form

PARTS = (("phase", "i32"), ("resumes", "i32"), ("ends", "i32"), ("begin", "i32"), ("stop", "i32"))
"""Parameters of a scan in parts: which of its loops runs, over which turns, whether it goes on from before and ends here."""

LOAD = {"T": "bitcast<T>({})", "U": "{}", "B": "({} != U(0u))", "bool": "(({}){lane} != 0u)", "u32": "({}){lane}"}
STORE = {"T": "bitcast<U>({})", "U": "{}", "B": "select(U(0u), U(1u), {})", "bool": "U(select(0u, 1u, {}))", "u32": "U({})"}


@dataclass(frozen=True, slots=True)
class Scan:
    """`variables` are (name, type, first value), of types T, U, B, bool or u32. Each step is (text before, loops)."""

    variables: tuple[tuple[str, str, str], ...]
    steps: tuple[tuple[str, str], ...]
    finish: str

    def text(self, form: Form) -> str:
        """The statements of an invocation."""
        lines = [f"var {name} = {first};" for name, _, first in self.variables]
        lane = ".x" if form.vector else ""
        if form.parted:
            lines.append("if (params.resumes != 0) {")
            lines += [
                f"{name} = {LOAD[kind].format(f'state[{at}u * params.count + i]', lane=lane)};"
                for at, (name, kind, _) in enumerate(self.variables)
            ]
            lines.append("}")
        for number, (before, loops) in enumerate(self.steps):
            lines += [before, f"if (params.phase == {number}) {{\n{loops}}}" if form.parted else loops]
        if form.parted:
            lines.append("if (params.ends == 0) {")
            lines += [
                f"state[{at}u * params.count + i] = {STORE[kind].format(name)};"
                for at, (name, kind, _) in enumerate(self.variables)
            ]
            lines.append("return;\n}")
        return "\n".join((*lines, self.finish))


def parts(steps: int, first: int, inner: int) -> Iterator[dict[str, int]]:
    """Values of `PARTS` for scans of `first` turns along the first axis, each with `inner` turns of the loops inside it."""
    each = max(LOOP_MAX // (1 + inner), 1)
    begins = range(0, max(first, 1), each)
    for phase in range(steps):
        for begin in begins:
            goes_on, ends = phase > 0 or begin > 0, phase == steps - 1 and begin == begins[-1]
            yield {"phase": phase, "resumes": int(goes_on), "ends": int(ends), "begin": begin, "stop": begin + each}
