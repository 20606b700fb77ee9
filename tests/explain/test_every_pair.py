"""Random calls of every framework in every other one: what is written is read back and computes the same; what is said to
have no counterpart has none among the calls that are tried one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.explain.random_calls import random_call
from tests.explain.readback import by_lines

from astride.errors import AstrideError
from astride.explain import Translation, translate
from astride.explain.spelling import SPELLINGS, ranks, spelling
from astride.explain.steps import Array, Steps, computed
from astride.explain.trials import difference
from astride.rules import has

CALLS = 24
"""Random calls for each pair in the long run."""


@pytest.mark.parametrize("source", SPELLINGS)
def test_some_pairs(source: str) -> None:
    """Four targets each, so that every framework is a target four times."""
    at = SPELLINGS.index(source)
    compare_pairs(source, tuple(SPELLINGS[(at + step) % len(SPELLINGS)] for step in (1, 4, 9, 15)), 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", SPELLINGS)
@pytest.mark.parametrize("source", SPELLINGS)
def test_every_pair(source: str, target: str) -> None:
    compare_pairs(source, (target,), CALLS)


def compare_pairs(source: str, targets: tuple[str, ...], calls: int, seed: int = 0) -> tuple[int, int]:
    """How many were expressed, how many not."""
    expressed = refused = 0
    for target in targets:
        rng = np.random.default_rng([seed, SPELLINGS.index(source), SPELLINGS.index(target)])
        for _ in range(calls):
            text, sizes = random_call(source, rng)
            found = translate(source, text, target, sizes)
            assert found.operation.kernel is not None
            if found.expressed:
                expressed += 1
                read_back(found)
            else:
                refused += 1
                has_no_counterpart(found)
    return expressed, refused


def read_back(found: Translation) -> None:
    """The lines give the source's numbers."""
    x, w = numbers(found)
    ours = computed(found.source, found.operation, Steps(found.operation.arguments), x, w).y
    theirs = by_lines(found, x, w)
    assert theirs.shape == ours.shape, described(found)
    assert difference(ours, theirs) is None, described(found)


def has_no_counterpart(found: Translation) -> None:
    """A reason is named, and no call of the target alone gives the source's numbers."""
    assert found.lines == () and found.reason and len(found.reason) > 15, described(found)
    o, target = found.operation, found.target
    if not has(target, o.op) or o.op not in spelling(target).CHOICES or len(o.kernel) not in ranks(target, o.op):
        return
    for arguments in bare_calls(found):
        if all(same(found, arguments, more) for more in range(3)):
            text = spelling(target).write(replace(o, arguments=arguments), len(o.kernel))
            assert text is None, f"{described(found)}\n{arguments} is the same"


def same(found: Translation, arguments: dict[str, Any], more: int) -> bool:
    """Whether a call of the target gives the source's numbers, of either sign, on an input so many pixels larger."""
    x, w = numbers(found, more)
    o = found.operation
    for shift in (0, 2):
        try:
            ours = computed(found.source, o, Steps(o.arguments), x - shift, w).y
            theirs = computed(found.target, o, Steps(arguments), x - shift, w).y
        except AstrideError:
            return False
        if theirs.shape != ours.shape or difference(ours, theirs) is not None:
            return False
    return True


def bare_calls(found: Translation) -> Iterator[dict[str, Any]]:
    """Paddings alike on all axes, words and flags, one by one."""
    o, choices = found.operation, spelling(found.target).CHOICES[found.operation.op]
    kept = {name: o.arguments[name] for name in ("stride", "dilation", "groups", "p") if o.arguments.get(name) is not None}
    rank = len(o.kernel)
    paddings: list[Any] = [None, *choices.words]
    if choices.numbers == "alike":
        paddings += [(n,) * rank for n in range(4)]
    elif choices.numbers == "pairs":
        paddings += [((a, b),) * rank for a in range(3) for b in range(3)]
    flags = {name: [v for v in values if v not in ("source", "taps")] for name, values in choices.flags.items()}
    names = [name for name, values in flags.items() if values]
    for padding, values in itertools.product(paddings, itertools.product(*(flags[name] for name in names))):
        said = {name: value for name, value in zip(names, values) if value is not None}
        yield kept | said | ({} if padding is None else {"padding": padding})


def numbers(found: Translation, more: int = 0) -> tuple[Array, Array | None]:
    """x, without negative numbers where the translation asks for that, and w for four channels."""
    o, rng = found.operation, np.random.default_rng(3)
    groups = int(o.arguments.get("groups") or 1)
    channels = 4 * groups if o.weighted else 2
    shape = (1, channels, *(n + more for n in found.sizes))
    x = rng.permutation(np.linspace(-1, 1, int(np.prod(shape)))).reshape(shape)
    w = None
    if o.weighted:
        w = rng.normal(size=(channels, 4, *o.kernel))
    return (abs(x) if found.condition else x), w


def described(found: Translation) -> str:
    return f"{found.source} -> {found.target}: {found.call} {found.sizes}\n{found.lines}\n{found.reason}\n{found.steps}"
