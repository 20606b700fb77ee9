"""Random calls of torch.nn.functional: good ones and bad ones, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

OPS = ("max_pool", "avg_pool", "lp_pool", "adaptive_pool", "fractional_pool", "max_unpool", "conv", "conv_transpose", "columns")
SIZES = {1: 9, 2: 7, 3: 5}


@dataclass(frozen=True)
class Call:
    """`name(*arrays, *values, **keywords)`; the arrays of floats are differentiated."""

    name: str
    arrays: tuple[Any, ...]
    values: tuple[Any, ...]
    keywords: dict[str, Any]

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{self.name}({shapes}, {self.values}, {self.keywords})"


def call_of(op: str, seed: int) -> Call:
    """Call number `seed` of an operator, in one to three dimensions."""
    rng = np.random.default_rng([seed, *op.encode()])
    rank = int(rng.choice([1, 2, 2, 3]))
    dtype = str(rng.choice(["float64", "float64", "float32"]))
    makers = {
        "max_pool": _max,
        "avg_pool": _average,
        "lp_pool": _norm,
        "adaptive_pool": _adaptive,
        "fractional_pool": _fractional,
        "columns": _columns,
        "max_unpool": _unpool,
        "conv": _conv,
        "conv_transpose": _transpose,
    }
    return makers[op](rng, rank, dtype)


def _per_axis(rng: np.random.Generator, rank: int, low: int, high: int) -> Any:
    """A number, one per axis, or one in a list."""
    form = rng.random()
    if form < 0.4:
        return int(rng.integers(low, high + 1))
    if form < 0.5:
        return [int(rng.integers(low, high + 1))]
    return tuple(int(n) for n in rng.integers(low, high + 1, rank))


def _sizes(rng: np.random.Generator, rank: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(1, SIZES[rank] + 1, rank))


def _image(rng: np.random.Generator, rank: int, dtype: str, *, ties: bool, channels: int | None = None) -> Any:
    """Batched, unbatched or with no image at all; ties, infinities and NaN now and then."""
    c = channels or int(rng.integers(1, 4))
    lead = {0: (c,), 1: (0, c)}.get(int(rng.integers(0, 8)), (int(rng.integers(1, 3)), c))
    shape = (*lead, *_sizes(rng, rank))
    if not ties:
        return rng.normal(size=shape).astype(dtype)
    x = rng.integers(-3, 4, shape).astype(dtype)
    if rng.random() < 0.3:
        x = np.where(rng.random(shape) < 0.2, rng.choice(np.array([np.nan, np.inf, -np.inf]), shape), x).astype(dtype)
    return x


def _window(rng: np.random.Generator, rank: int, *, dilated: bool) -> dict[str, Any]:
    """Keywords that are often right: padding within half the kernel."""
    kernel = _per_axis(rng, rank, 1, 3)
    window: dict[str, Any] = {"kernel_size": kernel}
    if rng.random() < 0.7:
        window["stride"] = _per_axis(rng, rank, 1, 3)
    if rng.random() < 0.5:
        window["padding"] = _per_axis(rng, rank, 0, 1)
    if dilated and rng.random() < 0.4:
        window["dilation"] = _per_axis(rng, rank, 1, 2)
    if rng.random() < 0.4:
        window["ceil_mode"] = True
    bad = rng.random()
    if bad < 0.03:
        window["stride"] = int(rng.choice([0, -1]))
    elif bad < 0.06:
        window["kernel_size"] = (2,) * (rank + 1)
    return window


def _max(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    window = _window(rng, rank, dilated=True)
    if rng.random() < 0.7:
        window["return_indices"] = True
    return Call(f"max_pool{rank}d", (_image(rng, rank, dtype, ties=True),), (), window)


def _average(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    window = _window(rng, rank, dilated=False)
    if rng.random() < 0.4:
        window["count_include_pad"] = False
    if rank > 1 and rng.random() < 0.2:
        window["divisor_override"] = int(rng.choice([-2, 0, 1, 3]))
    return Call(f"avg_pool{rank}d", (_image(rng, rank, dtype, ties=False),), (), window)


def _norm(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    window = {k: v for k, v in _window(rng, rank, dilated=False).items() if k != "padding"}
    order = float(rng.choice([1.0, 2.0, 2.0, 3.0, np.inf]))
    x = _image(rng, rank, dtype, ties=False)
    return Call(f"lp_pool{rank}d", (np.abs(x) if order == 3.0 else x,), (order,), window)


def _adaptive(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    """More windows than pixels and none at all among them; now and then a size too many or a negative one."""
    sizes = _per_axis(rng, rank, 0 if rng.random() < 0.1 else 1, 8)
    if rank > 1 and isinstance(sizes, tuple) and rng.random() < 0.3:
        sizes = (None, *sizes[1:])
    bad = rng.random()
    sizes = (2,) * (rank + 1) if bad < 0.04 else -1 if bad < 0.08 else sizes
    if rng.random() < 0.5:
        return Call(f"adaptive_avg_pool{rank}d", (_image(rng, rank, dtype, ties=False),), (sizes,), {})
    return Call(f"adaptive_max_pool{rank}d", (_image(rng, rank, dtype, ties=True),), (sizes,), {"return_indices": True})


def _fractional(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    rank = max(rank, 2)
    x = _image(rng, rank, dtype, ties=True)
    keywords: dict[str, Any] = {"kernel_size": _per_axis(rng, rank, 1, 3), "return_indices": True}
    if rng.random() < 0.5:
        keywords["output_size"] = _per_axis(rng, rank, 1, 4)
    else:
        ratio = float(rng.uniform(0.3, 0.9))
        keywords["output_ratio"] = ratio if rng.random() < 0.1 else (ratio,) * rank
    images = x.shape[0] if x.ndim == rank + 2 else 1
    keywords["_random_samples"] = rng.uniform(size=(images, x.shape[-rank - 1], rank)).astype(dtype)
    return Call(f"fractional_max_pool{rank}d", (x,), (), keywords)


def _columns(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    """unfold, and fold of as many columns as such an image has, or now and then one more."""
    kernel, stride, dilation = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(3))
    padding = tuple(int(n) for n in rng.integers(0, 3, 2))
    window: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "dilation": dilation, "padding": padding}
    if rng.random() < 0.5:
        return Call("unfold", (_image(rng, 2, dtype, ties=False),), (), window)
    size = tuple(int(n) for n in rng.integers(3, 9, 2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    outs = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, padding, reach, stride, strict=True)]
    count = max(outs[0], 0) * max(outs[1], 0) + int(rng.random() < 0.1)
    lead = (int(rng.integers(1, 3)),) if rng.random() < 0.7 else ()
    x = rng.normal(size=(*lead, int(rng.integers(1, 4)) * kernel[0] * kernel[1], count)).astype(dtype)
    return Call("fold", (x,), (size,), window)


def _unpool(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    """Places of their own for all values: of two with one place PyTorch keeps whichever thread wrote last."""
    x = _image(rng, rank, dtype, ties=True)
    kernel, stride, padding = (tuple(int(n) for n in rng.integers(low, high, rank)) for low, high in ((1, 4), (1, 4), (0, 2)))
    window: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "padding": padding}
    padding = tuple(
        p if (n - 1) * s + k - 2 * p > 1 else 0 for n, s, k, p in zip(x.shape[-rank:], stride, kernel, padding, strict=True)
    )
    window["padding"] = padding
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[-rank:], stride, kernel, padding, strict=True)]
    out = [max(int(n + d), 1) for n, d in zip(default, rng.integers(-1, 2, rank), strict=True)] if rng.random() < 0.4 else default
    if out is not default:
        window["output_size"] = out
    plane, count = int(np.prod(np.maximum(out, 0))), int(np.prod(x.shape[-rank:]))
    planes = int(np.prod(x.shape[:-rank]))
    limit = plane + int(rng.random() < 0.05) * 3
    rows = [rng.permutation(max(limit, count))[:count] for _ in range(planes)]
    indices = np.array(rows, np.int64).reshape(x.shape)
    return Call(f"max_unpool{rank}d", (x, indices), (), window)


def _conv(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    groups = int(rng.choice([1, 1, 2, 3]))
    inner, outer = int(rng.integers(1, 3)), int(rng.integers(1, 3)) * groups + int(rng.random() < 0.05)
    x = _image(rng, rank, dtype, ties=False, channels=inner * groups)
    w = rng.normal(size=(outer, inner + int(rng.random() < 0.03), *rng.integers(1, 4, rank))).astype(dtype)
    keywords: dict[str, Any] = {"groups": groups}
    if rng.random() < 0.5:
        keywords["stride"] = _per_axis(rng, rank, 1, 3)
    if rng.random() < 0.6:
        keywords["padding"] = str(rng.choice(["same", "valid"])) if rng.random() < 0.3 else _per_axis(rng, rank, 0, 3)
    if rng.random() < 0.4:
        keywords["dilation"] = _per_axis(rng, rank, 1, 3)
    return Call(f"conv{rank}d", _with_bias(rng, x, w, outer), (), keywords)


def _transpose(rng: np.random.Generator, rank: int, dtype: str) -> Call:
    groups = int(rng.choice([1, 1, 2, 3]))
    inner, outer = int(rng.integers(1, 3)) * groups, int(rng.integers(1, 3))
    x = _image(rng, rank, dtype, ties=False, channels=inner)
    w = rng.normal(size=(inner, outer, *rng.integers(1, 4, rank))).astype(dtype)
    keywords: dict[str, Any] = {"groups": groups}
    if rng.random() < 0.6:
        keywords["stride"] = _per_axis(rng, rank, 1, 3)
    if rng.random() < 0.5:
        keywords["padding"] = _per_axis(rng, rank, 0, 2)
    if x.shape[0] and rng.random() < 0.4:  # with no image PyTorch forgets to check it
        keywords["output_padding"] = _per_axis(rng, rank, 0, 1)
    if rng.random() < 0.4:
        keywords["dilation"] = _per_axis(rng, rank, 1, 2)
    return Call(f"conv_transpose{rank}d", _with_bias(rng, x, w, outer * groups), (), keywords)


def _with_bias(rng: np.random.Generator, x: Any, w: Any, channels: int) -> tuple[Any, ...]:
    return (x, w, rng.normal(size=channels).astype(x.dtype)) if rng.random() < 0.5 else (x, w)
