"""Which gradients a network has to compute: Caffe's analysis.

A gradient is needed where something below learns and something above is a loss. A learning rate of zero stops a
parameter from learning, never the gradient on its way down; `propagate_down: false` does stop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layers import Parameter
from ..layers.split import Split
from .graph import Node


@dataclass(slots=True)
class Need:
    """For each layer: does it run backward, which bottoms' and which parameters' gradients does it compute."""

    layers: list[bool]
    bottoms: list[list[bool]]
    params: list[list[bool]]


def analyse(nodes: Sequence[Node], params: Sequence[Sequence[Parameter]], *, force: bool = False) -> Need:
    """What runs backward. With `force` everything does that can, down to the inputs, loss or not."""
    need = _from_below(nodes, params)
    _from_above(nodes, need)
    if force:
        for i, node in enumerate(nodes):
            need.layers[i] = True
            need.params[i] = [True] * len(params[i])
            need.bottoms[i] = [known or node.layer.allow_force_backward(j) for j, known in enumerate(need.bottoms[i])]
    return need


def _from_below(nodes: Sequence[Node], params: Sequence[Sequence[Parameter]]) -> Need:
    """Upwards: a blob needs a gradient where it depends on something that learns."""
    need = Need([], [], [])
    blobs: dict[str, bool] = {}
    for node, own in zip(nodes, params, strict=True):
        bottoms = [blobs[name] for name in node.bottoms]
        if node.propagate_down:
            bottoms = list(node.propagate_down)
        learns = [p.lr_mult != 0 for p in own]
        runs = any(bottoms) or any(learns)
        need.layers.append(runs)
        need.bottoms.append(bottoms)
        need.params.append(learns)
        for name in node.tops:
            blobs[name] = runs
    return need


def _from_above(nodes: Sequence[Node], need: Need) -> None:
    """Downwards: what no loss depends on runs not, nor what is below a stopped gradient only."""
    under_loss: set[str] = set()
    stopped: set[str] = set()
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        contributes = any(w or name in under_loss for name, w in zip(node.tops, node.loss_weights, strict=True))
        skipped = bool(node.tops) and all(name in stopped for name in node.tops)
        if skipped or not contributes:
            need.layers[i] = False
            need.bottoms[i] = [False] * len(node.bottoms)
        if contributes:
            under_loss.update(node.bottoms)
        stopped.update(name for name, wanted in zip(node.bottoms, need.bottoms[i], strict=True) if not wanted)


def mark_sums(nodes: Sequence[Node], need: Need) -> None:
    """Tell every Split which of its tops carry a gradient, so that one computed for other needs is not added."""
    wanted: dict[str, bool] = {}
    for node, wants in zip(nodes, need.bottoms, strict=True):
        for name, want in zip(node.bottoms, wants, strict=True):
            # The first reader counts: later ones read what a layer in place has made of the top.
            wanted.setdefault(name, want)
    for node in nodes:
        if isinstance(node.layer, Split):
            node.layer.sums = [wanted.get(name, True) for name in node.tops]
