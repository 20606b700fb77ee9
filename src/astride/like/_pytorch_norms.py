"""torch.nn.functional's Lp pooling. Part of like.pytorch, which exports it by rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.lp_pool import lp_pool
from ..ops.max_pool import max_pool
from ..rules._arguments import per_axis
from ._unbatched import batched_one, one_or_all

LP = "PyTorch 2.13, torch/nn/functional.py lp_pool"


def norm_pool(rank: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Array:
    """(avg_pool(x^p) * taps)^(1/p) as PyTorch composes it, so that integers follow: a float p makes float32 of them, an int p
    raises them as they are, which int64 and bool alone can be averaged after. p = -inf is the least magnitude."""
    listed = isinstance(kernel_size, list | tuple)
    if listed and (len(kernel_size) != rank or (rank == 1 and not math.isinf(norm_type))):
        raise ArgumentError(
            "lp_pool takes its kernel unexpanded",
            given={"kernel_size": kernel_size},
            required="an int" if rank == 1 else f"an int, or {rank} of them: {len(kernel_size)}",
            because=LP,
            operator=f"lp_pool{rank}d",
            rules="pytorch",
            hint=f"kernel_size={kernel_size[0] if kernel_size else 2}",
        )
    window: dict[str, Any] = dict(kernel=one_or_all(kernel_size), stride=one_or_all(stride), ceil_mode=ceil_mode, rules="pytorch")
    x = as_array(input, "input")
    whole = x.dtype.kind in "iub"

    def compute(x: Array) -> Array:
        if np.ndim(norm_type) == 0 and norm_type == -math.inf and not (whole and rank == 1):
            return _negative(max_pool(_negative(_magnitude(x)), **window))
        if whole and isinstance(norm_type, float) and not math.isinf(norm_type):
            return lp_pool(x.astype(np.float32), p=norm_type, **window)
        if whole and isinstance(norm_type, int):
            return _of_whole_powers(x, norm_type, window)
        return lp_pool(x, p=norm_type, **window)

    return batched_one(rank, x, compute)


def _of_whole_powers(x: Array, p: int, window: dict[str, Any]) -> Array:
    """Powers of integers, their average rounded towards zero, and a root in float32."""
    if x.dtype.name not in ("int64", "bool") or p < 1:
        raise ArgumentError(
            "integers have no average of powers",
            given={"input": x, "norm_type": p},
            required=f"int64 or bool to a power of 1 or more: {x.dtype.name}, {p}",
            because=LP,
            operator="lp_pool",
            rules="pytorch",
            hint=f"norm_type={float(p)}",
        )
    mean = avg_pool(x.astype(np.int64) ** p, **window)
    taps = math.prod(per_axis(window["kernel"], x.ndim - 2, "kernel"))
    with np.errstate(invalid="ignore"):  # the root of a negative sum is NaN
        return np.asarray((mean * taps).astype(np.float32) ** np.float32(1 / p))


def _magnitude(x: Array) -> Array:
    """|x|, as x times its sign, which is linear."""
    if x.dtype.kind in "iub":
        return np.abs(x)
    sign = np.sign(x)
    return tape.view(x, lambda a: a * sign, lambda g: g * sign)


def _negative(x: Array) -> Array:
    return tape.view(x, np.negative, np.negative) if x.dtype.kind != "b" else x
