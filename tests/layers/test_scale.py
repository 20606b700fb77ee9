"""Scale: by hand, gradients of x, scale and bias, axes, a second bottom, in place, shared, folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers import Blob
from astride.layers.scale import Scale

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(51)
X = RANDOM.normal(size=(2, 3, 4, 2))


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    net = single(
        """type: "Scale"
        scale_param { bias_term: true filler { value: 2 } bias_filler { value: 10 } }""",
        in_place=in_place,
        x=(2, 2),
    )
    net.params["layer"][0].data[1] = 3
    (y,) = net.forward(x=[[1, 2], [3, 4]]).values()
    assert y.tolist() == [[12, 16], [16, 22]]
    assert net.backward(**{net.outputs[0]: [[1, 1], [1, 2]]})["x"].tolist() == [[2, 3], [2, 6]]
    assert [p.diff.tolist() for p in net.params["layer"]] == [[4, 10], [2, 3]]


def test_scales_begin_at_one() -> None:
    assert single('type: "Scale"', x=(1, 2)).params["layer"][0].data.tolist() == [1, 1]
    # a filler that is given without a type is the constant 0
    assert single('type: "Scale" scale_param { filler { } }', x=(1, 2)).params["layer"][0].data.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (3,)),
        ({"axis": 0}, (2,)),
        ({"axis": 0, "num_axes": -1}, (2, 3, 4, 2)),
        ({"axis": -2, "num_axes": 2}, (4, 2)),
        ({"num_axes": 0}, ()),
    ],
)
def test_shapes(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    assert [p.shape for p in Bench(Scale(bias=True, **options), [X]).layer.params] == [shape, shape]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("options", [{}, {"axis": 0, "num_axes": 2}, {"axis": -1}, {"num_axes": 0}, {"axis": 0, "num_axes": -1}])
def test_gradient(options: dict[str, Any], bias: bool, in_place: bool) -> None:
    check_gradient(Bench(Scale(bias=bias, **options), [X], in_place=in_place))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 4)), (0, (2,)), (-1, (2,)), (0, ())])
def test_gradient_of_a_second_bottom(axis: int, shape: tuple[int, ...], bias: bool, in_place: bool) -> None:
    other = np.asarray(RANDOM.normal(size=shape))
    check_gradient(Bench(Scale(axis=axis, bias=bias), [X, other], in_place=in_place))
    for want in ([True, False], [False, True]):
        check_gradient(Bench(Scale(axis=axis, bias=bias), [X, other]), want)


def test_two_layers_share_a_scale() -> None:
    net = single(
        """type: "Scale" param { name: "s" } }
        layer { name: "second" type: "Scale" bottom: "y" top: "z" param { name: "s" } """,
        x=(1, 1),
    )
    net.params["layer"][0].data[...] = 3
    assert net.forward(x=[[2]])["z"] == 18
    assert net.backward(z=[[1]])["x"] == 9
    assert net.params["second"][0] is net.params["layer"][0] and net.learnable[0].diff.tolist() == [2 * 2 * 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axis": 4}, "no such axis"),
        ({"num_axes": 4}, r"axis \+ num_axes <= 4: 5"),
        ({"num_axes": -2}, "num_axes >= -1: -2"),
    ],
)
def test_axes_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Bench(Scale(**options), [X])


def test_bottoms_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match=r"bottom.shape\[1:2\] == \(4,\): \(3,\)"):
        Bench(Scale(), [X, np.zeros(4)])
    bench = Bench(Scale(bias=True), [X, np.zeros(3)])
    with pytest.raises(ArgumentError, match="another shape than the second bottom"):
        bench.layer.reshape([Blob((2, 5), "float64"), Blob((5,), "float64")], bench.top)


def test_what_is_folded() -> None:
    """One factor for each channel, and no second bottom."""
    bench = Bench(Scale(bias=True), [X])
    for parameter, values in zip(bench.layer.params, ([1, 2, 3], [4, 5, 6]), strict=True):
        parameter.data[...] = values
    folded = bench.layer.affine(3)
    assert folded is not None and [part.tolist() for part in folded] == [[1, 2, 3], [4, 5, 6]]
    plain = Bench(Scale(), [X]).layer.affine(3)
    assert plain is not None and plain[1].tolist() == [0, 0, 0]
    assert Bench(Scale(axis=2), [X]).layer.affine(4) is None
    assert Bench(Scale(num_axes=2), [X]).layer.affine(3) is None
    assert Bench(Scale(), [X, np.ones(3)]).layer.affine(3) is None
    assert Bench(Scale(bias=True), [X, np.ones(3)]).layer.affine(3) is None
