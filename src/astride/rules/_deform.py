"""A deformable convolution is laid out as the plain one of the same rules: its plan from that one's."""

from __future__ import annotations

from typing import Any

from ..plan import ConvPlan, DeformPlan
from ._arguments import whole


def deformed(plan: ConvPlan, offset_groups: Any) -> DeformPlan:
    """The same windows, their taps free to move."""
    return DeformPlan(
        dtype=plan.dtype,
        axes=plan.axes,
        in_channels=plan.in_channels,
        out_channels=plan.out_channels,
        layout=plan.layout,
        groups=plan.groups,
        offset_groups=whole(offset_groups, "offset_groups", 1),
        accumulate=plan.accumulate,
    )
