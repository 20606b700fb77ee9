"""Random convolutions in every way that can compute them, between memory that nobody may read or write: the reference's whole
numbers, and infinities and NaN where it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.backends.cpu.test_conv_few import guarded

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice
from astride.backends.cpu.conv_directions import declines, relation
from astride.backends.epilogue import RECTIFIED, Epilogue
from astride.backends.protocol import Saved
from astride.errors import ArgumentError
from astride.plan import ConvPlan
from astride.plan.kinds import Direction

Array = NDArray[Any]
Shape = tuple[int, ...]


def random_plan(rng: np.random.Generator) -> tuple[ConvPlan, Shape, Shape]:
    """A plan of one to three axes and the shapes of x and w: any pads, also larger than the kernel, and any groups."""
    while True:
        rank = int(rng.choice([1, 2, 2, 3]))

        def pick(low: int, high: int, rank: int = rank) -> Shape:
            return tuple(rng.integers(low, high, rank).tolist())

        kernel, stride, dilation, size = pick(1, 5), pick(1, 4), pick(1, 3), pick(1, [0, 40, 16, 8][rank])
        if rng.random() < 0.4:  # windows that special ways are for
            kernel, stride, dilation = [((1,), (1,), (1,)), ((3,), (1,), (1,)), ((2,), (2,), (1,))][rng.integers(3)]
            kernel, stride, dilation = kernel * rank, stride * rank, dilation * rank
        padding = tuple(zip(pick(0, 4), pick(0, 6), strict=True)) if rng.random() < 0.6 else 0
        groups = int(rng.choice([1, 1, 1, 2, 5]))
        inputs, outputs = (groups * int(n) for n in rng.integers(1, 40 // groups, 2))
        op = str(rng.choice(["conv", "conv_transpose"]))
        layout = str(rng.choice(["channels_first", "channels_last"]))
        x_shape = (int(rng.integers(1, 4)), *((inputs, *size) if layout == "channels_first" else (*size, inputs)))
        w_shape = (*((outputs, inputs // groups) if op == "conv" else (inputs, outputs // groups)), *kernel)
        options: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
        dtype = str(rng.choice(["float32", "float64"]))
        try:
            plan = astride.plan(op, x_shape, w_shape=w_shape, dtype=dtype, layout=layout, **options)
        except ArgumentError:  # the window does not fit
            continue
        if declines(plan) is None:
            return plan, x_shape, w_shape


@pytest.mark.parametrize("seed", range(8))
def test_every_way_between_guards(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan, x_shape, w_shape = random_plan(rng)
    assert isinstance(plan, ConvPlan)
    y_shape = plan.output_shape(x_shape, w_shape, None)
    x, w, b, dy, residual = (
        rng.integers(-3, 4, shape).astype(plan.dtype) for shape in (x_shape, w_shape, (plan.out_channels,), y_shape, y_shape)
    )
    for array in ((), (x,), (w,), (dy,))[seed % 4]:
        array.reshape(-1)[rng.integers(0, array.size, 2)] = rng.choice([np.inf, -np.inf, np.nan], 2)
    ending = [None, RECTIFIED, Epilogue(slope=0.5), Epilogue(low=-2, high=3, nan_is_low=True)][rng.integers(4)]
    y, saved = dispatch.forward(plan, x, w, b, save=True, backend="reference", epilogue=ending, residual=residual)
    assert saved is not None
    expected = dispatch.backward(plan, dy, saved, want=(True, True, False))
    first, transposed = plan.layout == "channels_first", plan.direction is Direction.TRANSPOSED
    with astride.use(winograd=2, threads=1 + seed % 3, tuned=False):
        for front in (False, True):
            gx, gw, gb, gdy, added = (guarded(array, front) for array in (x, w, b, dy, residual))
            kept = Saved(shapes=(x_shape, w_shape, None), x=gx, w=gw, kernel="cpu")
            for way in conv_choice.candidates("gather", relation(plan, False), len(x), first, 2):
                out = guarded(y, front)
                with conv_choice.forced(way):
                    dispatch.forward(plan, gx, gw, gb, out=out, backend="cpu", epilogue=ending, residual=added)
                assert np.array_equal(out, y, equal_nan=True), way
            for kind, back, which in (("gather", True, 0), ("weights", transposed, 1)):
                for way in conv_choice.candidates(kind, relation(plan, back), len(x), first, 2):
                    with conv_choice.forced(way):
                        found = dispatch.backward(plan, gdy, kept, want=(which == 0, which == 1, False), backend="cpu")[which]
                    assert np.array_equal(found, expected[which], equal_nan=True), (kind, way)  # type: ignore[arg-type]
