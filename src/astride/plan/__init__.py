"""Plans: frozen integers and enums that say what to compute. Made by rules/, read by backends/."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ..errors import ArgumentError
from .axis import Axis, ExplicitAxis, StridedAxis
from .base import Plan, Shape, windows_listed

if TYPE_CHECKING:
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

PLANS: dict[str, str] = {
    "PoolPlan": "pool",
    "ConvPlan": "conv",
    "UnpoolPlan": "unpool",
    "FractionalPlan": "fractional",
    "DeformPlan": "deform",
    "IntegerConvPlan": "integer",
    "UnfoldPlan": "unfold",
    "WindowPlan": "window",
    "MatmulPlan": "dense",
    "ElementwisePlan": "dense",
    "SoftmaxPlan": "dense",
    "SoftmaxLossPlan": "dense",
    "BroadcastPlan": "norms",
    "LrnPlan": "norms",
    "BatchNormPlan": "norms",
    "MvnPlan": "norms",
    "LayoutPlan": "layout",
    "ReducePlan": "reduce",
    "ArgmaxPlan": "reduce",
}
"""Every kind of plan by its class name, as `Plan.to_dict` writes it, with its module: imported when first used."""


def __getattr__(name: str) -> Any:
    if name not in PLANS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{PLANS[name]}", __name__), name)
    globals()[name] = value
    return value


def plan_from_dict(data: dict[str, Any]) -> Plan:
    """The plan `to_dict` wrote. Raises ArgumentError: not a plan, unknown fields, values that do not check out."""
    kind = data.get("plan") if isinstance(data, dict) else None
    if kind not in PLANS:
        raise ArgumentError(
            "this is not a saved plan",
            given={"plan": kind},
            required=f"one of {', '.join(PLANS)}",
            hint="what plan.to_dict() gives",
        )
    return cast(type[Plan], __getattr__(kind)).from_dict(data)


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
    "windows_listed",
]
