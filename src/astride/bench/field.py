"""Calls of several libraries timed in turns, each library in a process of its own that stands still while it is not its turn.

Libraries leave threads behind a call that go on looking for work for milliseconds. In one process they would take a core from
whoever comes next, and a row on two threads would measure that. So a library's whole process is stopped (SIGSTOP) between its
turns; where a system cannot stop processes they only wait. A turn begins with a call that is not timed, since caches hold what
others left there.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]
Key = tuple[str, str]
"""A library and the name of one of its entrants."""

SHORTEST = 3e-4
"""Seconds that are timed at once, at least: shorter calls are repeated."""

TURN = 5e-3
"""Seconds of one turn, about, after the call that is not timed."""

FEW = 3
"""Turns of those for whom more would take too long."""

PROCESSES = hasattr(signal, "SIGSTOP")


@dataclass(frozen=True, slots=True)
class Entrant:
    """A call to be timed, and how its result becomes an array that compares with others; None: it is not compared. `reads` is
    what the call reads by address and would not keep by itself."""

    call: Call
    answer: Callable[[Any], Any] | None = np.asarray
    reads: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """Who may take part. `version(library)` is None where it is not installed, "" where there is none to be told; the library
    learns how many threads it may use;
    `entrants(library, case, layouts, what)` are those of a library in one case and direction, by name; `same(answer, expected)`
    says whether answers agree."""

    libraries: tuple[str, ...]
    version: Callable[[str], str | None]
    entrants: Callable[[str, Any, Sequence[str], str], dict[str, Entrant]]
    same: Callable[[Any, Any], bool]


class Side:
    """One library's side of the field: what runs in its process."""

    def __init__(self, lineup: Lineup, library: str) -> None:
        self.lineup, self.library = lineup, library
        self.entrants: dict[str, Entrant] = {}

    def version(self) -> str | None:
        return self.lineup.version(self.library)

    def enter(self, case: Any, layouts: Sequence[str], what: str) -> list[str]:
        """Make the entrants of a case; the names of those there are."""
        self.entrants = {}
        self.entrants = self.lineup.entrants(self.library, case, layouts, what)
        return list(self.entrants)

    def answer(self, name: str) -> Any:
        """The answer of an entrant."""
        entrant = self.entrants[name]
        assert entrant.answer is not None
        return np.array(entrant.answer(entrant.call()))

    def agrees(self, name: str, expected: Any) -> bool:
        """Whether an entrant's answer is the expected one, or none is asked of it."""
        return self.entrants[name].answer is None or self.lineup.same(self.answer(name), expected)

    def once(self, name: str) -> float:
        """Seconds of one call after another one."""
        call = self.entrants[name].call
        call()
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    def turn(self, name: str, took: float) -> list[float]:
        """Seconds of each call in a turn of an entrant whose calls take about so long."""
        call = self.entrants[name].call
        times: list[float] = []
        together = max(int(SHORTEST / max(took, 1e-7)), 1)
        call()
        end = time.perf_counter() + TURN
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            for _ in range(together):
                call()
            times.append((time.perf_counter() - begin) / together)
        return times


class Apart:
    """A side in a process of its own, which runs only while it is asked something."""

    def __init__(self, lineup: Lineup, library: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.library = library
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, lineup, library), daemon=True)
        self.process.start()
        other.close()

    def ask(self, word: str, *arguments: Any) -> Any:
        """The answer of one of the side's methods.

        Raises RuntimeError: it failed there, or the process ended.
        """
        try:
            self._signal("SIGCONT")
            self.connection.send((word, arguments))
            good, found = self.connection.recv()
            self._signal("SIGSTOP")
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the process of {self.library} ended") from error
        if not good:
            raise RuntimeError(f"{self.library}: {found}")
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.join()

    def _signal(self, name: str) -> None:
        if PROCESSES and self.process.pid is not None:
            os.kill(self.process.pid, getattr(signal, name))


class Here:
    """A side in this process."""

    def __init__(self, lineup: Lineup, library: str) -> None:
        self.side = Side(lineup, library)

    def ask(self, word: str, *arguments: Any) -> Any:
        return getattr(self.side, word)(*arguments)

    def close(self) -> None:
        pass


def _serve(connection: Any, lineup: Lineup, library: str) -> None:
    """Answer what `ask` asks until its end is closed."""
    side = Side(lineup, library)
    while True:
        try:
            word, arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, getattr(side, word)(*arguments)))
        except Exception as error:
            connection.send((False, f"{type(error).__name__}: {error}"))


class Field:
    """Libraries that are timed together, the first of them the one all others are compared with."""

    def __init__(self, lineup: Lineup, *, apart: bool) -> None:
        made = Apart if apart else Here
        self.sides: dict[str, Apart | Here] = {library: made(lineup, library) for library in lineup.libraries}
        self.first = next(iter(self.sides))
        self.versions: dict[str, str] = {}
        self.differing: list[str] = []
        for library, side in list(self.sides.items()):
            found = side.ask("version")
            if found is None:
                self.sides.pop(library).close()
            elif found:
                self.versions[library] = found

    def close(self) -> None:
        for side in self.sides.values():
            side.close()

    def enter(self, case: Any, layouts: Sequence[str], what: str) -> list[Key]:
        """Everyone whose answer is that of the first library's entrant of the same name, or of its only one; `differing` has
        the libraries of the others."""
        names = {library: side.ask("enter", case, layouts, what) for library, side in self.sides.items()}
        own = names.pop(self.first)
        expected = {name: self.sides[self.first].ask("answer", name) for name in own}
        differing, found = [], [(self.first, name) for name in own]
        for library, entered in names.items():
            for name in entered:
                wanted = expected[name] if name in expected else expected[own[0]]
                if self.sides[library].ask("agrees", name, wanted):
                    found.append((library, name))
                else:
                    differing.append(library)
        self.differing = sorted(set(differing))
        return found

    def turns(self, entered: Sequence[Key], seconds: float) -> dict[Key, list[float]]:
        """Seconds of the calls of everyone, turn by turn, each time in another order.

        Whoever takes a fifth of the time for one call has FEW turns; of those who take several times as long as the first
        library as well, the one time that was found beforehand counts: turns would not help them.
        """
        took = {(library, name): self.sides[library].ask("once", name) for library, name in entered}
        longest = max(4 * max(took[key] for key in entered if key[0] == self.first), seconds / 5)
        times: dict[Key, list[float]] = {key: [took[key]] * 2 if took[key] > longest else [] for key in entered}
        left = {key: FEW if took[key] > seconds / 5 else 1 << 30 for key in entered if took[key] <= longest}
        shuffled, end, done = random.Random(0), time.perf_counter() + seconds, 0
        while left and (time.perf_counter() < end or done < FEW):
            order = list(left)
            shuffled.shuffle(order)
            for library, name in order:
                times[library, name] += self.sides[library].ask("turn", name, took[library, name])
                left[library, name] -= 1
            left, done = {key: more for key, more in left.items() if more}, done + 1
        return times


@contextmanager
def field(lineup: Lineup, *, apart: bool = True) -> Iterator[Field]:
    """A field of those libraries that are installed; with `apart` each has a process."""
    made = Field(lineup, apart=apart)
    try:
        yield made
    finally:
        made.close()


def spread(times: Sequence[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / 2 / middle
