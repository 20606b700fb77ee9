"""How each type of layer runs on a device: a line in the table is all it takes.

Every function encodes; nothing waits. Labels alone are read on the host, where wrong ones are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends.webgpu import conv, dense, dense_recipe, pooling
from ..backends.webgpu.device import BINDING_MAX
from ..backends.webgpu.recipe import encode
from ..backends.webgpu.tensor import Tensor
from ..errors import UnsupportedError
from ..layers import Layer
from ..layers._along import AlongAxes
from ..layers._unary import Unary
from ..layers.accuracy import Accuracy
from ..layers.convolution import Convolution
from ..layers.dropout import Dropout
from ..layers.eltwise import Eltwise
from ..layers.inner_product import InnerProduct
from ..layers.layer import canonical_axis, check_classes, integers
from ..layers.lrn import LRN
from ..layers.pooling import Pooling
from ..layers.softmax import Softmax
from ..layers.softmax_loss import SoftmaxWithLoss
from ..ops.stochastic_pool import uniforms
from ..plan.dense import Function
from ..plan.kinds import Reduce
from ..plan.norms import Along
from .device import DeviceSide
from .form import Blobs, Form, kept_by
from .graph import Node
from .on_device_moves import MOVES


def form_of(layer: Layer) -> Form:
    """The form of a layer. Raises UnsupportedError: there is none."""
    for kind, form in FORMS:
        if _runs_as(layer, kind):
            return form
    raise UnsupportedError("a layer of this type has no kernel on a device", given={"type": layer.type})


def declines(layer: Layer, node: Node) -> str | None:
    """Why a layer does not run on a device; None if it does."""
    for parameter in layer.params:
        if parameter.count * 4 > BINDING_MAX:
            return f"parameters of {parameter.count * 4} bytes, more than the {BINDING_MAX} that WebGPU binds"
    for kind, form in FORMS:
        if _runs_as(layer, kind):
            return form.declines(layer, node)
    return f"no kernel for layers of type {layer.type}"


def _runs_as(layer: Layer, kind: type[Layer]) -> bool:
    """Whether a layer is of this kind and computes nothing of its own."""
    own = type(layer)
    return isinstance(layer, kind) and own.forward is kind.forward and own.backward is kind.backward


# -- windows


def _convolve(side: DeviceSide, layer: Convolution, bottom: Blobs, top: Blobs) -> None:
    w, b = side.data(layer.params[0]), side.data(layer.params[1]) if layer.bias else None
    kept = []
    for x, y in zip(bottom, top, strict=True):
        plan = _taken(conv.refuses, layer.plan(x))
        given = side.data(x, layer._canonical(x.shape))
        side.put(y, conv.encode_forward(side.commands, plan, given, w, b))
        kept.append(given)
    side.keep(layer, (kept, w))


def _convolve_back(side: DeviceSide, layer: Convolution, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    kept, w = kept_by(side, layer)
    for x, y, given, wanted in zip(bottom, top, kept, want, strict=True):
        plan = layer.plan(x)
        dy = side.diff(y, layer._canonical(y.shape))
        if wanted:
            side.put_diff(x, conv.encode_input_gradient(side.commands, plan, dy, w, given.shape))
        if layer.param_wanted[0]:
            side.add_diff(layer.params[0], conv.encode_weights_gradient(side.commands, plan, given, dy))
        if layer.bias and layer.param_wanted[1]:
            side.add_diff(layer.params[1], conv.encode_bias_gradient(side.commands, plan, dy))


def _taken(refuses: Callable[[Any], str | None], plan: Any) -> Any:
    """The plan, unless no device takes it, which another size of image may bring about."""
    reason = refuses(plan)
    if reason is not None:
        raise UnsupportedError("no device takes this plan", operator=plan.op, reasons={"webgpu": reason}, hint='net.to("cpu")')
    return plan


def _pool(side: DeviceSide, layer: Pooling, bottom: Blobs, top: Blobs) -> None:
    x, y = bottom[0], top[0]
    plan = _taken(pooling.refusal, layer.plans(x.shape, x.dtype))
    draws = None
    if plan.reduce is Reduce.STOCHASTIC:
        draws = side.device.tensor(uniforms(y.shape, y.dtype, layer.key, layer.draws))
        layer.draws += 1
    given = side.data(x)
    result, kept = pooling.encode_forward(side.commands, plan, given, draws, save=layer.keep)
    side.put(y, result)
    side.keep(layer, kept)


def _pool_back(side: DeviceSide, layer: Pooling, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        plan = layer.plans(bottom[0].shape, bottom[0].dtype)
        dx = pooling.encode_backward(side.commands, plan, side.diff(top[0]), kept_by(side, layer), bottom[0].shape)
        side.put_diff(bottom[0], dx)


# -- products


def _multiply(side: DeviceSide, layer: InnerProduct, bottom: Blobs, top: Blobs) -> None:
    plan = layer.plan(bottom[0])
    rows = top[0].count // plan.columns
    x, w = side.data(bottom[0], (rows, plan.inner)), side.data(layer.params[0])
    bias = {"b": side.data(layer.params[1])} if layer.bias else {}
    recipe = dense_recipe.matmul(plan, x.shape, dense_recipe.epilogue(None, layer.bias), side.device.kind)
    side.put(top[0], side.run(recipe, "y", (rows, plan.columns), x=x, w=w, **bias))
    side.keep(layer, (x, w))


def _multiply_back(side: DeviceSide, layer: InnerProduct, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    plan, (x, w) = layer.plan(bottom[0]), kept_by(side, layer)
    dy = side.diff(top[0], (x.shape[0], plan.columns))
    if want[0]:
        recipe = dense_recipe.matmul_input_gradient(plan, x.shape, side.device.kind)
        side.put_diff(bottom[0], side.run(recipe, "dx", x.shape, dy=dy, w=w))
    if layer.param_wanted[0]:
        recipe = dense_recipe.matmul_weights_gradient(plan, x.shape, side.device.kind)
        side.add_diff(layer.params[0], side.run(recipe, "dw", w.shape, x=x, dy=dy))
    if layer.bias and layer.param_wanted[1]:
        db = side.run(dense_recipe.matmul_bias_gradient(plan, x.shape), "db", (plan.columns,), dy=dy)
        side.add_diff(layer.params[1], db)


# -- element by element


def _apply(side: DeviceSide, layer: Unary, bottom: Blobs, top: Blobs) -> None:
    x = side.data(bottom[0])
    side.put(top[0], side.run(dense_recipe.elementwise(layer.plan(bottom[0]), x.shape), "y", x.shape, x=x))
    side.keep(layer, x)


def _apply_back(side: DeviceSide, layer: Unary, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        x = kept_by(side, layer)
        recipe = dense_recipe.elementwise_gradient(layer.plan(bottom[0]), x.shape)
        side.put_diff(bottom[0], side.run(recipe, "dx", x.shape, dy=side.diff(top[0]), x=x))


def _along(side: DeviceSide, layer: AlongAxes, bottom: Blobs, top: Blobs) -> None:
    other = layer._other(bottom)
    x, z = side.data(bottom[0]), side.data(other)
    shift = {"b": side.data(layer.params[-1])} if layer.shift_filler is not None else {}
    recipe = dense_recipe.broadcast(layer.plan(bottom[0], other), x.shape, z.shape, bool(shift))
    side.put(top[0], side.run(recipe, "y", x.shape, x=x, z=z, **shift))
    side.keep(layer, (x, z))


def _along_back(side: DeviceSide, layer: AlongAxes, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    x, z = kept_by(side, layer)
    plan, dy = layer.plan(bottom[0], layer._other(bottom)), side.diff(top[0])
    small = dense_recipe.broadcast_small_gradient
    if want[0]:
        recipe = dense_recipe.broadcast_gradient(plan, x.shape, z.shape)
        given = {"dy": dy} if plan.function is Along.ADD else {"dy": dy, "x": x, "z": z}
        side.put_diff(bottom[0], side.run(recipe, "dx", x.shape, **given))
    if len(bottom) > 1 and want[1]:
        side.put_diff(bottom[1], side.run(small(plan, x.shape, z.shape), "dz", z.shape, dy=dy, x=x))
    if len(bottom) == 1 and layer.param_wanted[0]:
        side.add_diff(layer.params[0], side.run(small(plan, x.shape, z.shape), "dz", z.shape, dy=dy, x=x))
    if layer.shift_filler is not None and layer.param_wanted[-1]:
        side.add_diff(layer.params[-1], side.run(small(plan, x.shape, z.shape, bias=True), "db", z.shape, dy=dy))


def _drop(side: DeviceSide, layer: Dropout, bottom: Blobs, top: Blobs) -> None:
    x = side.data(bottom[0])
    if layer.random:
        mask = side.device.tensor(layer._mask(bottom[0]))
        x = side.run(dense_recipe.elementwise(layer._plan(bottom[0]), x.shape), "y", x.shape, x=x, z=mask)
        side.keep(layer, mask)
    side.put(top[0], x)


def _drop_back(side: DeviceSide, layer: Dropout, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        dy = side.diff(top[0])
        if layer.random:
            recipe = dense_recipe.elementwise(layer._plan(bottom[0]), dy.shape)
            dy = side.run(recipe, "y", dy.shape, x=dy, z=kept_by(side, layer))
        side.put_diff(bottom[0], dy)


def _combine(side: DeviceSide, layer: Eltwise, bottom: Blobs, top: Blobs) -> None:
    so_far, kept = side.data(bottom[0]), []
    for i, blob in enumerate(bottom[1:], 1):
        z = side.data(blob)
        kept.append((so_far, z))
        recipe = dense_recipe.elementwise(layer.plan(i, "float32"), so_far.shape)
        so_far = side.run(recipe, "y", so_far.shape, x=so_far, z=z)
    side.put(top[0], so_far)
    side.keep(layer, kept)


def _combine_back(side: DeviceSide, layer: Eltwise, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    dy, kept = side.diff(top[0]), kept_by(side, layer)
    for i in reversed(range(1, len(bottom))):
        plan, (x, z) = layer.plan(i, "float32"), kept[i - 1]
        parts = [dense_recipe.elementwise_gradient(plan, x.shape, index) for index in (0, 1)]
        if want[i]:
            side.put_diff(bottom[i], side.run(parts[1], "dz", x.shape, dy=dy, x=x, z=z))
        if not any(want[:i]):
            return
        dy = side.run(parts[0], "dx", x.shape, dy=dy, x=x, z=z)
    side.put_diff(bottom[0], dy)


def _normalize(side: DeviceSide, layer: LRN, bottom: Blobs, top: Blobs) -> None:
    x, plan = side.data(bottom[0]), _taken(dense.refuses, layer.plan(bottom[0]))
    base, y = side.device.empty(x.shape), side.device.empty(x.shape)
    encode(dense_recipe.lrn(plan, x.shape), side.commands, {"x": x, "base": base, "y": y})
    side.put(top[0], y)
    side.keep(layer, (x, base))


def _normalize_back(side: DeviceSide, layer: LRN, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        x, base = kept_by(side, layer)
        recipe = dense_recipe.lrn_gradient(layer.plan(bottom[0]), x.shape)
        side.put_diff(bottom[0], side.run(recipe, "dx", x.shape, dy=side.diff(top[0]), x=x, base=base))


# -- classes


def _softmax(side: DeviceSide, layer: Softmax, bottom: Blobs, top: Blobs) -> None:
    x, plan = side.data(bottom[0]), layer._plan(bottom[0])
    dense.check_classes(plan, x.shape)
    y = side.run(dense_recipe.softmax(plan, x.shape), "y", x.shape, x=x)
    side.put(top[0], y)
    side.keep(layer, y)


def _softmax_back(side: DeviceSide, layer: Softmax, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        y = kept_by(side, layer)
        recipe = dense_recipe.softmax_gradient(layer._plan(bottom[0]), y.shape)
        side.put_diff(bottom[0], side.run(recipe, "dx", y.shape, dy=side.diff(top[0]), y=y))


def _loss(side: DeviceSide, layer: SoftmaxWithLoss, bottom: Blobs, top: Blobs) -> None:
    x, plan = side.data(bottom[0]), layer._plan(bottom[0])
    dense.check_classes(plan, x.shape)
    labels = side.device.tensor(dense.checked_labels(plan, integers(bottom[1], "labels"), x.shape[plan.axis]))
    p, y, counted = side.device.empty(x.shape), side.device.empty(()), side.device.empty((1,))
    tensors = {"x": x, "labels": labels, "p": p, "y": y, "counted": counted}
    encode(dense_recipe.loss(plan, x.shape), side.commands, tensors)
    side.put(top[0], y)
    if len(top) > 1:
        side.put(top[1], p)
    side.keep(layer, (labels, p, counted))


def _loss_back(side: DeviceSide, layer: SoftmaxWithLoss, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[1]:
        raise UnsupportedError("labels have no gradient", because="Caffe, src/caffe/layers/softmax_loss_layer.cpp")
    if want[0]:
        labels, p, counted = kept_by(side, layer)
        recipe = dense_recipe.loss_gradient(layer._plan(bottom[0]), p.shape)
        given: dict[str, Tensor] = {"dy": side.diff(top[0]), "labels": labels, "p": p, "counted": counted}
        side.put_diff(bottom[0], side.run(recipe, "dx", p.shape, **given))


def _plain_loss(layer: SoftmaxWithLoss, node: Node) -> str | None:
    if layer.class_weights is not None or layer.by_frequency or layer.divisor != 1:
        return "no kernel for weighted classes or another divisor"
    return "no kernel for the loss of each place" if len(node.tops) > 2 else None


def _accuracy(side: DeviceSide, layer: Accuracy, bottom: Blobs, top: Blobs) -> None:
    x = side.data(bottom[0])
    axis = canonical_axis(layer.axis, x.shape)
    truth = integers(bottom[1], "labels").reshape(-1)
    counted = truth[truth != layer.ignore_label] if layer.ignore_label is not None else truth
    check_classes(counted, x.shape[axis])
    recipe = dense_recipe.accuracy(x.shape, axis, layer.top_k, layer.ignore_label)
    labels = side.device.tensor(truth.astype(np.int32))
    side.put(top[0], side.run(recipe, "y", (), x=x, labels=labels))


def _no_gradient(side: DeviceSide, layer: Layer, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    layer.backward(top, want, bottom)


def _one_top(layer: Layer, node: Node) -> str | None:
    return "no kernel for a second top" if len(node.tops) > 1 else None


def _stable(layer: Eltwise, node: Node) -> str | None:
    if layer.function is Function.MULTIPLY and not layer.stable_gradient:
        return "no kernel for a product's gradient as a quotient"
    return None


FORMS: tuple[tuple[type[Layer], Form], ...] = (
    (Convolution, Form(_convolve, _convolve_back)),
    (Pooling, Form(_pool, _pool_back, _one_top)),
    (InnerProduct, Form(_multiply, _multiply_back)),
    (Unary, Form(_apply, _apply_back)),
    (AlongAxes, Form(_along, _along_back)),
    (Dropout, Form(_drop, _drop_back)),
    (Eltwise, Form(_combine, _combine_back, _stable)),
    (LRN, Form(_normalize, _normalize_back)),
    (Softmax, Form(_softmax, _softmax_back)),
    (SoftmaxWithLoss, Form(_loss, _loss_back, _plain_loss)),
    (Accuracy, Form(_accuracy, _no_gradient, _one_top)),
    *MOVES,
)
"""Layer class -> form; subclasses, such as Deconvolution and ReLU, run as what they derive from."""
