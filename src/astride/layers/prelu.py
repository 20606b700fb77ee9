"""PReLU: a rectifier that learns the slope of its negative side."""

from __future__ import annotations

from typing import ClassVar

from ..plan.norms import Along
from ._along import AlongAxes
from .fillers import Filler


class PReLU(AlongAxes):
    """y = max(x, 0) + slope * min(x, 0), with a slope for each place of axis 1, or one where `channel_shared`.

    The gradient at 0 is the slope. In place it keeps x. Slopes begin at 0.25.
    Source     Caffe, src/caffe/layers/prelu_layer.cpp; goldens layers/prelu, prelu_shared
    """

    type = "PReLU"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 1)

    def __init__(self, *, channel_shared: bool = False, filler: Filler | None = None) -> None:
        super().__init__(Along.PRELU, axis=1, num_axes=0 if channel_shared else 1, filler=filler or Filler(value=0.25))
        self.channel_shared = channel_shared
