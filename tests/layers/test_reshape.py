"""Every layer with another size in between: shapes follow, gradients stay right, and so do those of the first size again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from astride.layers import Layer
from astride.layers.concat import Concat
from astride.layers.convolution import Convolution
from astride.layers.deconvolution import Deconvolution
from astride.layers.dropout import Dropout
from astride.layers.flatten import Flatten
from astride.layers.im2col import Im2col
from astride.layers.inner_product import InnerProduct
from astride.layers.permute import Permute
from astride.layers.pooling import Pooling
from astride.layers.reduction import Reduction
from astride.layers.relu import ReLU
from astride.layers.reshape import Reshape
from astride.layers.slice import Slice
from astride.layers.softmax import Softmax
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.layers.split import Split
from astride.layers.tile import Tile
from astride.plan import UnfoldPlan
from astride.plan.reduce import Total
from astride.rules import caffe

from .gradients import Bench, away_from, check_gradient, distinct

RANDOM = np.random.RandomState(21)
IM2COL = partial(caffe.convolution, num_output=1, kernel_size=2)
MAKERS: dict[str, Callable[[], Layer]] = {
    "Convolution": lambda: Convolution(partial(caffe.convolution, num_output=2, kernel_size=2, stride=2)),
    "Deconvolution": lambda: Deconvolution(partial(caffe.deconvolution, num_output=2, kernel_size=2, stride=2)),
    "MAX": lambda: Pooling(partial(caffe.pooling, pool="MAX", kernel_size=2, stride=2)),
    "AVE": lambda: Pooling(partial(caffe.pooling, pool="AVE", kernel_size=3, stride=2, pad=1)),
    "global": lambda: Pooling(partial(caffe.pooling, pool="AVE", global_pooling=True)),
    "ReLU": lambda: ReLU(slope=0.2),
    "Dropout": lambda: Dropout(training=True),
    "Softmax": Softmax,
    "Flatten": Flatten,
    "Split": Split,
    "InnerProduct": lambda: InnerProduct(2, axis=3),
    "Reshape": lambda: Reshape((0, -1, 2)),
    "Permute": lambda: Permute((0, 2, 3, 1)),
    "Concat": Concat,
    "Slice": Slice,
    "Tile": lambda: Tile(2, axis=2),
    "Reduction": lambda: Reduction(total=Total.MEAN, axis=3),
    "Im2col": lambda: Im2col(lambda shape, dtype: UnfoldPlan(dtype=dtype, axes=IM2COL(shape, dtype).axes)),
}


def values(shape: tuple[int, ...]) -> np.ndarray:
    return away_from(distinct(RANDOM, shape), gap=0.003)


@pytest.mark.parametrize("name", MAKERS)
def test_other_sizes_in_between(name: str) -> None:
    first, other = values((2, 2, 4, 4)), values((1, 2, 6, 4))
    bench = Bench(MAKERS[name](), [first])
    before = bench.forward()[0]
    check_gradient(bench)
    bench.values = [other]
    assert bench.forward()[0].shape != before.shape
    check_gradient(bench)
    bench.values = [first]
    np.testing.assert_array_equal(bench.forward()[0], before)
    check_gradient(bench)


def test_a_loss_in_between() -> None:
    bench = Bench(SoftmaxWithLoss(), [values((2, 3)), np.array([0.0, 2])])
    check_gradient(bench, [True, False])
    bench.values = [values((2, 4, 2, 1)), np.array([[0.0, 1], [3, 2]])]
    check_gradient(bench, [True, False])
