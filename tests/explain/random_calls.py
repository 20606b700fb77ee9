"""Random calls of every framework whose calls are read, in its own notation, that its own rules take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from tests.explain.readback import canonical

from astride.errors import AstrideError
from astride.explain.spelling import ranks, read, spelling
from astride.explain.spelling.form import Operation
from astride.explain.steps import Steps, plan_of
from astride.explain.wording import _order

Rng = np.random.Generator


def random_call(framework: str, rng: Rng) -> tuple[str, tuple[int, ...]]:
    """(a call, sizes that it takes)."""
    for _ in range(200):
        o, sizes = _operation(framework, rng)
        try:
            text = spelling(framework).write(o, len(sizes))
            if text is None:
                continue
            text = re.sub(r"(?<=[(,=\s])w(?=[,)])", str(_weights(framework, o, sizes)), text)
            found = read(framework, text, rank=len(sizes))
            arguments = dict(found.arguments) | ({"groups": o.arguments["groups"]} if "groups" in o.arguments else {})
            plan = plan_of(framework, o, *shapes(o, sizes), Steps(arguments))
        except AstrideError:
            continue
        outs = plan.output_sizes if o.weighted else tuple(axis.out for axis in plan.axes)
        if min(outs) >= 1:
            return text, sizes
    raise AssertionError(f"{framework} takes nothing")


def _weights(framework: str, o: Operation, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of w as the framework has it, so that the call says how large the kernel is."""
    shape = shapes(o, sizes)[1] or ()
    if not shape:
        return ()
    named = dict(zip(canonical(o.op, len(sizes)), shape, strict=True))
    order = [named[name] for name in _order(framework, o.op, dict(o.arguments), len(sizes))]
    groups = int(o.arguments.get("groups", 1))
    return (groups, order[0] // groups, *order[1:]) if groups > 1 and framework == "openvino" else tuple(order)


def shapes(o: Operation, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Of x and w."""
    if not o.weighted:
        return (1, 2, *sizes), None
    assert o.in_channels and o.out_channels
    groups = int(o.arguments.get("groups", 1))
    each = (o.out_channels, o.in_channels // groups) if o.op == "conv" else (o.in_channels, o.out_channels // groups)
    return (1, o.in_channels, *sizes), (*each, *o.kernel)


def _operation(framework: str, rng: Rng) -> tuple[Operation, tuple[int, ...]]:
    module = spelling(framework)
    op = str(rng.choice(list(module.CHOICES)))
    choices = module.CHOICES[op]
    rank = int(rng.choice([r for r in (1, 2, 2, 2, 3) if r in ranks(framework, op)]))
    alike = framework in ("darknet", "numpy_loops") or rng.random() < 0.5
    kernel = _each(rng, 1, 3, rank, alike=alike)
    arguments: dict[str, Any] = {"stride": _each(rng, 1, 3, rank, alike=alike)}
    if rng.random() < 0.3:
        arguments["dilation"] = _each(rng, 1, 2, rank, alike=alike)
    if choices.words and rng.random() < 0.6:
        arguments["padding"] = str(rng.choice(choices.words))
    elif choices.numbers == "pairs":
        arguments["padding"] = tuple(tuple(int(n) for n in rng.integers(0, max(k, 2), 2)) for k in kernel)
    elif choices.numbers in ("alike", "total"):
        arguments["padding"] = _each(rng, 0, 1 + (choices.numbers == "total"), rank, alike=alike)
    for name, values in choices.flags.items():
        value = values[int(rng.integers(len(values)))]
        if value == "source":
            value = _own(name, rng, rank)
        if value == "taps":
            value = 5
        if value is not None:
            arguments[name] = value
    if op == "lp_pool":
        arguments["p"] = float(rng.choice([2.0, 2.0, 1.0, 3.0]))
    inner = outer = None
    if op in ("conv", "conv_transpose"):
        groups = int(rng.choice([1, 1, 2]))
        arguments |= {"groups": groups} if groups > 1 else {}
        inner, outer = 4 * groups, 4 * groups
    sizes = tuple(int(n) for n in rng.integers(4, 9, rank))
    if op == "conv_transpose" and framework in ("tensorflow", "tflite"):
        arguments["output_size"] = tuple(n * s for n, s in zip(sizes, arguments["stride"]))
    return Operation(op, rank, kernel, arguments, inner, outer, sizes), sizes


def _each(rng: Rng, low: int, high: int, rank: int, *, alike: bool) -> tuple[int, ...]:
    values = tuple(int(n) for n in rng.integers(low, high + 1, rank))
    return (values[0],) * rank if alike else values


def _own(name: str, rng: Rng, rank: int) -> Any:
    """A value of its own for an argument that a translation takes from the source."""
    if name == "output_padding":
        return None if rng.random() < 0.5 else (1,) * rank
    if name in ("divisor_override", "divisor_pad", "output_size", "edge_value", "form", "scale", "scaled", "zero_window", "size"):
        return 3 if name == "divisor_override" and rng.random() < 0.3 else None
    if name in ("offset", "kernel_offset"):
        return (int(rng.integers(0, 2)),) * rank
    if name == "input_dilation":
        return (2,) * rank if rng.random() < 0.3 else None
    if name == "flip":
        return True if rng.random() < 0.3 else None
    if name == "edge":
        return str(rng.choice(["skip", "skip", "mirror", "clamp"]))
    if name == "nan":
        return str(rng.choice(["propagated", "compared"]))
    return True if name == "total" else "sum" if name == "pool_type" else None
