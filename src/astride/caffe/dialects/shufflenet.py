"""ShuffleNet: channels shuffled between groups."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "ShuffleNet: ShuffleChannel",
    ("farmingyard/ShuffleNet", "camel007/Caffe-ShuffleNet"),
    {
        "ShuffleChannelParameter": "1 group uint32 = 1",
        "LayerParameter": "164 shuffle_channel_param ShuffleChannelParameter",
    },
)
