"""Small networks for the tests of the graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from astride.layers.accuracy import Accuracy
from astride.layers.convolution import Convolution
from astride.layers.dropout import Dropout
from astride.layers.fillers import Filler
from astride.layers.flatten import Flatten
from astride.layers.inner_product import InnerProduct
from astride.layers.input import Input
from astride.layers.relu import ReLU
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.net import Net, Node, ParamSpec
from astride.rules import caffe

UNIFORM = Filler(kind="uniform", min=-1, max=1)


def data(**shapes: tuple[int, ...]) -> Node:
    return Node("data", Input(list(shapes.values())), [], list(shapes))


def ip(name: str, bottom: str, top: str | None = None, outputs: int = 3, **more: Any) -> Node:
    layer = InnerProduct(outputs, weight_filler=UNIFORM, bias_filler=UNIFORM)
    return Node(name, layer, [bottom], [top or name], **more)


def conv(name: str, bottom: str, outputs: int = 2, **more: Any) -> Node:
    rule = partial(caffe.convolution, num_output=outputs, kernel_size=3)
    return Node(name, Convolution(rule, weight_filler=UNIFORM, bias_filler=UNIFORM), [bottom], [name], **more)


def relu(name: str, bottom: str, top: str | None = None, **more: Any) -> Node:
    return Node(name, ReLU(), [bottom], [top or bottom], **more)


def dropout(name: str, bottom: str, top: str | None = None, training: bool = True) -> Node:
    return Node(name, Dropout(training=training), [bottom], [top or bottom])


def flatten(name: str, bottom: str) -> Node:
    return Node(name, Flatten(), [bottom], [name])


def loss(name: str, scores: str, labels: str = "label", **more: Any) -> Node:
    return Node(name, SoftmaxWithLoss(), [scores, labels], [name], **more)


def accuracy(name: str, scores: str, labels: str = "label") -> Node:
    return Node(name, Accuracy(), [scores, labels], [name])


def net(*nodes: Node, seed: int = 1, dtype: str = "float64", **options: Any) -> Net:
    return Net(nodes, random=np.random.RandomState(seed), dtype=dtype, **options)


def spec(**fields: Any) -> ParamSpec:
    return ParamSpec(**fields)
