"""A convolution of quantised numbers is laid out as the plain one of the same rules: its plan from that one's."""

from __future__ import annotations

from ..plan import ConvPlan, IntegerConvPlan


def quantised(plan: ConvPlan, dtype: str, w_dtype: str, y_dtype: str) -> IntegerConvPlan:
    """The same windows over eight-bit numbers."""
    return IntegerConvPlan(
        dtype=dtype,
        axes=plan.axes,
        in_channels=plan.in_channels,
        out_channels=plan.out_channels,
        w_dtype=w_dtype,
        y_dtype=y_dtype,
        layout=plan.layout,
        groups=plan.groups,
    )
