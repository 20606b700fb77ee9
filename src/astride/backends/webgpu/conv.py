"""Convolution and the transposed one on a device: tensors in and out, and NumPy arrays for `backend="webgpu"`.

float32; float16 and bfloat16 arrays are widened on the way to the device and rounded once on the way back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ...plan import ConvPlan, Shape
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv_recipe, host
from .commands import CommandBuffer
from .conv_link import link
from .device import Device
from .product import PLAIN, Epilogue
from .recipe import Recipe, encode
from .tensor import Tensor

HALVES = ("float16", "bfloat16")
MOST_PLACE = 1 << 28
"""Positions and sizes of an axis, in i32 with room for their products with a kernel's places."""

recipes: Callable[..., Recipe] = lru_cache(maxsize=1024)(conv_recipe.forward)
back: Callable[..., Recipe] = lru_cache(maxsize=1024)(conv_recipe.input_gradient)
filters: Callable[..., Recipe] = lru_cache(maxsize=1024)(conv_recipe.weights_gradient)
biases: Callable[..., Recipe] = lru_cache(maxsize=1024)(conv_recipe.bias_gradient)


def refuses(plan: ConvPlan) -> str | None:
    """Why no device convolves by a plan; None if one does."""
    if plan.dtype not in ("float32", *HALVES):
        return f"WGSL has no {plan.dtype} to sum in" if not plan.whole else f"no kernels for {plan.dtype}"
    if plan.accumulate != "float32":
        return f"no kernels that sum in {plan.accumulate}"
    if plan.y_dtype not in ("", plan.dtype):
        return f"no kernels that turn {plan.dtype} into {plan.y_dtype}"
    for axis in plan.axes:
        if max(axis.stretched + abs(axis.pad_lo) + abs(axis.pad_hi), axis.reach, axis.stride * max(axis.out, 1)) > MOST_PLACE:
            return f"an axis counts further than {MOST_PLACE}"
    if conv_recipe.too_long(plan, link(plan, (plan.batch_groups, *(1,) * (len(plan.axes) + 1)))):
        return "an edge mode shows one pixel in too many places"
    return None


def declines(plan: ConvPlan) -> str | None:
    """Why this backend does not convolve by a plan, here and now; None if it does."""
    return refuses(plan) or host.unavailable()


def encode_forward(
    commands: CommandBuffer,
    plan: ConvPlan,
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    epilogue: Epilogue = PLAIN,
    *,
    w_last: bool = False,
) -> Tensor:
    """y, with the epilogue's activation; its bias is there where b is. `w_last`: weights are (O, *kernel, I / groups)."""
    y = commands.device.empty(plan.output_shape(x.shape, plan.weight_shape, None if b is None else b.shape))
    how = Epilogue(b is not None, epilogue.finish, epilogue.numbers)
    recipe = recipes(plan, x.shape, epilogue=how, w_last=w_last, adapter=commands.device.kind)
    encode(recipe, commands, {"x": x, "w": w, "y": y} | ({} if b is None else {"b": b}))
    return y


def encode_input_gradient(
    commands: CommandBuffer, plan: ConvPlan, dy: Tensor, w: Tensor, x: Shape, *, w_last: bool = False
) -> Tensor:
    """dx, of x's shape."""
    dx = commands.device.empty(x)
    encode(back(plan, x, w_last=w_last, adapter=commands.device.kind), commands, {"dy": dy, "w": w, "dx": dx})
    return dx


def encode_weights_gradient(commands: CommandBuffer, plan: ConvPlan, x: Tensor, dy: Tensor, w: Shape | None = None) -> Tensor:
    """dw, canonical as the plan's weights, or of another shape w whose last axis is the inputs'."""
    dw = commands.device.empty(plan.weight_shape if w is None else w)
    encode(filters(plan, x.shape, w_last=w is not None, adapter=commands.device.kind), commands, {"x": x, "dy": dy, "dw": dw})
    return dw


def encode_bias_gradient(commands: CommandBuffer, plan: ConvPlan, dy: Tensor) -> Tensor:
    """db (O,)."""
    db = commands.device.empty((plan.out_channels,))
    encode(biases(plan, dy.shape), commands, {"dy": dy, "db": db})
    return db


def forward(plan: ConvPlan, x: Array, w: Array, b: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The plan on NumPy arrays, in as many images at once as WebGPU binds."""
    for part in _parts(plan, x.shape, out.shape):

        def work(device: Device, commands: CommandBuffer, part: slice = part) -> Tensor:
            bias = None if b is None else device.tensor(_wide(b))
            return encode_forward(commands, plan, device.tensor(_wide(x[part])), device.tensor(_wide(w)), bias)

        with np.errstate(all="ignore"):
            out[part if plan.batch_groups == 1 else slice(None)] = host.run(work).numpy()
    if not save:
        return out, None
    return out, Saved(shapes=(x.shape, w.shape, None if b is None else b.shape), x=x, w=w)


def backward(plan: ConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradients of x, w and b; those of w and b are sums over the parts that images go up in."""
    x, w = saved.x, saved.w
    assert x is not None and w is not None
    wanted = (*want, *[False] * (3 - len(want)))
    dx = np.empty(x.shape, x.dtype) if wanted[0] else None
    sums = [np.zeros(shape, np.float32) for shape in (w.shape, (plan.out_channels,))]
    for part in _parts(plan, x.shape, dy.shape):
        found = _gradients(plan, x[part], w, dy[part] if plan.batch_groups == 1 else dy, wanted)
        with np.errstate(all="ignore"):
            if dx is not None:
                dx[part] = found[0]
            for total, share in zip(sums, found[1:], strict=True):
                if share is not None:
                    total += share
    with np.errstate(all="ignore"):
        dw, db = (s.astype(x.dtype, copy=False) if wants else None for s, wants in zip(sums, wanted[1:], strict=True))
    return dx, dw, db


def _gradients(plan: ConvPlan, x: Array, w: Array, dy: Array, want: Sequence[bool]) -> list[Array | None]:
    """Those of a run of images, in float32."""

    def work(device: Device, commands: CommandBuffer) -> list[Tensor | None]:
        up, g = device.tensor(_wide(x)), device.tensor(_wide(dy))
        return [
            encode_input_gradient(commands, plan, g, device.tensor(_wide(w)), up.shape) if want[0] else None,
            encode_weights_gradient(commands, plan, up, g) if want[1] else None,
            encode_bias_gradient(commands, plan, g) if want[2] else None,
        ]

    return [None if t is None else t.numpy() for t in host.run(work)]


def _wide(array: Array) -> Array:
    return np.asarray(array, np.float32)


def _parts(plan: ConvPlan, x: Shape, y: Shape) -> list[slice]:
    """Runs of images that fit WebGPU's bindings; one where there is none, and all where groups split the batch."""
    images = x[0]
    if plan.batch_groups > 1:
        return [slice(0, images)]
    step = host.images_at_once(images, 4 * math.prod(x[1:]), 4 * math.prod(y[1:]))
    return [slice(i, min(i + step, images)) for i in range(0, images, step)] or [slice(0, 0)]


KERNELS = dict.fromkeys(("conv", "conv_transpose"), (Kernel("wgsl", forward, backward, declines, numpy=False),))
"""One kernel serves both: a plan says which way its relation is read."""

__all__ = [
    "KERNELS",
    "encode_bias_gradient",
    "encode_forward",
    "encode_input_gradient",
    "encode_weights_gradient",
    "refuses",
]
