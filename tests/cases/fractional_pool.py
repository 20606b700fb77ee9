"""Fractional max pooling: sizes, samples at both ends, one window, NaN."""

from __future__ import annotations

import zlib
from typing import Any

import ml_dtypes
import numpy as np

import astride
from tests.cases.dense import Array, DenseCase
from tests.cases.records import FILLS, Refusal


class FractionalCase(DenseCase):
    """Samples are multiples of 1/8 in [0, 1); `integers` is not used."""

    def arrays(self, dtype: str | None = None) -> tuple[Array | None, ...]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        name = dtype or self.plan.dtype
        kind: Any = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        x, samples = self.shapes
        assert x is not None and samples is not None
        fill = "mixed" if "NaN" in self.name else "ties" if "ties" in self.name else "integers"
        return FILLS[fill](rng, x, kind), (rng.integers(0, 8, samples) / 8).astype(kind)


def case(name: str, shape: tuple[int, ...], rules: str = "explicit", dtype: str = "float32", **arguments: Any) -> FractionalCase:
    plan = astride.plan("fractional_pool", shape, rules=rules, dtype=dtype, **arguments)
    channels = shape[1] if arguments.get("layout", "channels_first") == "channels_first" else shape[-1]
    return FractionalCase(name, plan, (shape, (shape[0], channels, len(shape) - 2)))


CASES = (
    case("one axis", (2, 3, 9), kernel=2, output_size=5),
    case("two axes", (2, 3, 9, 7), kernel=(2, 3), output_size=(5, 4)),
    case("three axes", (1, 2, 5, 6, 4), kernel=2, output_size=(3, 4, 2)),
    case("channels last", (2, 9, 7, 3), kernel=2, output_size=(5, 4), layout="channels_last"),
    case("a ratio", (2, 2, 9, 7), kernel=2, output_ratio=(0.6, 0.7)),
    case("one window", (2, 2, 5, 5), kernel=3, output_size=1),
    case("as many windows as there is room for", (2, 2, 5, 5), kernel=2, output_size=4),
    case("ties", (3, 2, 8, 8), kernel=3, output_size=4),
    case("NaN and infinities", (3, 2, 8, 8), kernel=3, output_size=4),
    case("NaN, the last of several", (3, 2, 8, 8), kernel=3, output_size=4, tie="last_nan"),
    case("PyTorch, NaN", (3, 2, 8, 8), rules="pytorch", kernel=3, output_size=4),
    case("PyTorch", (2, 2, 9, 7), rules="pytorch", kernel=(3, 2), output_size=(4, 5)),
    case("PyTorch, three axes", (2, 2, 6, 5, 4), rules="pytorch", kernel=2, output_size=(3, 3, 2)),
    case("double", (2, 2, 9), dtype="float64", kernel=3, output_size=4),
    case("half", (2, 2, 9, 8), dtype="float16", kernel=2, output_size=(5, 4)),
    case("bfloat16", (2, 2, 9, 8), dtype="bfloat16", kernel=2, output_size=(5, 4)),
    case("no images", (0, 2, 9), kernel=2, output_size=4),
)

REFUSALS = (
    Refusal("no size", (1, 1, 9), dict(kernel=2), ("output_size or output_ratio, one of them",)),
    Refusal("two sizes", (1, 1, 9), dict(kernel=2, output_size=3, output_ratio=0.5), ("said twice or not at all",)),
    Refusal("no room", (1, 1, 4), dict(kernel=3, output_size=3), ("on axis W: 3 + 3 - 1 <= 4", "output_size=2")),
    Refusal("a ratio of two", (1, 1, 9), dict(kernel=2, output_ratio=2.0), ("output_ratio is no fraction",)),
    Refusal("shares", (1, 1, 9), dict(kernel=2, output_size=3, tie="equal_share"), ("first or last NaN", "tie = 'equal_share'")),
    Refusal("integers", (1, 1, 9), dict(kernel=2, output_size=3), ("no rule for int32 arrays",), dtype="int32"),
    Refusal("Caffe has none", (1, 1, 9), dict(kernel=2), ("caffe has no fractional_pool",), "UnsupportedError", "caffe"),
)
