"""The gradient checks behind `astride check`: they pass where gradients are right and fail where one is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from astride.autodiff import Difference, GradientReport
from astride.caffe.load import build_net
from astride.errors import ArgumentError
from astride.explain.gradients import SAMPLES, Checked, check_operator
from astride.explain.layer_gradients import check_layers
from astride.layers import Blob
from astride.layers.inner_product import InnerProduct
from astride.net import Net
from astride.ops import OPERATORS
from astride.proto import parse
from astride.rules import RULES, has

WITHOUT_GRADIENT = {"argmax", "conv_integer"}


def test_every_operator_is_checked() -> None:
    missing = set(OPERATORS) - set(SAMPLES) - WITHOUT_GRADIENT
    assert not missing, f"add a sample to explain/gradients.py: {missing}"
    assert set(SAMPLES) <= set(OPERATORS)


@pytest.mark.parametrize("op", ["max_pool", "avg_pool", "stochastic_pool", "max_unpool", "matmul", "softmax_loss"])
def test_gradients_agree(op: str) -> None:
    found = check_operator(op, rank=1)
    assert all(checked.good for checked in found), [str(checked.report) for checked in found]
    ruled = {name for name in RULES if has(name, op)}
    assert {checked.rules for checked in found} == (ruled or {None})
    seen = {checked.rules for checked in found if checked.report is not None}
    assert seen >= ruled & {"explicit", "caffe", "pytorch", "mps", "numpy_loops"}


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_all_gradients_agree(op: str, rank: int) -> None:
    found = check_operator(op, rank=rank)
    assert all(checked.good for checked in found) and any(checked.report for checked in found)


def test_a_check_that_saw_only_kinks_is_no_success() -> None:
    report = GradientReport("sign", 1e-6, (Difference(0, tried=5, kinks=5, error=0.0, worst=None, analytic=0.0, numeric=0.0),))
    assert not Checked("sign", None, "", ("x",), report, None).good


def test_arguments_are_named() -> None:
    (found,) = check_operator("conv", ["caffe"], rank=1)
    assert found.report is not None
    assert [found.names[d.argument] for d in found.report.differences] == ["x", "w", "b"]


def test_rules_without_the_operator_refuse() -> None:
    (found,) = check_operator("lp_pool", ["caffe"], rank=1)
    assert found.report is None and found.error is not None and found.good


@pytest.mark.parametrize(
    ("op", "rules", "said"), [("max_pol", None, "max_pool"), ("argmax", None, "no gradient"), ("max_pool", ["cafe"], "caffe")]
)
def test_what_cannot_be_checked(op: str, rules: list[str] | None, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        check_operator(op, rules)


TEXT = """
layer { name: "data" type: "MemoryData" top: "data" top: "label"
        memory_data_param { batch_size: 64 channels: 2 height: 6 width: 6 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
"""


def net() -> Net:
    parsed = parse(TEXT, "NetParameter")
    return build_net(parsed.message, "TRAIN", dtype="float64", seed=1, lines=parsed)


def test_layers_agree_in_place_and_with_dropout() -> None:
    found = check_layers(net())
    assert {checked.layer for checked in found} >= {"conv", "relu", "drop", "pool", "ip", "loss"}
    assert all(checked.good(1e-6) for checked in found), [c for c in found if not c.good(1e-6)]
    assert all(checked.tried > 0 for checked in found if not checked.reason)


def test_a_wrong_layer_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = InnerProduct.backward

    def wrong(self: InnerProduct, top: Sequence[Blob], want: Sequence[bool], bottom: Sequence[Blob]) -> None:
        right(self, top, want, bottom)
        self.params[0].diff[...] *= np.float64(1.001)

    monkeypatch.setattr(InnerProduct, "backward", wrong)
    bad = [(checked.layer, checked.array) for checked in check_layers(net()) if not checked.good(1e-6)]
    assert bad == [("ip", "parameter 0")]
