"""Plans: frozen integers and enums that say what to compute. Made by rules/, read by backends/."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .axis import Axis, ExplicitAxis, StridedAxis
from .base import Plan, Shape
from .conv import ConvPlan
from .deform import DeformPlan
from .dense import ElementwisePlan, MatmulPlan, SoftmaxLossPlan, SoftmaxPlan
from .fractional import FractionalPlan
from .integer import IntegerConvPlan
from .layout import LayoutPlan
from .norms import BatchNormPlan, BroadcastPlan, LrnPlan, MvnPlan
from .pool import PoolPlan
from .reduce import ArgmaxPlan, ReducePlan
from .unfold import UnfoldPlan
from .unpool import UnpoolPlan
from .window import WindowPlan

PLANS: dict[str, type[Plan]] = {
    cls.__name__: cls
    for cls in (
        PoolPlan,
        ConvPlan,
        UnpoolPlan,
        FractionalPlan,
        DeformPlan,
        IntegerConvPlan,
        UnfoldPlan,
        WindowPlan,
        MatmulPlan,
        ElementwisePlan,
        SoftmaxPlan,
        SoftmaxLossPlan,
        BroadcastPlan,
        LrnPlan,
        BatchNormPlan,
        MvnPlan,
        LayoutPlan,
        ReducePlan,
        ArgmaxPlan,
    )
}
"""Every kind of plan by its class name, as `Plan.to_dict` writes it."""


def plan_from_dict(data: dict[str, Any]) -> Plan:
    """The plan `to_dict` wrote. Raises ArgumentError: not a plan, unknown fields, values that do not check out."""
    kind = data.get("plan") if isinstance(data, dict) else None
    if kind not in PLANS:
        raise ArgumentError("this is not a saved plan", given={"plan": kind}, required=f"one of {', '.join(PLANS)}")
    return PLANS[kind].from_dict(data)


__all__ = [
    "PLANS",
    "ArgmaxPlan",
    "Axis",
    "BatchNormPlan",
    "BroadcastPlan",
    "ConvPlan",
    "DeformPlan",
    "ElementwisePlan",
    "ExplicitAxis",
    "FractionalPlan",
    "IntegerConvPlan",
    "LayoutPlan",
    "LrnPlan",
    "MatmulPlan",
    "MvnPlan",
    "Plan",
    "PoolPlan",
    "ReducePlan",
    "Shape",
    "SoftmaxLossPlan",
    "SoftmaxPlan",
    "StridedAxis",
    "UnfoldPlan",
    "UnpoolPlan",
    "WindowPlan",
    "plan_from_dict",
]
