"""Layers as pycaffe shows them: the base of layers written in Python, and what stands for the others.

A network's text names a Python layer's module and class. Here, as in Caffe, any module that Python can import will do; the
class must derive from `Layer`, so that a text cannot run just anything that happens to be installed.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, overload

from ..errors import ArgumentError
from ..layers import Blob
from ..layers import Layer as Computed
from ..layers.python import Python
from .errors import CallError
from .proto import caffe_pb2

SOURCE = "Caffe, src/caffe/layer_factory.cpp, GetPythonLayer"


class Layer:
    """The base of layers written in Python; see `astride.layers.python` for what is called when.

    `param_str`, `phase` and `blobs` are there from `setup` on. Constructor arguments are taken and ignored: Caffe passes the
    layer's message, which some classes hand on.
    """

    type: str = "Python"
    param_str: str = ""
    phase: int = 1
    blobs: Any = ()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    @property
    def param_str_(self) -> str:
        """The name that param_str had in 2014."""
        return self.param_str

    def setup(self, bottom: Any, top: Any) -> None:
        """Once, before the first reshape: read `param_str`, add blobs."""

    def reshape(self, bottom: Any, top: Any) -> None:
        """Before every forward pass: give the tops their shapes."""

    def forward(self, bottom: Any, top: Any) -> None:
        """Fill the tops' data."""
        raise CallError(
            "this layer has no forward", given={"class": type(self).__qualname__}, hint="def forward(self, bottom, top)"
        )

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Fill the diff of those bottoms that `propagate_down` marks."""
        raise CallError(
            "this layer has no backward",
            given={"class": type(self).__qualname__},
            hint="def backward(self, top, propagate_down, bottom)",
        )


class BlobVec(Sequence[Blob]):
    """A layer's parameters, in order: `params[0].data`, `len(params)`, `for blob in params`."""

    def __init__(self, layer: Computed) -> None:
        self._layer = layer

    def __len__(self) -> int:
        return len(self._layer.params)

    @overload
    def __getitem__(self, index: int) -> Blob: ...
    @overload
    def __getitem__(self, index: slice) -> list[Blob]: ...
    def __getitem__(self, index: int | slice) -> Blob | list[Blob]:
        return self._layer.params[index]  # type: ignore[return-value]  # a list of Parameters is a list of Blobs to read

    def __iter__(self) -> Iterator[Blob]:
        return iter(self._layer.params)

    def add_blob(self, *shape: int) -> None:
        """Only a Python layer adds blobs, in its setup, and to `self.blobs`."""
        raise CallError(
            "a built-in layer has the parameters its text asks for",
            given={"layer": self._layer.name, "type": self._layer.type, "shape": shape},
            hint="self.blobs.add_blob(...) in a Python layer's setup",
        )

    def __repr__(self) -> str:
        return f"BlobVec({list(self)!r})"


class BuiltIn(Layer):
    """What stands for a layer of the network that is not written in Python: its type and its blobs."""

    def __init__(self, layer: Computed) -> None:
        super().__init__()
        self._layer = layer
        self.type = layer.type
        self.blobs = BlobVec(layer)

    def reshape(self, bottom: Any, top: Any) -> None:
        """Give the tops their shapes."""
        self._layer.reshape(bottom, top)

    def forward(self, bottom: Any, top: Any) -> None:
        """Fill the tops' data."""
        self._layer.forward(bottom, top)

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Fill the bottoms' diff."""
        self._layer.backward(top, list(propagate_down), bottom)

    def __repr__(self) -> str:
        return f"<Layer {self._layer.name!r} of type {self.type!r}>"


def shown(layer: Computed) -> Any:
    """A layer as scripts see it: the object itself where it is written in Python."""
    return layer.instance if isinstance(layer, Python) else BuiltIn(layer)


class Importable:
    """Finds the classes of Python layers as Caffe does, by import; `import caffe` in their modules means this package."""

    def find(self, module: str, layer: str) -> Callable[[], Any]:
        """What makes an object of the class. Raises ArgumentError: no such module or class, or one that is no Layer."""
        from . import install

        install(replace=False)
        try:
            if not all(part.isidentifier() for part in module.split(".")):
                raise ImportError("this is no name of a module")
            found = getattr(importlib.import_module(module), layer, None)
        except ImportError as error:
            raise ArgumentError(
                "the module of this Python layer cannot be imported",
                given={"module": module, "layer": layer},
                because=f"{type(error).__name__}: {error}",
                hint="sys.path.insert(0, 'the folder the module is in'), or PYTHONPATH; pycaffe.install() if its caffe is broken",
            ) from error
        if not (isinstance(found, type) and issubclass(found, Layer)):
            raise ArgumentError(
                "this is no class of a Python layer" if found is not None else "the module has no such class",
                given={"module": module, "layer": layer},
                required="a class that derives from caffe.Layer",
                because=SOURCE,
                hint="class " + (layer or "MyLayer") + "(caffe.Layer): ..., after pycaffe.install() if a real Caffe is installed",
            )
        message = caffe_pb2.LayerParameter(type="Python", python_param={"module": module, "layer": layer})
        return partial(found, *([message] if _takes(found, message) else []))


def _takes(kind: type[Layer], message: Any) -> bool:
    """Whether the constructor has a place for the layer's message, which Caffe passes to all."""
    try:
        inspect.signature(kind).bind(message)
    except TypeError:
        return False
    return True


__all__ = ["BlobVec", "BuiltIn", "Importable", "Layer", "shown"]
