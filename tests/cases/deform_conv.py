"""Cases of deformable convolution: v1 and v2, groups of offsets, one to three axes."""

from __future__ import annotations

import zlib
from typing import Any

import ml_dtypes
import numpy as np

import astride
from astride.plan import DeformPlan

from .dense import Array, DenseCase
from .records import Refusal


class DeformCase(DenseCase):
    """Offsets are multiples of 1/8 up to two pixels, masks of 1/4 up to one, so that sums are exact."""

    def arrays(self, dtype: str | None = None) -> tuple[Array | None, ...]:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        name = dtype or self.plan.dtype
        kind: Any = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        made: list[Array | None] = []
        for role, shape in zip(self.plan.roles, self.shapes, strict=True):
            if shape is None:
                made.append(None)
                continue
            low, high, step = {"offset": (-16, 17, 8), "mask": (0, 5, 4)}.get(role, (-4, 5, 1))
            made.append((rng.integers(low, high, shape) / step).astype(kind))
        return tuple(made)


def case(
    name: str,
    shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    *,
    mask: bool = False,
    bias: bool = False,
    dtype: str = "float32",
    **arguments: Any,
) -> DeformCase:
    plan = astride.plan("deform_conv", shape, w_shape=w_shape, dtype=dtype, **arguments)
    assert isinstance(plan, DeformPlan)
    rows = plan.offset_groups * plan.taps
    return DeformCase(
        name,
        plan,
        (
            shape,
            plan.shape_of(shape[0], rows * len(plan.axes)),
            w_shape,
            plan.shape_of(shape[0], rows) if mask else None,
            (w_shape[0],) if bias else None,
        ),
    )


CASES = (
    case("one axis", (2, 2, 6), (3, 2, 3)),
    case("one axis, mask and bias", (2, 2, 6), (3, 2, 3), mask=True, bias=True),
    case("two axes", (1, 2, 4, 5), (3, 2, 2, 3), padding=1, bias=True),
    case("two axes, mask", (1, 2, 4, 5), (3, 2, 3, 2), padding=1, mask=True),
    case("three axes", (1, 1, 3, 3, 2), (2, 1, 2, 2, 2), mask=True),
    case("strided and dilated", (1, 2, 7, 6), (2, 2, 2, 2), stride=2, dilation=(2, 3), padding=1),
    case("groups", (1, 4, 4, 4), (4, 2, 2, 2), groups=2, mask=True),
    case("groups of offsets", (2, 4, 4, 4), (2, 4, 2, 2), offset_groups=2, mask=True, bias=True),
    case("both groups, unequal", (1, 4, 4, 3), (4, 2, 2, 2), groups=2, offset_groups=4),
    case("channels last", (1, 4, 5, 2), (3, 2, 2, 2), mask=True, bias=True, padding=1, layout="channels_last"),
    case("double", (1, 2, 4, 4), (2, 2, 2, 2), dtype="float64", mask=True),
    case("half", (1, 2, 4, 4), (2, 2, 2, 2), dtype="float16"),
    case("bfloat16", (1, 1, 3, 4), (1, 1, 2, 2), dtype="bfloat16"),
    case("no images", (0, 2, 4, 4), (2, 2, 2, 2), mask=True),
)

REFUSALS = (
    Refusal(
        "groups of offsets",
        (1, 3, 4),
        dict(offset_groups=2),
        ("in_channels is not divisible by offset_groups",),
        w_shape=(1, 3, 2),
    ),
    Refusal("kernel too large", (1, 3, 4), {}, ("the kernel is larger than the padded input",), w_shape=(1, 3, 5)),
    Refusal("an edge", (1, 3, 4), dict(edge="clamp"), ("there is no argument 'edge'",), w_shape=(1, 3, 2)),
    Refusal("integers", (1, 1, 4), {}, ("no rule for int32 arrays",), w_shape=(1, 1, 2), dtype="int32"),
    Refusal(
        "PyTorch itself has none",
        (1, 1, 4),
        {},
        ("pytorch has no deform_conv",),
        "UnsupportedError",
        "pytorch",
        w_shape=(1, 1, 2),
    ),
)
