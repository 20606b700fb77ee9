"""InnerProduct: a full matrix between everything behind an axis and the outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError
from ..plan import MatmulPlan
from .blob import Blob
from .fillers import Filler
from .layer import Blobs, Layer, canonical_axis


class InnerProduct(Layer):
    """y = x w^T + b, where x is everything from `axis` on as one row; the axes before it stay.

    Parameters  weights (outputs, inputs), or (inputs, outputs) where `transpose`; a bias (outputs,) unless there is none
    Source      Caffe, src/caffe/layers/inner_product_layer.cpp; golden layers/ip_transpose, ip_axis2_nobias
    """

    type = "InnerProduct"

    def __init__(
        self,
        outputs: int,
        *,
        axis: int = 1,
        bias: bool = True,
        transpose: bool = False,
        weight_filler: Filler | None = None,
        bias_filler: Filler | None = None,
    ) -> None:
        super().__init__()
        if outputs < 1:
            raise ArgumentError("a layer needs outputs", given={"num_output": outputs}, required=f"num_output >= 1: {outputs}")
        self.outputs = outputs
        self.axis = axis
        self.bias = bias
        self.transpose = transpose
        self.weight_filler = weight_filler or Filler()
        self.bias_filler = bias_filler or Filler()

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        plan = self.plan(bottom[0])
        self.declare(plan.weight_shape, bottom[0].dtype, self.weight_filler)
        if self.bias:
            self.declare((self.outputs,), bottom[0].dtype, self.bias_filler)

    def plan(self, blob: Blob) -> MatmulPlan:
        """The product for a bottom of this shape."""
        inner = math.prod(blob.shape[canonical_axis(self.axis, blob.shape) :])
        return MatmulPlan(dtype=blob.dtype, inner=inner, columns=self.outputs, transposed=not self.transpose)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        plan = self.plan(bottom[0])
        if plan.weight_shape != self.params[0].shape:
            raise ArgumentError(
                "the bottom has another number of inputs than the weights",
                given={"bottom": bottom[0].shape, "weights": self.params[0].shape},
                required=f"weights {plan.weight_shape} == {self.params[0].shape}",
                hint="the size of image the network was made for, or a convolution in place of this layer",
            )
        top[0].reshape(*bottom[0].shape[: canonical_axis(self.axis, bottom[0].shape)], self.outputs)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        plan = self.plan(bottom[0])
        w, b = self.params[0].data, self.params[1].data if self.bias else None
        rows = top[0].count // plan.columns
        x, y = bottom[0].data.reshape(rows, plan.inner), top[0].data.reshape(rows, plan.columns)
        self._saved = [self.compute(plan, x, w, b, top=y)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        plan = self.plan(bottom[0])
        dy = top[0].diff.reshape(top[0].count // plan.columns, plan.columns)
        gradients = ops.backward(plan, dy, self.kept(), want=(want[0], *self.param_wanted))
        if gradients[0] is not None:
            bottom[0].diff[...] = gradients[0].reshape(bottom[0].shape)
        for i in range(len(self.params)):
            self.accumulate(i, gradients[i + 1])
