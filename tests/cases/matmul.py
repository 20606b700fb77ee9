"""Cases of matmul."""

from __future__ import annotations

from astride.plan import MatmulPlan

from .dense import DenseCase, DenseRefusal


def plan(inner: int, columns: int, transposed: bool = False, dtype: str = "float32") -> MatmulPlan:
    return MatmulPlan(dtype=dtype, inner=inner, columns=columns, transposed=transposed)


CASES = (
    DenseCase("plain", plan(3, 2), ((4, 3), (3, 2), None)),
    DenseCase("bias", plan(3, 2), ((4, 3), (3, 2), (2,))),
    DenseCase("transposed", plan(3, 2, True), ((4, 3), (2, 3), (2,))),
    DenseCase("leading axes", plan(3, 2), ((2, 5, 3), (3, 2), (2,))),
    DenseCase("one row", plan(3, 2), ((3,), (3, 2), (2,))),
    DenseCase("no rows", plan(3, 2), ((0, 3), (3, 2), (2,))),
    DenseCase("no inner", plan(0, 2), ((4, 0), (0, 2), (2,))),
    DenseCase("no columns", plan(3, 0), ((4, 3), (3, 0), (0,))),
    DenseCase("double", plan(3, 2, dtype="float64"), ((4, 3), (3, 2), (2,))),
)
F = "float32"
REFUSALS = (
    DenseRefusal("w is no matrix", (((2, 3), F), ((3,), F)), {}, ("w is not a matrix", "w.ndim == 2: 1"), "ArrayError"),
    DenseRefusal("inner sizes", (((2, 3), F), ((4, 2), F)), {}, ("x.shape[-1] == 4: (2, 3)",), "ArrayError"),
    DenseRefusal("bias", (((2, 3), F), ((3, 2), F), ((3,), F)), {}, ("b.shape == (2,): (3,)",), "ArrayError"),
    DenseRefusal("mixed dtypes", (((2, 3), F), ((3, 2), "float64")), {}, ("w has another dtype",), "ArrayError"),
    DenseRefusal("integers", (((2, 3), "int32"), ((3, 2), "int32")), {}, ("float32 or float64", "dtype = 'int32'")),
)
