"""Python: a layer that the user wrote, with Caffe's interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, UnsupportedError
from .blob import Blob
from .layer import Blobs, Layer, Parameter

SOURCE = "Caffe, include/caffe/layers/python_layer.hpp"


class Python(Layer):
    """Whatever an object of a class of your own does.

    The class has the methods that Caffe asks for:

        setup(bottom, top)                          once: read param_str, add blobs
        reshape(bottom, top)                        before every forward pass: top[0].reshape(2, 3)
        forward(bottom, top)                        top[0].data[...] = bottom[0].data
        backward(top, propagate_down, bottom)       bottom[0].diff[...] = top[0].diff where propagate_down[0]

    Before setup it is given `param_str`, `phase` (0 in training, 1 in use) and `blobs`, to which
    `self.blobs.add_blob(2, 3)` adds a parameter of zeros. A bottom's diff is overwritten, a blob's diff added to. `setup` and
    `backward` may be missing where there is nothing for them to do.

    Blobs have data, diff, shape, count, num, channels, height, width and reshape. What the class raises comes out as it is,
    with a note that names the layer. Only classes that the caller allows are run: `load_caffe(..., python_layers=(Mine,))`.
    Source      Caffe, include/caffe/layers/python_layer.hpp and python/caffe/_caffe.cpp
    """

    type = "Python"
    bottoms: ClassVar[tuple[int, int | None]] = (0, None)
    tops: ClassVar[tuple[int, int | None]] = (0, None)
    in_place = True

    def __init__(self, instance: Any, param_str: str = "", *, phase: int = 1) -> None:
        super().__init__()
        self.instance = instance
        self.stateful = True  # who knows
        self._lock = threading.Lock()
        missing = [name for name in ("reshape", "forward") if not callable(getattr(instance, name, None))]
        if missing:
            raise ArgumentError(
                "the class of a Python layer lacks a method",
                given={"class": type(instance).__qualname__, "missing": missing},
                required="setup, reshape, forward and backward",
                because=SOURCE,
                hint=f"def {missing[0]}(self, bottom, top): ...",
            )
        instance.param_str, instance.phase = param_str, phase

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if hasattr(self.instance, "setup"):
            self._call("setup", bottom, top, dtype=[*top, *bottom, Blob()][0].dtype)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self._call("reshape", bottom, top)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._call("forward", bottom, top)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if hasattr(self.instance, "backward"):
            self._call("backward", top, list(want), bottom)
        elif any(want):
            raise UnsupportedError(
                "the class of this Python layer has no backward",
                given={"class": type(self.instance).__qualname__},
                hint="def backward(self, top, propagate_down, bottom), or propagate_down: false in the network's text",
            )

    def _call(self, name: str, *arguments: Any, dtype: str | None = None) -> None:
        # A compiled network has other parameters and perhaps several threads, but the object is the same.
        with self._lock:
            self.instance.blobs = LayerBlobs(self, dtype)
            try:
                getattr(self.instance, name)(*arguments)
            except Exception as error:
                error.add_note(f'in {name} of layer "{self.name}" ({type(self.instance).__qualname__})')
                raise


class LayerBlobs:
    """A Python layer's parameters, as its class sees them: a sequence that `add_blob` lengthens in setup."""

    def __init__(self, layer: Layer, dtype: str | None) -> None:
        self._layer = layer
        self._dtype = dtype

    def add_blob(self, *shape: int) -> Parameter:
        """Add a parameter of zeros, and return it; what setup writes to it stays."""
        if self._dtype is None:
            raise ArgumentError(
                "a layer's parameters are added in its setup",
                given={"shape": shape},
                because=SOURCE,
                hint="in setup(bottom, top)",
            )
        parameter = Own(shape, self._dtype)
        self._layer.params.append(parameter)
        self._layer.param_wanted.append(True)
        return parameter

    def __len__(self) -> int:
        return len(self._layer.params)

    def __getitem__(self, index: int) -> Parameter:
        return self._layer.params[index]

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._layer.params)


class Own(Parameter):
    """A parameter that begins as its layer's setup left it."""

    def fill(self, random: np.random.RandomState) -> None:
        """Nothing to do."""
