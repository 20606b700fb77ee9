"""Max unpooling: values go where their indices say, zeros elsewhere; the gradient is read from there.

Where two values have one index the last in row-major order stays. That is the greatest of their numbers, so a first pass finds
for every place the greatest number of a value that wants it: an integer maximum, the same in whatever order it is taken. A
second pass, one invocation a place, fetches the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ArrayError
from ...plan import Shape, UnpoolPlan
from ...plan.kinds import IndexBase, Layout
from ..protocol import Array, Arrays, Kernel, Saved
from . import host
from .commands import CommandBuffer
from .device import Device
from .program import Program, flat_program
from .tensor import Tensor


def declines(plan: UnpoolPlan) -> str | None:
    """Why this backend does not take a plan, or None."""
    if plan.dtype not in ("float32", "float16"):
        return f"computes float32 and float16, not {plan.dtype}"
    return host.unavailable(("shader-f16",) if plan.dtype == "float16" else ())


@lru_cache
def claim() -> Program:
    """places -> owners: 1 + the greatest number of a value that goes to each place, 0 where none does."""
    return flat_program(
        "unpool_claim", [("places", "u32")], [("owners", "atomic<u32>")], "atomicMax(&owners[places[i]], i + 1u);"
    )


@lru_cache
def fetch(element: str) -> Program:
    """x (values in the order of their numbers), owners -> y."""
    body = f"let owner = owners[i];\ny[i] = {element}(0.0);\nif (owner != 0u) {{ y[i] = x[owner - 1u]; }}"
    return flat_program("unpool_fetch", [("x", element), ("owners", "u32")], [("y", element)], body)


@lru_cache
def gather(element: str) -> Program:
    """dy, places -> dx."""
    return flat_program("unpool_gradient", [("dy", element), ("places", "u32")], [("dx", element)], "dx[i] = dy[places[i]];")


def encode_forward(commands: CommandBuffer, x: Tensor, places: Tensor, shape: Shape) -> Tensor:
    """Encode moving x's values to their places (uint32, of x's shape) in a tensor of `shape`, row-major in both."""
    device = commands.device
    y, owners = device.empty(shape, x.dtype), device.empty(shape, "uint32")
    commands.clear(owners)
    commands.run(claim(), [places], [owners], places.size)
    commands.run(fetch(x.wgsl), [x, owners], [y], y.size)
    return y


def encode_backward(commands: CommandBuffer, dy: Tensor, places: Tensor) -> Tensor:
    """Encode reading dy at the places, in the places' shape."""
    dx = commands.device.empty(places.shape, dy.dtype)
    commands.run(gather(dy.wgsl), [dy, places], [dx], dx.size)
    return dx


def forward(plan: UnpoolPlan, x: Array, indices: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """On NumPy arrays: channels first on the device, whatever the layout, since that is the order in which the last one stays."""
    xv, yv = _first(x, plan), _first(out, plan)
    places = _places(plan, indices)
    for part in _parts(plan, xv.shape, yv.shape):

        def encode(device: Device, commands: CommandBuffer, part: slice = part) -> Tensor:
            here = _within(plan, places[part], part)
            return encode_forward(commands, device.tensor(np.ascontiguousarray(xv[part])), device.tensor(here), yv[part].shape)

        yv[part] = host.run(encode).numpy()
    return out, Saved(shapes=(x.shape, indices.shape), extra={"indices": indices}) if save else None


def backward(plan: UnpoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dx on NumPy arrays; `saved` may be any backend's."""
    shape = saved.shapes[0]
    assert shape is not None
    if not want[0]:
        return (None, None)
    dx = np.empty(shape, dy.dtype)
    dxv, dyv = _first(dx, plan), _first(dy, plan)
    places = _places(plan, saved.extra["indices"])
    for part in _parts(plan, dxv.shape, dyv.shape):

        def encode(device: Device, commands: CommandBuffer, part: slice = part) -> Tensor:
            here = _within(plan, places[part], part)
            return encode_backward(commands, device.tensor(np.ascontiguousarray(dyv[part])), device.tensor(here))

        dxv[part] = host.run(encode).numpy()
    return (dx, None)


def _first(array: Array, plan: UnpoolPlan) -> Array:
    """A view (N, C, *size)."""
    return array if plan.layout is Layout.CHANNELS_FIRST else np.moveaxis(array, -1, 1)


def _parts(plan: UnpoolPlan, x_shape: Shape, y_shape: Shape) -> list[slice]:
    """Runs of images that fit WebGPU's bindings; indices of a whole tensor may point anywhere, so there all go at once."""
    images = x_shape[0]
    step = images
    if plan.index_base is IndexBase.PLANE:
        step = host.images_at_once(images, 4 * math.prod(x_shape[1:]), 4 * math.prod(y_shape[1:]))
    return [slice(i, min(i + step, images)) for i in range(0, images, max(step, 1))]


def _places(plan: UnpoolPlan, indices: Array) -> NDArray[np.int64]:
    """Where each value goes, counted in the whole (N, C, *out). Raises ArrayError: an index outside its plane or tensor."""
    view = _first(indices, plan).astype(np.int64, copy=False)
    counted = math.prod(plan.counted)
    whole = plan.index_base is IndexBase.TENSOR
    limit = view.shape[0] * view.shape[1] * counted if whole else counted
    outside = np.argwhere((view < 0) | (view >= limit))
    if len(outside):
        first = tuple(int(i) for i in outside[0])
        raise ArrayError(
            "an index lies outside the output",
            given={"index": int(view[first]), "at": first},
            required=f"0 <= index < {limit}: {int(view[first])}",
            hint="an output size that the indices were taken from",
        )
    planes = np.arange(view.shape[0] * view.shape[1], dtype=np.int64).reshape(*view.shape[:2], *[1] * len(plan.size))
    plane, rest = np.divmod(view, counted) if whole else (planes, view)
    inner: Any = rest if plan.counted == plan.out else np.ravel_multi_index(np.unravel_index(rest, plan.counted), plan.out)
    return np.asarray(plane * plan.plane + inner, np.int64)


def _within(plan: UnpoolPlan, places: NDArray[np.int64], part: slice) -> NDArray[np.uint32]:
    """Places counted from a run's first image."""
    begin = part.start * places.shape[1] * plan.plane
    return np.ascontiguousarray(places - begin, np.uint32)


KERNELS = {"max_unpool": (Kernel("wgsl", forward, backward, declines, numpy=False),)}
