"""Output sizes: the handful of formulas all frameworks choose from. n size, p both pads together, K reach, s stride."""

from __future__ import annotations

from ..errors import ArgumentError
from ..plan import ExplicitAxis, StridedAxis
from ..plan.base import axis_names
from ._arguments import Pads, PerAxis

MOST_LISTED = 2**24
"""Windows of one axis that a plan keeps one by one, which takes some 100 bytes each."""


def reach(kernel: int, dilation: int) -> int:
    return (kernel - 1) * dilation + 1


def floor(n: int, p: int, k: int, s: int) -> int:
    """(n + p - K) // s + 1"""
    return (n + p - k) // s + 1


def ceil(n: int, p: int, k: int, s: int) -> int:
    """ceil((n + p - K) / s) + 1"""
    return -((k - n - p) // s) + 1


def truncated(n: int, p: int, k: int, s: int) -> int:
    """(n + p - K) / s + 1 with C's division, which truncates toward zero."""
    free = n + p - k
    return (free // s if free >= 0 else -(-free // s)) + 1


def clipped(out: int, n: int, pad_lo: int, s: int) -> int:
    """One window less if the last one starts in the padding behind the input."""
    return out - 1 if (out - 1) * s >= n + pad_lo else out


def same(n: int, k: int, s: int, *, extra_at_end: bool = True) -> tuple[int, tuple[int, int]]:
    """(ceil(n / s), pads): the output is as many strides as the input, the odd padding pixel at the end (or start)."""
    out = -(-n // s)
    total = max((out - 1) * s + k - n, 0)
    half = total // 2
    return out, (half, total - half) if extra_at_end else (total - half, half)


def strided_axes(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, pads: Pads, outs: PerAxis, *, because: str | None = None
) -> tuple[StridedAxis, ...]:
    """Axes with these outputs. Raises ArgumentError where an axis has no window at all."""
    for i, (n, k, d, (lo, hi), out) in enumerate(zip(sizes, kernel, dilation, pads, outs, strict=True)):
        if out < 1:
            name = axis_names(len(sizes))[i]
            raise ArgumentError(
                "the kernel is larger than the padded input",
                given={"kernel": kernel, "dilation": dilation, "padding": pads},
                required=f"(kernel - 1) * dilation + 1 <= size + padding, on axis {name}: {reach(k, d)} <= {n} + {lo + hi}",
                because=because,
                hint=f"kernel={max((n + lo + hi - 1) // d + 1, 1)} on axis {name}, or more padding",
            )
    return tuple(
        StridedAxis(size=n, kernel=k, stride=s, dilation=d, pad_lo=lo, pad_hi=hi, out=out)
        for n, k, s, d, (lo, hi), out in zip(sizes, kernel, stride, dilation, pads, outs, strict=True)
    )


def transposed_axes(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, pads: Pads, extra: PerAxis, *, because: str | None = None
) -> tuple[StridedAxis, ...]:
    """Axes of the convolution whose adjoint turns `sizes` into (n-1)*s + K - pads + extra. `extra` is output padding:
    it makes the far side of that convolution's input larger and its padding smaller."""
    axes = []
    for i, (n, k, s, d, (lo, hi), more) in enumerate(zip(sizes, kernel, stride, dilation, pads, extra, strict=True)):
        out = (n - 1) * s + reach(k, d) - lo - hi + more
        if out < 1:
            raise ArgumentError(
                "the output is empty",
                given={"kernel": kernel, "stride": stride, "padding": pads},
                required=f"(size-1)*stride + (kernel-1)*dilation + 1 - padding >= 1, on axis {axis_names(len(sizes))[i]}: {out}",
                because=because,
                hint="less padding",
            )
        axes.append(StridedAxis(size=out, kernel=k, stride=s, dilation=d, pad_lo=lo, pad_hi=hi - more, out=n))
    return tuple(axes)


def adaptive_axes(sizes: PerAxis, outs: PerAxis) -> tuple[ExplicitAxis, ...]:
    """Axes of `out` windows [floor(i*n / out), ceil((i+1)*n / out)): together they cover the input, neighbours share at
    most one pixel. Raises ArgumentError: more windows than can be listed."""
    for i, out in enumerate(outs):
        if out > MOST_LISTED:
            raise ArgumentError(
                "the output has more windows than a plan can list",
                given={"output_size": outs},
                required=f"output_size <= 2^24, on axis {axis_names(len(outs))[i]}: {out}",
                hint="avg_pool or max_pool with a stride",
            )
    return tuple(
        ExplicitAxis(n, tuple(i * n // out for i in range(out)), tuple(-(-(i + 1) * n // out) for i in range(out)))
        for n, out in zip(sizes, outs, strict=True)
    )
