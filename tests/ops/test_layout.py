"""Layout: by hand, against loops, adjoints."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.layout import CASES, REFUSALS, plan

import astride
from astride import ops
from astride.errors import ArgumentError, ArrayError
from astride.plan import LayoutPlan
from astride.plan.layout import Move

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: LayoutPlan, *arrays: Array) -> Array:
    """Each element of y is read from its place."""
    x, a = arrays[0], plan.axis
    y = np.zeros(plan.output_shape(*(array.shape for array in arrays)))
    for i in np.ndindex(y.shape):
        if plan.move is Move.PERMUTE:
            place = tuple(i[plan.order.index(k)] for k in range(x.ndim))
        elif plan.move is Move.CONCAT:
            piece, along = 0, i[a]
            while along >= arrays[piece].shape[a]:
                along -= arrays[piece].shape[a]
                piece += 1
            x, place = arrays[piece], (*i[:a], along, *i[a + 1 :])
        elif plan.move is Move.CROP:
            starts = dict(enumerate(plan.starts, a))
            place = tuple(n + starts.get(k, 0) for k, n in enumerate(i))
        elif plan.move is Move.TILE:
            place = (*i[:a], i[a] % x.shape[a], *i[a + 1 :])
        else:
            rank = arrays[1].ndim
            place = (*i[:a], int(arrays[1][i[a : a + rank]]), *i[a + rank :])
        y[i] = x[place]
    return y


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.layout, refusal)


def test_by_hand() -> None:
    x = np.array([[1.0, 2, 3], [4, 5, 6]])
    assert astride.layout(x).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert astride.layout(x, x[:, :1], move="concat", axis=-1).tolist() == [[1, 2, 3, 1], [4, 5, 6, 4]]
    assert astride.layout(x, move="crop", axis=1, starts=(1,), sizes=(2,)).tolist() == [[2, 3], [5, 6]]
    assert astride.layout(x, move="tile", axis=1, tiles=2).tolist() == [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]
    assert astride.layout(x, [2, 0], move="take", axis=1).tolist() == [[3, 1], [6, 4]]


def test_values_pass_unchanged() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-310])
    for move in ({"move": "permute"}, {"move": "tile"}, {"move": "crop"}, {"move": "concat"}):
        assert astride.layout(x, **move).tobytes() == x.tobytes()  # type: ignore[arg-type]
    assert astride.layout(x, np.arange(5), move="take").tobytes() == x.tobytes()


def test_where_gradients_go() -> None:
    x = np.zeros((3, 2))
    _, pull = astride.vjp(astride.layout, x, np.array([1, 1, 0]), move="take")
    assert pull(np.array([[1.0, 2], [10, 20], [5, 6]]))[0].tolist() == [[5, 6], [11, 22], [0, 0]]  # type: ignore[union-attr]
    _, pull = astride.vjp(astride.layout, x, move="tile", tiles=2)
    assert pull(np.arange(12.0).reshape(6, 2))[0].tolist() == [[6, 8], [10, 12], [14, 16]]  # type: ignore[union-attr]
    _, pull = astride.vjp(astride.layout, x, move="crop", starts=(1,), sizes=(1,))
    assert pull(np.array([[7.0, 8]]))[0].tolist() == [[0, 0], [7, 8], [0, 0]]  # type: ignore[union-attr]


def test_every_piece_has_its_gradient() -> None:
    a, b, c = np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((1, 2))
    _, pull = astride.vjp(astride.layout, a, b, c, move="concat")
    found = pull(np.arange(8.0).reshape(4, 2))
    assert [g.tolist() for g in found if g is not None] == [[[0, 1]], [[2, 3], [4, 5]], [[6, 7]]]


def test_gradients_are_arrays_of_their_own() -> None:
    dy = np.ones((2, 3))
    for move in (plan(Move.PERMUTE, "float64", order=(0, 1)), plan(Move.CONCAT, "float64", pieces=1), plan(Move.CROP, "float64")):
        _, saved = ops.forward(move, np.zeros((2, 3)), save=True)
        assert saved is not None
        (dx,) = ops.backward(move, dy, saved)
        assert dx is not None and not np.shares_memory(dx, dy)


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_is_an_error(index: int) -> None:
    with pytest.raises(ArrayError, match=rf"an index names no place\n.*index = {index}") as caught:
        astride.layout(np.zeros((3, 2)), [0, index], move="take")
    assert f"0 <= {index} < 3" in str(caught.value)


def test_a_plan_checks_itself() -> None:
    with pytest.raises(ArgumentError, match="counts from the front"):
        plan(Move.TILE, axis=-1)
    with pytest.raises(ArgumentError, match="pieces count from 1"):
        plan(Move.CONCAT, pieces=0)


def test_roles_follow_the_move() -> None:
    assert plan(Move.CONCAT, pieces=3).roles == ("x0", "x1", "x2")
    assert plan(Move.TAKE).roles == ("x", "indices") and plan(Move.TILE).roles == ("x",)
