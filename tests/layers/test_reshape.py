"""Every layer with another size in between: shapes follow, gradients stay right, and so do those of the first size again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from astride.layers import Layer
from astride.layers.abs_val import AbsVal
from astride.layers.batch_norm import BatchNorm
from astride.layers.bias import Bias
from astride.layers.bnll import BNLL
from astride.layers.clip import Clip
from astride.layers.concat import Concat
from astride.layers.convolution import Convolution
from astride.layers.deconvolution import Deconvolution
from astride.layers.dropout import Dropout
from astride.layers.eltwise import Eltwise
from astride.layers.elu import ELU
from astride.layers.exp import Exp
from astride.layers.flatten import Flatten
from astride.layers.im2col import Im2col
from astride.layers.inner_product import InnerProduct
from astride.layers.log import Log
from astride.layers.lrn import LRN
from astride.layers.mvn import MVN
from astride.layers.permute import Permute
from astride.layers.pooling import Pooling
from astride.layers.power import Power
from astride.layers.prelu import PReLU
from astride.layers.reduction import Reduction
from astride.layers.relu import ReLU
from astride.layers.reshape import Reshape
from astride.layers.scale import Scale
from astride.layers.sigmoid import Sigmoid
from astride.layers.slice import Slice
from astride.layers.softmax import Softmax
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.layers.split import Split
from astride.layers.swish import Swish
from astride.layers.tanh import TanH
from astride.layers.tile import Tile
from astride.plan import UnfoldPlan
from astride.plan.dense import Function
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
    "Sigmoid": Sigmoid,
    "TanH": TanH,
    "AbsVal": AbsVal,
    "BNLL": BNLL,
    "ELU": lambda: ELU(alpha=0.5),
    "Swish": Swish,
    "Clip": lambda: Clip(-0.5, 0.5),
    "Power": lambda: Power(power=1.5, shift=2.0),
    "Exp": lambda: Exp(base=2.0),
    "Log": lambda: Log(shift=2.0),
    "PReLU": PReLU,
    "Scale": lambda: Scale(bias=True),
    "Scale of the last axis": lambda: Scale(axis=3),
    "Bias": lambda: Bias(axis=-3),
    "LRN across": lambda: LRN(size=3),
    "LRN within": lambda: LRN(size=3, axes=(2, 3)),
    "MVN": MVN,
    "BatchNorm": lambda: BatchNorm(use_global_stats=False),
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
    learns = name != "BatchNorm"
    check_gradient(bench, params=learns)
    bench.values = [other]
    assert bench.forward()[0].shape != before.shape
    check_gradient(bench, params=learns)
    bench.values = [first]
    np.testing.assert_array_equal(bench.forward()[0], before)
    check_gradient(bench, params=learns)


def test_two_bottoms_in_between() -> None:
    bench = Bench(Eltwise(Function.MULTIPLY), [values((2, 3)), values((2, 3))])
    check_gradient(bench)
    bench.values = [values((3, 1, 4)), values((3, 1, 4))]
    check_gradient(bench)


def test_a_loss_in_between() -> None:
    bench = Bench(SoftmaxWithLoss(), [values((2, 3)), np.array([0.0, 2])])
    check_gradient(bench, [True, False])
    bench.values = [values((2, 4, 2, 1)), np.array([[0.0, 1], [3, 2]])]
    check_gradient(bench, [True, False])
