"""Embed: a row of weights for each index."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import ElementwisePlan, LayoutPlan
from ..plan.dense import Function
from ..plan.layout import Move
from .fillers import Filler
from .layer import Blobs, Layer, integers


class Embed(Layer):
    """y = w[index] + b for every index of the bottom: an inner product with one-hot rows.

    Weights are (inputs, outputs). The top has one more axis than the bottom, of size `outputs`. The weights' gradient
    is summed over equal indices; the indices have none, and one outside [0, inputs) is an error.
    Source     Caffe, src/caffe/layers/embed_layer.cpp, which checks indices in debug builds only
    """

    type = "Embed"

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        bias: bool = True,
        weight_filler: Filler | None = None,
        bias_filler: Filler | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("input_dim", inputs), ("num_output", outputs)):
            if size < 1:
                raise ArgumentError("an embedding needs inputs and outputs", given={name: size}, required=f"{name} >= 1: {size}")
        self.inputs = inputs
        self.outputs = outputs
        self.bias = bias
        self.weight_filler = weight_filler or Filler()
        self.bias_filler = bias_filler or Filler()

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        self.declare((self.inputs, self.outputs), bottom[0].dtype, self.weight_filler)
        if self.bias:
            self.declare((self.outputs,), bottom[0].dtype, self.bias_filler)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape, self.outputs)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        indices = integers(bottom[0], "indices").reshape(-1)
        rows = top[0].data.reshape(indices.size, self.outputs)
        self._saved = [self.compute(self._rows(top), self.params[0].data, indices, top=rows)]
        if self.bias and indices.size:
            b, saved = ops.forward(self._copies(top), self.params[1].data.reshape(1, -1), save=self.keep)
            self.compute(ElementwisePlan(dtype=top[0].dtype, function=Function.ADD), rows, b, top=rows, keep=False)
            self._saved.append(saved)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            raise UnsupportedError("indices have no gradient", because="Caffe, src/caffe/layers/embed_layer.cpp")
        dy = top[0].diff.reshape(-1, self.outputs)
        if self.param_wanted[0]:
            self.accumulate(0, ops.backward(self._rows(top), dy, self.kept(0), want=(True, False))[0])
        if self.bias and self.param_wanted[1] and dy.size:
            db = ops.backward(self._copies(top), dy, self.kept(1))[0]
            assert db is not None
            self.accumulate(1, db.reshape(-1))

    def allow_force_backward(self, index: int) -> bool:
        return False

    def _rows(self, top: Blobs) -> LayoutPlan:
        return LayoutPlan(dtype=top[0].dtype, move=Move.TAKE)

    def _copies(self, top: Blobs) -> LayoutPlan:
        """The bias, once for each index."""
        return LayoutPlan(dtype=top[0].dtype, move=Move.TILE, tiles=top[0].count // self.outputs)
