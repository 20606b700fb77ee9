"""Axpy: a scaled blob plus another."""

from __future__ import annotations

from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import BroadcastPlan
from ..plan.dense import Function
from ..plan.norms import Along
from ._composed import Composed
from ._steps import Steps
from .layer import Blobs


class Axpy(Composed):
    """y = a * x + z, a one number for each image and channel.

    Bottoms    a (N, C) or (N, C, 1, 1); x (N, C, ...); z of x's shape
    Source     SENet's Caffe, src/caffe/layers/axpy_layer.cpp
    """

    type = "Axpy"
    bottoms: ClassVar[tuple[int, int | None]] = (3, 3)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        a, x, z = (blob.shape for blob in bottom)
        if a[:2] != x[:2] or len(x) < 2 or any(n != 1 for n in a[2:]) or x != z:
            raise ArgumentError(
                "the three bottoms do not belong together",
                given={"a": a, "x": x, "z": z},
                required="a (N, C) or (N, C, 1, 1), x (N, C, ...), z of x's shape",
                because="SENet's Caffe, src/caffe/layers/axpy_layer.cpp",
            )
        top[0].reshape(*x)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        a, x, z = arrays
        factors = steps.shaped(a, x.shape[:2])
        scaled = steps.run(BroadcastPlan(dtype=x.dtype.name, function=Along.MULTIPLY, axis=0), x, factors)
        return steps.apply(Function.ADD, scaled, z)
