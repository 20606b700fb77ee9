"""CReLU: what is positive, and beside it what is negative."""

from __future__ import annotations

from ..backends.protocol import Array
from ..plan import LayoutPlan
from ..plan.dense import Function
from ..plan.layout import Move
from ._composed import Composed
from ._steps import Steps
from .layer import Blobs, canonical_axis


class CReLU(Composed):
    """ReLU(x), and behind it along `axis` ReLU(-x): twice as many channels. ReLU is max(x, 0) + slope * min(x, 0).

    Quirks     where a fork writes one whole half behind the other, whatever the batch, that is this for one image only
    Source     Cambricon's Caffe, src/caffe/layers/crelu_layer.cpp; Shang et al., arXiv 1603.05201
    """

    type = "CReLU"

    def __init__(self, *, slope: float = 0.0, axis: int = 1) -> None:
        super().__init__()
        self.slope, self.axis = slope, axis

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = list(bottom[0].shape)
        shape[canonical_axis(self.axis, bottom[0].shape)] *= 2
        top[0].reshape(*shape)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        halves = [
            steps.apply(Function.RELU, part, slope=self.slope)
            for part in (x, steps.apply(Function.POWER, x, scale=-1.0, shift=0.0, power=1.0))
        ]
        plan = LayoutPlan(dtype=x.dtype.name, move=Move.CONCAT, axis=canonical_axis(self.axis, x.shape), pieces=2)
        return steps.run(plan, *halves)
