"""Errors by example, whole: what was wrong, what was given, both sides of the relation, whose rule it is, and a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import astride
from astride.errors import AstrideError
from astride.like import caffe
from astride.like import pytorch as F

X = np.zeros((1, 3, 8, 8), "float32")
W = np.zeros((4, 3, 3, 3), "float32")


def told(call: Callable[[], Any], error: type[Exception]) -> str:
    """The message of the error that the call raises."""
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, AstrideError)
    return str(raised.value)


def text(*lines: str) -> str:
    return "\n".join(lines)


def test_a_kernel_larger_than_the_padded_input() -> None:
    assert told(lambda: astride.max_pool(X, kernel=12, padding=1), astride.ArgumentError) == text(
        "max_pool [explicit]: the kernel is larger than the padded input",
        "  given     kernel = (12, 12);  dilation = (1, 1);  padding = ((1, 1), (1, 1));  x (1, 3, 8, 8) float32",
        "  required  (kernel - 1) * dilation + 1 <= size + padding, on axis H: 12 <= 8 + 2",
        "  try       kernel=10 on axis H, or more padding",
    )


def test_a_pad_not_smaller_than_the_kernel_under_caffe() -> None:
    assert told(lambda: astride.max_pool(X, kernel=2, padding=2, rules="caffe"), astride.ArgumentError) == text(
        "max_pool [caffe]: the pad is not smaller than the kernel",
        "  given     padding = 2;  kernel = 2;  x (1, 3, 8, 8) float32",
        "  required  pad < kernel, on axis H: 2 < 2",
        "  because   Caffe, src/caffe/layers/pooling_layer.cpp",
        "  try       padding=1",
    )


def test_a_negative_stride() -> None:
    assert told(lambda: F.avg_pool2d(X, 2, -1), astride.ArgumentError) == text(
        "avg_pool [pytorch]: stride is below 1",
        "  given     stride = -1;  x (1, 3, 8, 8) float32",
        "  required  stride >= 1: -1",
        "  try       stride=1",
    )


def test_a_wrong_rank() -> None:
    assert told(lambda: astride.lp_pool(X[0, 0], kernel=2), astride.ArgumentError) == text(
        "lp_pool [explicit]: x has the wrong rank",
        "  given     x (8, 8) float32",
        "  required  x.ndim is 3 or 4 or 5: 2",
        "  try       a batch and a channel axis besides the windows' axes",
    )


def test_channels_not_divisible_by_groups() -> None:
    assert told(lambda: astride.conv(X, W, groups=2), astride.ArgumentError) == text(
        "conv [explicit]: the input's channels are not divisible by groups",
        "  given     groups = 2;  x (1, 3, 8, 8) float32;  w (4, 3, 3, 3) float32",
        "  required  channels % groups == 0: 3 % 2 = 1",
        "  try       groups=1",
    )


def test_mixed_types() -> None:
    assert told(lambda: astride.conv(X, W.astype("float64")), astride.ArrayError) == text(
        "conv [explicit]: w has another dtype than the plan; nothing is promoted",
        "  given     x (1, 3, 8, 8) float32;  w (4, 3, 3, 3) float64",
        "  required  w.dtype == float32: float64",
        "  try       w.astype('float32')",
    )


def test_integers_where_the_rule_has_none() -> None:
    message = told(lambda: astride.avg_pool(X.astype("int32"), kernel=2, rules="caffe"), astride.ArgumentError)
    assert message == text(
        "avg_pool [caffe]: there is no rule for int32 arrays",
        "  given     dtype = 'int32';  x (1, 3, 8, 8) int32",
        "  required  one of float32, float64",
        "  because   Caffe, src/caffe/layers/pooling_layer.cpp",
        "  try       x.astype('float32')",
    )


def test_out_overlapping_an_input() -> None:
    assert told(lambda: astride.max_pool(X, kernel=1, out=X), astride.ArrayError) == text(
        "max_pool [explicit]: out overlaps x",
        "  given     out (1, 3, 8, 8) float32;  x (1, 3, 8, 8) float32",
        "  try       an array of its own, or no out",
    )


def test_rules_nobody_knows() -> None:
    assert told(lambda: astride.max_pool(X, kernel=2, rules="tensorfow"), astride.ArgumentError) == text(
        "max_pool [tensorfow]: there are no rules of that name",
        "  given     rules = 'tensorfow';  x (1, 3, 8, 8) float32",
        f"  required  one of {', '.join(astride.rules.RULES)}",
        '  try       rules="explicit"',
    )


def test_an_operator_the_rules_lack() -> None:
    assert told(lambda: astride.lp_pool(X, kernel=2, rules="caffe"), astride.UnsupportedError) == text(
        "lp_pool [caffe]: caffe has no lp_pool",
        "  given     x (1, 3, 8, 8) float32",
        f"  required  one of {', '.join(name for name in astride.rules.RULES if astride.rules.has(name, 'lp_pool'))}",
        '  try       rules="explicit"',
    )


def test_a_kernel_that_declines_says_why() -> None:
    """And never falls back where it was named."""
    message = told(lambda: astride.max_pool(X, kernel=2, edge="wrap", backend="reference:loops4"), astride.UnsupportedError)
    assert message == text(
        "max_pool [explicit]: no kernel of backend reference:loops4 takes this plan",
        "  given     x (1, 3, 8, 8) float32",
        '  try       backend="auto"',
        "  reference:loops4 textbook loops have no wrap edge",
    )


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: astride.max_pool(X, kernel=2, backend="cuda"), astride.ArgumentError, ("no such backend", "auto, cpu")),
        (
            lambda: astride.max_pool(X, kernel=2, backend="reference:loops9"),
            astride.ArgumentError,
            ("no kernel of that name", "reference:im2col, reference:loops2, reference:loops3, reference:loops4"),
        ),
        (lambda: astride.max_pool("x", kernel=2), astride.ArrayError, ("x is not an array of real numbers",)),
        (lambda: astride.max_pool(X + 1j, kernel=2), astride.ArrayError, ("x is not an array of real numbers", "complex64")),
        (lambda: astride.max_pool([[1.0, 2], [3]], kernel=2), astride.ArrayError, ("x is not an array", "numpy.asarray(x)")),
        (lambda: astride.plan("max_pol", X.shape, kernel=2), astride.ArgumentError, ("no rules have an operator", "max_pool")),
        (lambda: astride.plan("_outs", X.shape), astride.ArgumentError, ("no rules have an operator of that name",)),
        (lambda: astride.plan("conv", X.shape), astride.ArgumentError, ("conv needs w_shape", "w_shape=w.shape")),
        (
            lambda: astride.plan("max_pool", X.shape, kernel=2, w_shape=W.shape),
            astride.ArgumentError,
            ("max_pool has no w_shape",),
        ),
        (lambda: astride.max_pool(X, kernel=2, padding="sam"), astride.ArgumentError, ("'valid', 'same', 'same_lower'",)),
        (
            lambda: caffe.convolution(X, W, num_output=5, kernel_size=3),
            astride.ArrayError,
            ("w does not fit the plan", "w.shape == (5, 3, 3, 3): (4, 3, 3, 3)"),
        ),
        (lambda: caffe.convolution(X, W, kernel_size=3, colour=1), astride.ArgumentError, ("no field 'colour'", "num_output")),
        (lambda: caffe.convolution(X, W, kernel_size=3, bias_term=True), astride.ArgumentError, ("bias_term and b disagree",)),
        (lambda: caffe.convolution(X, W, kernel_size=3, axis=3), astride.ArgumentError, ("axis leaves no spatial axes",)),
        (lambda: caffe.pooling(X, kernel_size=2, pool="AVE", return_mask=True), astride.ArgumentError, ("only MAX has a mask",)),
        (lambda: F.max_pool2d(X[0, 0], 2), astride.ArgumentError, ("input has the wrong rank", "3 (unbatched) or 4: 2")),
        (lambda: astride.configure(threads=0), astride.ArgumentError, ("threads >= 1: 0",)),
        (lambda: astride.configure(winograd=3), astride.ArgumentError, ("winograd is the side of a tile", "one of 0, 2, 4")),
        (lambda: astride.configure(backend=3), astride.ArgumentError, ("a backend is chosen by its name",)),
        (lambda: astride.vjp(np.maximum, X, X), astride.UnsupportedError, ("'maximum' is not one operator of astride",)),
        (lambda: astride.vjp(lambda x: x, X), astride.UnsupportedError, ("arithmetic between two operators is not recorded",)),
        (lambda: astride.vjp(astride.max_pool, X, wrt=(1,), kernel=2), astride.ArgumentError, ("among [0]", "wrt=(0,)")),
        (lambda: astride.vjp(astride.max_pool, X, wrt="x", kernel=2), astride.ArgumentError, ("argument 'x' is no floating",)),
        (lambda: astride.max_pool(X, kernel=np.float32), astride.ArgumentError, ("kernel = <class 'numpy.float32'>",)),
        (
            lambda: astride.check_gradient(astride.max_pool, np.arange(8).reshape(1, 1, 8), kernel=2),
            astride.ArgumentError,
            ("there is no floating array to differentiate by",),
        ),
    ],
)
def test_what_is_said(call: Callable[[], Any], error: type[Exception], says: tuple[str, ...]) -> None:
    message = told(call, error)
    for part in says:
        assert part in message, message


@pytest.mark.parametrize(
    ("g", "says"),
    [
        (np.zeros((1, 3, 4), "float32"), "shape (1, 3, 4, 4), dtype float32"),
        (np.zeros((1, 3, 4, 4)), "g (1, 3, 4, 4) float64"),
        ((None, None), "at most 1: 2"),
        ("ones", "g is no array of numbers"),
    ],
)
def test_a_gradient_that_does_not_fit(g: Any, says: str) -> None:
    _, pull = astride.vjp(astride.max_pool, X, kernel=2)
    assert says in told(lambda: pull(g), astride.ArrayError)


def test_the_tree() -> None:
    """Callers who know only Python's own exceptions catch ours by them."""
    for error, own in (
        (astride.ArgumentError, ValueError),
        (astride.ArrayError, TypeError),
        (astride.UnsupportedError, NotImplementedError),
        (astride.BackendUnavailable, ImportError),
    ):
        assert issubclass(error, astride.AstrideError) and issubclass(error, own)


def test_settings_after_an_error() -> None:
    """A block that fails leaves no settings behind."""
    with pytest.raises(astride.ArgumentError), astride.use(backend="reference:loops2"):
        astride.max_pool(X, kernel=0)
    assert astride.max_pool(X, kernel=2, edge="wrap").shape == (1, 3, 4, 4)
