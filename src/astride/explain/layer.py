"""One layer of a network: what it computes, on which operands, with how many numbers and multiplications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..layers import Blob, Layer
from ..layers.accuracy import Accuracy
from ..layers.convolution import Convolution
from ..layers.dropout import Dropout
from ..layers.inner_product import InnerProduct
from ..layers.layer import canonical_axis
from ..layers.pooling import Pooling
from ..layers.relu import ReLU
from ..layers.softmax import Softmax
from ..layers.softmax_loss import SoftmaxWithLoss
from ..net import Net, Node
from ..plan import ConvPlan, Plan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Reduce
from .compare import Comparison, compare
from .facts import sizes

WORDS = {
    Reduce.MAX: "max",
    Reduce.MIN: "min",
    Reduce.AVERAGE: "average",
    Reduce.LP: "norm",
    Reduce.STOCHASTIC: "stochastic",
    Reduce.STOCHASTIC_MEAN: "stochastic",
}


@dataclass(frozen=True, slots=True)
class LayerView:
    """`summary` is a few words, `formula` what is computed, `products` the multiplications of one forward pass."""

    name: str
    type: str
    bottoms: tuple[tuple[str, Shape], ...]
    tops: tuple[tuple[str, Shape], ...]
    params: tuple[Shape, ...]
    summary: str
    formula: str
    products: int
    plan: Plan | None

    @property
    def numbers(self) -> int:
        """How many parameters it has, as numbers."""
        return sum(math.prod(shape) for shape in self.params)

    @property
    def in_place(self) -> bool:
        """Whether it overwrites what it reads."""
        return [name for name, _ in self.bottoms] == [name for name, _ in self.tops] and bool(self.bottoms)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "type": self.type,
            "bottoms": {name: list(shape) for name, shape in self.bottoms},
            "tops": {name: list(shape) for name, shape in self.tops},
            "parameter_shapes": [list(shape) for shape in self.params],
            "parameters": self.numbers,
            "multiplications": self.products,
            "summary": self.summary,
            "formula": self.formula,
            "plan": None if self.plan is None else self.plan.to_dict(),
        }


def layer_views(net: Net) -> list[LayerView]:
    """Every layer in the order it runs."""
    return [view(net, node) for node in net.nodes]


def parameter_counts(net: Net) -> tuple[int, int]:
    """How many numbers the network's parameters hold, shared ones once, and how many of these a solver may move.

    Published sizes are the second: statistics of batch normalisation and fixed upsampling filters have lr_mult 0.
    """
    learned = sum(parameter.count for parameter in net.learnable if parameter.lr_mult)
    return sum(parameter.count for parameter in net.learnable), learned


def parameter_text(net: Net) -> str:
    """Both counts in words; one where they are the same."""
    count, learned = parameter_counts(net)
    return f"{count:,} parameters" + (f", {learned:,} of them learned" if learned != count else "")


def view(net: Net, node: Node) -> LayerView:
    """One layer as it stands in its network."""
    bottoms = [net.blobs[name] for name in node.bottoms]
    made = plan_of(node.layer, bottoms)
    return LayerView(
        name=node.name,
        type=node.layer.type,
        bottoms=tuple((name, net.blobs[name].shape) for name in node.bottoms),
        tops=tuple((name, net.blobs[name].shape) for name in node.tops),
        params=tuple(parameter.shape for parameter in node.layer.params),
        summary=_summary(node.layer, made),
        formula=_formula(node.layer, made),
        products=_products(node.layer, made, bottoms),
        plan=made,
    )


def plan_of(layer: Layer, bottoms: Sequence[Blob]) -> Plan | None:
    """The plan that a windowed layer or an InnerProduct follows for these bottoms."""
    if isinstance(layer, Convolution | InnerProduct):
        return layer.plan(bottoms[0])
    if isinstance(layer, Pooling):
        return layer.plans(bottoms[0].shape, bottoms[0].dtype)
    return None


def compare_layer(net: Net, name: str, rules: Sequence[str] = ("caffe",)) -> Comparison | None:
    """A windowed layer's geometry under several rules; None for a layer without windows.

    Every rule gets the layer's kernel, stride, padding, dilation and groups; Caffe's gets its rounding as well.
    """
    node = next(node for node in net.nodes if node.layer is net.layer(name))
    bottom = net.blobs[node.bottoms[0]] if node.bottoms else None
    made = None if bottom is None else plan_of(node.layer, [bottom])
    if not isinstance(made, PoolPlan | ConvPlan):
        return None
    axes = [axis for axis in made.axes if isinstance(axis, StridedAxis)]
    given: dict[str, Any] = {
        "kernel": _one(tuple(a.kernel for a in axes)),
        "stride": _one(tuple(a.stride for a in axes)),
        "padding": _one(tuple(a.pad_lo for a in axes)),
    }
    shape = bottom.shape if bottom is not None else ()
    own: dict[str, Any] = {}
    if isinstance(made, ConvPlan):
        given |= {"dilation": _one(tuple(a.dilation for a in axes)), "groups": made.groups}
        inner, outer, spatial, batch = made.in_channels, made.out_channels, made.input_sizes, shape[0]
    else:
        inner, outer, spatial, batch = shape[1], None, tuple(a.size for a in axes), shape[0]
        own = _own(node.layer, made)
    given = {k: v for k, v in given.items() if v != _NEUTRAL.get(k)}
    return compare(made.op, spatial, rules, batch=batch, channels=inner, out_channels=outer, dtype=made.dtype, own=own, **given)


_NEUTRAL = {"dilation": 1, "groups": 1, "padding": 0}


def _own(layer: Layer, made: PoolPlan) -> dict[str, dict[str, Any]]:
    """What only Caffe's rule has: the layer's rounding, and whether it draws."""
    keywords: Mapping[str, Any] = getattr(layer.plans.rule, "keywords", {}) if isinstance(layer, Pooling) else {}
    caffe = {"round_mode": keywords["round_mode"]} if keywords.get("round_mode", "CEIL") != "CEIL" else {}
    if made.reduce is Reduce.STOCHASTIC:
        caffe["training"] = True
    return {"caffe": caffe} if caffe else {}


def _one(values: tuple[int, ...]) -> Any:
    """One number for all axes where they agree."""
    return values[0] if len(set(values)) == 1 else values


# In words


def _summary(layer: Layer, made: Plan | None) -> str:
    if isinstance(made, ConvPlan):
        text = f"{made.out_channels} of {_window(made)}"
        return text + (f", {made.groups} groups" if made.groups > 1 else "")
    if isinstance(made, PoolPlan):
        return f"{WORDS[made.reduce]} {_window(made)}"
    if isinstance(layer, InnerProduct):
        return f"{layer.outputs} outputs"
    if isinstance(layer, ReLU):
        return f"slope {layer.slope:g}" if layer.slope else ""
    if isinstance(layer, Dropout):
        return f"drops {layer.ratio:.0%}" if layer.random else "nothing dropped"
    if isinstance(layer, Accuracy):
        return f"among the best {layer.top_k}" if layer.top_k > 1 else ""
    return ""


def _window(made: PoolPlan | ConvPlan) -> str:
    """`3x3, stride 2, pad 1`"""
    axes = [axis for axis in made.axes if isinstance(axis, StridedAxis)]
    parts = [sizes(tuple(a.kernel for a in axes))]
    for name, values, neutral in (
        ("stride", tuple(a.stride for a in axes), 1),
        ("pad", tuple(a.pad_lo for a in axes), 0),
        ("dilation", tuple(a.dilation for a in axes), 1),
    ):
        if set(values) != {neutral}:
            parts.append(f"{name} {values[0] if len(set(values)) == 1 else sizes(values)}")
    return ", ".join(parts)


def _formula(layer: Layer, made: Plan | None) -> str:
    for kind, text in FORMULAS:
        if isinstance(layer, kind):
            return text(layer, made)
    return OTHERS.get(layer.type, "")


def _convolution(layer: Any, made: Any) -> str:
    channels = "c in the group of o" if made.groups > 1 else "all c"
    place = "i*stride - pad + j*dilation"
    if made.op == "conv_transpose":
        bias = "; y += b[o]" if layer.bias else ""
        return f"y[o, {place}] += x[c, i] * w[c, o, j] for {channels}, all i and j{bias}"
    bias = " + b[o]" if layer.bias else ""
    return f"y[o, i] = sum over {channels} and all j of w[o, c, j] * x[c, {place}]{bias}"


def _pooling(layer: Any, made: Any) -> str:
    tap = "x[c, i*stride - pad + j]"
    return {
        Reduce.MAX: f"y[c, i] = greatest {tap} over the window's j",
        Reduce.MIN: f"y[c, i] = least {tap} over the window's j",
        Reduce.AVERAGE: f"y[c, i] = sum of {tap} over j / divisor of window i",
        Reduce.LP: f"y[c, i] = (sum of |{tap}|^p over j)^(1/p)",
        Reduce.STOCHASTIC: f"y[c, i] = one {tap}, drawn in proportion to its value",
        Reduce.STOCHASTIC_MEAN: f"y[c, i] = sum of x^2 / sum of x over the window, x = {tap}",
    }[made.reduce]


def _inner_product(layer: Any, made: Any) -> str:
    return f"y[n, o] = sum over all k of x[n, k] * w[{'k, o' if layer.transpose else 'o, k'}]{' + b[o]' if layer.bias else ''}"


def _relu(layer: Any, made: Any) -> str:
    return f"y = x where x > 0, else {layer.slope:g} * x" if layer.slope else "y = max(x, 0)"


def _dropout(layer: Any, made: Any) -> str:
    if not layer.random:
        return "y = x (nothing is dropped in TEST)"
    return f"y = x / {1 - layer.ratio:g} with probability {1 - layer.ratio:g}, else 0"


def _softmax(layer: Any, made: Any) -> str:
    return f"y = exp(x - max x) / sum of exp(x - max x), along axis {layer.axis}"


def _softmax_loss(layer: Any, made: Any) -> str:
    return f"loss = -log softmax(x)[label] along axis {layer.axis}, summed and divided as {layer.normalization} says"


def _accuracy(layer: Any, made: Any) -> str:
    if layer.top_k == 1:
        return "share of samples whose label has the best score"
    return f"share of samples whose label is among the {layer.top_k} best scores"


FORMULAS: tuple[tuple[type[Layer], Callable[[Any, Any], str]], ...] = (
    (Convolution, _convolution),
    (Pooling, _pooling),
    (InnerProduct, _inner_product),
    (ReLU, _relu),
    (Dropout, _dropout),
    (Softmax, _softmax),
    (SoftmaxWithLoss, _softmax_loss),
    (Accuracy, _accuracy),
)
OTHERS = {
    "Input": "y = what the caller gives",
    "MemoryData": "y = the next batch of the data's source",
    "Flatten": "y = x in another shape",
    "Split": "y_k = x for each reader; the gradients are added",
}


def _products(layer: Layer, made: Plan | None, bottoms: Sequence[Blob]) -> int:
    """Multiplications of weights with inputs in one forward pass."""
    if isinstance(made, ConvPlan) and isinstance(layer, Convolution):
        places = made.output_sizes if made.op == "conv" else made.input_sizes
        axis = canonical_axis(layer.axis, bottoms[0].shape)
        batch = math.prod(bottoms[0].shape[:axis])
        return len(bottoms) * batch * math.prod(places) * math.prod(made.weight_shape)
    if isinstance(layer, InnerProduct):
        return bottoms[0].count * layer.outputs
    return 0
