"""Plans of what scales and shifts along axes, by given arrays or by statistics of the data: broadcasts and normalizations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from ..errors import ArgumentError
from .base import Plan, Shape, expect
from .dense import known_axis, known_dtype


class Along(StrEnum):
    """What a broadcast plan computes with its smaller array."""

    MULTIPLY = "multiply"  # x * z, + b where given
    ADD = "add"  # x + z
    PRELU = "prelu"  # max(x, 0) + z * min(x, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastPlan(Plan):
    """x with z, whose axes are x's from `axis` on, repeated over all others; b is like z. y has x's shape."""

    roles: ClassVar[tuple[str, ...]] = ("x", "z", "b")
    optional: ClassVar[frozenset[str]] = frozenset({"b"})

    function: Along = Along.MULTIPLY
    axis: int = 1

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        known_axis(self.axis)

    @property
    def op(self) -> str:
        return "broadcast"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, z, b = (*shapes, None, None)[:3]
        assert x is not None and z is not None
        end = self.axis + len(z)
        expect(end <= len(x), "z has more axes than x from `axis` on", f"axis + z.ndim <= x.ndim: {end} <= {len(x)}")
        expect(x[self.axis : end] == z, "z does not fit x", f"z.shape == x.shape[{self.axis}:{end}]: {z} == {x[self.axis : end]}")
        if self.function is Along.MULTIPLY:
            expect(b is None or b == z, "b does not fit z", f"b.shape == z.shape: {b} == {z}")
        else:
            expect(b is None, f"{self.function} takes no b", "no b")
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class LrnPlan(Plan):
    """x / (k + alpha * sum of x^2 over a window)^beta.

    The window spans `axes`, with `before` and `after` places besides its own in each of them; what lies outside x is 0.
    alpha multiplies the sum: a framework that divides it by the window's size has done so here.
    """

    axes: tuple[int, ...] = (1,)
    before: int = 2
    after: int = 2
    alpha: float = 1.0
    beta: float = 0.75
    k: float = 1.0

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        for axis in self.axes:
            known_axis(axis)
        if not self.axes or len(set(self.axes)) < len(self.axes):
            raise ArgumentError("the window spans one axis or more, each once", given={"axes": self.axes}, operator=self.op)
        if self.before < 0 or self.after < 0:
            raise ArgumentError(
                "a window holds at least its own place",
                given={"before": self.before, "after": self.after},
                required=f"before >= 0 and after >= 0: {self.before}, {self.after}",
                operator=self.op,
            )

    @property
    def op(self) -> str:
        return "lrn"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(max(self.axes) < len(x), "x has no such axis", f"axes < x.ndim: {self.axes} < {len(x)}")
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNormPlan(Plan):
    """(x - mean) / sqrt(variance + eps), for each place of `axis` over all other axes.

    Without mean and variance (both or none) they are the data's own, the variance divided by the count; `through` says
    whether the gradient flows through them too.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "mean", "variance")
    optional: ClassVar[frozenset[str]] = frozenset({"mean", "variance"})

    axis: int = 1
    eps: float = 1e-5
    through: bool = True

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        known_axis(self.axis)
        _not_negative(self.op, self.eps)

    @property
    def op(self) -> str:
        return "batch_norm"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, mean, variance = (*shapes, None, None)[:3]
        assert x is not None
        expect(self.axis < len(x), "x has no such axis", f"axis < x.ndim: {self.axis} < {len(x)}")
        expect((mean is None) == (variance is None), "mean and variance go together", "both or none")
        wanted = (x[self.axis],)
        expect(mean is None or mean == wanted, "mean does not fit x", f"mean.shape == {wanted}: {mean}")
        expect(variance is None or variance == wanted, "variance does not fit x", f"variance.shape == {wanted}: {variance}")
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class MvnPlan(Plan):
    """(x - mean) / (standard deviation + eps) over everything from `axis` on; x - mean alone without `normalize_variance`.

    `exact` says whether the gradient is the derivative, or Caffe's, which takes y for what it would be with eps = 0.
    """

    axis: int = 2
    normalize_variance: bool = True
    eps: float = 1e-9
    exact: bool = True

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        known_axis(self.axis)
        _not_negative(self.op, self.eps)

    @property
    def op(self) -> str:
        return "mvn"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(self.axis <= len(x), "x has no such axis", f"axis <= x.ndim: {self.axis} <= {len(x)}")
        return x


def _not_negative(operator: str, eps: float) -> None:
    if not eps >= 0:
        raise ArgumentError("eps keeps a divisor from 0", given={"eps": eps}, required=f"eps >= 0: {eps}", operator=operator)
