"""MVN: each image, or each channel of it, with mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..plan import MvnPlan
from .blob import Blob
from .layer import Blobs, Layer


class MVN(Layer):
    """y = (x - mean) / (standard deviation + eps), over each channel, or over the whole image where `across_channels`.

    Without `normalize_variance` the mean is taken away and no more. eps is added to the root, not under it.
    `exact_gradient` chooses the derivative; Caffe's gradient is (dy - mean(dy) - y * mean(dy * y)) / (deviation + eps),
    which leaves out a factor on the last term and is right only where eps is small beside the deviation.
    In place it keeps x; Caffe's gradient in place is that of overwritten values.
    Source     Caffe, src/caffe/layers/mvn_layer.cpp; goldens layers/mvn, mvn_eps
    """

    type = "MVN"
    in_place = True

    def __init__(
        self,
        *,
        normalize_variance: bool = True,
        across_channels: bool = False,
        eps: float = 1e-9,
        exact_gradient: bool = True,
    ) -> None:
        super().__init__()
        self.normalize_variance = normalize_variance
        self.across_channels = across_channels
        self.eps = eps
        self.exact_gradient = exact_gradient

    def plan(self, blob: Blob) -> MvnPlan:
        """The plan for a bottom of this rank."""
        return MvnPlan(
            dtype=blob.dtype,
            axis=min(1 if self.across_channels else 2, len(blob.shape)),
            normalize_variance=self.normalize_variance,
            eps=self.eps,
            exact=self.exact_gradient,
        )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept())[0]
