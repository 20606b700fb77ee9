"""Plans of the dense operators a network needs beside its windows: matrix products, element by element, softmax.

They are dispatched as windows are, so that a whole network can live on one device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import ClassVar

from ..errors import ArgumentError
from .base import Plan, Shape, expect
from .kinds import Nan, Tie

DENSE_DTYPES = ("float32", "float64")
"""What the dense operators compute in."""

SMALLEST_NORMAL = 2.0**-126
"""C's FLT_MIN: Caffe takes the logarithm of no smaller probability, in double precision too."""


class Function(StrEnum):
    """What an elementwise plan computes."""

    RELU = "relu"  # max(x, 0) + slope * min(x, 0)
    ELU = "elu"  # x where x > 0, slope * (exp(x) - 1) elsewhere
    SIGMOID = "sigmoid"  # 1 / (1 + exp(-x))
    TANH = "tanh"
    ABS = "abs"  # |x|
    BNLL = "bnll"  # log(1 + exp(x))
    SWISH = "swish"  # x * sigmoid(scale * x)
    POWER = "power"  # (shift + scale * x) ** power
    EXP = "exp"  # factor * exp(scale * x)
    LOG = "log"  # factor * log(shift + scale * x)
    CLIP = "clip"  # low where x < low, high where x > high
    THRESHOLD = "threshold"  # 1 where x > low, 0 elsewhere
    MULTIPLY = "multiply"  # scale * x * z: a dropout mask, a gate
    DIVIDE = "divide"  # scale * x / z
    ADD = "add"  # scale * x + z_scale * z
    MAXIMUM = "maximum"  # the greater of x and z

    @property
    def binary(self) -> bool:
        """True where it takes a second array."""
        return self in (Function.MULTIPLY, Function.DIVIDE, Function.ADD, Function.MAXIMUM)


READS: dict[Function, tuple[str, ...]] = {
    Function.RELU: ("slope",),
    Function.ELU: ("slope",),
    Function.SWISH: ("scale",),
    Function.POWER: ("scale", "shift", "power"),
    Function.EXP: ("scale", "factor"),
    Function.LOG: ("scale", "shift", "factor"),
    Function.CLIP: ("low", "high", "nan"),
    Function.THRESHOLD: ("low",),
    Function.MULTIPLY: ("scale",),
    Function.DIVIDE: ("scale",),
    Function.ADD: ("scale", "z_scale"),
    Function.MAXIMUM: ("tie", "nan"),
}
"""The fields of a plan that each function reads; those left out read none. What it does not read keeps its default."""

TIES = (Tie.FIRST, Tie.LAST, Tie.EQUAL_SHARE)
"""Who gets the gradient of a maximum where x equals z: x, z, or each a half."""


class Normalization(StrEnum):
    """What a summed loss is divided by; never by less than one."""

    FULL = "full"  # every label
    VALID = "valid"  # every label that is not ignored
    BATCH_SIZE = "batch_size"  # images
    NONE = "none"  # one


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulPlan(Plan):
    """x (*lead, inner) times w gives y (*lead, columns), plus b (columns,).

    w is (inner, columns), or (columns, inner) where `transposed`, as Caffe and PyTorch store a layer's weights.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "w", "b")
    optional: ClassVar[frozenset[str]] = frozenset({"b"})

    inner: int
    columns: int
    transposed: bool = False

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        for name in ("inner", "columns"):
            if getattr(self, name) < 0:
                raise ArgumentError(f"{name} is negative", given={name: getattr(self, name)}, required=f"{name} >= 0")

    @property
    def op(self) -> str:
        return "matmul"

    @property
    def weight_shape(self) -> Shape:
        return (self.columns, self.inner) if self.transposed else (self.inner, self.columns)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, w, b = (*shapes, None, None)[:3]
        assert x is not None
        expect(len(x) >= 1 and x[-1] == self.inner, "x does not fit the plan", f"x.shape[-1] == {self.inner}: {x}")
        expect(w == self.weight_shape, "w does not fit the plan", f"w.shape == {self.weight_shape}: {w}")
        expect(b is None or b == (self.columns,), "b does not fit the plan", f"b.shape == {(self.columns,)}: {b}")
        return (*x[:-1], self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwisePlan(Plan):
    """x, and z of its shape where the function has two arguments, give y of that shape."""

    roles: ClassVar[tuple[str, ...]] = ("x", "z")
    optional: ClassVar[frozenset[str]] = frozenset({"z"})

    function: Function
    slope: float = 0.0
    scale: float = 1.0
    z_scale: float = 1.0
    shift: float = 0.0
    power: float = 1.0
    factor: float = 1.0
    low: float = 0.0
    high: float = 1.0
    tie: Tie = Tie.FIRST
    nan: Nan = Nan.PROPAGATED

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        reads = READS.get(self.function, ())
        for f in fields(self):
            if f.name not in ("dtype", "function", *reads) and getattr(self, f.name) != f.default:
                raise ArgumentError(
                    f"{self.function} does not read {f.name}",
                    given={"function": str(self.function), f.name: getattr(self, f.name)},
                    required=f"none but {', '.join(reads)}" if reads else "no parameters",
                    operator=self.op,
                )
        if self.tie not in TIES:
            raise ArgumentError(
                "a maximum of two arrays has no such tie rule",
                given={"tie": str(self.tie)},
                required=f"one of {', '.join(TIES)}",
                operator=self.op,
            )

    @property
    def op(self) -> str:
        return "elementwise"

    @property
    def binary(self) -> bool:
        return self.function.binary

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, z = (*shapes, None)[:2]
        assert x is not None
        if self.binary:
            expect(z == x, f"{self.function} takes two arrays of one shape", f"z.shape == {x}: {z}")
        else:
            expect(z is None, f"{self.function} takes one array", "no z")
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxPlan(Plan):
    """exp(x - max) / sum exp(x - max) along one axis."""

    axis: int = 1

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        known_axis(self.axis)

    @property
    def op(self) -> str:
        return "softmax"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(self.axis < len(x), "x has no such axis", f"axis < x.ndim: {self.axis} < {len(x)}")
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxLossPlan(Plan):
    """-log softmax(x)[label], summed over every place that is not ignored, over the normalization: one number.

    labels hold one integer per place, in any shape of `outer * inner` elements, where outer are x's axes before
    `axis` and inner those behind it. A probability below `floor`, normally the smallest normal float32, counts as that.
    With `gain`, (classes, classes), a place costs -sum of gain[label, class] * log softmax(x)[class]; without, gain is
    the identity.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "labels", "gain")
    optional: ClassVar[frozenset[str]] = frozenset({"gain"})
    integer_roles: ClassVar[frozenset[str]] = frozenset({"labels"})

    axis: int = 1
    ignore_label: int | None = None
    normalization: Normalization = Normalization.VALID
    floor: float = SMALLEST_NORMAL

    def __post_init__(self) -> None:
        known_dtype(self.op, self.dtype)
        known_axis(self.axis)
        if not 0 < self.floor < 1:
            raise ArgumentError(
                "the floor is a probability whose logarithm is finite",
                given={"floor": self.floor},
                required=f"0 < floor < 1: {self.floor}",
                operator=self.op,
            )

    @property
    def op(self) -> str:
        return "softmax_loss"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, labels, gain = (*shapes, None, None)[:3]
        assert x is not None
        expect(self.axis < len(x), "x has no such axis", f"axis < x.ndim: {self.axis} < {len(x)}")
        places = math.prod(x[: self.axis]) * math.prod(x[self.axis + 1 :])
        given = None if labels is None else math.prod(labels)
        expect(given == places, "labels need one element per place", f"labels.size == {places}: {labels}")
        square = (x[self.axis],) * 2
        expect(gain is None or gain == square, "gain has a row and a column for each class", f"gain.shape == {square}: {gain}")
        return ()


def known_dtype(operator: str, dtype: str) -> None:
    """Raise ArgumentError unless dense operators compute in it."""
    if dtype not in DENSE_DTYPES:
        raise ArgumentError(
            "dense operators compute in float32 or float64",
            given={"dtype": dtype},
            required=f"one of {', '.join(DENSE_DTYPES)}",
            hint='x.astype("float32")',
            operator=operator,
        )


def known_axis(axis: int) -> None:
    """Raise ArgumentError unless it counts from the front."""
    if axis < 0:
        raise ArgumentError("a plan's axis counts from the front", given={"axis": axis}, required=f"axis >= 0: {axis}")
