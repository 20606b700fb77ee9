"""Cases of integer convolution: sums and scaled results, every pairing of types, zero points for all or each channel."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import astride
from astride.plan import IntegerConvPlan

from .dense import Array, DenseCase
from .records import Refusal


class IntegerCase(DenseCase):
    """Numbers over the whole range of their types; scales are powers of two, so that halves occur."""

    def arrays(self, dtype: str | None = None) -> tuple[Array | None, ...]:
        plan = self.plan
        assert isinstance(plan, IntegerConvPlan)
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made: list[Array | None] = []
        for role, shape in zip(plan.roles, self.shapes, strict=True):
            kind = np.dtype(plan.dtype_of(role))
            if shape is None:
                made.append(None)
            elif kind.kind == "f":
                made.append(np.asarray(2.0 ** rng.integers(-4, 1, shape), kind))
            elif role == "b":
                made.append(rng.integers(-500, 500, shape).astype(kind))
            else:
                limits = np.iinfo(kind)
                made.append(np.asarray(rng.integers(limits.min, limits.max + 1, shape)).astype(kind))
        return tuple(made)


def case(
    name: str,
    shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    *,
    x: str = "uint8",
    zeros: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = ((), ()),
    bias: bool = False,
    scales: tuple[int, ...] | None = None,
    **arguments: Any,
) -> IntegerCase:
    plan = astride.plan("conv_integer", shape, w_shape=w_shape, dtype=x, **arguments)
    scaled: tuple[Any, ...] = (None,) * 4 if scales is None else ((), scales, (), ())
    return IntegerCase(name, plan, (shape, w_shape, *zeros, (w_shape[0],) if bias else None, *scaled))


CASES = (
    case("one axis", (2, 3, 7), (4, 3, 3)),
    case("two axes, padded", (2, 3, 5, 6), (4, 3, 3, 2), padding=1),
    case("three axes", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), padding=(0, 1, 0)),
    case("no zero points", (1, 2, 5, 5), (3, 2, 3, 3), zeros=(None, None), padding=1),
    case("a zero point per channel", (1, 2, 5, 5), (3, 2, 3, 3), zeros=((1,), (3,)), padding=1),
    case("signed by unsigned", (1, 2, 5, 5), (3, 2, 3, 3), x="int8", w_dtype="uint8"),
    case("unsigned by unsigned", (1, 2, 5, 5), (3, 2, 3, 3), w_dtype="uint8", stride=2),
    case("groups and dilation", (1, 4, 7, 6), (4, 2, 2, 2), groups=2, dilation=2),
    case("channels last", (2, 5, 6, 3), (4, 3, 3, 2), padding=1, layout="channels_last"),
    case("bias", (1, 2, 5), (3, 2, 3), bias=True),
    case("scaled", (1, 2, 5, 5), (3, 2, 3, 3), y_dtype="uint8", scales=(), padding=1),
    case("scaled, per channel, bias", (1, 2, 5, 5), (3, 2, 3, 3), y_dtype="uint8", scales=(3,), bias=True, zeros=((), (3,))),
    case("scaled, signed", (1, 2, 5, 5), (3, 2, 1, 1), x="int8", y_dtype="int8", scales=()),
    case("scaled, channels last", (1, 5, 5, 2), (3, 2, 2, 2), y_dtype="int8", scales=(3,), layout="NHWC"),
    case("no images", (0, 2, 5), (3, 2, 3)),
)

REFUSALS = (
    Refusal("floats", (1, 1, 4), {}, ("x holds no quantised numbers", "int8, uint8"), w_shape=(1, 1, 2), dtype="float32"),
    Refusal("wide weights", (1, 1, 4), dict(w_dtype="int16"), ("w holds no quantised numbers",), w_shape=(1, 1, 2), dtype="int8"),
    Refusal("kernel too large", (1, 1, 4), {}, ("the kernel is larger than the padded input",), w_shape=(1, 1, 5), dtype="int8"),
    Refusal("groups", (1, 3, 4), dict(groups=2), ("not divisible by groups",), w_shape=(2, 1, 2), dtype="int8"),
    Refusal("Caffe has none", (1, 1, 4), {}, ("caffe has no conv_integer",), "UnsupportedError", "caffe", "int8", (1, 1, 2)),
)
