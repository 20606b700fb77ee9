"""Any network of the older formats is either upgraded to one that prints and parses, comments and all, or refused."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astride.caffe.comments import carry
from astride.caffe.upgrade import upgrade
from astride.caffe.upgrade_v0 import TYPES
from astride.errors import AstrideError
from astride.proto import Message, Schema, format, message, parse

from ..proto.samples import messages

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@st.composite
def networks(draw: st.DrawFn) -> Any:
    """Layers of V0 or V1 in any order, with blobs that may or may not be there and fields that may not fit the type."""
    net = message("NetParameter")(name="net")
    old = draw(st.booleans())
    if draw(st.booleans()):
        net.input.append("data")
        net.input_dim.extend(draw(st.sampled_from([[], [1], [1, 2, 3, 4]])))
    for _ in range(draw(st.integers(1, 4))):
        layer = net.layers.add()
        if old:
            layer.layer.CopyFrom(draw(messages("V0LayerParameter", depth=2)))
            layer.layer.type = draw(st.sampled_from([*TYPES, "padding", "padding", "conv", "what"]))
        else:
            layer.CopyFrom(draw(messages("V1LayerParameter", depth=2)))
            layer.ClearField("layer")
        for name in ("bottom", "top"):
            layer.ClearField(name)
            getattr(layer, name).extend(draw(st.lists(st.sampled_from(["data", "a", "b"]), max_size=2)))
    return net


def upgraded(net: Message) -> str | None:
    """The new text, or None where the network is refused."""
    before = net.SerializeToString(deterministic=True)
    text = format(net)
    lines = parse(text, "NetParameter")
    try:
        result = upgrade(lines.message, lines)
    except AstrideError as error:
        assert str(error)
        return None
    finally:
        assert net.SerializeToString(deterministic=True) == before
    old = net.layers or net.layer
    assert len(result.origins) == len(result.message.layer) and not result.message.layers and not result.message.input
    assert all(origin is None or origin in range(len(old)) for origin in result.origins)
    assert upgrade(result.message).notes == [], "once is enough"
    assert all(note.line is None or note.line <= len(text.removesuffix("\n").split("\n")) for note in result.notes)
    new = format(result.message)
    assert parse(new, "NetParameter").message == result.message
    commented = "\n".join(f"# before {at}\n{line}  # beside {at}" for at, line in enumerate(text.removesuffix("\n").split("\n")))
    carried = carry(commented, new, result.origins)
    assert parse(carried, "NetParameter").message == result.message
    for at in range(len(text.removesuffix("\n").split("\n"))):
        assert f"# before {at}\n" in carried and f"# beside {at}" in carried
    return new


@settings(max_examples=150, suppress_health_check=SLOW)
@given(networks())
def test_old_layers(net: Message) -> None:
    upgraded(net)


@settings(max_examples=100, suppress_health_check=SLOW)
@given(messages("NetParameter", depth=3))
def test_anything(net: Message) -> None:
    upgraded(net)


def test_some_are_upgraded_and_some_refused() -> None:
    """The strategy is not one of refusals only."""
    answers: set[bool] = set()

    @settings(max_examples=60, suppress_health_check=SLOW)
    @given(networks())
    def watch(net: Message) -> None:
        answers.add(upgraded(net) is None)

    watch()
    assert answers == {True, False}


def test_every_field_of_v1_arrives() -> None:
    """Nothing of a V1 layer is lost but what has another name today."""
    schema = Schema.bvlc()
    net = message("NetParameter")()
    layer = net.layers.add(type=4)
    for field in schema.type("V1LayerParameter").fields.values():
        if field.name.endswith("_param"):
            getattr(layer, field.name).SetInParent()
    names = {descriptor.name for descriptor, _ in upgrade(net).message.layer[0].ListFields()}
    assert names == {field.name for field, _ in layer.ListFields()}
