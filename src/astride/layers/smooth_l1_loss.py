"""SmoothL1Loss: the distance of two blobs, squared where it is small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import Function, Normalization
from ._loss import Loss, divisor, sum_plan
from ._steps import Steps
from .layer import Blobs

SOURCE = "Fast R-CNN's Caffe, src/caffe/layers/smooth_L1_loss_layer.cu"


class SmoothL1Loss(Loss):
    """sum w_out * f(w_in * (a - b)) / normalization, f(d) = (sigma d)^2 / 2 for |d| < 1 / sigma^2, |d| - 1 / (2 sigma^2) beyond.

    Bottoms    predictions a, targets b of their shape (N, C, *size); if given, weights w_in within f, and w_out outside of it
    Tops       the loss, one number; if asked for, the loss of each place, (N, 1, *size), before the normalization
    Options    sigma: where squares end
               normalization: batch_size (N) for Fast R-CNN; R-FCN has valid and full (N times the places of a map) and none
               divisor: a number in place of that, at least 1 as all of them are
    Edges      no samples: 0
    Gradient   of a: w_out * w_in * sigma^2 d or w_out * w_in * sign(d), over the normalization; of b its negative. Weights
               have none
    Quirks     R-FCN's has no w_out; SSD's CPU form has no sigma, which is 1 there
    Source     Fast R-CNN's Caffe, src/caffe/layers/smooth_L1_loss_layer.cpp and .cu; R-FCN's and SSD's of the same name
    """

    type = "SmoothL1Loss"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 4)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    silent = frozenset({1})
    labels: ClassVar[frozenset[int]] = frozenset({2, 3})
    source = "src/caffe/layers/smooth_L1_loss_layer.cu"

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        normalization: Normalization = Normalization.BATCH_SIZE,
        divisor: float | None = None,
    ) -> None:
        super().__init__()
        if not sigma > 0:
            raise ArgumentError("sigma is positive", given={"sigma": sigma}, required=f"sigma > 0: {sigma:g}", because=SOURCE)
        self.sigma = sigma
        self.normalization = normalization
        self.divisor = divisor
        self._each: Array | None = None

    def check(self, bottom: Blobs) -> None:
        shapes = [blob.shape for blob in bottom]
        if any(shape != shapes[0] for shape in shapes):
            raise ArgumentError(
                "predictions, targets and weights are of one shape",
                given={"bottoms": tuple(shapes)},
                required="equal shapes",
                because=SOURCE,
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        super().reshape(bottom, top)
        if len(top) > 1:
            top[1].reshape(bottom[0].shape[0], 1, *bottom[0].shape[2:])

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        a, b, *weights = arrays
        distance = steps.apply(Function.ADD, a, b, z_scale=-1.0)
        if weights:
            distance = steps.apply(Function.MULTIPLY, distance, weights[0])
        each = self._each = smooth(steps, distance, self.sigma)
        if len(weights) > 1:
            each = self._each = steps.apply(Function.MULTIPLY, each, weights[1])
        return steps.run(sum_plan(bottom[0].dtype, 1 / self._divided_by(bottom)), each)

    def _divided_by(self, bottom: Blobs) -> float:
        if self.divisor is not None:
            return max(self.divisor, 1.0)
        shape = bottom[0].shape
        places = bottom[0].count // shape[1] if len(shape) > 1 and shape[1] else shape[0]
        if self.normalization in (Normalization.FULL, Normalization.VALID):
            return max(places, 1)
        return divisor(self.normalization, bottom[0], places)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        super().forward(bottom, top)
        if len(top) > 1 and self._each is not None:
            top[1].data[...] = self._each.sum(axis=1, keepdims=True) if self._each.ndim > 1 else self._each[:, None]


def smooth(steps: Steps, distance: Array, sigma: float = 1.0) -> Array:
    """f of each distance: sigma^2 m (|d| - m / 2), where m is |d| or, from there on, 1 / sigma^2."""
    size = steps.apply(Function.ABS, distance)
    inner = steps.apply(Function.CLIP, size, high=1 / sigma**2)
    rest = steps.apply(Function.ADD, size, inner, z_scale=-0.5)
    return steps.apply(Function.MULTIPLY, inner, rest, scale=sigma**2)


__all__ = ["SmoothL1Loss", "smooth"]
