"""JAX 0.10: the rules of jax.lax's window reductions and convolutions, and of flax's average.

Source: jax-ml/jax, jax/_src/lax/windowed_reductions.py, jax/_src/lax/convolution.py and lax.py padtype_to_pads; confirmed
by running it on the CPU (tests/golden/semantics, tests/live). Padding is "valid", "same" (the odd pixel at the end),
"same_lower" (at the start), or (low, high) pairs, negative to crop. Nothing is too small: an axis without a window is empty.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    Pads,
    PerAxis,
    accumulator,
    channels,
    choice,
    on_axis,
    only,
    pads,
    per_axis,
    require_dtype,
    shares_arguments,
    spatial,
    whole,
)
from ._weights import transposed_weights_of, weights_of

WINDOWS = "JAX 0.10, jax/_src/lax/windowed_reductions.py"
CONV = "JAX 0.10, jax/_src/lax/convolution.py"
FLAX = "flax, flax/linen/pooling.py"
WORDS = ("valid", "same", "same_lower")


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    base_dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """reduce_window(max) from -inf: a NaN wins. The gradient's pick moves on unless it is >= the next tap, so it lies on the
    first greatest tap after the last NaN. Padding takes part as -inf: a window of -inf alone that begins in it, and a NaN
    with padding behind it, lose their gradient there. `base_dilation` is the input's; JAX's stride is 1 unless given."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, base_dilation)
    padded = any(axis.pad_lo > 0 or axis.pad_hi > 0 for axis in axes)
    holes = any(axis.input_dilation > 1 for axis in axes)
    takes_part = padded and not holes and dtype in FLOATS  # in integers there is no gradient to tell
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS | BOOL, WINDOWS),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.AFTER_NAN,
        unpicked=Unpicked.FIRST_TAP,
        edge=Edge.CONSTANT if takes_part else Edge.SKIP,
        edge_value=-math.inf if takes_part else 0.0,
        accumulate=accumulator(dtype),
    )


def min_pool(shape: Shape, dtype: str = "float32", **arguments: Any) -> PoolPlan:
    """reduce_window(min) from +inf: as max_pool, the order mirrored."""
    plan = max_pool(shape, dtype, **arguments)
    return replace(plan, reduce=Reduce.MIN, edge_value=abs(plan.edge_value))


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    base_dilation: Any = 1,
    layout: str = "channels_first",
    count_include_pad: bool = True,
    total: bool = False,
) -> PoolPlan:
    """JAX has no average: this is flax's, which divides reduce_window(add) by the kernel's taps, or by the taps inside
    (documentation only). `total` is that sum itself, run, with integers that wrap around. Half types are summed in float32
    here; JAX on the CPU is less exact (4096 float16 0.1: 408.2)."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, base_dilation)
    divisor = Divisor.KERNEL if count_include_pad else Divisor.VALID
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS if total else FLOATS, WINDOWS if total else FLAX),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.OVERRIDE if total else divisor,
        divisor_override=1 if total else 0,
        empty=Empty.QUOTIENT,
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    batch_groups: int = 1,
    input_dilation: Any = 1,
    preferred_dtype: str | None = None,
    layout: str = "channels_first",
) -> ConvPlan:
    """conv_general_dilated: `input_dilation` is lhs_dilation, which excludes padding by words, `dilation` rhs_dilation.
    Integers wrap around, bools are "or" of "and", gradients of complex numbers take no conjugates. `preferred_dtype` is
    preferred_element_type: what the arrays become before they are multiplied, and y's type."""
    place, sizes = spatial(shape, layout, smallest=0)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    inner = per_axis(input_dilation, rank, "input_dilation")
    if isinstance(padding, str) and max(inner) > 1:
        raise ArgumentError(
            "a dilated input needs its padding in numbers",
            given={"padding": padding, "input_dilation": input_dilation},
            because=CONV,
            hint="(low, high) pairs, or conv_transpose",
        )
    axes = _axes(sizes, kernel, per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation"), inner, padding)
    for i, axis in enumerate(axes):
        left = axis.stretched + axis.pad_lo + axis.pad_hi
        if left < 0:
            raise ArgumentError(
                "the negative pads crop more than there is",
                given={"padding": padding},
                required=f"{on_axis('size + padding >= 0', i, rank)}: {left}",
                because=CONV,
                hint="pads that leave something",
            )
    y_dtype = preferred(require_dtype(dtype, FLOATS | INTEGERS | BOOL | COMPLEX, CONV), preferred_dtype)
    return ConvPlan(
        dtype=dtype,
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        batch_groups=whole(batch_groups, "batch_groups", 1),
        accumulate=accumulator(y_dtype),
        y_dtype="" if y_dtype == dtype else y_dtype,
    )


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "same",
    dilation: Any = 1,
    groups: int = 1,
    preferred_dtype: str | None = None,
    layout: str = "channels_first",
    transpose_kernel: bool = False,
    use_consistent_padding: bool = False,
) -> ConvPlan:
    """The input with stride - 1 zeros between its pixels under a kernel that is **not** turned round, unless by
    `transpose_kernel`, which makes it the gradient of a convolution (TensorFlow's and Keras's). "same" gives n*stride,
    "valid" n*stride + max(K - stride, 0); pairs pad the stretched input, or, by `use_consistent_padding`, crop the output.
    """
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    only(groups, "groups", 1, CONV)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    reaches = tuple(_sizes.reach(k, di) for k, di in zip(kernel, d, strict=True))
    if isinstance(padding, str):
        word = choice(padding.lower(), "padding", WORDS[:2])
        both = tuple(_stretched_pads(word, k, si) for k, si in zip(reaches, s, strict=True))
    else:
        both = pads(padding, rank, minimum=None)
        if use_consistent_padding:
            both = tuple((k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(reaches, both, strict=True))
    # y[t] reads stretched[t - lo + j*d]: as an adjoint over the turned kernel, t = i*s - (K-1-lo) + (k-1-j)*d
    crops = tuple((k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(reaches, both, strict=True))
    y_dtype = preferred(require_dtype(dtype, FLOATS | INTEGERS | BOOL | COMPLEX, CONV), preferred_dtype)
    return ConvPlan(
        dtype=dtype,
        axes=_sizes.transposed_axes(sizes, kernel, s, d, crops, (0,) * rank, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        flip=not transpose_kernel,
        accumulate=accumulator(y_dtype),
        y_dtype="" if y_dtype == dtype else y_dtype,
    )


def preferred(dtype: str, wanted: str | None) -> str:
    """The dtype of the result by preferred_element_type: another floating type or a wider integer of x's sign (unsigned ones
    may become signed), never narrower (lax.py _validate_preferred_element_type). bool may become anything."""
    if wanted is None or dtype == "bool":
        return dtype if wanted is None else require_dtype(wanted, FLOATS | INTEGERS | BOOL | COMPLEX, CONV)
    kinds = next((kinds for kinds in (FLOATS, COMPLEX) if dtype in kinds), FLOATS | INTEGERS)
    allowed = {kind for kind in kinds if bits(kind) >= bits(dtype)}
    if dtype.startswith("int"):
        allowed -= {kind for kind in allowed if kind.startswith("u")}
    if not isinstance(wanted, str) or wanted not in allowed:
        raise ArgumentError(
            "preferred_element_type does not hold what the input's type does",
            given={"preferred_element_type": wanted, "dtype": dtype},
            required=f"one of {', '.join(sorted(allowed))}",
            because="JAX 0.10, jax/_src/lax/lax.py _validate_preferred_element_type",
            hint="preferred_element_type=None",
        )
    return wanted


def bits(dtype: str) -> int:
    """The width in a dtype's name."""
    return int("".join(c for c in dtype if c.isdigit()))


def _stretched_pads(word: str, reach: int, stride: int) -> tuple[int, int]:
    """lax._conv_transpose_padding."""
    if word == "same":
        total = reach + stride - 2
        before = reach - 1 if stride > reach - 1 else -(-total // 2)
    else:
        total = reach + stride - 2 + max(reach - stride, 0)
        before = reach - 1
    return before, total - before


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, base_dilation: Any
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout, smallest=0)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    return place, _axes(sizes, k, s, d, per_axis(base_dilation, rank, "base_dilation"), padding)


def _axes(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, inner: PerAxis, padding: Any
) -> tuple[StridedAxis, ...]:
    """max(0, (n' + pads - K) // s + 1) windows, n' = (n-1) * input dilation + 1. SAME takes its pads from n, not n'."""
    stretched = tuple((n - 1) * i + 1 if n else 0 for n, i in zip(sizes, inner, strict=True))
    reaches = tuple(_sizes.reach(k, d) for k, d in zip(kernel, dilation, strict=True))
    both: Pads
    if isinstance(padding, str):
        word = choice(padding.lower(), "padding", WORDS)
        both = tuple(
            (0, 0) if word == "valid" else _sizes.same(n, r, s, extra_at_end=word == "same")[1]
            for n, r, s in zip(sizes, reaches, stride, strict=True)
        )
    else:
        both = pads(padding, len(sizes), minimum=None)
    outs = tuple(
        max(_sizes.floor(n, lo + hi, r, s), 0) for n, (lo, hi), r, s in zip(stretched, both, reaches, stride, strict=True)
    )
    return tuple(
        StridedAxis(size=n, kernel=k, stride=s, dilation=d, pad_lo=lo, pad_hi=hi, out=out, input_dilation=i)
        for n, k, s, d, (lo, hi), out, i in zip(sizes, kernel, stride, dilation, both, outs, inner, strict=True)
    )


shares_arguments(min_pool, max_pool)
