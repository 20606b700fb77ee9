"""Every operator under every rule in every layout, in double precision, against differences. Ties and kinks are excluded by
the inputs: values lie far apart, so that nothing may be left out of the comparison."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.gradients.broken_backend import MISTAKES

import astride
from astride import backends
from astride.like import caffe, chainer, mps, mxnet, numpy_loops
from astride.like import pytorch as F
from astride.plan.kinds import Edge, LpForm, LpScale

SIZES = {1: (7,), 2: (6, 5), 3: (4, 3, 5)}
LAYOUTS = ("channels_first", "channels_last")


def apart(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Distinct values a tenth apart, of both signs; no two of one magnitude, and no few of them summing to 0."""
    rng = np.random.default_rng([seed, *shape])
    count = math.prod(shape)
    return ((rng.permutation(count) + 0.3 - count // 2) / 10).reshape(shape)


def shape_of(rank: int, layout: str, channels: int = 2) -> tuple[int, ...]:
    return (2, channels, *SIZES[rank]) if layout == "channels_first" else (2, *SIZES[rank], channels)


def assert_right(fn: Any, *args: Any, tolerance: float = 1e-6, **kwargs: Any) -> None:
    """Gradients agree, in at least one argument, and no element was left out as a kink."""
    report = astride.check_gradient(fn, *args, tolerance=tolerance, **kwargs)
    assert report, str(report)
    assert report.differences and all(d.kinks == 0 and d.tried > 0 for d in report.differences), str(report)


POOLS: list[tuple[str, str, dict[str, Any]]] = [
    ("max_pool", "explicit", dict(kernel=3, stride=2, padding=1)),
    ("max_pool", "explicit", dict(kernel=2, stride=1, padding=1, dilation=2, tie="equal_share")),
    ("max_pool", "explicit", dict(kernel=2, stride=2, tie="all_full", rounding="ceil")),
    ("max_pool", "explicit", dict(kernel=3, stride=1, padding=2, tie="after_nan")),
    ("max_pool", "caffe", dict(kernel=2, stride=2, padding=1)),
    ("max_pool", "pytorch", dict(kernel=3, stride=2, padding=1, ceil_mode=True)),
    ("max_pool", "mps", dict(kernel=2, stride=1)),
    ("max_pool", "mps", dict(kernel=3, stride=2, edge="clamp")),
    ("min_pool", "explicit", dict(kernel=3, stride=2, padding=1)),
    ("min_pool", "caffe", dict(kernel=2, stride=1)),
    ("min_pool", "mps", dict(kernel=3, stride=2, edge="clamp")),
    ("avg_pool", "explicit", dict(kernel=3, stride=2, padding=1)),
    ("avg_pool", "explicit", dict(kernel=2, stride=1, padding=1, divisor="padded", dilation=2)),
    ("avg_pool", "explicit", dict(kernel=2, stride=2, rounding="ceil", divisor_override=3)),
    ("avg_pool", "caffe", dict(kernel=3, stride=2, padding=1)),
    ("avg_pool", "pytorch", dict(kernel=2, stride=2, padding=1, ceil_mode=True)),
    ("avg_pool", "pytorch", dict(kernel=2, stride=1, padding=1, count_include_pad=False)),
    ("avg_pool", "mps", dict(kernel=3, stride=2)),
    ("avg_pool", "mps", dict(kernel=3, stride=2, edge="clamp", zero_pad_size=1)),
    ("lp_pool", "explicit", dict(kernel=3, stride=2, padding=1)),
    ("lp_pool", "explicit", dict(kernel=2, stride=1, p=math.inf)),
    ("lp_pool", "pytorch", dict(kernel=2, stride=2, ceil_mode=True)),
    ("lp_pool", "mps", dict(kernel=3, stride=2)),
    ("lp_pool", "mps", dict(kernel=2, stride=1, edge="clamp")),
    ("max_pool", "mxnet", dict(kernel=3, stride=2, padding=1, pooling_convention="full")),
    ("max_pool", "chainer", dict(kernel=2, stride=2, padding=1, cover_all=False)),
    ("max_pool", "opencv", dict(kernel=2, stride=2, padding=2)),
    ("max_pool", "darknet", dict(kernel=2, stride=1)),
    ("avg_pool", "mxnet", dict(kernel=3, stride=2, padding=1, pooling_convention="full")),
    ("avg_pool", "mxnet", dict(kernel=2, stride=1, padding=2, pool_type="sum")),
    ("avg_pool", "chainer", dict(kernel=3, stride=2, padding=1, pad_value=None)),
    ("avg_pool", "opencv", dict(kernel=3, stride=2, padding=1)),
    ("lp_pool", "mxnet", dict(kernel=2, stride=1, padding=1, p=1)),
    ("lp_pool", "mxnet", dict(kernel=3, stride=2, padding=1, p=2)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("op", "rules", "arguments"), POOLS)
def test_pools(op: str, rules: str, arguments: dict[str, Any], rank: int, layout: str) -> None:
    assert_right(getattr(astride, op), apart(shape_of(rank, layout)), rules=rules, layout=layout, **arguments)


@pytest.mark.parametrize("gradient", ["mask", "share", "argmax"])
@pytest.mark.parametrize("op", [numpy_loops.max_pool, numpy_loops.min_pool])
def test_numpy_loops(op: Any, gradient: str) -> None:
    assert_right(op, apart((2, 2, 6, 4)), 2, gradient=gradient)
    assert_right(numpy_loops.mean_pool, apart((2, 2, 6, 4)), 2)


@pytest.mark.parametrize("edge", [e.value for e in Edge])
@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "lp_pool"])
def test_edges(op: str, edge: str) -> None:
    """Every edge mode, padding beyond one turn included: gradients fold back onto the pixels that were read."""
    pads = ((2, 2), (2, 1)) if edge == "skip" else ((2, 3), (4, 1))
    arguments: dict[str, Any] = dict(kernel=3, stride=(1, 2), padding=pads, edge=edge, edge_value=0.03)
    if op == "avg_pool":
        arguments["divisor"] = "kernel"
    assert_right(getattr(astride, op), apart((1, 2, 4, 3)), **arguments)


@pytest.mark.parametrize("scale", [s.value for s in LpScale])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("form", "p"),
    [(LpForm.ABSOLUTE, 1.0), (LpForm.ABSOLUTE, 1.5), (LpForm.ABSOLUTE, 2.0), (LpForm.ABSOLUTE, 3.0), (LpForm.SIGNED, 1.0)]
    + [(LpForm.SIGNED, 2.0), (LpForm.SIGNED_ROOT, 3.0)],
)
def test_norms(form: str, p: float, scale: str, scaled: bool) -> None:
    x = apart((1, 2, 5, 4))
    x = -np.abs(x) if form == LpForm.SIGNED_ROOT else x  # cubes of both signs may all but cancel
    assert_right(astride.lp_pool, x, kernel=2, stride=1, padding=1, p=p, form=form, scale=scale, scaled=scaled, tolerance=1e-5)


def test_norms_of_signed_powers() -> None:
    """PyTorch's odd orders have a real root only where the sum is positive."""
    assert_right(F.lp_pool2d, np.abs(apart((1, 2, 4, 4))), 3.0, 2)
    assert_right(F.lp_pool1d, np.abs(apart((1, 2, 8))), 2.5, 3, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rules", ["explicit", "caffe"])
def test_stochastic(rules: str, layout: str) -> None:
    x = np.abs(apart(shape_of(2, layout)))
    arguments: dict[str, Any] = dict(kernel=2, stride=2, rules=rules, layout=layout)
    assert_right(astride.stochastic_pool, x, **arguments)
    out = tuple(axis.out for axis in astride.plan("stochastic_pool", x.shape, dtype="float64", **arguments).axes)
    uniform = np.full((2, 2, *out) if layout == "channels_first" else (2, *out, 2), 0.377)
    assert_right(astride.stochastic_pool, x, uniform=uniform, training=True, **arguments)


CONVOLUTIONS: list[tuple[str, dict[str, Any]]] = [
    ("explicit", dict(stride=2, padding=1)),
    ("explicit", dict(padding="same", dilation=2, flip=True)),
    ("explicit", dict(padding=2, groups=2)),
    ("explicit", dict(padding=1, batch_groups=2)),
    ("explicit", dict(padding=1, input_dilation=2)),
    ("explicit", dict(padding=2, edge="mirror_edge")),
    ("caffe", dict(stride=2, padding=1, groups=2)),
    ("pytorch", dict(padding=1, padding_mode="reflect")),
    ("pytorch", dict(padding=1, padding_mode="circular", stride=2)),
    ("pytorch", dict(padding="same")),
    ("mps", dict(stride=2)),
    ("mps", dict(stride=1, edge="clamp")),
    ("mxnet", dict(stride=2, padding=1, groups=2)),
    ("chainer", dict(stride=2, cover_all=True)),
    ("opencv", dict(padding=2, dilation=2)),
    ("darknet", dict(pad=True, stride=2)),
    ("numpy_loops", dict(padding=1)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("rules", "arguments"), CONVOLUTIONS)
def test_convolutions(rules: str, arguments: dict[str, Any], rank: int, layout: str) -> None:
    groups = arguments.get("groups", 1)
    x = apart(shape_of(rank, layout, 2 * groups), 1)
    w, b = apart((2 * groups, 2, *(3, 2, 3)[:rank]), 2), apart((2 * groups,), 3)
    assert_right(astride.conv, x, w, b, rules=rules, layout=layout, **arguments)


TRANSPOSED: list[tuple[str, dict[str, Any]]] = [
    ("explicit", dict(stride=2, padding=1, output_padding=1)),
    ("explicit", dict(stride=2, dilation=2, flip=True, groups=2)),
    ("caffe", dict(stride=2, padding=1)),
    ("pytorch", dict(stride=3, padding=1, output_padding=2, groups=2)),
    ("mps", dict(stride=2, padding="full")),
    ("mxnet", dict(stride=2, padding=1, output_padding=1)),
    ("chainer", dict(stride=2, padding=1, groups=2)),
    ("opencv", dict(stride=2, dilation=2)),
    ("numpy_loops", dict(stride=2)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("rules", "arguments"), TRANSPOSED)
def test_transposed_convolutions(rules: str, arguments: dict[str, Any], rank: int, layout: str) -> None:
    groups = arguments.get("groups", 1)
    x = apart((1, 2 * groups, *(3, 4, 2)[:rank]) if layout == "channels_first" else (1, *(3, 4, 2)[:rank], 2 * groups), 1)
    w, b = apart((2 * groups, 2, *(3, 2, 3)[:rank]), 2), apart((2 * groups,), 3)
    assert_right(astride.conv_transpose, x, w, b, rules=rules, layout=layout, **arguments)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rules", ["explicit", "pytorch"])
def test_unpooling(rules: str, layout: str) -> None:
    rng = np.random.default_rng(5)
    x = apart(shape_of(2, layout))
    indices = np.stack([rng.permutation(120)[:30] for _ in range(4)]).reshape(2, 2, 6, 5)
    indices = indices if layout == "channels_first" else np.moveaxis(indices, 1, -1)
    assert_right(astride.max_unpool, x, np.ascontiguousarray(indices), kernel=2, rules=rules, layout=layout)


def test_everything_differs_between_the_axes() -> None:
    """Height, width, kernels, strides and pads all unequal: a mix-up of two of them would show."""
    x, w = apart((2, 3, 8, 5)), apart((4, 3, 3, 2), 1)
    assert_right(astride.conv, x, w, stride=(2, 1), padding=(0, 2))
    assert_right(F.conv_transpose2d, apart((2, 3, 3, 4)), apart((3, 2, 2, 3), 1), None, (3, 2), (1, 0), (2, 1))
    assert_right(F.avg_pool2d, x, (3, 2), (2, 1), (1, 0))
    assert_right(F.max_pool2d, x, (3, 2), (2, 1), (1, 0))


@pytest.mark.parametrize(
    ("call", "args", "kwargs"),
    [
        (caffe.pooling, (apart((1, 2, 5, 6)),), dict(kernel_h=3, kernel_w=2, stride=2, pad_h=1, pad_w=0)),
        (caffe.pooling, (apart((1, 2, 5, 6)),), dict(pool="AVE", global_pooling=True)),
        (caffe.pooling, (np.abs(apart((1, 2, 5, 6))),), dict(pool="STOCHASTIC", kernel_size=2, stride=2, phase="TRAIN", seed=4)),
        (caffe.convolution, (apart((2, 3, 4, 5)), apart((2, 3, 3, 2)), apart((2,))), dict(kernel_h=3, kernel_w=2, pad=1)),
        (caffe.convolution, (apart((2, 2, 3, 5)), apart((2, 3, 2)), apart((2,))), dict(kernel_size=2, axis=2)),
        (caffe.deconvolution, (apart((2, 2, 3, 3)), apart((2, 2, 3, 3)), apart((2,))), dict(kernel_size=3, stride=2, pad=1)),
        (mps.pooling_max, (apart((1, 6, 5, 2)), 3, 2, 2, 1), dict(edge_mode="clamp")),
        (mps.dilated_pooling_max, (apart((1, 6, 5, 2)), 2, 2, 2, 2), {}),
        (mps.pooling_average, (apart((1, 6, 5, 2)), 3, 3, 2, 2), dict(edge_mode="clamp")),
        (mps.pooling_l2_norm, (apart((1, 6, 5, 2)), 3, 2, 2, 3), dict(offset=(1, 0), destination_size=(2, 2))),
        (mps.convolution, (apart((1, 5, 6, 3)), apart((2, 3, 2, 3)), apart((2,))), dict(stride_in_pixels_x=2)),
        (mps.convolution_transpose, (apart((1, 3, 2, 3)), apart((2, 3, 2, 3)), apart((2,))), dict(stride_in_pixels_x=2)),
        (numpy_loops.conv, (apart((1, 2, 5, 5)), apart((3, 2, 3, 3)), apart((3,))), dict(stride=2, pad=1)),
        (numpy_loops.conv_transpose, (apart((1, 2, 3, 3)), apart((2, 3, 3, 3)), apart((3,))), dict(stride=2)),
        (chainer.unpooling_2d, (apart((1, 2, 3, 4)), (3, 2), (2, 1)), {}),
        (chainer.upsampling_2d, (apart((1, 1, 2, 3)), np.array([[[[3, 5, 0], [2, 1, 4]]]]), (2, 3), 1), {}),
        (
            mxnet.Deconvolution,
            (apart((1, 2, 3)), apart((2, 1, 3))),
            dict(kernel=(3,), stride=(2,), num_filter=1, target_shape=(6,)),
        ),
        (F.max_pool1d, (apart((2, 7)), 3, 2), {}),  # unbatched
        (F.avg_pool3d, (apart((2, 4, 3, 4)), 2), {}),
        (F.conv2d, (apart((2, 5, 4)), apart((3, 2, 3, 2)), apart((3,))), {}),
        (F.lp_pool3d, (apart((1, 2, 4, 2, 4)), 2.0, 2), {}),
    ],
)
def test_like(call: Any, args: Any, kwargs: dict[str, Any]) -> None:
    assert_right(call, *args, **kwargs)


# The check itself


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "broken", ("tests.gradients.broken_backend", "part of the tests"))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("op", ["max_pool", "avg_pool", "lp_pool", "conv"])
def test_mistakes_are_found(op: str, mistake: str) -> None:
    weights = (apart((2, 2, 3, 2), 1),) if op == "conv" else ()
    arguments: dict[str, Any] = {} if op == "conv" else dict(kernel=3, stride=1)
    x = apart((1, 2, 6, 5))
    assert_right(getattr(astride, op), x, *weights, **arguments)
    report = astride.check_gradient(getattr(astride, op), x, *weights, backend=f"broken:{mistake}", **arguments)
    assert not report
    assert "GRADIENTS DIFFER" in str(report) and "argument 0" in str(report) and "numeric" in str(report)


def test_ties_are_counted_not_compared() -> None:
    x = np.array([[[1.0, 1.0, 5.0, 2.0]]])
    report = astride.check_gradient(F.max_pool1d, x, 2)
    assert report and report.differences[0].kinks == 2
    assert "2 at a kink left out" in str(report)


def test_zero_windows_of_a_norm_are_kinks() -> None:
    report = astride.check_gradient(F.lp_pool1d, np.zeros((1, 1, 4)), 2.0, 2)
    assert report.differences[0].kinks == 4


def test_a_wrong_array_of_several_is_named() -> None:
    """Only the second argument's gradient is compared where `wrt` says so."""
    report = astride.check_gradient(F.conv1d, apart((1, 1, 5)), apart((1, 1, 3)), wrt=(1,))
    assert report and [d.argument for d in report.differences] == [1]
