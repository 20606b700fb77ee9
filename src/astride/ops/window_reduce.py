"""A user's own function of one window as a pooling operator."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, overload

from ..backends._definitions import NUMERIC, Definition, register
from ..backends.protocol import Array
from ..errors import ArgumentError, AstrideError
from ..plan import PoolPlan, Shape, WindowPlan
from ._run import as_array, make_plan, run

Function = Callable[[Array], Any]
Gradient = Callable[[Array, Any], Any] | str

WINDOWS = ("max_pool", "min_pool", "avg_pool", "lp_pool", "adaptive_pool")
"""Operators whose rules say where windows lie."""


class WindowOperator:
    """A pooling operator made of a function of one window by `astride.window_op`.

    Called with an array and pooling's arguments; `plan` shows what will be computed, `function` is what was given.
    """

    def __init__(
        self, function: Function, gradient: Gradient | None = None, *, compile: bool = True, empty: float | None = None
    ) -> None:
        """Raises ArgumentError: what is no function; a gradient that is neither one, "numeric" nor None."""
        name = getattr(function, "__name__", type(function).__name__)
        if not callable(function) or isinstance(function, WindowOperator):
            raise ArgumentError(
                "window_op takes a function of one window", given={"function": function}, hint="@astride.window_op above the def"
            )
        if gradient is not None and gradient != NUMERIC and not callable(gradient):
            raise ArgumentError(
                "the gradient is a function of (window, y)",
                given={"gradient": gradient},
                operator=name,
                hint='gradient="numeric"',
            )
        self.function, self.compile = function, bool(compile)
        self.empty = None if empty is None else float(empty)
        self.__name__, self.__qualname__ = name, getattr(function, "__qualname__", name)
        self.__module__ = getattr(function, "__module__", __name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self._definition = Definition(name, function, gradient)
        self._key = register(self._definition)

    def __call__(
        self,
        x: Any,
        *,
        kernel: Any = None,
        stride: Any = None,
        padding: Any = None,
        dilation: Any = None,
        layout: str = "channels_first",
        rules: str = "explicit",
        windows: str = "max_pool",
        compile: bool | None = None,
        out: Array | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> Array:
        """The function of every window; see `astride.window_reduce`."""
        x = as_array(x, "x")
        arguments = dict(kernel=kernel, stride=stride, padding=padding, dilation=dilation, layout=layout, **options)
        plan = self.plan(x.shape, x.dtype.name, rules=rules, windows=windows, compile=compile, **arguments)
        try:
            return run(plan, x, out=out, backend=backend, rules=rules)[0]
        except AstrideError as error:
            raise self._named(error)

    def plan(
        self,
        shape: Shape,
        dtype: str = "float32",
        *,
        rules: str = "explicit",
        windows: str = "max_pool",
        compile: bool | None = None,
        **arguments: Any,
    ) -> WindowPlan:
        """What will be computed. Raises ArgumentError: no such windows; what the rules refuse."""
        if windows not in WINDOWS:
            raise ArgumentError(
                "windows names no operator that has them",
                given={"windows": windows},
                required=f"one of {', '.join(WINDOWS)}",
                operator=self.__name__,
                hint='windows="max_pool"',
            )
        try:
            found = make_plan(windows, rules, tuple(shape), dtype, given={"shape": tuple(shape)}, **arguments)
            assert isinstance(found, PoolPlan)
            return WindowPlan(
                dtype=dtype,
                axes=found.axes,
                function=self._key,
                compiled=self.compile if compile is None else bool(compile),
                layout=found.layout,
                edge=found.edge,
                edge_value=found.edge_value,
                empty=self.empty,
            )
        except AstrideError as error:
            raise self._named(error)

    def _named(self, error: AstrideError) -> AstrideError:
        error.operator = self.__name__
        return error

    def __repr__(self) -> str:
        return f"<window operator {self.__module__}.{self.__qualname__}>"


@overload
def window_op(
    function: None = None, *, gradient: Gradient | None = None, compile: bool = True, empty: float | None = None
) -> Callable[[Function], WindowOperator]: ...
@overload
def window_op(
    function: Function, *, gradient: Gradient | None = None, compile: bool = True, empty: float | None = None
) -> WindowOperator: ...
def window_op(
    function: Function | None = None, *, gradient: Gradient | None = None, compile: bool = True, empty: float | None = None
) -> WindowOperator | Callable[[Function], WindowOperator]:
    """Make a pooling operator of a function of one window: `@astride.window_op`, or with arguments.

    function  of a 1-D array, the taps of the window inside the input in row-major order; gives a number. It may change
              the array, which is a copy. Half types arrive as float32, whole numbers as int64
    gradient  of (window, y), with y the function's value; gives dy/d(tap) for every tap. "numeric" takes central
              differences of the function in float64 instead, which is slow, and wrong at kinks. Without one, forward works
              and backward is refused
    compile   with Numba (the extra `window`), at the first call for each dtype; False runs plain Python
    empty     the value of a window with no tap inside the input; without one such windows are refused

    The result is called as `astride.window_reduce` is, less the function, and may be given to vjp and check_gradient.

    Raises    ArgumentError: what is no function; a gradient that is neither one, "numeric" nor None
    Example
    >>> import numpy as np, astride
    >>> @astride.window_op(gradient=lambda window, y: window - y == 0, compile=False)
    ... def highest(window):
    ...     return window.max()
    >>> y, pull = astride.vjp(highest, np.array([[[1.0, 3.0, 2.0, 2.0]]]), kernel=2)
    >>> y.tolist(), pull(np.ones_like(y))[0].tolist()
    ([[[3.0, 2.0]]], [[[0.0, 1.0, 1.0, 1.0]]])
    """
    if function is None:
        return lambda given: WindowOperator(given, gradient, compile=compile, empty=empty)
    return WindowOperator(function, gradient, compile=compile, empty=empty)


def window_reduce(
    x: Any,
    function: Function | WindowOperator,
    *,
    kernel: Any = None,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    windows: str = "max_pool",
    gradient: Gradient | None = None,
    compile: bool | None = None,
    empty: float | None = None,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """A function of one window, applied to every window; `windows` names the operator of the rules whose windows they are.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"; the function gets (taps,)
    Numbers   float16, bfloat16 (given as float32), float32, float64; whole numbers (given as int64), whose results must be
              exact. Compiled and plain agree as far as Numba's functions and NumPy's do
    Edges     taps outside are left out, or are what the rules' edge mode reads; windows without taps have the value `empty`
              or are refused; NaN, ties and infinities are the function's own affair
    Gradient  dy * gradient(window, y) at every tap, or central differences where that is "numeric"; x and y are saved
    Raises    ArgumentError: what the rules refuse; an empty window; a function that Numba cannot compile
              ArrayError: a result that is no number, or none that the dtype holds; slopes that do not fit the window
              BackendUnavailable: to be compiled, and Numba is not installed; UnsupportedError: backward without a gradient
    Source    rules/<framework>.py for the windows
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[4.0, 1.0, 3.0, 9.0, 9.0]]])
    >>> astride.window_reduce(x, np.median, kernel=3, stride=2, compile=False).tolist()
    [[[3.0, 9.0]]]
    """
    if isinstance(function, WindowOperator):
        if gradient is not None or empty is not None:
            raise ArgumentError(
                "an operator has its gradient and empty value already",
                given={"gradient": gradient, "empty": empty},
                operator=function.__name__,
                hint="window_op(function, gradient=..., empty=...)",
            )
        operator = function
    else:
        kept = isinstance(function, Hashable) and isinstance(gradient, Hashable)
        value = None if empty is None else repr(float(empty))
        operator = (_operator if kept else _operator.__wrapped__)(function, gradient, value)
    return operator(
        x,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        rules=rules,
        windows=windows,
        compile=compile,
        out=out,
        backend=backend,
        **options,
    )


@lru_cache(maxsize=64)
def _operator(function: Function, gradient: Gradient | None, empty: str | None) -> WindowOperator:
    """The operator of a function, kept so that it is compiled once; `empty` is written out, for -0.0 is not 0.0."""
    return WindowOperator(function, gradient, empty=None if empty is None else float(empty))
