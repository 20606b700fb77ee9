"""The dense operators for `backend="webgpu"`: NumPy arrays up, a recipe, NumPy arrays down. Gradients begin from the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArrayError, UnsupportedError
from ...plan import Plan, Shape
from ...plan.dense import ElementwisePlan, MatmulPlan, SoftmaxLossPlan, SoftmaxPlan
from ...plan.norms import BroadcastPlan, LrnPlan
from ...plan.reduce import ReducePlan
from ..protocol import Array, Arrays, Kernel, Saved
from . import dense_recipe as recipes
from . import host
from .commands import CommandBuffer
from .device import Device
from .recipe import MOST_TERMS, Recipe, encode


def compute(recipe: Recipe, given: Mapping[str, Array | None], results: Mapping[str, Shape]) -> dict[str, Array]:
    """Run a recipe on the shared device: `given` arrays up, `results` down."""

    def work(device: Device, commands: CommandBuffer) -> dict[str, Any]:
        tensors = {name: device.tensor(array) for name, array in given.items() if array is not None}
        made = {name: device.empty(shape) for name, shape in results.items()}
        encode(recipe, commands, {**tensors, **made})
        return made

    return {name: tensor.numpy() for name, tensor in host.run(work).items()}


def declines(plan: Plan) -> str | None:
    """Why this backend does not compute a dense plan, here and now; None if it does."""
    return refuses(plan) or host.unavailable()


def refuses(plan: Plan) -> str | None:
    """Why no device computes a dense plan; None if one does."""
    if plan.dtype != "float32":
        return f"WGSL has no {plan.dtype}"
    if isinstance(plan, LrnPlan) and (plan.before + plan.after + 1) ** len(plan.axes) > MOST_TERMS:
        return f"a window of more than {MOST_TERMS} places"
    return None


def check_classes(plan: SoftmaxPlan | SoftmaxLossPlan, x: Shape) -> None:
    """Raise UnsupportedError where a row is longer than an invocation may loop."""
    if x[plan.axis] > MOST_TERMS:
        raise UnsupportedError(
            "a softmax of so many classes has no kernel on a device", required=f"classes <= {MOST_TERMS}: {x[plan.axis]}"
        )


def _matmul(plan: MatmulPlan, x: Array, w: Array, b: Array | None, y: Shape) -> Array:
    return compute(recipes.matmul(plan, x.shape, recipes.epilogue(None, b is not None)), {"x": x, "w": w, "b": b}, {"y": y})["y"]


def _matmul_back(plan: MatmulPlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    x, w = saved.x, saved.w
    assert x is not None and w is not None
    parts = (
        (recipes.matmul_input_gradient(plan, x.shape), {"dy": dy, "w": w}, {"dx": x.shape}),
        (recipes.matmul_weights_gradient(plan, x.shape), {"x": x, "dy": dy}, {"dw": w.shape}),
        (recipes.matmul_bias_gradient(plan, x.shape), {"dy": dy}, {"db": (plan.columns,)}),
    )
    return _wanted(parts, want)


def _elementwise(plan: ElementwisePlan, x: Array, z: Array | None, y: Shape) -> Array:
    return compute(recipes.elementwise(plan, x.shape), {"x": x, "z": z}, {"y": y})["y"]


def _elementwise_back(plan: ElementwisePlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    x, z = saved.x, saved.extra["z"]
    assert x is not None
    given = {"dy": dy, "x": x, "z": z}
    return _wanted(
        tuple((recipes.elementwise_gradient(plan, x.shape, i), given, {n: x.shape}) for i, n in enumerate(("dx", "dz"))), want
    )


def _broadcast(plan: BroadcastPlan, x: Array, z: Array, b: Array | None, y: Shape) -> Array:
    return compute(recipes.broadcast(plan, x.shape, z.shape, b is not None), {"x": x, "z": z, "b": b}, {"y": y})["y"]


def _broadcast_back(plan: BroadcastPlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    x, z = saved.x, saved.extra["z"]
    assert x is not None
    given = {"dy": dy, "x": x, "z": z}
    small = recipes.broadcast_small_gradient
    parts = (
        (recipes.broadcast_gradient(plan, x.shape, z.shape), given, {"dx": x.shape}),
        (small(plan, x.shape, z.shape), given, {"dz": z.shape}),
        (small(plan, x.shape, z.shape, bias=True), given, {"db": z.shape}),
    )
    return _wanted(parts, want)


def _softmax(plan: SoftmaxPlan, x: Array, y: Shape) -> Array:
    check_classes(plan, x.shape)
    return compute(recipes.softmax(plan, x.shape), {"x": x}, {"y": y})["y"]


def _softmax_back(plan: SoftmaxPlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    y = saved.extra["y"]
    return _wanted(((recipes.softmax_gradient(plan, y.shape), {"dy": dy, "y": y}, {"dx": y.shape}),), want)


def _reduce(plan: ReducePlan, x: Array, y: Shape) -> Array:
    return compute(recipes.reduce(plan, x.shape), {"x": x}, {"y": y})["y"]


def _reduce_back(plan: ReducePlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    x = saved.x
    assert x is not None
    return _wanted(((recipes.reduce_gradient(plan, x.shape), {"dy": dy, "x": x}, {"dx": x.shape}),), want)


def _lrn(plan: LrnPlan, x: Array, y: Shape) -> Array:
    return compute(recipes.lrn(plan, x.shape), {"x": x}, {"base": x.shape, "y": y})["y"]


def _lrn_back(plan: LrnPlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    x = saved.x
    assert x is not None
    both = recipes.lrn(plan, x.shape).then(recipes.lrn_gradient(plan, x.shape))
    if not want[0]:
        return (None,)
    return (compute(both, {"x": x, "dy": dy}, {"base": x.shape, "y": x.shape, "dx": x.shape})["dx"],)


Part = tuple[Recipe, Mapping[str, Array | None], Mapping[str, Shape]]


def _wanted(parts: Sequence[Part], want: Sequence[bool]) -> Arrays:
    """Each gradient that is wanted, by its own recipe."""
    found: list[Array | None] = []
    for (recipe, given, result), wanted in zip(parts, want, strict=False):
        bound = {name for step in recipe.steps for name in step.inputs}
        used = {name: array for name, array in given.items() if name in bound}
        found.append(compute(recipe, used, result).popitem()[1] if wanted else None)
    return tuple(found)


def _kernel(one: Any, back: Any, keeps_y: bool = False) -> Kernel:
    """A kernel of these two functions; x, w, z are kept, and y where the gradient reads it."""

    def forward(plan: Any, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
        given = (*arrays, *[None] * (len(plan.roles) - len(arrays)))
        ready = [None if a is None else np.ascontiguousarray(a) for a in given]
        out[...] = one(plan, *ready, out.shape)
        if not save:
            return out, None
        x, second = given[0], given[1] if len(given) > 1 else None
        extra = {"z": second} | ({"y": out} if keeps_y else {})
        shapes = tuple(None if a is None else a.shape for a in given)
        return out, Saved(shapes, x=x, w=second if isinstance(plan, MatmulPlan) else None, extra=extra)

    def backward(plan: Any, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
        found: Arrays = back(plan, dy, saved, want)
        return found

    return Kernel("wgsl", forward, backward, declines, numpy=False)


def loss_forward(plan: SoftmaxLossPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The loss; with `save`, `extra` holds the probabilities, of x's shape."""
    x, labels, gain = (*arrays, None)[:3]
    assert x is not None and labels is not None
    if gain is not None:
        raise UnsupportedError("a loss with a gain has no kernel on a device", hint='backend="auto"')
    check_classes(plan, x.shape)
    named = checked_labels(plan, labels, x.shape[plan.axis])
    results: dict[str, Shape] = {"p": x.shape, "y": (), "counted": (1,)}
    found = compute(recipes.loss(plan, x.shape), {"x": np.ascontiguousarray(x), "labels": named}, results)
    out[...] = found["y"]
    extra = {"p": found["p"], "labels": named, "counted": found["counted"]}
    return out, Saved((x.shape, labels.shape, None), extra=extra) if save else None


def loss_backward(plan: SoftmaxLossPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradient of x. Labels have none."""
    p = saved.extra["p"]
    if not want[0]:
        return None, None, None
    given = {"dy": dy, "p": p, "labels": saved.extra["labels"], "counted": saved.extra["counted"]}
    return compute(recipes.loss_gradient(plan, p.shape), given, {"dx": p.shape})["dx"], None, None


def checked_labels(plan: SoftmaxLossPlan, labels: Array, classes: int) -> Array:
    """As int32. Raises ArrayError: a label that counts and names no class."""
    counted = np.ones(labels.shape, bool) if plan.ignore_label is None else labels != plan.ignore_label
    bad = labels[counted & ((labels < 0) | (labels >= classes))]
    if bad.size:
        raise ArrayError(
            "a label names no class", given={"label": int(bad.flat[0])}, required=f"0 <= label < {classes}: {int(bad.flat[0])}"
        )
    # what an ignored label is beyond int32 does not matter, only that it is ignored
    safe = np.where(counted, labels, plan.ignore_label if plan.ignore_label is not None else 0)
    return safe.astype(np.int32)


KERNELS: dict[str, tuple[Kernel, ...]] = {
    "broadcast": (_kernel(_broadcast, _broadcast_back),),
    "elementwise": (_kernel(_elementwise, _elementwise_back),),
    "lrn": (_kernel(_lrn, _lrn_back),),
    "matmul": (_kernel(_matmul, _matmul_back),),
    "reduce": (_kernel(_reduce, _reduce_back),),
    "softmax": (_kernel(_softmax, _softmax_back, keeps_y=True),),
    "softmax_loss": (Kernel("wgsl", loss_forward, loss_backward, declines, numpy=False),),
}
"""Operators of whole arrays, one kernel each."""

__all__ = ["KERNELS", "check_classes", "checked_labels", "compute", "refuses"]
