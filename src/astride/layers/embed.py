"""Embed: a row of weights for each index."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import BroadcastPlan, LayoutPlan
from ..plan.layout import Move
from ..plan.norms import Along
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
        if self.bias:
            self._saved.append(self.compute(self._shift(top), rows, self.params[1].data, top=rows))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            raise UnsupportedError("indices have no gradient", because="Caffe, src/caffe/layers/embed_layer.cpp")
        dy = top[0].diff.reshape(top[0].count // self.outputs, self.outputs)
        if self.param_wanted[0]:
            self.accumulate(0, ops.backward(self._rows(top), dy, self.kept(0), want=(True, False))[0])
        if self.bias and self.param_wanted[1]:
            self.accumulate(1, ops.backward(self._shift(top), dy, self.kept(1), want=(False, True))[1])

    def allow_force_backward(self, index: int) -> bool:
        return False

    def _rows(self, top: Blobs) -> LayoutPlan:
        return LayoutPlan(dtype=top[0].dtype, move=Move.TAKE)

    def _shift(self, top: Blobs) -> BroadcastPlan:
        return BroadcastPlan(dtype=top[0].dtype, function=Along.ADD)
