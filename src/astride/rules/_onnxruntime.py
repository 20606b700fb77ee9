"""What ONNX Runtime's releases do to sizes and pads: the parts that rules/onnxruntime.py is put together of."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, Shape, StridedAxis
from ..plan.base import axis_names
from ..plan.kinds import Layout
from . import _sizes
from ._arguments import Pads, PerAxis, channels, per_axis, spatial
from ._onnx import auto_pads, flag, pads_below_kernel, transposed_axes

LATEST = "1.32"
POOL = "ONNX Runtime, core/providers/cpu/nn/pool_attributes.h"
CONV = "ONNX Runtime, core/providers/cpu/nn/conv_attributes.h"
TRANSPOSE = "ONNX Runtime, core/providers/cpu/nn/conv_transpose_attributes.h"


def windows(
    shape: Shape,
    layout: str,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: Any,
    release: tuple[int, int],
    *,
    dense_kernel: bool,
) -> tuple[Layout, tuple[StridedAxis, ...], Pads]:
    """Where the text's sizes are not followed: ceil_mode holds for auto_pad too; SAME's pads are those of the undilated
    kernel, negative ones crop (from 1.29 on the dense kernel refuses them); the division truncates as in C, so that a
    kernel larger than the input by less than a stride has one window."""
    place, sizes = spatial(shape, layout)
    if channels(shape, place) < 1:
        raise ArgumentError("x has no channels", required="channels >= 1: 0", because=POOL)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    word, both = auto_pads(padding, sizes, k, s)
    if word.startswith("SAME"):
        both = tuple(_same(n, ki, si, upper=word == "SAME_UPPER") for n, ki, si in zip(sizes, k, s, strict=True))
    if word == "NOTSET" or (dense_kernel and max(d) == 1 and release >= (1, 29)):
        pads_of_release(both, release, POOL)
    if word == "NOTSET":
        pads_below_kernel(both, k, POOL)
    ups = flag(ceil_mode, "ceil_mode")
    size = _sizes.ceil if ups else _sizes.truncated
    outs = tuple(size(n, lo + hi, _sizes.reach(ki, di), si) for n, (lo, hi), ki, di, si in zip(sizes, both, k, d, s, strict=True))
    if ups and release >= (1, 21):
        outs = tuple(_sizes.clipped(out, n, lo, si) for out, n, (lo, _), si in zip(outs, sizes, both, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, both, outs, because=POOL), both


def _same(n: int, k: int, s: int, *, upper: bool) -> tuple[int, int]:
    """SAME's pads, halved as C does, which are negative where windows leave gaps."""
    total = (-(-n // s) - 1) * s + k - n
    before = int((total if upper else total + 1) / 2)
    return before, total - before


def release_of(version: str) -> tuple[int, int]:
    """(major, minor) of a release."""
    try:
        major, minor = (int(part) for part in str(version).split(".")[:2])
    except ValueError:
        raise ArgumentError("this is not a release", given={"version": version}, hint=f'version="{LATEST}"') from None
    if not (1, 16) <= (major, minor) <= (1, 32):
        raise ArgumentError(
            "releases before 1.16 and after 1.32 were not run",
            given={"version": version},
            required=f"1.16 <= version <= {LATEST}: {version}",
            hint='version="1.16"' if (major, minor) < (1, 16) else f'version="{LATEST}"',
        )
    return major, minor


def pads_of_release(both: Pads, release: tuple[int, int], because: str) -> None:
    """Negative pads crop up to 1.27."""
    if release >= (1, 28) and any(min(pair) < 0 for pair in both):
        raise ArgumentError(
            "a pad is negative",
            given={"padding": both},
            required="pads >= 0",
            because=because,
            hint='version="1.27", or rules="onnx"',
        )


def wrong_end_pads(both: Pads) -> Pads:
    """1.21 to 1.24 read pads [x1_begin, x2_begin, ..., x1_end, ...] as if begins and ends took turns, for the ends alone."""
    flat = [lo for lo, _ in both] + [hi for _, hi in both]
    return tuple((lo, flat[2 * i + 1]) for i, (lo, _) in enumerate(both))


def same_transposed(plan: ConvPlan, padding: str, output_padding: Any) -> tuple[StridedAxis, ...]:
    """SAME crops to n*s but adds no zeros where the scatter is smaller."""
    strides, dilations = (tuple(getattr(axis, name) for axis in plan.axes) for name in ("stride", "dilation"))
    sizes, kernel = plan.input_sizes, tuple(axis.kernel for axis in plan.axes)
    return transposed_axes(sizes, kernel, strides, dilations, padding, output_padding, None, same_stretches=False)


def beyond(axis: StridedAxis) -> int:
    """How far the output of a transposed convolution that crops nothing reaches past the scatter."""
    return axis.size - (axis.out - 1) * axis.stride - axis.reach if axis.pad_lo <= 0 else 0


def no_crop_in_a_window(axes: tuple[StridedAxis, ...], *, every: bool) -> None:
    """SAME's negative end pads, and a dilated last window that reaches over them: its average is not followed here, nor,
    with `every`, that of any window beside negative pads (1.21 to 1.24 mistake them for others)."""
    negative = any(min(axis.pad_lo, axis.pad_hi) < 0 for axis in axes)
    if any(axis.pad_hi < 0 < axis.overhang for axis in axes) or (every and negative):
        raise ArgumentError(
            "a window reaches into pixels that a negative end pad crops",
            given={"padding": tuple((axis.pad_lo, axis.pad_hi) for axis in axes)},
            because=f"{POOL}: averages leave them out, maxima do not",
            hint="explicit pads",
        )


def below_a_stride(extra: PerAxis, axes: tuple[StridedAxis, ...]) -> None:
    """From 1.27 on the input's size must follow from the output's: zeros beyond the scatter stay below a stride."""
    for i, (more, axis) in enumerate(zip(extra, axes, strict=True)):
        if more >= axis.stride:
            raise ArgumentError(
                "the output goes beyond the scatter by a stride or more",
                given={"output_padding": extra, "stride": tuple(a.stride for a in axes)},
                required=f"output_padding < stride, on axis {axis_names(len(axes))[i]}: {more} < {axis.stride}",
                because=TRANSPOSE,
                hint='version="1.26", or rules="onnx"',
            )
