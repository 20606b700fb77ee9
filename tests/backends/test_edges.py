"""Edges, settled once in the plan: every kernel of every window operator, under every framework's rules.

A rule either refuses such arguments with an error of ours or makes a plan on which all kernels agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import Result, assert_agree, climb, run
from tests.backends.test_contract import WINDOWS
from tests.backends.test_memory import VARIANTS
from tests.cases.records import Inputs, filled
from tests.compare import assert_same, assert_unchanged

import astride
from astride import dispatch
from astride.plan import ConvPlan, Plan, PoolPlan
from astride.rules import RULES, has

RULED = [(name, op) for name in RULES for op in WINDOWS if has(name, op)]
IDS = [f"{name}, {op}" for name, op in RULED]
SIZED = [(name, op) for name, op in RULED if op != "adaptive_pool"]
SIZED_IDS = [f"{name}, {op}" for name, op in SIZED]
"""Operators whose windows have a kernel; the others find theirs themselves, and always inside the input."""
SIZES = (6, 4)
SHAPE = (2, 2, *SIZES)

CEILINGS: tuple[dict[str, Any], ...] = (
    dict(rounding="ceil"),
    dict(rounding="ceil", clip="never"),
    dict(ceil_mode=True),
    dict(pooling_convention="full"),
    dict(cover_all=True),
    dict(rounding_type="ceil"),
    dict(rounding_type="ceil_torch"),
    dict(round_mode="CEIL"),
    dict(pad_mode=0),
)
"""How the frameworks ask for sizes rounded up. A rule refuses the words of another."""

GEOMETRIES: dict[str, tuple[dict[str, Any], ...]] = {
    "windows that fit": (dict(kernel=2, stride=2),),
    "padded": (dict(kernel=3, stride=2, padding=1), dict(kernel=3, stride=2, padding="same")),
    "padded on one side": (dict(kernel=2, stride=1, padding=((0, 1), (1, 0))), dict(kernel=2, stride=1, padding=1)),
    "padded by the kernel and more": (
        dict(kernel=2, stride=1, padding=2),
        dict(kernel=2, stride=1, padding=((4, 0), (0, 3))),
        dict(kernel=1, stride=2, padding=((0, 3), (3, 3))),
    ),
    "rounded up": tuple(dict(kernel=k, stride=s, **up) for k, s in ((3, 2), (1, 4), (2, 5)) for up in CEILINGS),
    "dilated and rounded up": tuple(dict(kernel=2, stride=2, dilation=3, **up) for up in CEILINGS),
    "dilated and rounded up, padded": tuple(dict(kernel=2, stride=2, dilation=(3, 2), padding=1, **up) for up in CEILINGS),
    "a kernel larger than the input": (
        dict(kernel=7, stride=1),
        dict(kernel=(7, 3), stride=2),
        dict(kernel=(7, 5), stride=3, padding=1),
        dict(kernel=(8, 5), stride=4, ceil_mode=True),
        dict(kernel=(7, 5), stride=2, padding="same"),
    ),
}


def plan_or_refusal(name: str, op: str, arguments: dict[str, Any], shape: tuple[int, ...] = SHAPE) -> Plan | None:
    """The plan, or None where the rules refuse. Any other exception is an error."""
    given = dict(arguments)
    kernel = given.pop("kernel") if "conv" in op and "kernel" in given else None
    weights: dict[str, Any] = {}
    if "conv" in op and kernel is None:
        return None
    if kernel is not None:
        k = kernel if isinstance(kernel, tuple) else (kernel,) * len(SIZES)
        channels = shape[-1] if given.get("layout") == "channels_last" else shape[1]
        weights = {"w_shape": (channels, 3, *k) if op == "conv_transpose" else (3, channels, *k)}
    try:
        plan: Plan = astride.plan(op, shape, rules=name, **weights, **given)
    except (astride.ArgumentError, astride.ArrayError):
        return None
    return plan


def whole(name: str, op: str) -> dict[str, Any]:
    """Arguments that any rule takes: windows that fit exactly, or, for global averages, one."""
    for arguments in (dict(kernel=2, stride=2), dict(kernel=SIZES, stride=1), dict(output_size=(3, 2))):
        if plan_or_refusal(name, op, arguments) is not None:
            return arguments
    raise AssertionError(f"{name} refuses every {op}")


def inputs_for(plan: Plan, fill: str, shape: tuple[int, ...] = SHAPE) -> Inputs:
    """Arrays of a plan; draws, where a stochastic plan needs them, among them."""
    rng = np.random.default_rng(len(fill))
    if isinstance(plan, ConvPlan):
        return filled(plan, shape, fill, rng, w_shape=plan.weight_shape, bias=True)
    return filled(plan, shape, fill, rng)


def assert_all_agree(inputs: Inputs, where: str) -> Result:
    """Every kernel that takes the plan gives what the plainest gives."""
    kernels = climb(inputs.plan)
    assert len(kernels) >= 2, f"{where}: nothing judges this plan"
    below = run(inputs, kernels[0])
    for kernel in kernels[1:]:
        assert_agree(inputs, run(inputs, kernel), below, f"{where}: {kernel} against {kernels[0]}")
    return below


def accepted(name: str, op: str, geometry: str) -> Iterator[tuple[dict[str, Any], Plan]]:
    for arguments in GEOMETRIES[geometry]:
        plan = plan_or_refusal(name, op, arguments)
        if plan is not None:
            yield arguments, plan


# Geometry: refused, or computed alike by all


@pytest.mark.parametrize(("name", "op"), SIZED, ids=SIZED_IDS)
def test_every_geometry_is_refused_or_computed_alike(name: str, op: str) -> None:
    tried = 0
    for geometry in GEOMETRIES:
        for arguments, plan in accepted(name, op, geometry):
            assert_all_agree(inputs_for(plan, "integers"), f"{geometry}, {arguments}")
            tried += 1
    assert tried or (name, op) == ("darknet", "avg_pool"), "everything is refused"


def test_every_geometry_is_somewhere_accepted_and_most_somewhere_refused() -> None:
    taken = {g: {name for name, op in RULED if any(accepted(name, op, g))} for g in GEOMETRIES}
    assert all(len(names) >= 3 for names in taken.values()), taken
    assert taken["windows that fit"] == set(RULES)
    for geometry in ("padded by the kernel and more", "dilated and rounded up"):
        assert taken[geometry] < set(RULES), geometry


# Values: NaN, infinities, zeros of either sign


@pytest.mark.parametrize(("name", "op"), SIZED, ids=SIZED_IDS)
def test_nan_and_infinities(name: str, op: str) -> None:
    for geometry in ("windows that fit", "padded", "rounded up"):
        for arguments, plan in accepted(name, op, geometry):
            for fill in ("mixed", "all_nan", "all_negative_infinity"):
                inputs = inputs_for(plan, fill)
                assert_all_agree(inputs, f"{fill}, {geometry}, {arguments}")


@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
def test_padding_times_an_infinite_weight_is_nothing(op: str) -> None:
    plan = plan_or_refusal("explicit", op, dict(kernel=3, stride=1, padding=1))
    assert plan is not None
    inputs = inputs_for(plan, "integers")
    x, w, b = inputs.arrays
    assert x is not None and w is not None
    x = np.ones_like(x)
    w = np.ones_like(w)
    w[:, :, 0, 0] = np.inf
    got = assert_all_agree(Inputs(plan, (x, w, b), inputs.dy), "an infinite weight")
    finite = got.y[..., 0, :] if op == "conv" else got.y[..., -1, :]
    assert np.isfinite(finite).all() and np.isinf(got.y).any() and not np.isnan(got.y).any()


def signed_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.random.default_rng(7).choice(np.array([-0.0, 0.0], dtype), shape)


@pytest.mark.parametrize(("name", "op"), [r for r in SIZED if "conv" not in r[1]], ids=[i for i in SIZED_IDS if "conv" not in i])
def test_the_sign_of_zero(name: str, op: str) -> None:
    """An extreme is the very tap that wins, its zero of either sign; a sum begins at +0. Products in BLAS promise no sign."""
    for geometry in ("windows that fit", "padded", "rounded up"):
        for arguments, plan in accepted(name, op, geometry):
            inputs = inputs_for(plan, "zeros")
            x = signed_zeros(SHAPE, np.float32)
            inputs = Inputs(plan, (x, *inputs.arrays[1:]), inputs.dy)
            below = None
            for kernel in climb(plan):
                y = dispatch.forward(plan, *inputs.arrays, backend=kernel)[0]
                below = y if below is None else below
                assert_same(y, below, kernel)
                assert_same(np.signbit(y), np.signbit(below), f"{kernel}, signs, {arguments}")


def test_the_greatest_of_two_zeros_is_the_first() -> None:
    for taps in ((-0.0, 0.0), (0.0, -0.0)):
        x = np.array(taps, np.float32).reshape(1, 1, 2)
        for op in (astride.max_pool, astride.min_pool):
            for kernel in ("loops4", "loops3", "loops2", "im2col"):
                y, places = op(x, kernel=2, return_indices=True, backend=f"reference:{kernel}")
                assert (np.signbit(y).item(), places.item()) == (np.signbit(taps[0]), 0), (taps, op, kernel)


# Nothing: no images, no channels, no taps


@pytest.mark.parametrize(("name", "op"), RULED, ids=IDS)
@pytest.mark.parametrize("shape", [(0, 2, *SIZES), (2, 0, *SIZES), (0, 0, *SIZES)], ids=["no images", "no channels", "neither"])
def test_nothing_in_nothing_out(name: str, op: str, shape: tuple[int, ...]) -> None:
    """An empty result, or for a convolution without input channels its bias alone; gradients are zeros."""
    plan = plan_or_refusal(name, op, whole(name, op), shape)
    if plan is None:
        assert shape[1] == 0, "an empty batch is refused"
        return
    inputs = inputs_for(plan, "integers", shape)
    result = assert_all_agree(inputs, str(shape))
    if shape[0] and isinstance(plan, ConvPlan):
        bias = inputs.arrays[2]
        assert bias is not None
        assert_same(result.y, np.broadcast_to(bias[:, None, None], result.y.shape), "y")
    else:
        assert result.y.size == 0
    for role, gradient, array in zip(plan.roles, result.gradients, inputs.arrays, strict=True):
        if gradient is not None and array is not None and not (role == "b" and shape[0]):
            assert_same(gradient, np.zeros_like(array), f"gradient of {role}")


def test_empty_windows_give_what_the_plan_says() -> None:
    """k=1, s=4 over six pixels: the third window starts at 8."""
    six = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6)
    least = float(np.finfo(np.float32).min)
    expected = {
        ("max_pool", "caffe"): least,
        ("max_pool", "mxnet"): least,
        ("max_pool", "chainer"): -np.inf,
        ("max_pool", "opencv"): 0.0,
        ("avg_pool", "caffe"): -0.0,
        ("avg_pool", "mxnet"): 0.0,
        ("avg_pool", "opencv"): -0.0,
        ("lp_pool", "mxnet"): 0.0,
    }
    for (op, name), value in expected.items():
        flags = {"pooling_convention": "full"} if name == "mxnet" else {}
        plan = plan_of_row(op, name, dict(kernel=1, stride=4, **flags))
        for kernel in climb(plan):
            y = dispatch.forward(plan, six, backend=kernel)[0]
            assert y[0, 0, 2] == value and np.signbit(y[0, 0, 2]) == np.signbit(value), (op, name, kernel)


def plan_of_row(op: str, name: str, arguments: dict[str, Any], n: int = 6) -> PoolPlan:
    plan: PoolPlan = astride.plan(op, (1, 1, n), rules=name, **arguments)
    return plan


# Arrays as they come


@pytest.mark.parametrize(("name", "op"), RULED, ids=IDS)
def test_any_array(name: str, op: str) -> None:
    """Through the public operator and its gradient: any strides, byte order, read-only; inputs stay as they were."""
    arguments = whole(name, op)
    plan = plan_or_refusal(name, op, arguments)
    assert plan is not None
    inputs = inputs_for(plan, "integers")
    arrays = [a for a in inputs.arrays if a is not None]
    options = {key: value for key, value in arguments.items() if key != "kernel" or "conv" not in op}
    function = getattr(astride, op)
    plain, pull = astride.vjp(function, *arrays, rules=name, **options)
    gradients = pull(np.asarray(inputs.dy))
    for variant, change in VARIANTS.items():
        changed = [change(a) for a in arrays]
        before = [a.tobytes() for a in changed]
        y, back = astride.vjp(function, *changed, rules=name, **options)
        assert y.dtype.isnative and y.flags.c_contiguous, variant
        assert_same(y, plain, f"{variant}, y")
        for role, got, want in zip(plan.roles, back(change(inputs.dy)), gradients, strict=False):
            if want is not None:
                assert got.dtype.isnative
                assert_same(got, want, f"{variant}, gradient of {role}")
        for array, bytes_ in zip(changed, before, strict=True):
            assert_unchanged(array, bytes_, variant)
