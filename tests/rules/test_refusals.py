"""What rules refuse, and what they say: the problem, both sides of the relation, the source and a way out."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.backends.test_contract import WINDOWS
from tests.cases.records import Refusal
from tests.rules.refusals import assert_refused

import astride

ALL = [(op, refusal) for op in WINDOWS for refusal in import_module(f"tests.cases.{op}").REFUSALS]


@pytest.mark.parametrize(("op", "refusal"), ALL, ids=[f"{op}: {refusal}" for op, refusal in ALL])
def test_refused(op: str, refusal: Refusal) -> None:
    assert_refused(op, refusal)


def test_accepting_is_found() -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        assert_refused("max_pool", Refusal("fine", (1, 1, 4), dict(kernel=2), ()))


def test_another_text_is_found() -> None:
    with pytest.raises(AssertionError, match="is not in"):
        assert_refused("max_pool", Refusal("fine", (1, 1, 4), dict(kernel=0), ("kernel >= 1: 1",)))


def test_every_part_is_an_attribute() -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        astride.plan("max_pool", (1, 3, 8, 8), kernel=2, padding=2, rules="caffe")
    error = raised.value
    assert (error.operator, error.rules) == ("max_pool", "caffe")
    assert error.problem == "the pad is not smaller than the kernel"
    assert error.required == "pad < kernel, on axis H: 2 < 2"
    assert error.because == "Caffe, src/caffe/layers/pooling_layer.cpp"
    assert error.hint == "padding=1"
    assert error.given["padding"] == 2 and error.given["kernel"] == 2
    assert isinstance(error, ValueError)
