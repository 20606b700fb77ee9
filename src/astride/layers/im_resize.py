"""ImResize: OpenPose's maps at the image's size."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ._composed import Composed
from ._resampling import Taps, four_axes, resample
from ._steps import Steps
from .layer import Blobs

SOURCE = "OpenPose's Caffe, caffe_rtpose, src/caffe/layers/imresize_layer.cu"
NUDGE = 1e-5
"""Added to a place before it is cut to the whole place before it."""


class ImResize(Composed):
    """Images at another size, by cubics of a = -1/2 through four neighbours, rows and columns by themselves.

    Output i of n lies at (i - (n / size - 1) / 2) size / n. Places beyond the border are those on it, as often as needed.

    Options     size: height and width, or
                factor: what the bottom's are multiplied by, the fraction cut off; it goes before the size
    Edges       before the first pixel the cubic goes on beyond it: the place is cut to 0, its distance to that is negative
    Gradient    the exact adjoint; OpenPose's has none
    Quirks      one image: of two versions the older resizes each of a batch, the newer merges them as scales of one. OpenPose's
                CPU form is OpenCV's cubic, of a = -3/4; networks ran on the GPU's, which is this
    Source      OpenPose's Caffe, caffe_rtpose, src/caffe/layers/imresize_layer.cpp and .cu
    """

    type = "ImResize"

    def __init__(self, size: tuple[int, int] = (368, 368), *, factor: float = 0.0) -> None:
        super().__init__()
        self.size, self.factor = size, factor
        self._top_size = size

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        if shape[0] != 1:
            raise UnsupportedError(
                "OpenPose's versions disagree on what becomes of several images",
                given={"bottom": shape},
                required=f"(1, C, H, W): {shape}",
                because=SOURCE,
                hint="one image a pass",
            )
        self._top_size = (int(shape[2] * self.factor), int(shape[3] * self.factor)) if self.factor else self.size
        if min(self._top_size) < 1:
            raise ArgumentError(
                "the top has no size",
                given={"bottom": shape, "size": self.size, "factor": self.factor},
                required="a pixel at least",
                because=SOURCE,
                hint="imresize_param { factor: 8 }",
            )
        top[0].reshape(*shape[:2], *self._top_size)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        return resample(steps, x, [cubic(n, out) for n, out in zip(x.shape[2:], self._top_size, strict=True)])


def cubic(size: int, out: int) -> Taps:
    """Four neighbours each, weighted by Catmull and Rom's spline; computed in float32, as OpenPose does."""
    real = np.float32
    at = (np.arange(out, dtype=real) - (real(out) / real(size) / real(2) - real(0.5))) * (real(size) / real(out))
    first = np.maximum((at + real(NUDGE)).astype(np.int64), 0)
    second = np.minimum(first + 1, size - 1)
    places = [np.maximum(first - 1, 0), first, second, np.minimum(second + 1, size - 1)]
    d = at - first.astype(real)
    return Taps(
        places,
        [
            ((-0.5 * d + 1) * d - 0.5) * d,
            (1.5 * d - 2.5) * d * d + 1,
            ((-1.5 * d + 2) * d + 0.5) * d,
            (0.5 * d - 0.5) * d * d,
        ],
    )
