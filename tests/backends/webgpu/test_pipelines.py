"""Every kernel of convolution and of the dense operators becomes a pipeline on a device that has WebGPU's default limits only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import wgpu
from tests.backends.webgpu.test_conv import BACK, PLAN, TILES
from tests.backends.webgpu.test_dense import ALL

from astride.backends.webgpu import conv_recipe
from astride.backends.webgpu import dense_recipe as dense
from astride.backends.webgpu.device import GROUPS_MAX, LIMITS, Device
from astride.backends.webgpu.product import Epilogue
from astride.backends.webgpu.recipe import Recipe, each, program
from astride.backends.webgpu.tiles import PLAIN_TILE
from astride.plan import (
    BroadcastPlan,
    ConvPlan,
    ElementwisePlan,
    LrnPlan,
    MatmulPlan,
    Plan,
    ReducePlan,
    Shape,
    SoftmaxLossPlan,
    SoftmaxPlan,
)
from astride.plan.dense import Function
from astride.plan.kinds import Edge, Layout


def convolutions() -> Iterator[Recipe]:
    for tile in (PLAIN_TILE, *TILES):
        for base in (PLAN, BACK):
            for layout in Layout:
                plan = replace(base, layout=layout)
                yield from _directions(plan, tile)
    clamped = replace(PLAN, edge=Edge.CLAMP)
    yield conv_recipe.input_gradient(clamped, (2, 8, 13, 9))
    relu = dense.epilogue(ElementwisePlan(dtype="float32", function=Function.RELU, slope=0.5), bias=True)
    yield conv_recipe.forward(PLAN, (2, 8, 13, 9), epilogue=relu)


def _directions(plan: ConvPlan, tile: object) -> Iterator[Recipe]:
    sizes = plan.input_sizes
    x = (2, plan.in_channels, *sizes) if plan.layout is Layout.CHANNELS_FIRST else (2, *sizes, plan.in_channels)
    yield conv_recipe.forward(plan, x, epilogue=Epilogue(True), tile=tile)  # type: ignore[arg-type]
    yield conv_recipe.input_gradient(plan, x, tile=tile)  # type: ignore[arg-type]
    yield conv_recipe.weights_gradient(plan, x, tile=tile)  # type: ignore[arg-type]


def of_dense(plan: Plan, x: Shape, z: Shape | None) -> Iterator[Recipe]:
    match plan:
        case BroadcastPlan():
            assert z is not None
            yield dense.broadcast(plan, x, z, False)
            yield dense.broadcast_gradient(plan, x, z)
            yield dense.broadcast_small_gradient(plan, x, z)
        case ElementwisePlan():
            yield dense.elementwise(plan, x)
            yield dense.elementwise_gradient(plan, x)
        case LrnPlan():
            yield dense.lrn(plan, x).then(dense.lrn_gradient(plan, x))
        case MatmulPlan():
            yield dense.matmul(plan, x, Epilogue(True))
            yield dense.matmul_input_gradient(plan, x).then(dense.matmul_weights_gradient(plan, x))
        case ReducePlan():
            yield dense.reduce(plan, x).then(dense.reduce_gradient(plan, x))
        case SoftmaxLossPlan():
            yield dense.loss(plan, x).then(dense.loss_gradient(plan, x))
        case SoftmaxPlan():
            yield dense.softmax(plan, x).then(dense.softmax_gradient(plan, x))


SHARED = re.compile(r"var<workgroup> \w+: (?:array<(vec4<f32>|f32|u32), (\d+)>|(atomic<u32>));")


def shared_bytes(source: str) -> int:
    """Workgroup memory that a text declares: wgpu itself does not hold it against the limit."""
    assert source.count("var<workgroup>") == len(SHARED.findall(source))
    return sum((16 if kind.startswith("vec4") else 4) * int(count or 1) for kind, count, _ in SHARED.findall(source))


def make(device: Device, recipe: Recipe) -> int:
    """Every pipeline of a recipe. How many there were."""
    for step in recipe.steps:
        program = step.program
        assert len(program.inputs) + len(program.outputs) <= LIMITS["max-storage-buffers-per-shader-stage"]
        assert shared_bytes(program.source) <= LIMITS["max-compute-workgroup-storage-size"]
        device.pipeline(program.source, program.entry, program.constants, program.layout)
    return len(recipe.steps)


def test_the_device_has_no_more_than_the_default_limits(device: Device) -> None:
    for name in (
        "max-compute-invocations-per-workgroup",
        "max-compute-workgroup-storage-size",
        "max-storage-buffers-per-shader-stage",
    ):
        assert device.wgpu.limits[name] <= LIMITS[name]


def test_convolution(device: Device) -> None:
    assert sum(make(device, recipe) for recipe in convolutions()) > 100


def test_dense(device: Device) -> None:
    made = 0
    for _, case in ALL:
        x, z = (*case.shapes, None)[:2]
        assert x is not None
        made += sum(make(device, recipe) for recipe in of_dense(case.plan, x, z))
    made += make(device, dense.accuracy((4, 5), 1, 2, 255)) + make(device, dense.accumulate(7))
    assert made > 100


def test_a_kernel_beyond_the_limits_is_found(device: Device) -> None:
    body = "  much[i] = vec4<f32>(x[i]);\n  y[i] = much[i].x;\n"
    step = each("greedy", ["x"], ["y"], {"count": 1}, body, functions="var<workgroup> much: array<vec4<f32>, 1025>;\n")
    assert shared_bytes(step.program.source) == 16400
    with pytest.raises(AssertionError):
        make(device, Recipe((step,)))
    wide = program("wide", (("x", "f32"),), (("y", "f32"),), (("count", "i32"),), "", "  y[lane] = x[lane];\n", 257)
    with pytest.raises(wgpu.GPUValidationError):
        make(device, Recipe((replace(step, program=wide),)))


@pytest.mark.parametrize("groups", [0, 1, 65535, 65536, 65535 * 3 + 1, 40_000_000])
def test_a_flat_grid_fits_two_dimensions(groups: int) -> None:
    step = replace(each("none", ["x"], ["y"], {"count": 0}, ""), groups=groups)
    x, y, z = step.grid
    assert max(x, y, z) <= GROUPS_MAX
    assert groups <= x * y * z < groups + y
