"""Caffe's Pooling, Convolution and Deconvolution layers as functions on NumPy arrays, with the layers' own fields.

y = caffe.pooling(x, pool="AVE", kernel_size=3, stride=2)
y = caffe.convolution(x, w, b, num_output=8, kernel_size=3, pad=1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import tape
from ..backends.protocol import Array, dtype_name
from ..errors import ArgumentError, AstrideError
from ..ops._run import as_array, make_plan, run
from ..ops.max_pool import plane_indices
from ..ops.stochastic_pool import given_uniforms, uniforms
from ..plan import ConvPlan
from ..plan.kinds import Reduce
from ..rules import caffe as rules
from ..rules._caffe_fields import POOLING

__all__ = ["convolution", "deconvolution", "pooling"]


def pooling(
    x: Array,
    *,
    pool: str = "MAX",
    kernel_size: int | None = None,
    kernel_h: int | None = None,
    kernel_w: int | None = None,
    stride: int | None = None,
    stride_h: int | None = None,
    stride_w: int | None = None,
    pad: int | None = None,
    pad_h: int | None = None,
    pad_w: int | None = None,
    global_pooling: bool = False,
    round_mode: str = "CEIL",
    phase: str = "TEST",
    uniform: Array | None = None,
    seed: int | None = None,
    return_mask: bool = False,
) -> Any:
    """Caffe's Pooling layer on x (N, C, H, W): MAX, AVE, or STOCHASTIC, which draws in phase TRAIN and averages in TEST.

    Shapes    y (N, C, ceil((H+2p-k)/s)+1, ...); mask like y, in x's dtype: the flat place of the maximum, -1 for none
    Numbers   float32, float64, as the operators max_pool, avg_pool and stochastic_pool under rules="caffe"
    Edges     stride defaults to 1, as in Caffe. `uniform` (like y, in (0, 1]) or `seed` gives STOCHASTIC its draws
    Gradient  as the operators'; where Caffe's mask is -1 and its backward writes before the plane, nothing flows here
    Raises    ArgumentError: what Caffe's set-up refuses (pad not below the kernel, kernel_h without kernel_w, ...);
              a mask of anything but MAX; draws missing. ArrayError: dtype or draws that do not fit
    Source    src/caffe/layers/pooling_layer.cpp, .cu; tests/golden/caffe/ops and stochastic
    Example
    >>> import numpy as np
    >>> from astride.like import caffe
    >>> caffe.pooling(np.ones((1, 1, 4, 4)), pool="AVE", kernel_size=3, stride=2, pad=1)[0, 0].round(2).tolist()
    [[0.44, 0.67, 0.33], [0.67, 1.0, 0.5], [0.33, 0.5, 0.25]]
    """
    x = as_array(x, "x")
    plan = make_plan(
        "pooling",
        "caffe",
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        pool=pool,
        kernel_size=kernel_size,
        kernel_h=kernel_h,
        kernel_w=kernel_w,
        stride=stride,
        stride_h=stride_h,
        stride_w=stride_w,
        pad=pad,
        pad_h=pad_h,
        pad_w=pad_w,
        global_pooling=global_pooling,
        round_mode=round_mode,
        phase=phase,
    )
    try:
        if return_mask and pool != "MAX":
            raise ArgumentError("only MAX has a mask", given={"pool": pool}, because=POOLING, hint="return_mask=False")
        draws = None
        if plan.reduce is Reduce.STOCHASTIC:
            if (uniform is None) == (seed is None):
                raise ArgumentError(
                    "training needs draws from one place", given={"uniform": uniform, "seed": seed}, hint="seed=0"
                )
            shape = (*x.shape[:2], *(axis.out for axis in plan.axes))
            draws = uniforms(shape, x.dtype, seed or 0) if uniform is None else given_uniforms(uniform)
    except AstrideError as error:
        raise error.within(operator="pooling", rules="caffe", given={"x": x})
    y, saved = run(plan, x, draws, save=return_mask, rules="caffe")
    if not return_mask:
        return y
    assert saved is not None
    return y, plane_indices(plan, saved).astype(x.dtype)


def convolution(x: Array, w: Array, b: Array | None = None, **fields: Any) -> Array:
    """Caffe's Convolution layer: w (num_output, C/group, *kernel), b (num_output,).

    Shapes    with `axis` a (default 1) x is (..., C at a, *size), axes before it are batch; y has num_output there
    Numbers   float32, float64; as astride.conv under rules="caffe"
    Edges     zeros outside; a kernel less than a stride too large still fits once (C's integer division)
    Gradient  as astride.conv
    Raises    ArgumentError: fields Caffe does not have or refuses; ArrayError: arrays that do not fit
    Source    src/caffe/layers/conv_layer.cpp, base_conv_layer.cpp; tests/golden/caffe/ops
    """
    return _convolve("convolution", rules.convolution, x, w, b, fields)


def deconvolution(x: Array, w: Array, b: Array | None = None, **fields: Any) -> Array:
    """Caffe's Deconvolution layer: w (C, num_output/group, *kernel), b (num_output,); stride*(n-1) + reach - 2*pad.

    Shapes    as convolution
    Numbers   float32, float64; as astride.conv_transpose under rules="caffe"
    Edges     what falls outside the output is dropped
    Gradient  as astride.conv_transpose
    Raises    ArgumentError: fields Caffe does not have or refuses; ArrayError: arrays that do not fit
    Source    src/caffe/layers/deconv_layer.cpp; tests/golden/caffe/ops
    """
    return _convolve("deconvolution", rules.deconvolution, x, w, b, fields)


def _convolve(name: str, rule: Callable[..., ConvPlan], x: Any, w: Any, b: Any, fields: dict[str, Any]) -> Array:
    x, w = as_array(x, "x"), as_array(w, "w")
    b = None if b is None else as_array(b, "b")
    fields = dict(fields)
    axis = fields.pop("axis", 1)
    fields.pop("force_nd_im2col", None)  # chooses Caffe's code path, not the result
    bias_term = fields.pop("bias_term", b is not None)
    try:
        if bias_term != (b is not None):
            raise ArgumentError(
                "bias_term and b disagree", given={"bias_term": bias_term, "b": b}, hint=f"bias_term={b is not None}"
            )
        axis = axis + x.ndim if axis < 0 else axis
        if not 0 <= axis < x.ndim - 1:
            raise ArgumentError(
                "axis leaves no spatial axes", given={"axis": axis, "x": x}, required=f"0 <= axis < {x.ndim - 1}", hint="axis=1"
            )
        if "num_output" not in fields:
            outs = w.shape[:1] if name == "convolution" else w.shape[1:2]
            fields["num_output"] = math.prod(outs) * (1 if name == "convolution" else fields.get("group", 1))
        before, after = x.shape[:axis], x.shape[axis:]
        plan = rule((math.prod(before), *after), x.dtype.name, **_known(rule, fields))
    except AstrideError as error:
        raise error.within(operator=name, rules="caffe", given={"x": x, "w": w})
    shape = x.shape
    flat = x if axis == 1 else tape.view(x, lambda a: a.reshape(math.prod(before), *after), lambda g: g.reshape(shape))
    y, _ = run(plan, flat, w, b, rules="caffe")
    if axis == 1:
        return y
    inner = y.shape
    return tape.view(y, lambda a: a.reshape(*before, *inner[1:]), lambda g: g.reshape(inner))


def _known(rule: Callable[..., Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, if Caffe has them all."""
    import inspect

    known = [p.name for p in inspect.signature(rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise ArgumentError(
            f"there is no field {unknown[0]!r}",
            given={name: fields[name] for name in unknown},
            required=f"one of {', '.join([*known, 'axis', 'bias_term', 'force_nd_im2col'])}",
            because="Caffe, message ConvolutionParameter",
        )
    return fields
