"""A value for every top, and what a program tells and shares."""

from __future__ import annotations

import numpy as np

from astride.net import Net
from astride.net.apart import apart, top_names
from astride.net.freeze import frozen
from astride.net.program import Program, Step

from .nets import conv, data, flatten, ip, net, relu


def network() -> Net:
    """An input changed in place; a convolution that two layers read, one of them once it is changed."""
    return net(
        data(data=(2, 3, 6, 6)),
        relu("first", "data"),
        conv("c", "data"),
        relu("r", "c"),
        flatten("f", "c"),
        ip("a", "f"),
        ip("b", "f"),
    )


def test_what_is_overwritten_has_a_name() -> None:
    made = network()
    nodes = apart(made)
    assert [node.name for node in nodes] == ["data", "first", "c", "r", "f", "a", "b"]
    assert [node.tops for node in nodes] == [["data"], ["first.0"], ["c.0"], ["r.0"], ["f.0"], ["a.0"], ["b.0"]]
    assert nodes[3].bottoms == ["c.0"] and nodes[5].bottoms == nodes[6].bottoms == ["f.0"]
    assert made.nodes[1].tops == ["data"]


def test_programs_give_what_is_overwritten() -> None:
    made = network()
    x = np.random.default_rng(3).normal(size=(2, 3, 6, 6))
    found = Program(made, ["c.0", "r.0", "a.0"], nodes=apart(made))(data=x)
    np.testing.assert_array_equal(found["r.0"], np.maximum(found["c.0"], 0))
    assert found["c.0"].min() < 0
    np.testing.assert_array_equal(found["a.0"], made.forward(data=x)["a"])


def test_an_input_keeps_its_name() -> None:
    made = net(data(**{"c.0": (1, 3, 6, 6)}), ip("c", "c.0"))
    assert top_names(made, made.nodes[1]) == ["c.0'"]


def test_every_step_is_told() -> None:
    made = network()
    told: list[str] = []

    def watch(step: Step, seconds: float) -> None:
        assert seconds >= 0
        told.append(step.node.name)

    program = made.compile()
    program.run({"data": np.zeros((2, 3, 6, 6))}, watch)
    assert told == [step.node.name for step in program.steps]


def test_what_is_frozen_is_shared() -> None:
    made = network()
    parameter = made.params["c"][0]
    once = frozen(parameter)
    assert not np.shares_memory(once.data, parameter.data)
    assert np.shares_memory(frozen(once).data, once.data)
    view = np.zeros(parameter.shape, parameter.dtype)
    read_only = view[...]
    read_only.flags.writeable = False
    parameter.hold(read_only)  # the view can still write to it
    assert not np.shares_memory(frozen(parameter).data, view)
