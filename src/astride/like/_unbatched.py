"""What PyTorch's functions take besides (N, C, *size): (C, *size), and lists of one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array


def batched(rank: int, input: Any, compute: Callable[[Array], Any]) -> Any:
    """Run on (N, C, *size); an unbatched input gets a batch axis and its results lose it."""
    x = as_array(input, "input", also_complex=True)  # which most operators refuse
    if x.ndim not in (rank + 1, rank + 2):
        raise ArgumentError(
            "input has the wrong rank",
            given={"input": x},
            required=f"input.ndim is {rank + 1} (unbatched) or {rank + 2}: {x.ndim}",
            because="PyTorch 2.13, torch.nn.functional",
        )
    if x.ndim == rank + 2:
        return compute(x)
    result = compute(tape.view(x, lambda a: a[None], lambda g: g[0]))
    if isinstance(result, tuple):
        return tuple(tape.view(y, lambda a: a[0], lambda g: g[None]) for y in result)
    return tape.view(result, lambda a: a[0], lambda g: g[None])


def batched_one(rank: int, input: Any, compute: Callable[[Array], Array]) -> Array:
    """`batched` for functions with one result."""
    y: Array = batched(rank, input, compute)
    return y


def one_or_all(value: Any) -> Any:
    """A one-element list stands for its element, an empty stride for none, as PyTorch expands them."""
    if isinstance(value, list | tuple):
        if not value:
            return None
        return value[0] if len(value) == 1 else tuple(value)
    return value
