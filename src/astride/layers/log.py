"""Log: logarithms of values."""

from __future__ import annotations

from ..errors import ArgumentError
from ..plan.dense import Function
from ._unary import Unary
from .exp import log_of


class Log(Unary):
    """y = log(shift + scale * x) to a base; None is e. What is not positive gives NaN, and 0 minus infinity.

    Source     Caffe, src/caffe/layers/log_layer.cpp; golden layers/log
    """

    type = "Log"

    def __init__(self, *, base: float | None = None, scale: float = 1.0, shift: float = 0.0) -> None:
        log = 1.0 if base is None else log_of(base)
        if log == 0:
            raise ArgumentError(
                "there is no logarithm to the base 1",
                given={"base": base},
                required="base != 1",
                because="Caffe, src/caffe/layers/log_layer.cpp",
                hint="base: 2",
            )
        super().__init__(Function.LOG, scale=scale, shift=shift, factor=1 / log)
        self.base, self.scale, self.shift = base, scale, shift
