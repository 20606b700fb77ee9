"""InfogainLoss: by hand, the identity, axes, ignored labels, where the matrix comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, ModelFileError, UnsupportedError
from astride.layers.infogain_loss import InfogainLoss
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.plan.dense import Normalization
from astride.proto import write_blob

from .gradients import Bench, check_gradient
from .losses import network, run

RANDOM = np.random.RandomState(35)
LAYER = 'type: "InfogainLoss" '
H = np.array([[2.0, 1.0], [0.0, 1.0]], np.float32)


def test_by_hand() -> None:
    """Probabilities (1/2, 1/2) and (1/4, 3/4); label 0 costs 2 log 2 + log 2, label 1 costs log 4/3."""
    scores = np.log([[0.5, 0.5], [0.25, 0.75]])
    loss, gradients = run(LAYER, x=scores, label=[0, 1], H=H)
    assert loss == pytest.approx((3 * np.log(2) + np.log(4 / 3)) / 2)
    np.testing.assert_allclose(gradients["x"], [[-0.25, 0.25], [0.125, -0.125]], rtol=1e-6)
    assert not gradients["label"].any() and not gradients["H"].any()


@pytest.mark.parametrize("shape", [(2, 2), (1, 1, 2, 2), (4,)])
def test_the_matrix_of_a_file(tmp_path: Path, shape: tuple[int, ...]) -> None:
    write_blob(tmp_path / "H.binaryproto", H.reshape(shape))
    scores = np.log([[0.5, 0.5], [0.25, 0.75]])
    loss, _ = run(LAYER + f'infogain_loss_param {{ source: "{tmp_path / "H.binaryproto"}" }}', x=scores, label=[0, 1])
    assert loss == pytest.approx((3 * np.log(2) + np.log(4 / 3)) / 2)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ModelFileError, match=r"H\.binaryproto"):
        network(LAYER + 'infogain_loss_param { source: "H.binaryproto" }', x=(2, 2), label=(2,))


def test_no_matrix_at_all() -> None:
    with pytest.raises(ArgumentError, match="the layer has no matrix"):
        network(LAYER, x=(2, 2), label=(2,))


def test_a_matrix_that_does_not_fit() -> None:
    for layer, more in ((InfogainLoss(matrix=H), []), (InfogainLoss(), [H])):
        with pytest.raises(ArgumentError, match=r"H.count == classes\^2: 4 == 9"):
            Bench(layer, [np.zeros((2, 3)), np.zeros(2), *more])


@pytest.mark.parametrize(("mode", "divisor"), [("", 5), ("FULL", 8), ("VALID", 5), ("BATCH_SIZE", 2), ("NONE", 1)])
def test_normalizations(mode: str, divisor: int) -> None:
    """Four places in two images, three of which have the ignored label; every other costs log 2 twice."""
    label = [[[0, 1], [7, 1]], [[7, 7], [1, 0]]]
    mode = mode and f"normalization: {mode}"
    loss, _ = run(LAYER + f"loss_param {{ ignore_label: 7 {mode} }}", x=np.zeros((2, 2, 2, 2)), label=label, H=np.ones((2, 2)))
    assert loss == pytest.approx(5 * 2 * np.log(2) / divisor)


def test_normalize_is_not_a_field_of_this_loss() -> None:
    with pytest.raises(ArgumentError, match="this layer has no normalize"):
        network(LAYER + "loss_param { normalize: false }", x=(2, 2), label=(2,), H=(2, 2))


OPTIONS: list[dict[str, Any]] = [{}, {"ignore_label": 1, "normalization": Normalization.FULL}, {"axis": -1}]


@pytest.mark.parametrize("options", OPTIONS)
def test_gradient_with_another_size_in_between(options: dict[str, Any]) -> None:
    bench = Bench(
        InfogainLoss(**options),
        [RANDOM.normal(size=(2, 3, 3)), RANDOM.randint(0, 3, (2, 3)), RANDOM.uniform(-1, 1, (3, 3))],
        tops=2,
    )
    check_gradient(bench, [True, False, False], silent=[1])
    bench.values = [RANDOM.normal(size=(4, 2, 2)), RANDOM.randint(0, 2, (4, 2)), RANDOM.uniform(-1, 1, (2, 2))]
    check_gradient(bench, [True, False, False], silent=[1])


def test_the_identity_is_softmax_with_loss() -> None:
    values = [RANDOM.normal(size=(2, 3)), np.array([2.0, 0])]
    mine, plain = Bench(InfogainLoss(matrix=np.eye(3)), values, tops=2), Bench(SoftmaxWithLoss(), values, tops=2)
    for one, other in zip(mine.forward(), plain.forward(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_impossible_class_counts_as_the_floor() -> None:
    assert Bench(InfogainLoss(matrix=np.eye(2)), [np.array([[0.0, 1e4]]), np.zeros(1)]).forward()[0] == pytest.approx(
        -np.log(1e-20)
    )


def test_labels_and_the_matrix_have_no_gradient() -> None:
    bench = Bench(InfogainLoss(), [np.zeros((1, 2)), np.zeros(1), H])
    bench.forward()
    with pytest.raises(UnsupportedError, match="labels and H have no gradient"):
        bench.backward([np.ones(())], [True, False, True])
    bench.values[1][0] = 2
    with pytest.raises(ArrayError, match="0 <= label < 2"):
        bench.forward()
    with pytest.raises(ArgumentError, match="one label for each prediction"):
        Bench(InfogainLoss(matrix=np.eye(2)), [np.zeros((1, 2)), np.zeros(2)])
