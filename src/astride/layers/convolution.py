"""Convolution: filters over images, by whatever rule it is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from .. import ops
from ..backends.epilogue import Epilogue
from ..errors import ArgumentError
from ..plan import ConvPlan, Shape
from .blob import Blob
from .fillers import Filler
from .layer import Blobs, Layer, Plans, canonical_axis


class Convolution(Layer):
    """y = x * w + b for each of any number of bottoms, with the same weights.

    rule        (shape, dtype) -> ConvPlan, for shapes (N, C, *size)
    axis        the channels' axis: those before it are one batch, those behind it are spatial

    Parameters  weights (outputs, inputs / group, *kernel), and a bias (outputs,) unless there is none
    Quirks      Caffe's size is C's integer division, which truncates toward zero, so a kernel may be larger than the
                padded image by less than the stride; `kernel_h` without `kernel_w` is refused
    Source      Caffe, src/caffe/layers/base_conv_layer.cpp, conv_layer.cpp; golden ops/conv_*
    """

    type = "Convolution"
    bottoms: ClassVar[tuple[int, int | None]] = (1, None)
    tops: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(
        self,
        rule: Callable[[Shape, str], ConvPlan],
        *,
        axis: int = 1,
        bias: bool = True,
        weight_filler: Filler | None = None,
        bias_filler: Filler | None = None,
    ) -> None:
        super().__init__()
        self.plans = Plans(rule)
        self.axis = axis
        self.bias = bias
        self.weight_filler = weight_filler or Filler()
        self.bias_filler = bias_filler or Filler()
        self.out_channels = 0
        """Set by setup."""
        self.epilogue: Epilogue | None = None
        """The activation that is part of it: set where a network is compiled, and without a gradient."""
        self.adds = False
        """Whether the second of two bottoms is added to the only top, before the activation: set in the same way."""

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if len(top) != len(bottom):
            raise ArgumentError(
                "a convolution has a top for each bottom",
                given={"bottoms": len(bottom), "tops": len(top)},
                required=f"tops == bottoms: {len(top)} == {len(bottom)}",
            )
        plan = self.plan(bottom[0])
        self.out_channels = plan.out_channels
        self.declare(plan.weight_shape, bottom[0].dtype, self.weight_filler)
        if self.bias:
            self.declare((plan.out_channels,), bottom[0].dtype, self.bias_filler)

    def plan(self, blob: Blob) -> ConvPlan:
        """The plan for a bottom of this shape."""
        return self.plans(self._canonical(blob.shape), blob.dtype)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        for x, y in zip(bottom[:1] if self.adds else bottom, top, strict=True):
            plan = self.plan(x)
            if plan.weight_shape != self.params[0].shape:
                raise ArgumentError(
                    "the weights do not fit the bottom",
                    given={"bottom": x.shape, "weights": self.params[0].shape},
                    required=f"weights for {plan.in_channels} channels: {plan.weight_shape}",
                    hint="a bottom of as many channels as the network was set up with",
                )
            lead = x.shape[: canonical_axis(self.axis, x.shape)]
            y.reshape(*lead, plan.out_channels, *plan.output_sizes)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        w, b = self.params[0].data, self.params[1].data if self.bias else None
        self._saved = []
        residual = bottom[1].data.reshape(self._canonical(bottom[1].shape)) if self.adds else None
        for x, y in zip(bottom[:1] if self.adds else bottom, top, strict=True):
            data = x.data.reshape(self._canonical(x.shape))
            top_data = y.data.reshape(self._canonical(y.shape))
            saved = self.compute(self.plan(x), data, w, b, top=top_data, epilogue=self.epilogue, residual=residual)
            self._saved.append(saved)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        for i, (x, y) in enumerate(zip(bottom, top, strict=True)):
            wanted = (want[i], *self.param_wanted)
            if not any(wanted):
                continue
            dy = y.diff.reshape(self._canonical(y.shape))
            gradients = ops.backward(self.plan(x), dy, self.kept(i), want=wanted)
            if gradients[0] is not None:
                x.diff[...] = gradients[0].reshape(x.shape)
            for j in range(len(self.params)):
                self.accumulate(j, gradients[j + 1])

    def _canonical(self, shape: Shape) -> Shape:
        """(N, C, *size): everything before the channels is one batch."""
        axis = canonical_axis(self.axis, shape)
        return (math.prod(shape[:axis]), *shape[axis:])
