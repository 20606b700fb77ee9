"""How well the predicted times of the ways to compute a convolution choose among them.

    python benchmarks/choice.py --record benchmarks/results/conv_choice.jsonl          times every way of every layer
    python benchmarks/choice.py --summary benchmarks/results/conv_choice.jsonl         what the model takes of these times
    python benchmarks/choice.py --shapes layers.json --count 50                        a random sample of other layers
    python benchmarks/choice.py --fit benchmarks/results/conv_choice.jsonl             constants for conv_rates.py (needs SciPy)

Layers are those of `astride.bench.convolution_cases`, forward with frozen weights and both gradients, in both layouts, on one
thread; each way's least CPU time counts, its calls taken in turns. A loss is the time of the way that is taken over that of the
fastest. `ASTRIDE_CPU=avx2` does the same with narrower vectors. A file of layers is a list of objects with name, op, N (images),
C, K, D, H and W as far as there are such axes, kernel, stride, pad, dilation and groups.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import astride
from astride.backends.cpu import conv_choice, conv_cost
from astride.backends.cpu.conv_directions import backward, forward, relation
from astride.bench.convolution_cases import CASES, Case
from astride.bench.race import LAYOUTS, commit, processor
from astride.ops._run import plan as make_plan
from astride.plan.kinds import Direction

Row = dict[str, Any]

WHATS = ("forward", "data", "weights")

CLOSE = 1.05
"""A way that takes at most so many times as long as the fastest is as good."""

MOST_FLOPS = 3e9
"""Layers of a file that take more are left out."""


def situation(row: Row) -> tuple[str, conv_cost.Situation]:
    """What a row is about, as the model sees it."""
    case = Case(**{name: _tuples(value) for name, value in row["shape"].items()})
    plan = _plan(case, row["layout"])
    back = plan.direction is Direction.TRANSPOSED if row["what"] == "weights" else row["what"] == "data"
    kind = "weights" if row["what"] == "weights" else "gather"
    return kind, conv_cost.Situation(relation(plan, back), case.images, row["layout"] == "nchw", 2)


def measured(
    cases: Sequence[Case], layouts: Sequence[str], whats: Sequence[str], least: float, known: Collection[Any] = ()
) -> Iterator[Row]:
    """A row for each layer, layout and direction that is not known yet: every way's milliseconds."""
    head = {"benchmark": "conv_choice", "commit": commit(), "machine": processor()}
    for case in cases:
        for layout in layouts:
            wanted = [what for what in whats if (case.name, layout, what) not in known]
            calls = _calls(case, layout) if wanted else {}
            for what in wanted:
                row: Row = {**head, "case": case.name, "layout": layout, "what": what, "shape": asdict(case)}
                kind, s = situation(row)
                ways = conv_choice.candidates(kind, s.relation, s.images, s.first, s.winograd)
                yield {**row, "ms": _times(ways, calls[what], least)}


def _times(ways: Sequence[str], call: Callable[[], object], least: float) -> dict[str, float]:
    """Milliseconds of each way, the least of its turns."""
    best = dict.fromkeys(ways, math.inf)
    spent, turn = 0.0, 0
    while turn < 4 or (spent < least * len(ways) and turn < 200):
        for way in ways:
            if turn > 1 and best[way] > 4 * min(best.values()):
                continue  # a lost way need not be timed well
            with conv_choice.forced(way):
                begin = time.thread_time()
                call()
                took = time.thread_time() - begin
            spent += took
            if turn:  # the first turn compiles
                best[way] = min(best[way], took)
        turn += 1
    return {way: round(took * 1e3, 5) for way, took in best.items()}


def _plan(case: Case, layout: str) -> Any:
    shape = case.x_shape if layout == "nchw" else (case.images, *case.size, case.inputs)
    return make_plan(case.op, shape, w_shape=case.w_shape, layout=LAYOUTS[layout], **case.options)


def _calls(case: Case, layout: str) -> dict[str, Callable[[], object]]:
    """The three directions as calls, their arrays made."""
    rng, plan = np.random.default_rng(0), _plan(case, layout)
    x, dy = (rng.standard_normal(shape, np.float32) for shape in (case.x_shape, (case.images, case.outputs, *case.out)))
    if layout == "nhwc":
        x, dy = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, dy))
    w = rng.standard_normal(case.w_shape, np.float32)
    frozen, y = astride.frozen(w), np.empty_like(dy)
    _, saved = forward(plan, x, w, None, out=y, save=True)
    assert saved is not None
    kept = saved
    return {
        "forward": lambda: forward(plan, x, frozen, None, out=y, save=False),
        "data": lambda: backward(plan, dy, kept, want=(True, False, False)),
        "weights": lambda: backward(plan, dy, kept, want=(False, True, False)),
    }


def layers(path: Path, count: int) -> list[Case]:
    """A random sample of the convolutions in a file, the same each time."""
    found = []
    for one in json.loads(path.read_text(encoding="utf-8")):
        if not one["op"].startswith("conv"):
            continue
        size = tuple(one[axis] for axis in "DHW" if axis in one)
        kernel, stride, pad, dilation = (_tuples(one[name]) for name in ("kernel", "stride", "pad", "dilation"))
        sizes = (size, one["K"], kernel, stride, pad, dilation)
        case = Case(one["name"], one["op"] != "conv", 1, one["C"], *sizes, one["groups"])
        if case.flops <= MOST_FLOPS and min(case.out) > 0:
            images = min(one["N"], 8, max(int(MOST_FLOPS // case.flops), 1))
            found.append(Case(**{**asdict(case), "images": images}))
    return random.Random(0).sample(found, min(count, len(found)))


def _tuples(value: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def read(path: Path) -> list[Row]:
    """The rows of a record that were measured on this kind of machine; the last of those about the same thing counts."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    here = processor()
    return list({about(row): row for row in rows if row["machine"] == here}.values())


def about(row: Row) -> tuple[str, str, str]:
    """What is measured."""
    return row["case"], row["layout"], row["what"]


def summarise(rows: Sequence[Row]) -> None:
    """What the model takes of measured times."""
    losses = []
    for row in rows:
        kind, s = situation(row)
        times = conv_choice.predicted(kind, s.relation, s.images, s.first, s.winograd)
        taken = next(way for way in times if way in row["ms"])
        loss = row["ms"][taken] / min(row["ms"].values())
        if len(row["ms"]) > 1:
            losses.append(loss)
        if loss > CLOSE:
            ways = ", ".join(f"{way} {ms:.3g} ({times.get(way, 0) * 1e3:.3g})" for way, ms in row["ms"].items())
            print(f"{row['case']:32}{row['layout']:5}{row['what']:8}  loss {loss:.2f}  {taken} of {ways}")
    if not losses:
        return
    mean = math.exp(statistics.fmean(map(math.log, losses)))
    print(f"{len(losses)} choices among several ways: {sum(loss == 1 for loss in losses) / len(losses):.0%} take the fastest,")
    close = sum(loss <= CLOSE for loss in losses) / len(losses)
    print(f"{close:.0%} one within {CLOSE - 1:.0%} of it; geometric mean of the loss {mean:.3f}, worst {max(losses):.2f}")


def fit(rows: Sequence[Row]) -> None:
    """Print constants with which predicted times are nearest to measured ones: above all their ratios within each row."""
    from scipy.optimize import least_squares

    counted = []
    for number, row in enumerate(rows):
        kind, s = situation(row)
        ways = {way.name: way.work for way in conv_choice.KINDS[kind]}
        works = [(work(s), ms) for name, ms in row["ms"].items() if (work := ways.get(name)) is not None]
        counted += [(number, work, ms / 1e3) for work, ms in works]
    names = sorted({work.rate for _, work, _ in counted})
    rate = np.array([names.index(work.rate) for _, work, _ in counted])
    counts = np.array([(work.products, work.tiles, work.bytes, work.far) for _, work, _ in counted])
    times, of = np.array([t for *_, t in counted]), np.unique([number for number, *_ in counted], return_inverse=True)[1]
    each = np.bincount(of)
    start = np.log([0.9, 60, 0.15, 12] * len(names) + [0.08])

    def errors(logs: Any) -> Any:
        *flat, memory = np.exp(logs)
        share, tile, byte, call = np.reshape(flat, (-1, 4))[rate].T
        cycles = counts[:, 0] / share + counts[:, 1] * tile + counts[:, 2] * byte + counts[:, 3] * memory
        wrong = np.log((cycles / conv_cost.kind().clock + call * 1e-6) / times)
        within = wrong - (np.bincount(of, wrong) / each)[of]
        return np.concatenate([3 * within, np.clip(wrong, -0.7, 0.7) / 2, 0.05 * (logs - start)])

    bounds = [np.log([*many * len(names), one]) for many, one in (([0.4, 5, 0.003, 8], 0.02), ([1.05, 250, 1.5, 25], 0.5))]
    found = np.exp(least_squares(errors, start, bounds=bounds, loss="soft_l1", f_scale=0.15).x)
    for name, (share, tile, byte, call) in zip(names, found[:-1].reshape(-1, 4), strict=True):
        print(f'    "{name}": Rate({share:.2f}, {tile:.0f}, {byte:.3f}, {call:.0f}),')
    print(f"memory {found[-1]:.3f}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="only layers whose name has this in it (a regular expression)")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--what", nargs="+", choices=WHATS, default=list(WHATS))
    parser.add_argument("--seconds", type=float, default=0.03, help="of each way")
    parser.add_argument("--shapes", type=Path, help="take layers from this file")
    parser.add_argument("--count", type=int, default=50, help="how many of these")
    parser.add_argument("--record", type=Path, help="append a line of JSON a row to this file")
    parser.add_argument("--resume", action="store_true", help="leave out what the record has")
    parser.add_argument("--summary", type=Path, nargs="+", help="time nothing; say what the model takes of these records' times")
    parser.add_argument("--fit", type=Path, nargs="+", help="time nothing; fit constants to these records' times")
    options = parser.parse_args()
    if options.summary or options.fit:
        rows = [row for path in options.summary or options.fit for row in read(path)]
        (summarise if options.summary else fit)(rows)
        return
    astride.configure(threads=1, tuned=False)
    cases = layers(options.shapes, options.count) if options.shapes else CASES
    wanted = [case for case in cases if re.search(options.cases, case.name)]
    rows = read(options.record) if options.resume and options.record and options.record.exists() else []
    for row in measured(wanted, options.layouts, options.what, options.seconds, set(map(about, rows))):
        rows.append(row)
        if options.record:
            with open(options.record, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    summarise(rows)


if __name__ == "__main__":
    main()
