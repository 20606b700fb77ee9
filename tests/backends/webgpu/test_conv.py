"""Convolution on a device against the reference: every case, random plans, every tile, non-finite weights, long sums."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import assert_agree, run
from tests.backends.random_plans import random_inputs
from tests.cases.records import Case, inputs_of
from tests.compare import assert_same

from astride import dispatch
from astride.backends.webgpu import conv, conv_recipe
from astride.backends.webgpu.commands import CommandBuffer
from astride.backends.webgpu.device import LIMITS, Device
from astride.backends.webgpu.product import Epilogue, split
from astride.backends.webgpu.recipe import MOST_TERMS, Recipe, encode
from astride.backends.webgpu.tiles import ANY, PLAIN_TILE, TABLE, Tile, choose
from astride.errors import UnsupportedError
from astride.plan import ConvPlan, StridedAxis
from astride.plan.kinds import Direction, Edge, Layout

ALL = [(op, case) for op in ("conv", "conv_transpose") for case in import_module(f"tests.cases.{op}").CASES]
TILES = sorted({tile for tiles in (ANY, *TABLE.values()) for tile in tiles}, key=str)
JUDGE = "reference:im2col"


def same(inputs: Any) -> None:
    assert_agree(inputs, run(inputs, "webgpu"), run(inputs, JUDGE), "webgpu")


@pytest.mark.parametrize(("op", "case"), ALL, ids=[f"{op}: {case}" for op, case in ALL])
def test_equals_the_reference(device: Device, op: str, case: Case) -> None:
    inputs = inputs_of(op, case)
    reason = conv.refuses(inputs.plan)  # type: ignore[arg-type]
    if reason is not None:
        with pytest.raises(UnsupportedError):
            run(inputs, "webgpu")
        return
    same(inputs)


def narrow(seed: int) -> Any:
    """A random plan in float32."""
    inputs = random_inputs("conv" if seed % 2 else "conv_transpose", seed)
    assert isinstance(inputs.plan, ConvPlan)
    plan = replace(inputs.plan, dtype="float32", accumulate="float32", y_dtype="")
    arrays = tuple(None if a is None else np.asarray(a, "float32") for a in inputs.arrays)
    return replace(inputs, plan=plan, arrays=arrays, dy=np.asarray(inputs.dy, "float32"))


@pytest.mark.parametrize("seed", range(12))
def test_random_plans(device: Device, seed: int) -> None:
    same(narrow(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_random_plans(device: Device, seed: int) -> None:
    same(narrow(seed))


PLAN = ConvPlan(
    dtype="float32", axes=(StridedAxis(13, 3, 2, 1, 1, 1, 7), StridedAxis(9, 2, 1, 2, 1, 2, 10)), in_channels=8, out_channels=6
)
BACK = ConvPlan(
    dtype="float32",
    axes=(StridedAxis(9, 3, 2, 1, 1, 1, 5), StridedAxis(11, 4, 3, 1, 0, -1, 3)),
    in_channels=4,
    out_channels=5,
    direction=Direction.TRANSPOSED,
    flip=True,
)


def computed(device: Device, recipe: Recipe, given: dict[str, Any], target: str, shape: Any) -> Any:
    """One result of a recipe; where nothing is written stands a number that no sum is."""
    commands = CommandBuffer(device)
    out = device.tensor(np.full(shape, 0.5, np.float32))
    encode(recipe, commands, {name: device.tensor(array) for name, array in given.items()} | {target: out})
    commands.commit()
    return out.numpy()


def check(device: Device, plan: ConvPlan, tile: Tile, *, odd: bool = False, images: int = 2) -> None:
    """Forward and all gradients through one tile, exactly; with `odd`, weights and gradients hold NaN and infinities."""
    rng = np.random.default_rng(3)
    last = plan.layout is Layout.CHANNELS_LAST
    shape = (images, *plan.input_sizes, plan.in_channels) if last else (images, plan.in_channels, *plan.input_sizes)
    x, w, b = (rng.integers(-3, 4, s).astype("float32") for s in (shape, plan.weight_shape, (plan.out_channels,)))
    if odd:
        w.flat[[0, w.size // 2, -1]] = np.inf, np.nan, -np.inf
    y, saved = dispatch.forward(plan, x, w, b, save=True, backend=JUDGE)
    assert saved is not None
    dy = rng.integers(-3, 4, y.shape).astype("float32")
    if odd:
        dy.flat[0] = np.inf
    dx, dw, _ = dispatch.backward(plan, dy, saved)
    forward = conv_recipe.forward(plan, x.shape, epilogue=Epilogue(True), tile=tile)
    assert_same(computed(device, forward, {"x": x, "w": w, "b": b}, "y", y.shape), y, "y")
    recipe = conv_recipe.input_gradient(plan, x.shape, tile=tile)
    assert_same(computed(device, recipe, {"dy": dy, "w": w}, "dx", x.shape), dx, "dx")
    recipe = conv_recipe.weights_gradient(plan, x.shape, tile=tile)
    assert_same(computed(device, recipe, {"dy": dy, "x": x}, "dw", w.shape), dw, "dw")


@pytest.mark.parametrize("odd", [False, True], ids=["finite", "odd"])
@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("plan", [PLAN, BACK], ids=["conv", "transposed"])
def test_the_small_tile(device: Device, plan: ConvPlan, layout: Layout, odd: bool) -> None:
    check(device, replace(plan, layout=layout), TABLE["CPU"][0], odd=odd)


@pytest.mark.parametrize("tile", [t for t in TILES if t not in TABLE["CPU"]], ids=str)
def test_every_tile(device: Device, tile: Tile) -> None:
    rng = np.random.default_rng(4)
    plan = replace(PLAN, layout=Layout.CHANNELS_LAST)
    x, w = rng.integers(-3, 4, (2, 13, 9, 8)).astype("float32"), rng.integers(-3, 4, plan.weight_shape).astype("float32")
    w.flat[3] = np.inf
    y, _ = dispatch.forward(plan, x, w, backend=JUDGE)
    recipe = conv_recipe.forward(plan, x.shape, tile=tile)
    assert_same(computed(device, recipe, {"x": x, "w": w}, "y", y.shape), y, "y")


@pytest.mark.slow
@pytest.mark.parametrize("odd", [False, True], ids=["finite", "odd"])
@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("plan", [PLAN, BACK], ids=["conv", "transposed"])
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_fully(device: Device, tile: Tile, plan: ConvPlan, layout: Layout, odd: bool) -> None:
    check(device, replace(plan, layout=layout), tile, odd=odd, images=5)


@pytest.mark.parametrize("edge", [Edge.CLAMP, Edge.MIRROR, Edge.MIRROR_EDGE, Edge.WRAP])
def test_edges_go_back_through_a_grown_input(device: Device, edge: Edge) -> None:
    axes = (StridedAxis(5, 3, 1, 1, 2, 3, 8), StridedAxis(4, 2, 2, 1, 1, 1, 3))
    check(device, ConvPlan(dtype="float32", axes=axes, in_channels=2, out_channels=2, edge=edge), PLAIN_TILE)


@pytest.mark.parametrize("terms", [70000])
def test_a_long_sum_is_split(device: Device, terms: int) -> None:
    """More terms than one loop may have: channels forward, places for the weights' gradient."""
    plan = ConvPlan(dtype="float32", axes=(StridedAxis(1, 1),), in_channels=terms, out_channels=1)
    x, w = np.ones((1, terms, 1), np.float32), np.ones((1, terms, 1), np.float32)
    np.testing.assert_array_equal(dispatch.forward(plan, x, w, backend="webgpu")[0].ravel(), [terms])
    plan = ConvPlan(dtype="float32", axes=(StridedAxis(terms, 1, out=terms),), in_channels=1, out_channels=1)
    y, saved = dispatch.forward(
        plan, np.ones((1, 1, terms), np.float32), np.ones((1, 1, 1), np.float32), save=True, backend="webgpu"
    )
    assert saved is not None
    _, dw, _ = dispatch.backward(plan, y, saved)
    np.testing.assert_array_equal(np.ravel(dw), [terms])


@pytest.mark.parametrize("layout", list(Layout))
def test_a_bias_behind_a_split_sum(device: Device, layout: Layout) -> None:
    plan = ConvPlan(dtype="float32", axes=(StridedAxis(3, 3, 1, 1, 1, 1, 3),), in_channels=2000, out_channels=4, layout=layout)
    check(device, plan, TABLE["CPU"][0], images=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_rounded_once(device: Device, dtype: str) -> None:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    plan = replace(PLAN, dtype=dtype)
    rng = np.random.default_rng(2)
    x, w = rng.integers(-9, 10, (1, 8, 13, 9)).astype(kind), rng.integers(-9, 10, plan.weight_shape).astype(kind)
    here, there = (dispatch.forward(plan, x, w, backend=b)[0] for b in ("webgpu", JUDGE))
    assert_same(here, there)


def test_what_is_declined() -> None:
    assert "float64" in str(conv.refuses(replace(PLAN, dtype="float64", accumulate="float64")))
    assert "int32" in str(conv.refuses(replace(PLAN, dtype="int32", accumulate="int32")))
    assert "counts further" in str(conv.refuses(replace(PLAN, axes=(StridedAxis(1 << 29, 1, out=1 << 29),))))
    assert conv.refuses(PLAN) is None


def test_tiles_fit_the_default_limits() -> None:
    for tile in TILES:
        assert tile.threads <= LIMITS["max-compute-invocations-per-workgroup"]
        assert tile.memory <= LIMITS["max-compute-workgroup-storage-size"]
        assert tile.depth % 4 == 0


def test_choosing_a_tile() -> None:
    assert choose("CPU", 1000, 64, 576) in TABLE["CPU"]
    assert choose("DiscreteGPU", 100352, 512, 4608) is TABLE["DiscreteGPU"][0]
    assert choose("DiscreteGPU", 100352, 16, 144).columns == 16
    assert choose("DiscreteGPU", 1000, 1, 9) is PLAIN_TILE


def test_splits_are_short_enough() -> None:
    for terms in (1, 511, 4608, 70000, 12_845_056):
        for tile in (PLAIN_TILE, *TILES):
            length, chunks = split({"terms": terms, "products": 1, "rows": 9, "columns": 9, "total": 81}, tile)
            assert length <= MOST_TERMS + tile.depth
            assert (chunks - 1) * length < terms <= chunks * length
            assert chunks <= 65535


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DiscreteGPU", "IntegratedGPU", "Unknown"])
def test_what_other_adapters_choose(device: Device, kind: str) -> None:
    """Plans of the sizes of real layers by the tiles that a GPU of each kind takes."""
    last = Layout.CHANNELS_LAST
    rows = (StridedAxis(20, 3, 1, 1, 1, 1, 20),) * 2
    up = (StridedAxis(32, 4, 2, 1, 1, 1, 16),) * 2
    plans = (
        ConvPlan(dtype="float32", axes=rows, in_channels=64, out_channels=128),
        ConvPlan(dtype="float32", axes=rows, in_channels=64, out_channels=128, layout=last),
        ConvPlan(dtype="float32", axes=up, in_channels=32, out_channels=48, layout=last, direction=Direction.TRANSPOSED),
    )
    for plan in plans:
        rng = np.random.default_rng(0)
        sizes = plan.input_sizes
        shape = (2, *sizes, plan.in_channels) if plan.layout is last else (2, plan.in_channels, *sizes)
        x, w = (rng.integers(-2, 3, s).astype("float32") for s in (shape, plan.weight_shape))
        y, saved = dispatch.forward(plan, x, w, save=True, backend=JUDGE)
        assert saved is not None
        dy = rng.integers(-2, 3, y.shape).astype("float32")
        dx, dw, _ = dispatch.backward(plan, dy, saved)
        recipes = conv_recipe.forward, conv_recipe.input_gradient, conv_recipe.weights_gradient
        given = {"x": x, "w": w}, {"dy": dy, "w": w}, {"x": x, "dy": dy}
        for recipe, arrays, name, expected in zip(recipes, given, ("y", "dx", "dw"), (y, dx, dw), strict=True):
            assert expected is not None
            made = recipe(plan, shape, adapter=kind)
            assert_same(computed(device, made, arrays, name, expected.shape), expected, f"{kind}, {name}")
