"""torch.nn.functional's poolings that are told the size of their output. Part of like.pytorch, which exports them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops._run import plan as plan_of
from ..ops.adaptive_pool import adaptive_pool
from ..ops.fractional_pool import fractional_pool
from ._pytorch_nothing import averaged, nothing_of, refuse_no_channels
from ._unbatched import batched, batched_one
from ._views import shaped


def adaptive_avg_pool1d(input: Array, output_size: Any) -> Array:
    """Means over (N, C, L) or (C, L) that give output_size values. See astride.adaptive_pool."""
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Array, output_size: Any) -> Array:
    """Means over (N, C, H, W) or (C, H, W); None in output_size keeps that axis. See astride.adaptive_pool."""
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Array, output_size: Any) -> Array:
    """Means over (N, C, D, H, W) or (C, D, H, W); None in output_size keeps that axis. See astride.adaptive_pool."""
    return _adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool1d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over (N, C, L) or (C, L) that give output_size values; indices flat in the plane. See astride.adaptive_pool."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over (N, C, H, W) or (C, H, W); indices flat in the plane. See astride.adaptive_pool."""
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over (N, C, D, H, W) or (C, D, H, W); indices flat in the volume. See astride.adaptive_pool."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


def _adaptive_avg_pool(rank: int, input: Any, output_size: Any) -> Array:
    x = as_array(input, "input")
    sizes = _sizes(output_size)
    every = sizes if isinstance(sizes, tuple) else (sizes,) * rank
    whole = len(every) == rank and all(n is None or isinstance(n, int | np.integer) for n in every) and sizes is not None
    bare = averaged(rank, x, every) if whole and x.ndim > rank - 1 else None
    if bare is not None:
        return bare

    def compute(x: Array) -> Array:
        return adaptive_pool(x, output_size=sizes, rules="pytorch")  # type: ignore[no-any-return]

    if rank > 1 and whole and x.ndim not in (rank + 1, rank + 2) and x.ndim >= rank:
        return _mean(rank, x, every, compute)
    return batched_one(rank, x, compute)


def _mean(rank: int, x: Array, sizes: tuple[Any, ...], compute: Callable[[Array], Array]) -> Array:
    """An average to one value is a mean over the last axes, of an array of any rank."""
    lead, spatial = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    if any((n if o is None else o) != 1 for n, o in zip(spatial, sizes, strict=True)):
        return batched_one(rank, x, compute)
    y = compute(shaped(x, (1, math.prod(lead), *spatial)))
    return shaped(y, (*lead, *y.shape[2:]))


def _adaptive_max_pool(rank: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    x = as_array(input, "input")
    refuse_no_channels("adaptive_pool", x, rank)
    if x.ndim == rank + 1 and not x.shape[0] and x.dtype.kind not in "iub":  # unbatched, of no channels
        lead = adaptive_pool(
            np.zeros((1, 1, *x.shape[1:]), x.dtype), output_size=_sizes(output_size), reduce="max", rules="pytorch"
        )
        y = nothing_of("adaptive_pool", (x,), (0, *lead.shape[2:]))
        return (y, np.zeros(y.shape, np.int64)) if return_indices else y

    def compute(x: Array) -> Any:
        return adaptive_pool(x, output_size=_sizes(output_size), reduce="max", return_indices=return_indices, rules="pytorch")

    return batched(rank, input, compute)


def fractional_max_pool2d(
    input: Array,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> Any:
    """Maxima over (N, C, H, W) or (C, H, W) at random places; samples (N, C, 2), the width's first; None draws them.

    See astride.fractional_pool.
    """
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Array,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> Any:
    """Maxima over (N, C, D, H, W) or (C, D, H, W) at random places; samples (N, C, 3); None draws them.

    See astride.fractional_pool.
    """
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def _fractional_max_pool(
    rank: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool, samples: Any
) -> Any:
    if rank == 2 and isinstance(output_ratio, float | int):
        raise ArgumentError(
            "output_ratio needs one value per axis in two dimensions",
            given={"output_ratio": output_ratio},
            because="PyTorch 2.13, torch/nn/functional.py fractional_max_pool2d_with_indices",
            hint=f"output_ratio={(output_ratio,) * rank}",
        )
    drawn = None if samples is None else as_array(samples, "_random_samples")
    image = as_array(input, "input")
    refuse_no_channels("fractional_pool", image, rank)

    def compute(x: Array) -> Any:
        if 0 in x.shape[:2]:  # of nothing, whatever its dtype
            sized = dict(kernel=_sizes(kernel_size), output_size=_sizes(output_size), output_ratio=_sizes(output_ratio))
            out = plan_of("fractional_pool", (1, 1, *x.shape[2:]), rules="pytorch", **sized).out
            y = nothing_of("fractional_pool", (x,), (*x.shape[:2], *out))
            return (y, np.zeros(y.shape, np.int64)) if return_indices else y
        return fractional_pool(
            x,
            kernel=_sizes(kernel_size),
            output_size=_sizes(output_size),
            output_ratio=_sizes(output_ratio),
            samples=drawn if drawn is None else drawn[: x.shape[0]],
            seed=secrets.randbits(64) if samples is None else None,
            return_indices=return_indices,
            rules="pytorch",
        )

    return batched(rank, image, compute)


def _sizes(output_size: Any) -> Any:
    """Unlike those of other windows, one size in a list does not stand for every axis."""
    return tuple(output_size) if isinstance(output_size, list | tuple) else output_size
