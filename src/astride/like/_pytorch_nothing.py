"""What PyTorch makes of arrays without elements. Part of like.pytorch.

A convolution of no images, or of images without channels, is not computed at all (ConvBackend::Empty): its result has the
shape that its other arguments give, whatever the dtype. Adaptive and fractional pooling and unpooling return before they look
at the dtype. What holds of nothing else is kept here, out of the rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array, Arrays
from ..errors import ArgumentError, ArrayError
from ..plan.base import axis_names
from ..rules._arguments import per_axis, symmetric, whole
from ..rules._sizes import reach
from ..rules._weights import transposed_weights_of, weights_of
from ..rules.pytorch import CONV, POOL, conv_pads, filters_of
from ._unbatched import one_or_all


def nothing_of(op: str, inputs: Sequence[Array | None], shape: tuple[int, ...], *, fill: float = 0) -> Array:
    """A result that no element of the inputs reaches: their gradients are zeros, and those of the gradients."""
    given = [a for a in inputs if a is not None]
    y = np.full(shape, fill, given[0].dtype.newbyteorder("="))

    def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
        return tuple(np.zeros_like(a) if wanted else None for a, wanted in zip(given, want, strict=True))

    def twice(gradients: Arrays, cotangents: Arrays, want: tuple[bool, ...]) -> tuple[Arrays, Arrays]:
        return (np.zeros_like(y),), pull(gradients, want)

    tape.record(tape.Node(op, tuple(given), (y,), pull, twice))
    return y


def without_channels(x: Array, rank: int) -> bool:
    """Whether the *second* axis of PyTorch's own array, or a later one, is empty: unbatched channels may be."""
    return 0 in x.shape[1:] and x.ndim in (rank + 1, rank + 2)


def refuse_no_channels(op: str, x: Array, rank: int) -> None:
    """Every axis but the first needs something on it."""
    if without_channels(x, rank):
        raise ArgumentError(
            "x has an empty axis besides the batch's",
            given={"input": x},
            required=f"every size of {x.shape[1:]} >= 1",
            because=POOL,
            operator=op,
            rules="pytorch",
        )


def convolved(
    x: Array,
    w: Array,
    b: Array | None,
    *,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    output_padding: Any = 0,
    transposed: bool = False,
) -> Array | None:
    """The result for no images or, of a convolution, no channels; None where there is something to compute."""
    if not 3 <= x.ndim <= 5 or (x.shape[0] and (transposed or x.shape[1])):
        return None
    rank, (images, channels, *sizes) = x.ndim - 2, x.shape
    s, d = (per_axis(one_or_all(v), rank, name) for v, name in ((stride, "stride"), (dilation, "dilation")))
    kernel, filters = (transposed_weights_of if transposed else weights_of)(w.shape, rank, channels, groups)
    filters_of(w.shape, whole(groups, "groups", 1))
    reaches = [reach(k, di) for k, di in zip(kernel, d, strict=True)]
    if transposed:
        pads = tuple((p, p) for p in symmetric(one_or_all(padding), rank, "PyTorch"))
        extra = per_axis(one_or_all(output_padding), rank, "output_padding", 0)
        free = zip(sizes, s, reaches, pads, extra, strict=True)
        outs = [(n - 1) * si + r - lo - hi + more for n, si, r, (lo, hi), more in free]
    else:
        pads = conv_pads(one_or_all(padding), kernel, s, d, rank)
        room = [n + lo + hi - r for n, (lo, hi), r in zip(sizes, pads, reaches, strict=True)]
        outs = [free // si + 1 if free >= 0 else -1 for free, si in zip(room, s, strict=True)]
    for i, out in enumerate(outs):
        if out < 0:
            raise ArgumentError(
                "the kernel is larger than the padded input",
                given={"kernel": kernel, "padding": padding},
                required=f"windows, on axis {axis_names(rank)[i]}: {reaches[i]} pixels of {sizes[i]} + {sum(pads[i])}",
                because=CONV,
            )
    if channels and not w.size:
        raise ArgumentError("w has no elements", given={"weight": w}, required=f"every size of {w.shape} >= 1", because=CONV)
    if b is not None and x.dtype.name in ("uint16", "uint32", "uint64"):
        raise ArgumentError("PyTorch adds nothing to such integers", given={"bias": b}, because=CONV, hint="bias=None")
    fitting = b is None or (b.shape == (filters,) and b.dtype == x.dtype)
    if w.dtype != x.dtype or not fitting:
        raise ArrayError(
            "w or b does not fit x; nothing is promoted",
            given={"input": x, "weight": w} | ({} if b is None else {"bias": b}),
            required=f"one dtype, and a bias of shape {(filters,)}",
        )
    return nothing_of("conv_transpose" if transposed else "conv", (x, w, b), (images, filters if channels else 0, *outs))


def averaged(rank: int, x: Array, size: tuple[int | None, ...]) -> Array | None:
    """An adaptive average without a value, of any dtype; None where the operator is to compute.

    Of an empty axis the average to one value is 0 / 0. In three dimensions the dtype is looked at first.
    """
    spatial = x.shape[x.ndim - rank :]
    outs = tuple(n if o is None else o for n, o in zip(spatial, size, strict=True))
    shape = (*x.shape[: x.ndim - rank], *outs)
    floating = x.dtype.kind not in "iub"
    if all(o == 1 for o in outs):
        bare = 0 in x.shape and floating
        return nothing_of("adaptive_pool", (x,), shape, fill=math.nan) if bare and x.ndim > rank else None
    if rank == 3:
        refuse_no_channels("adaptive_pool", x, rank)
    if math.prod(shape) or 0 in spatial or min(outs) < 0 or x.ndim not in (rank + 1, rank + 2) or (rank == 3 and not floating):
        return None
    return nothing_of("adaptive_pool", (x,), shape)
