"""jax.lax's window reductions and convolutions on NumPy arrays, by JAX 0.10's rules.

from astride.like import jax as lax
y = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

Arguments, order and defaults are jax.lax's. `precision` is checked and changes nothing on a CPU, `out_sharding` is None.
`computation` is `max`, `min` or `add` of this module, or its name. Differentiate with `astride.vjp`. Each function's numbers
and errors are those of the operator it names, under rules="jax".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose as _conv_transpose
from ..ops.max_pool import max_pool
from ..ops.min_pool import min_pool
from ..rules._arguments import row
from ._jax_dimensions import Windows, convolved, pads_of, parts_of, specs_of, windows_of
from ._jax_values import check_precision, preferred_name, refuse_sharding, start_of
from ._views import moved, shaped

__all__ = ["add", "conv_general_dilated", "conv_transpose", "max", "min", "reduce_window"]

CONV = "JAX 0.10, jax/_src/lax/convolution.py"
WINDOWS = "JAX 0.10, jax/_src/lax/windowed_reductions.py"


@dataclass(frozen=True, slots=True)
class Computation:
    """A binary operation that windows can be reduced by, by its name in jax.lax."""

    name: str
    of: Callable[[Any, Any], Any]

    def __call__(self, x: Any, y: Any) -> Any:
        """The operation itself, on two arrays."""
        return self.of(x, y)


max = Computation("max", np.maximum)
min = Computation("min", np.minimum)
add = Computation("add", np.add)
COMPUTATIONS = {computation.name: computation for computation in (max, min, add)}


def reduce_window(
    operand: Array,
    init_value: Any,
    computation: Any,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Max, min or sum of each window of an array of any rank.

    Shapes    operand (d0, d1, ...), a window, stride and pair of pads for each axis -> (o0, o1, ...)
    Numbers   as the operators max_pool, min_pool and, for add, avg_pool with total=True; bool has a maximum and a minimum
    Edges     init_value takes part once in every window. The identity may be of any type, any other value is of operand's:
              a Python number counts as 32 bits wide, or as 64 where operand is
    Gradient  see rules/jax.py. JAX has none, and it is refused here, from an init_value other than the identity, and of a
              maximum or minimum with dilated windows or negative pads; nor here of one along more than three axes
    Raises    ArgumentError: arguments of another length than operand.ndim, another computation, an init_value of another
              type, what the rules refuse
              UnsupportedError: a gradient JAX does not have
    Source    jax/_src/lax/windowed_reductions.py; tests/golden/semantics
    Example
    >>> import numpy as np
    >>> from astride.like import jax as lax
    >>> lax.reduce_window(np.arange(1.0, 7.0), -np.inf, lax.max, (3,), (2,), "SAME").tolist()
    [3.0, 5.0, 6.0]
    """
    x = as_array(operand, "operand")
    name = computation.name if isinstance(computation, Computation) else computation
    if not isinstance(name, str) or name not in COMPUTATIONS:
        raise ArgumentError(
            "there is no such computation",
            given={"computation": computation},
            required=f"one of {', '.join(COMPUTATIONS)} of astride.like.jax, or its name",
            hint='computation="max"',
        )
    start = start_of(init_value, name, x)
    w = windows_of(x, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    if tape.active():
        _refuse_gradient(name, start is None, w, init_value, window_dilation, padding)
    y = x
    for part in parts_of(w):
        y = _reduced(y, name, part)
    return y if start is None else np.asarray(COMPUTATIONS[name](y, start))


def _reduced(x: Array, name: str, w: Windows) -> Array:
    """By the operator of that name, along at most three axes."""
    arguments: dict[str, Any] = dict(
        kernel=w.window, stride=w.strides, padding=w.pads, dilation=w.dilation, base_dilation=w.base_dilation, rules="jax"
    )
    if name == "add":
        arguments["total"] = True
    op: Callable[..., Array] = {"max": max_pool, "min": min_pool, "add": avg_pool}[name]
    if w.layout is not None:
        return op(x, layout=w.layout, **arguments)
    order = (*w.others, *w.axes)
    lead = tuple(x.shape[a] for a in w.others)
    y = op(shaped(moved(x, order), (1, math.prod(lead), *(x.shape[a] for a in w.axes))), **arguments)
    return moved(shaped(y, (*lead, *y.shape[2:])), np.argsort(order).tolist())


def _refuse_gradient(name: str, neutral: bool, w: Windows, init_value: Any, window_dilation: Any, padding: Any) -> None:
    if not neutral:
        raise UnsupportedError(
            f"JAX has no gradient of windows that start from another value than the identity of {name}",
            operator="reduce_window",
            given={"init_value": init_value},
            because=WINDOWS,
            hint={"max": "-numpy.inf, or the integer type's least", "min": "numpy.inf, or its greatest", "add": "0"}[name],
        )
    if name != "add" and not w.differentiable:
        raise UnsupportedError(
            "JAX has no gradient of a maximum or minimum with dilated windows or negative pads",
            operator="reduce_window",
            given={"window_dilation": window_dilation, "padding": padding},
            because=WINDOWS,
            hint='astride.max_pool(rules="jax") has one',
        )
    if name != "add" and len(w.axes) > 3:
        raise UnsupportedError(
            "a maximum or minimum along more than three axes has no gradient here",
            operator="reduce_window",
            given={"axes": w.axes},
            required=f"at most 3: {len(w.axes)}",
            hint="one axis after another, where there are no ties",
        )


def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Convolution with dilated input or kernel, groups of features or of the batch, in any layout. See astride.conv.

    Integers wrap around, bools are "or" of "and"; neither has a gradient.

    dimension_numbers  None for ("NCHW", "OIHW", "NCHW") and its like, or three words, as ("NHWC", "HWIO", "NHWC"), or three
                       sequences of axes: batch and feature (out and in) first, then the spatial ones
    preferred_element_type  what the arrays become before they are multiplied and summed, and the result's type
    """
    check_precision(precision)
    refuse_sharding(out_sharding)
    x, w = as_array(lhs, "lhs", also_complex=True), as_array(rhs, "rhs", also_complex=True)
    rank = x.ndim - 2
    specs = specs_of(x, w, dimension_numbers)
    arguments = dict(
        stride=row(window_strides, "window_strides"),
        padding=pads_of(padding, rank),
        input_dilation=(1,) * rank if lhs_dilation is None else tuple(lhs_dilation),
        dilation=(1,) * rank if rhs_dilation is None else tuple(rhs_dilation),
        groups=feature_group_count,
        batch_groups=batch_group_count,
        preferred_dtype=preferred_name(preferred_element_type),
        rules="jax",
    )
    return convolved(conv, x, moved(w, specs[1]), specs, arguments)


def conv_transpose(
    lhs: Array,
    rhs: Array,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The kernel over the input spread by `strides`: not turned round unless `transpose_kernel`. See astride.conv_transpose.

    dimension_numbers  as conv_general_dilated's, None for ("NHC", "HIO", "NHC") and its like; with transpose_kernel the
                       kernel's I counts output features
    """
    check_precision(precision)
    x, w = as_array(lhs, "lhs", also_complex=True), as_array(rhs, "rhs", also_complex=True)
    rank = x.ndim - 2
    specs = specs_of(x, w, dimension_numbers, channels_last=True)
    # canonical transposed weights are (in, out, *kernel); by transpose_kernel JAX swaps the two
    outer, inner, *spatial = specs[1]
    order = (outer, inner, *spatial) if transpose_kernel else (inner, outer, *spatial)
    arguments = dict(
        stride=row(strides, "strides"),
        padding=pads_of(padding, rank),
        dilation=(1,) * rank if rhs_dilation is None else tuple(rhs_dilation),
        transpose_kernel=transpose_kernel,
        use_consistent_padding=use_consistent_padding,
        preferred_dtype=preferred_name(preferred_element_type),
        rules="jax",
    )
    return convolved(_conv_transpose, x, moved(w, order), specs, arguments)
