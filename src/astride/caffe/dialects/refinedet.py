"""RefineDet: SSD with an anchor refinement module."""

from __future__ import annotations

from . import ssd
from ._fork import Fork

FORK = Fork(
    "RefineDet: SSD with objectness scores",
    ("sfzhang15/RefineDet",),
    {
        **ssd.FORK.messages,
        "DetectionOutputParameter": f"{ssd.FORK.messages['DetectionOutputParameter']}\n24 objectness_score float = 0.01",
        "MultiBoxLossParameter": f"{ssd.FORK.messages['MultiBoxLossParameter']}\n24 objectness_score float = 0.01",
    },
)
