"""caffe.net_spec: networks written in Python.

    n = caffe.NetSpec()
    n.data = L.Input(shape=[dict(dim=[1, 3, 8, 8])])
    n.conv = L.Convolution(n.data, kernel_size=3, num_output=4, weight_filler=dict(type="xavier"))
    n.relu = L.ReLU(n.conv, in_place=True)
    open("net.prototxt", "w").write(str(n.to_proto()))

A layer is a function of tops: positional arguments are its bottoms, keywords the fields of its own parameter message, or of
the layer where that message has no such field. `ntop` is how many tops it returns, `in_place` writes the bottoms themselves.
Names of attributes become names of layers and blobs; what stays unnamed is called by its type and a number.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import AstrideError
from ..proto import nearest
from .errors import FieldError, SignatureError
from .proto import caffe_pb2


def param_name_dict() -> dict[str, str]:
    """The stem of a parameter message, which is a layer type for most, -> the stem of its field: Convolution -> convolution."""
    fields = [f for f in caffe_pb2.LayerParameter.DESCRIPTOR.fields if f.name.endswith("_param") and f.message_type is not None]
    return {f.message_type.name.removesuffix("Parameter"): f.name.removesuffix("_param") for f in fields}


def assign_proto(proto: Any, name: str, val: Any) -> None:
    """Set a field: dicts become messages, sequences and single values of repeated fields lists. Raises AttributeError."""
    field = proto.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise _no_field(proto, name)
    try:
        _assign(proto, field, val)
    except (TypeError, ValueError) as error:
        if isinstance(error, AstrideError):
            raise
        raise SignatureError(
            f"{proto.DESCRIPTOR.name}.{name} does not take this value", given={name: val}, because=str(error)
        ) from error


def _assign(proto: Any, field: Any, val: Any) -> None:
    target = getattr(proto, field.name)
    if hasattr(target, "extend"):
        items = [val] if isinstance(val, str | bytes | Mapping) or not hasattr(val, "__iter__") else list(val)
        for item in items:
            if isinstance(item, Mapping):
                _assign_all(target.add(), item)
            else:
                target.append(_plain(item))
    elif isinstance(val, Mapping):
        # A message may be set by an empty dict, which then is there without any field.
        target.SetInParent()
        _assign_all(target, val)
    elif field.message_type is not None:
        target.CopyFrom(val)
    else:
        setattr(proto, field.name, _plain(val))


def _assign_all(proto: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        assign_proto(proto, name, value)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, which protobuf takes in every version."""
    return value.item() if isinstance(value, np.generic) else value


def _no_field(proto: Any, name: str) -> FieldError:
    known = list(proto.DESCRIPTOR.fields_by_name)
    return FieldError(
        f"{proto.DESCRIPTOR.name} has no field {name}",
        given={"field": name},
        required=f"one of {', '.join(known)}",
        hint=nearest(name, known),
    )


class Top:
    """One output of a layer."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn = fn
        self.n = n

    def to_proto(self) -> Any:
        """The network that computes this top."""
        return to_proto(self)

    def _update(self, params: Mapping[str, Any]) -> None:
        self.fn.params.update(params)


class Function:
    """A layer: its type, the tops it reads and its parameters."""

    def __init__(self, type_name: str, inputs: tuple[Top, ...], params: Mapping[str, Any]) -> None:
        self.type_name = type_name
        self.inputs = inputs
        self.params = dict(params)
        for index, each in enumerate(inputs):
            if not isinstance(each, Top):
                # Caffe's words, and no more: there are scripts that compare them.
                raise SignatureError(f"{type_name} input {index} is not a Top (type is {type(each)})")
        self.ntop = int(self.params.pop("ntop", 1))
        self.in_place = bool(self.params.pop("in_place", False))
        self.tops = tuple(Top(self, n) for n in range(self.ntop))


class _Writer:
    """Layers in the order in which they can run, named on the way."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        self.names: dict[Top | Function, str] = dict(names)
        self.counts: Counter[str] = Counter()
        self.layers: OrderedDict[Function, Any] = OrderedDict()

    def add(self, fn: Function) -> None:
        """A layer, after all that it reads. A stack of our own: networks are deeper than Python calls."""
        stack: list[tuple[Function, Iterator[Top]]] = [(fn, iter(fn.inputs))]
        while stack:
            current, inputs = stack[-1]
            below = next((top.fn for top in inputs if top.fn not in self.layers), None)
            if current in self.layers:
                stack.pop()
            elif below is None:
                self._write(current)
                stack.pop()
            else:
                stack.append((below, iter(below.inputs)))

    def _write(self, fn: Function) -> None:
        layer = caffe_pb2.LayerParameter(type=fn.type_name)
        layer.bottom.extend(self.layers[top.fn].top[top.n] for top in fn.inputs)
        layer.top.extend(layer.bottom if fn.in_place else [self._name(top, fn) for top in fn.tops])
        layer.name = self._name(fn.tops[0] if fn.tops else fn, fn)
        for name, value in fn.params.items():
            self._assign(layer, fn, name, value)
        self.layers[fn] = layer

    def _name(self, key: Top | Function, fn: Function) -> str:
        if key not in self.names:
            self.counts[fn.type_name] += 1
            self.names[key] = f"{fn.type_name}{self.counts[fn.type_name]}"
        return self.names[key]

    @staticmethod
    def _assign(layer: Any, fn: Function, name: str, value: Any) -> None:
        own = _param_names.get(fn.type_name)
        message = None if own is None else getattr(layer, f"{own}_param")
        if name.endswith("param") or message is None or name not in message.DESCRIPTOR.fields_by_name:
            if message is not None and name not in layer.DESCRIPTOR.fields_by_name:
                raise _no_field(message, name).within(operator=f"L.{fn.type_name}")
            assign_proto(layer, name, value)
        else:
            assign_proto(message, name, value)


def _network(layers: OrderedDict[Function, Any]) -> Any:
    net = caffe_pb2.NetParameter()
    net.layer.extend(layers.values())
    return net


def to_proto(*tops: Top) -> Any:
    """The NetParameter of all layers that these tops need, each layer named by its type and a number."""
    writer = _Writer({})
    for top in tops:
        writer.add(top.fn)
    return _network(writer.layers)


class NetSpec:
    """Tops by name, as attributes or items; `to_proto` makes the network that computes them all."""

    tops: OrderedDict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "tops", OrderedDict())

    def __setattr__(self, name: str, value: Any) -> None:
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask for names before there are tops.
        if name.startswith("__") or name == "tops" or name not in self.tops:
            raise AttributeError(f"the network has no top {name!r} yet")
        return self.tops[name]

    def __setitem__(self, key: str, value: Any) -> None:
        self.tops[key] = value

    def __getitem__(self, item: str) -> Any:
        return self.tops[item]

    def __delitem__(self, name: str) -> None:
        del self.tops[name]

    def keys(self) -> list[str]:
        """The names, in the order in which they were given."""
        return list(self.tops)

    def vals(self) -> list[Any]:
        """The tops, in the order of their names."""
        return list(self.tops.values())

    def update(self, name: str, params: Mapping[str, Any]) -> None:
        """Change parameters of the layer that makes a top."""
        self.tops[name]._update(params)

    def to_proto(self) -> Any:
        """The NetParameter of every layer that the named tops need."""
        writer = _Writer({top: name for name, top in self.tops.items()})
        for name, top in self.tops.items():
            if isinstance(top, Function):
                # A layer without tops, as L.Silence(..., ntop=0): the name is the layer's own.
                writer.names[top] = name
                writer.add(top)
            else:
                writer.add(top.fn)
        return _network(writer.layers)


class Layers:
    """`L.Convolution(bottom, kernel_size=3)` and every other type: a top, several, or with ntop=0 the layer itself."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def layer_fn(*args: Top, **kwargs: Any) -> Any:
            fn = Function(name, args, kwargs)
            return fn if fn.ntop == 0 else fn.tops[0] if fn.ntop == 1 else fn.tops

        return layer_fn


class Parameters:
    """`P.Pooling.MAX` and every other constant of a parameter message."""

    def __getattr__(self, name: str) -> Any:
        message = getattr(caffe_pb2, f"{name}Parameter", None)
        if name.startswith("__") or message is None:
            raise FieldError("Caffe has no such parameters", given={"name": name}, hint=nearest(name, _param_names))
        return message


_param_names = param_name_dict()
layers = Layers()
params = Parameters()

__all__ = [
    "Function",
    "Layers",
    "NetSpec",
    "Parameters",
    "Top",
    "assign_proto",
    "layers",
    "param_name_dict",
    "params",
    "to_proto",
]
