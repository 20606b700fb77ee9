"""Numeric gradient checks of every operator under every rule that has it, on small inputs without ties.

A line in SAMPLES an operator; `astride check` prints what comes out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ..autodiff import GradientReport, check_gradient
from ..errors import ArgumentError, AstrideError, UnsupportedError
from ..ops import OPERATORS
from ..plan.dense import Function
from ..proto import nearest
from ..rules import RULES, has

Array = npt.NDArray[Any]

SIZE, KERNEL, STRIDE, OUT, CHANNELS = 7, 3, 2, 3, 4  # fits exactly, which some rules insist on; four channels a group suit all


@dataclass(frozen=True, slots=True)
class Sample:
    """One call to check: the arrays, the keywords, and what distinguishes it from the operator's other samples."""

    arrays: tuple[Array, ...]
    keywords: dict[str, Any]
    variant: str = ""
    wrt: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A sample's outcome: a report, or why there is none. `names` are those of the positional arguments."""

    op: str
    rules: str | None
    variant: str
    names: tuple[str, ...]
    report: GradientReport | None
    error: AstrideError | None

    @property
    def good(self) -> bool:
        """Whether gradients agree, at more than kinks; what cannot be asked for does not count as wrong."""
        return self.report is None or (bool(self.report) and all(d.tried > d.kinks for d in self.report.differences))


def check_operator(
    op: str, rules: Sequence[str] | None = None, *, rank: int = 2, seed: int = 0, tolerance: float = 1e-6
) -> list[Checked]:
    """Compare the operator's gradients with differences, under each of `rules` (by default all that have it).

    Raises ArgumentError: an operator nobody knows, or one without a sample here.
    """
    if op not in OPERATORS or op not in SAMPLES:
        known = [name for name in OPERATORS if name in SAMPLES]
        problem = "the operator has no gradient to check" if op in OPERATORS else "there is no operator of that name"
        raise ArgumentError(problem, given={"op": op}, required=f"one of {', '.join(known)}", hint=nearest(op, known))
    for given in rules or ():
        if given not in RULES:
            problem = "there are no rules of that name"
            raise ArgumentError(
                problem, given={"rules": given}, required=f"one of {', '.join(RULES)}", hint=nearest(given, RULES)
            )
    function = getattr(import_module(f"astride.ops.{op}"), op)
    with_rules = "rules" in inspect.signature(function).parameters
    asked: Sequence[str | None] = (rules or [name for name in RULES if has(name, _ruled(op))]) if with_rules else [None]
    found = []
    for name in asked:
        # Not the generator that check_gradient projects with: an input equal to its projection has no gradient to see.
        for sample in SAMPLES[op](np.random.default_rng([seed, 1]), rank):
            found.append(_checked(op, function, name, sample, seed, tolerance))
    return found


def _ruled(op: str) -> str:
    """The operator whose rules an operator follows: unfolding reads the windows of a convolution, global pooling is pooling."""
    return {"unfold": "conv", "fold": "conv", "global_pool": "avg_pool", "window_reduce": "max_pool"}.get(op, op)


def _checked(op: str, function: Callable[..., Any], rules: str | None, sample: Sample, seed: int, tolerance: float) -> Checked:
    keywords = sample.keywords if rules is None else {**sample.keywords, "rules": rules}
    positional = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    names = tuple(p.name for p in positional)
    if positional[0].kind is inspect.Parameter.VAR_POSITIONAL:
        names = tuple(f"{names[0]}[{i}]" for i in range(len(sample.arrays)))
    try:
        report = check_gradient(function, *sample.arrays, wrt=sample.wrt, projection=seed, tolerance=tolerance, **keywords)
    except (ArgumentError, UnsupportedError) as error:
        return Checked(op, rules, sample.variant, names, None, error)
    return Checked(op, rules, sample.variant, names, report, None)


# Samples


def spread(rng: np.random.Generator, *shape: int, low: float = -1.0, high: float = 1.0) -> Array:
    """Values no two of which are close, in random order, so that no window has a tie."""
    return rng.permutation(np.linspace(low, high, int(np.prod(shape)))).reshape(shape)


def _pool(low: float = -1.0, **keywords: Any) -> Callable[[np.random.Generator, int], Iterator[Sample]]:
    def samples(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
        yield Sample((spread(rng, 1, 2, *[SIZE] * rank, low=low),), dict(kernel=KERNEL, stride=STRIDE, **keywords))

    return samples


def _adaptive(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    for reduce in ("average", "max"):
        yield Sample((spread(rng, 1, 2, *[SIZE] * rank),), dict(output_size=OUT, reduce=reduce), reduce)


def _global(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    for reduce in ("average", "max"):
        yield Sample((spread(rng, 1, 2, *[SIZE] * rank),), dict(reduce=reduce), reduce)


def _fractional(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    places = rng.uniform(0, 1, size=(1, 2, rank))
    yield Sample((spread(rng, 1, 2, *[SIZE] * rank),), dict(kernel=2, output_size=4, samples=places))


def _stochastic(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    x = spread(rng, 1, 2, *[SIZE] * rank, low=0.1)
    yield Sample((x,), dict(kernel=KERNEL, stride=STRIDE), "test time")
    draws = rng.uniform(0.01, 1, size=(1, 2, *[OUT] * rank))
    yield Sample((x,), dict(kernel=KERNEL, stride=STRIDE, training=True, uniform=draws), "training")


def _unpool(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    # No place twice in either channel, so that they are distinct whether indices count in a plane or over the whole input.
    places = rng.permutation(6**rank)[: 2 * 3**rank].reshape(1, 2, *[3] * rank)
    yield Sample((spread(rng, 1, 2, *[3] * rank), places), dict(kernel=2))


def _conv(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    weights = rng.normal(size=(CHANNELS, CHANNELS, *[KERNEL] * rank))
    yield Sample((rng.normal(size=(1, CHANNELS, *[SIZE] * rank)), weights, rng.normal(size=CHANNELS)), dict(stride=STRIDE))


def _conv_transpose(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    weights = rng.normal(size=(CHANNELS, CHANNELS, *[KERNEL] * rank))
    yield Sample((rng.normal(size=(1, CHANNELS, *[4] * rank)), weights, rng.normal(size=CHANNELS)), dict(stride=STRIDE))


def _deform_conv(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    """Offsets keep away from whole pixels, where the slope between them jumps."""
    sizes, taps, outs = [5] * rank, 2**rank, [2] * rank
    x, w = rng.normal(size=(1, 2, *sizes)), rng.normal(size=(2, 2, *[2] * rank))
    offset = rng.integers(-1, 2, (1, taps * rank, *outs)) + rng.uniform(0.1, 0.9, (1, taps * rank, *outs))
    yield Sample((x, offset, w, rng.normal(size=2), rng.normal(size=(1, taps, *outs))), dict(stride=2))


def _unfold(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(1, 2, *[SIZE] * rank)),), dict(kernel=KERNEL, stride=STRIDE))


def _fold(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    columns = rng.normal(size=(1, 2 * KERNEL**rank, OUT**rank))
    yield Sample((columns,), dict(output_size=(SIZE,) * rank, kernel=(KERNEL,) * rank, stride=STRIDE))


def _window_reduce(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    squares = dict(function=_half_squares, kernel=KERNEL, stride=STRIDE, compile=False)
    for gradient in (_itself, "numeric"):
        variant = "" if callable(gradient) else gradient
        yield Sample((spread(rng, 1, 2, *[SIZE] * rank),), {**squares, "gradient": gradient}, variant)


def _half_squares(window: Array) -> Any:
    return (window * window).sum() / 2


def _itself(window: Array, y: float) -> Array:
    return window


def _matmul(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(3, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)), {})
    yield Sample((rng.normal(size=(3, 5)), rng.normal(size=(4, 5)), rng.normal(size=4)), dict(transposed=True), "transposed")


def _elementwise(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    positive = (Function.LOG, Function.DIVIDE)
    for function in Function:
        low = 0.5 if function in positive else -1.0
        x, z = spread(rng, 3, 4, low=low), spread(rng, 3, 4, low=low)
        yield Sample((x, z) if function.binary else (x,), dict(function=str(function)), str(function))


def _broadcast(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    x, z, b = spread(rng, 2, 3, 4), rng.normal(size=3), rng.normal(size=3)
    yield Sample((x, z, b), dict(function="multiply"), "multiply")
    yield Sample((x, z), dict(function="add"), "add")
    yield Sample((x, z), dict(function="prelu"), "prelu")


def _lrn(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(1, 6, 4, 4)),), dict(size=3, alpha=0.5), "across channels")
    yield Sample((rng.normal(size=(1, 2, 5, 5)),), dict(size=3, alpha=0.5, axes=(2, 3)), "within a channel")


def _batch_norm(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    x = rng.normal(size=(3, 4, 5))
    yield Sample((x,), {}, "own statistics")
    yield Sample((x, rng.normal(size=4), rng.uniform(0.5, 2, size=4)), {}, "given statistics")


def _mvn(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(2, 3, 4, 5)),), {})


def _softmax(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(2, 5, 3)),), {})


def _softmax_loss(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(2, 5, 3)), rng.integers(0, 5, size=(2, 3))), {})


def _layout(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    yield Sample((rng.normal(size=(2, 3, 4)),), dict(order=(2, 0, 1)), "permute")


def _reduce(rng: np.random.Generator, rank: int) -> Iterator[Sample]:
    for total in ("sum", "mean", "asum", "sumsq"):
        yield Sample((spread(rng, 2, 3, 4),), dict(total=total, axis=1), total)


SAMPLES: dict[str, Callable[[np.random.Generator, int], Iterator[Sample]]] = {
    "max_pool": _pool(),
    "min_pool": _pool(),
    "avg_pool": _pool(),
    "lp_pool": _pool(low=0.1),
    "adaptive_pool": _adaptive,
    "global_pool": _global,
    "fractional_pool": _fractional,
    "stochastic_pool": _stochastic,
    "max_unpool": _unpool,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "deform_conv": _deform_conv,
    "unfold": _unfold,
    "fold": _fold,
    "window_reduce": _window_reduce,
    "matmul": _matmul,
    "elementwise": _elementwise,
    "broadcast": _broadcast,
    "lrn": _lrn,
    "batch_norm": _batch_norm,
    "mvn": _mvn,
    "softmax": _softmax,
    "softmax_loss": _softmax_loss,
    "layout": _layout,
    "reduce": _reduce,
}
"""operator -> its samples for a rank. Every operator that has a gradient (all but argmax and conv_integer) needs a line here."""
