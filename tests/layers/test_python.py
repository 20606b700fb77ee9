"""Python layers: Caffe's interface to classes of one's own, and which classes may run."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from astride import load_caffe, load_solver
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.python import Python

from .gradients import Bench, check_gradient

NET = """
force_backward: true
input: "x" input_shape { dim: 2 dim: 3 }
layer { name: "mine" type: "Python" bottom: "x" top: "y" python_param { module: "rules" layer: "Affine" param_str: "3" } }
"""
RANDOM = np.random.RandomState(5)


class Affine:
    """y = factor * x + b, b a parameter for each column."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.factor = float(self.param_str)  # type: ignore[attr-defined]
        self.blobs.add_blob(bottom[0].shape[1]).data[...] = 1  # type: ignore[attr-defined]

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = self.factor * bottom[0].data + self.blobs[0].data  # type: ignore[attr-defined]

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        self.blobs[0].diff[...] += top[0].diff.sum(0)  # type: ignore[attr-defined]
        if propagate_down[0]:
            bottom[0].diff[...] = self.factor * top[0].diff


class Euclidean:
    """The loss layer of Caffe's own example, in other words."""

    def reshape(self, bottom: Any, top: Any) -> None:
        if bottom[0].count != bottom[1].count:
            raise ValueError("inputs must have one size")
        self.diff = np.zeros_like(bottom[0].data)
        top[0].reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        self.diff[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = (self.diff**2).sum() / bottom[0].num / 2

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        for i, sign in enumerate((1, -1)):
            if propagate_down[i]:
                bottom[i].diff[...] = sign * top[0].diff[0] * self.diff / bottom[i].num


class OneWay:
    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = 2 * bottom[0].data


def test_runs_forward_and_backward_with_its_parameter() -> None:
    net = load_caffe(NET, python_layers=(Affine,))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(net.forward(x=x)["y"], 3 * x + 1)
    assert net.params["mine"][0].shape == (3,) and net.layer("mine").instance.phase == 1  # type: ignore[attr-defined]
    np.testing.assert_array_equal(net.backward(y=np.ones((2, 3)))["x"], np.full((2, 3), 3))
    np.testing.assert_array_equal(net.params["mine"][0].diff, [2, 2, 2])
    assert net.forward(x=np.ones((5, 3)))["y"].shape == (5, 3)
    again = load_caffe(net.to_prototxt(), python_layers=(Affine,))
    np.testing.assert_array_equal(again.forward(x=x)["y"], 3 * x + 1)
    assert load_caffe(NET, phase="TRAIN", python_layers=(Affine,)).layer("mine").instance.phase == 0  # type: ignore[attr-defined]


def test_weights_are_saved_and_compiled(tmp_path: Any) -> None:
    net = load_caffe(NET, python_layers=(Affine,))
    net.params["mine"][0].data[...] = [5, 6, 7]
    net.save(tmp_path / "w.caffemodel")
    other = load_caffe(NET, tmp_path / "w.caffemodel", python_layers=(Affine,))
    zeros = np.zeros((1, 3))
    assert other.forward(x=zeros)["y"].tolist() == [[5, 6, 7]]
    program = other.compile()
    other.params["mine"][0].data[...] = 0
    assert program(x=zeros)["y"].tolist() == [[5, 6, 7]]
    assert other.forward(x=zeros)["y"].tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("make", [lambda: Python(Affine(), "2"), lambda: Python(Euclidean())])
def test_gradient(make: Any) -> None:
    layer = make()
    check_gradient(Bench(layer, [RANDOM.normal(size=(2, 3)) for _ in range(1 if isinstance(layer.instance, Affine) else 2)]))


def test_a_loss_trains() -> None:
    text = """
    layer { name: "d" type: "DummyData" top: "x" top: "t" dummy_data_param {
      shape { dim: 4 dim: 2 } data_filler { value: 1 } data_filler { value: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 2 } }
    layer { name: "loss" type: "Python" bottom: "ip" bottom: "t" top: "loss" loss_weight: 1
      python_param { module: "losses" layer: "Euclidean" } }
    """
    solver = 'base_lr: 0.1 lr_policy: "fixed" max_iter: 60 display: 0 snapshot: 0'
    learned = load_solver(solver, net=text, python_layers=(Euclidean,), seed=1)
    learned.step(60)
    assert learned.net.loss < 1e-3


def test_only_what_is_allowed_runs() -> None:
    with pytest.raises(ArgumentError, match="not one of those that may run") as caught:
        load_caffe(NET)
    assert "--python-layer rules" in str(caught.value) and 'layer "mine" (Python)' in str(caught.value)
    with pytest.raises(ArgumentError, match="Euclidean"):
        load_caffe(NET, python_layers=(Euclidean,))
    with pytest.raises(ArgumentError, match="classes, or modules"):
        load_caffe(NET, python_layers=("rules",))  # type: ignore[arg-type]


def test_modules_hold_classes() -> None:
    rules, others = types.ModuleType("package.rules"), types.ModuleType("others")
    rules.Affine = Affine  # type: ignore[attr-defined]
    others.Affine = Affine  # type: ignore[attr-defined]
    assert load_caffe(NET, python_layers=(others, rules)).params["mine"][0].data.tolist() == [1, 1, 1]
    with pytest.raises(ArgumentError, match="not one of those that may run"):
        load_caffe(NET, python_layers=(others,))


def test_of_two_classes_of_a_name_the_module_decides() -> None:
    other = type("Affine", (OneWay,), {"__module__": "rules"})
    net = load_caffe(NET, python_layers=(Affine, other))
    assert isinstance(net.layer("mine").instance, OneWay)  # type: ignore[attr-defined]


def test_errors_of_the_class_come_out_with_a_note() -> None:
    with pytest.raises(ValueError, match="one size") as caught:
        Bench(Python(Euclidean()), [np.zeros(2), np.zeros(3)])
    assert caught.value.__notes__ == ['in reshape of layer "bench" (Euclidean)']


def test_what_a_class_must_have() -> None:
    class Empty:
        pass

    with pytest.raises(ArgumentError, match="lacks a method"):
        Python(Empty())
    bench = Bench(Python(OneWay()), [np.ones((2, 2))])
    np.testing.assert_array_equal(bench.forward()[0], np.full((2, 2), 2))
    bench.backward([np.ones((2, 2))], [False])
    with pytest.raises(UnsupportedError, match="has no backward"):
        bench.backward([np.ones((2, 2))], [True])


def test_blobs_are_added_in_setup_only() -> None:
    class Late(OneWay):
        def forward(self, bottom: Any, top: Any) -> None:
            self.blobs.add_blob(3)  # type: ignore[attr-defined]

    with pytest.raises(ArgumentError, match="in its setup"):
        Bench(Python(Late()), [np.ones(2)]).forward()
