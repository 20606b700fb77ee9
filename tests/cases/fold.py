"""Cases of fold: those of unfold, read backwards."""

from __future__ import annotations

from dataclasses import replace

from astride.plan import UnfoldPlan
from astride.plan.kinds import Direction

from . import unfold
from .dense import DenseCase, DenseRefusal


def backwards(case: DenseCase) -> DenseCase:
    assert isinstance(case.plan, UnfoldPlan)
    columns = case.plan.output_shape(*case.shapes)
    return DenseCase(case.name, replace(case.plan, direction=Direction.TRANSPOSED), (columns,))


CASES = tuple(backwards(case) for case in unfold.CASES)
F = "float32"
REFUSALS = (
    DenseRefusal("no output size", (((1, 4, 2), F),), {"kernel": 2, "output_size": None}, ("the output size is not given",)),
    DenseRefusal("rows that are no channels", (((1, 3, 2), F),), {"kernel": 2, "output_size": 3}, ("rows % 2 == 0: 3 % 2",)),
    DenseRefusal("too many windows", (((1, 4, 3), F),), {"kernel": 2, "output_size": 3}, ("windows == (2,): (3,)",)),
    DenseRefusal("a window for more axes", (((1, 4, 3, 3), F),), {"kernel": 2, "output_size": 3}, ("windows == (2, 2): (3, 3)",)),
    DenseRefusal("rank", (((1, 4, 3, 3), F),), {"kernel": 2, "output_size": (4,)}, ("x.ndim is 3 or 3: 4",), "ArrayError"),
    DenseRefusal("integers", (((1, 2, 2), "int32"),), {"kernel": 2, "output_size": 3}, ("no rule for int32 arrays",)),
)
