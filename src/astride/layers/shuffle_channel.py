"""ShuffleChannel: channels dealt out over groups."""

from __future__ import annotations

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from ._composed import Composed
from ._steps import Steps
from .layer import Blobs


class ShuffleChannel(Composed):
    """Channels (group, size) become (size, group): the first of each group, then the second of each, and so on.

    Source     ShuffleNet's Caffe, src/caffe/layers/shuffle_channel_layer.cpp
    """

    type = "ShuffleChannel"

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        if len(shape) < 2 or self.group < 1 or shape[1] % self.group:
            raise ArgumentError(
                "the channels do not divide into the groups",
                given={"bottom": shape, "group": self.group},
                required=f"channels % group == 0: {shape[1:2]} and {self.group}",
                because="ShuffleNet's Caffe, src/caffe/layers/shuffle_channel_layer.cpp",
                hint="a group that divides the channels",
            )
        top[0].reshape(*shape)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        n, c, *size = x.shape
        split = steps.shaped(x, (n, self.group, c // self.group, *size))
        order = (0, 2, 1, *range(3, split.ndim))
        return steps.shaped(steps.run(LayoutPlan(dtype=x.dtype.name, move=Move.PERMUTE, order=order), split), x.shape)
