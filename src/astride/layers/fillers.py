"""Fillers: the first values of parameters, drawn from an injected RandomState.

Uniform draws repeat Caffe's bit for bit: it seeds the same Mersenne Twister and turns each 32-bit word into one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape

WORD_MAX = 2**32 - 1


class VarianceNorm(StrEnum):
    """Which fan the variance is divided by."""

    FAN_IN = "FAN_IN"
    FAN_OUT = "FAN_OUT"
    AVERAGE = "AVERAGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filler:
    """How a parameter begins; fields and defaults as Caffe's FillerParameter has them."""

    kind: str = "constant"
    value: float = 0.0
    min: float = 0.0
    max: float = 1.0
    mean: float = 0.0
    std: float = 1.0
    sparse: int = -1
    variance_norm: VarianceNorm = VarianceNorm.FAN_IN

    def __post_init__(self) -> None:
        if self.kind not in FILLERS:
            raise ArgumentError(
                "there is no filler of that type",
                given={"type": self.kind},
                required=f"one of {', '.join(FILLERS)}",
                hint='type: "xavier"',
            )
        if self.sparse >= 0 and self.kind != "gaussian":
            raise ArgumentError(
                "only the gaussian filler can be sparse",
                given={"type": self.kind, "sparse": self.sparse},
                hint='type: "gaussian", or no sparse',
            )
        if self.kind == "gaussian" and not (math.isfinite(self.mean) and 0 <= self.std < math.inf):
            raise ArgumentError(
                "no normal distribution has these numbers",
                given={"mean": self.mean, "std": self.std},
                required=f"mean finite, 0 <= std < inf: {self.mean}, {self.std}",
                hint="std: 0.01",
            )

    def __call__(self, shape: Shape, dtype: str, random: np.random.RandomState) -> Array:
        """A fresh array of these values."""
        return FILLERS[self.kind](self, shape, np.dtype(dtype), random)


def uniform(random: np.random.RandomState, low: float, high: float, count: int, dtype: np.dtype[np.generic]) -> Array:
    """`count` draws from [low, high]: word / 2^32 * (nextafter(high) - low) + low, each step rounded to dtype.

    A word that rounds up to the very end is drawn again, as the library that Caffe uses does.
    """
    real = dtype.type
    with np.errstate(over="ignore", invalid="ignore"):
        first, end = real(low), np.nextafter(real(high), real(np.inf))
        span = end - first
    if not first <= end or not np.isfinite(span):
        problem, relation = ("is empty", "min <= max") if low > high else ("has no end", f"max - min finite in {dtype.name}")
        raise ArgumentError(
            f"the range {problem}",
            given={"min": low, "max": high},
            required=f"{relation}: {low}, {high}",
            hint="min: -0.1 max: 0.1",
        )
    kept: list[Array] = []
    missing = count
    while missing:
        words = random.randint(0, WORD_MAX + 1, size=missing, dtype=np.uint32)
        values = words.astype(dtype) / real(WORD_MAX) * span + first
        kept.append(values[values < end])
        missing -= kept[-1].size
    return np.concatenate(kept) if kept else np.empty(0, dtype)


def _constant(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    return np.full(shape, filler.value, dtype)


def _uniform(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    return uniform(random, filler.min, filler.max, math.prod(shape), dtype).reshape(shape)


def _gaussian(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    values = random.normal(filler.mean, filler.std, math.prod(shape)).astype(dtype).reshape(shape)
    if filler.sparse >= 0:
        # On average `sparse` of the weights that reach an output are kept.
        chance = min(filler.sparse / max(shape[0] if shape else 1, 1), 1.0)
        values *= random.random_sample(shape) < chance
    return values


def _xavier(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    scale = float(dtype.type(math.sqrt(3 / _fan(filler, shape))))
    return uniform(random, -scale, scale, math.prod(shape), dtype).reshape(shape)


def _msra(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    return random.normal(0, math.sqrt(2 / _fan(filler, shape)), math.prod(shape)).astype(dtype).reshape(shape)


def _positive_unitball(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    """Positive, and every output's weights sum to one."""
    values = uniform(random, 0, 1, math.prod(shape), dtype).reshape(shape[0] if shape else 1, -1)
    values /= values.sum(axis=1, keepdims=True)
    return values.reshape(shape)


def _bilinear(filler: Filler, shape: Shape, dtype: np.dtype[np.generic], random: np.random.RandomState) -> Array:
    """The kernel that enlarges an image bilinearly, the same for every channel."""
    if len(shape) != 4 or shape[2] != shape[3]:
        raise ArgumentError(
            "the bilinear filler needs square two-dimensional kernels",
            given={"shape": shape},
            required="(channels, channels / group, k, k)",
            because="Caffe, include/caffe/filler.hpp",
        )
    half = math.ceil(shape[3] / 2)
    centre = (shape[3] - 1) / (2 * half)
    profile = 1 - np.abs(np.arange(shape[3]) / half - centre)
    return np.ascontiguousarray(np.broadcast_to(np.outer(profile, profile), shape), dtype)


def _fan(filler: Filler, shape: Shape) -> float:
    """How many inputs reach an output, outputs an input, or the mean of both."""
    count = math.prod(shape)
    fan_in = count / shape[0] if shape and shape[0] else 1.0
    fan_out = count / shape[1] if len(shape) > 1 and shape[1] else float(count)
    fans = {
        VarianceNorm.FAN_IN: fan_in,
        VarianceNorm.FAN_OUT: fan_out,
        VarianceNorm.AVERAGE: (fan_in + fan_out) / 2,
    }
    return fans[filler.variance_norm] or 1.0


FILLERS: dict[str, Callable[[Filler, Shape, np.dtype[np.generic], np.random.RandomState], Array]] = {
    "constant": _constant,
    "uniform": _uniform,
    "gaussian": _gaussian,
    "xavier": _xavier,
    "msra": _msra,
    "positive_unitball": _positive_unitball,
    "bilinear": _bilinear,
}
