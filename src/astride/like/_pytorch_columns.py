"""torch.nn.functional's fold and unfold. Part of like.pytorch, which exports them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.fold import fold as fold_columns
from ..ops.unfold import unfold as unfold_windows
from ._pytorch_nothing import refuse_no_channels
from ._unbatched import batched_one, one_or_all


def unfold(input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """Windows of (N, C, H, W) or (C, H, W) as columns (N, C * taps, L); of bool and complex too. See astride.unfold."""

    refuse_no_channels("unfold", as_array(input, "input", also_complex=True), 2)

    def compute(x: Array) -> Array:
        if x.dtype == np.bool_:
            return np.asarray(unfold(x.astype(np.float32), kernel_size, dilation, padding, stride) != 0)
        if x.dtype.kind == "c":
            return _joined(unfold(_parted(x), kernel_size, dilation, padding, stride))
        y = unfold_windows(
            x,
            kernel=one_or_all(kernel_size),
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            dilation=one_or_all(dilation),
            rules="pytorch",
        )
        shape = y.shape
        return tape.view(y, lambda a: a.reshape(*shape[:2], math.prod(shape[2:])), lambda g: g.reshape(shape))

    return batched_one(2, input, compute)


def fold(input: Array, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """Columns (N, C * taps, L) or (C * taps, L) summed into (N, C, H, W) or (C, H, W), complex too; of bool their "or".

    See astride.fold.
    """
    x = as_array(input, "input", also_complex=True)
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise ArgumentError(
            "input has the wrong rank, or no columns",
            given={"input": x},
            required=f"input.ndim is 2 (unbatched) or 3: {x.ndim}",
            because="PyTorch 2.13, aten/src/ATen/native/Col2Im.cpp",
        )

    def compute(columns: Array) -> Array:
        if columns.dtype == np.bool_:  # a pixel that any of its taps sets
            return np.asarray(fold(columns.astype(np.float32), output_size, kernel_size, dilation, padding, stride) != 0)
        if columns.dtype.kind == "c":
            return _joined(fold(_parted(columns), output_size, kernel_size, dilation, padding, stride))
        size = one_or_all(output_size)
        return fold_columns(
            columns,
            output_size=size if isinstance(size, tuple) else (size, size),
            kernel=_both(kernel_size),
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            dilation=one_or_all(dilation),
            rules="pytorch",
        )

    return batched_one(1, x, compute)


def _parted(x: Array) -> Array:
    """Complex channels as twice as many real ones, the real parts first."""
    return tape.view(x, _apart, _together)


def _joined(y: Array) -> Array:
    """The inverse of `_parted`."""
    return tape.view(y, _together, _apart)


def _apart(x: Array) -> Array:
    return np.concatenate((x.real, x.imag), axis=1)


def _together(y: Array) -> Array:
    half = y.shape[1] // 2
    z: Array = y[:, :half] + 1j * y[:, half:]
    return z


def _both(value: Any) -> Any:
    """Height and width."""
    value = one_or_all(value)
    return value if isinstance(value, tuple) else (value, value)
