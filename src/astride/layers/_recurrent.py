"""Layers that go through a sequence step by step, unrolled out of operators, and back through time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..plan import ElementwisePlan, MatmulPlan
from ..plan.dense import Function
from ._steps import Steps, total
from .blob import Blob
from .fillers import Filler
from .layer import Blobs, Layer, nothing_kept

SOURCE = "src/caffe/layers/recurrent_layer.cpp"


class Product:
    """A product with everything that comes in, before the first time step."""

    def __init__(self, keep: bool, x: Array, weights: Sequence[Array]) -> None:
        self.steps = Steps(keep)
        inner = weights[0].shape[1]
        self.x = x.reshape(x.size // inner, inner)
        self.weights = weights
        self.y = linear(self.steps, self.x, *weights)


class Moment:
    """One time step: what it ran, what came in and was remembered, what came out and is remembered after it."""

    def __init__(self, steps: Steps, entering: Array, before: list[Array]) -> None:
        self.steps = steps
        self.entering = entering
        self.before = before
        self.out = entering
        self.after = before


class Recurrent(Layer):
    """The frame of LSTM and RNN: what comes in is multiplied once for all time steps, then `step` runs one after the other.

    x is (time, streams, ...), cont (time, streams): where it is 0 a stream begins anew at that step. Without
    `expose_hidden` what is remembered at the end of a pass begins the next one, and at first it is 0; with it, it comes
    from bottoms and goes to tops. No gradient flows from pass to pass.
    """

    tops: ClassVar[tuple[int, int | None]] = (1, 3)
    bottoms: ClassVar[tuple[int, int | None]] = (2, 5)
    silent = frozenset({1, 2})
    gates: ClassVar[int] = 1
    """Rows of the input's weights for each output."""
    remembers: ClassVar[int] = 1
    """How many arrays go from a time step to the next."""

    def __init__(
        self,
        outputs: int,
        *,
        expose_hidden: bool = False,
        weight_filler: Filler | None = None,
        bias_filler: Filler | None = None,
    ) -> None:
        super().__init__()
        if outputs < 1:
            raise ArgumentError("a layer needs outputs", given={"num_output": outputs}, required=f"num_output >= 1: {outputs}")
        self.outputs = outputs
        self.expose_hidden = expose_hidden
        self.weight_filler = weight_filler or Filler()
        self.bias_filler = bias_filler or Filler()
        self.stateful = not expose_hidden
        self._static = False
        self._state: list[Blob] = []
        self._products: list[Product] = []
        self._moments: list[Moment] = []
        self._weights: list[Array] = []

    # -- what subclasses say

    def declare_step(self, dtype: str) -> None:
        """Declare what the time steps have in common: parameters after those of the inputs."""
        raise NotImplementedError

    def step(
        self, steps: Steps, entering: Array, gate: Array, before: list[Array], weights: Sequence[Array]
    ) -> tuple[Array, list[Array]]:
        """One time step: (output, what is remembered). `gate` is cont for each output, `weights` are of declare_step."""
        raise NotImplementedError

    # -- shapes

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        hidden = self.remembers if self.expose_hidden else 0
        self._static = len(bottom) == 3 + hidden
        for what, count, known in (("bottoms", len(bottom), (2 + hidden, 3 + hidden)), ("tops", len(top), (1 + hidden,))):
            if count not in known:
                raise ArgumentError(
                    f"the layer has another number of {what}",
                    given={what: count, "expose_hidden": self.expose_hidden},
                    required=f"{' or '.join(map(str, known))} {what}: {count}",
                    because=f"Caffe, {SOURCE}",
                )
        self._check(bottom)
        dtype, rows = bottom[0].dtype, self.gates * self.outputs
        self.declare((rows, math.prod(bottom[0].shape[2:])), dtype, self.weight_filler)
        self.declare((rows,), dtype, self.bias_filler)
        if self._static:
            self.declare((rows, math.prod(bottom[2].shape[1:])), dtype, self.weight_filler)
        self.declare_step(dtype)

    def _check(self, bottom: Blobs) -> None:
        x, cont = bottom[0].shape, bottom[1].shape
        if len(x) < 3 or cont != x[:2]:
            raise ArgumentError(
                "a sequence has time steps and streams, and a mark for each whether it goes on",
                given={"x": x, "cont": cont},
                required=f"x (time, streams, ...), cont (time, streams): {x[:2]} == {cont}",
                because=f"Caffe, {SOURCE}",
            )
        if self._static and (len(bottom[2].shape) < 2 or bottom[2].shape[0] != x[1]):
            raise ArgumentError(
                "the static input has one entry for each stream",
                given={"static": bottom[2].shape, "x": x},
                required=f"(streams, ...) with {x[1]} streams: {bottom[2].shape}",
                because=f"Caffe, {SOURCE}",
            )
        for blob in self._hidden(bottom):
            if blob.shape != (1, x[1], self.outputs):
                raise ArgumentError(
                    "what is remembered is one time step of the output",
                    given={"hidden": blob.shape},
                    required=f"{(1, x[1], self.outputs)} == {blob.shape}",
                    because=f"Caffe, {SOURCE}",
                )

    def _hidden(self, bottom: Blobs) -> Blobs:
        return bottom[2 + self._static :] if self.expose_hidden else []

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self._check(bottom)
        inputs = [(bottom[0].shape[2:], 0), *([(bottom[2].shape[1:], 2)] if self._static else [])]
        for shape, index in inputs:
            if math.prod(shape) != self.params[index].shape[1]:
                raise ArgumentError(
                    "the bottom has another number of inputs than the weights",
                    given={"bottom": shape, "weights": self.params[index].shape},
                    required=f"{math.prod(shape)} == {self.params[index].shape[1]}",
                )
        time, streams = bottom[0].shape[:2]
        top[0].reshape(time, streams, self.outputs)
        for blob in top[1:]:
            blob.reshape(1, streams, self.outputs)

    # -- forward

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        time, streams = bottom[0].shape[:2]
        weights = [p.data for p in self.params]
        sources = [(bottom[0], weights[:2]), *([(bottom[2], weights[2:3])] if self._static else [])]
        self._products = [Product(self.keep, blob.data, w) for blob, w in sources]
        entering = self._products[0].y.reshape(time, streams, self.gates * self.outputs)
        if self._static:
            plan = ElementwisePlan(dtype=bottom[0].dtype, function=Function.ADD)
            entering = ops.forward(plan, entering, np.broadcast_to(self._products[1].y, entering.shape))[0]
        self._weights, self._moments = weights[2 + self._static :], []
        remembered = self._begin(bottom, streams)
        for t in range(time):
            gate = np.broadcast_to(bottom[1].data[t][:, None], (streams, self.outputs))
            moment = Moment(Steps(self.keep), entering[t], remembered)
            top[0].data[t], remembered = moment.out, moment.after = self.step(
                moment.steps, moment.entering, gate, remembered, self._weights
            )
            if self.keep:
                self._moments.append(moment)
        for blob, values in zip(top[1:] if self.expose_hidden else self._state, remembered, strict=True):
            blob.data[0] = values

    def _begin(self, bottom: Blobs, streams: int) -> list[Array]:
        """What is remembered at the first time step, in memory that the end of the pass does not overwrite."""
        hidden = self._hidden(bottom)
        if not self.expose_hidden:
            self._state = self._state or [Blob((), bottom[0].dtype) for _ in range(self.remembers)]
            for blob in self._state:
                blob.reshape(1, streams, self.outputs)
            hidden = self._state
        return [blob.data[0].copy() for blob in hidden]

    def forget(self) -> None:
        """Begin the next pass with nothing remembered."""
        self._state = []

    # -- backward

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError("the marks of a sequence have no gradient", because=f"Caffe, {SOURCE}")
        if not self._products or not self._products[0].steps.keep:
            raise nothing_kept()
        time, streams = bottom[0].shape[:2]
        dentering = np.zeros((time, streams, self.gates * self.outputs), bottom[0].dtype)
        self._through_time(top[0].diff, dentering)
        self._through_product(0, dentering.reshape(self._products[0].y.shape), bottom[0] if want[0] else None)
        if self._static:
            self._through_product(1, total([np.zeros_like(self._products[1].y), *dentering]), bottom[2] if want[2] else None)
        for blob, wanted in zip(self._hidden(bottom), want[2 + self._static :], strict=False):
            if wanted:
                blob.diff.fill(0)

    def _through_time(self, dtop: Array, dentering: Array) -> None:
        """From the last step to the first: fill the gradients of what entered, add those of the weights of `step`."""
        first = 2 + self._static
        learned = [i for i in range(first, len(self.params)) if self.param_wanted[i]]
        weights = [self._weights[i - first] for i in learned]
        arriving: Sequence[Array | None] = [None] * self.remembers
        for t in reversed(range(len(self._moments))):
            moment = self._moments[t]
            found = moment.steps.backward(
                [(moment.out, dtop[t]), *zip(moment.after, arriving, strict=True)],
                [moment.entering, *weights, *(moment.before if t else [])],
            )
            assert found[0] is not None
            dentering[t] = found[0]
            for i, gradient in zip(learned, found[1:], strict=False):
                self.accumulate(i, gradient)
            arriving = found[1 + len(learned) :]

    def _through_product(self, which: int, dy: Array, bottom: Blob | None) -> None:
        """The gradients of a product before the time steps: into the bottom's diff and onto its parameters'."""
        product, first = self._products[which], 2 * which
        learned = [k for k in range(len(product.weights)) if self.param_wanted[first + k]]
        wanted = [product.weights[k] for k in learned] + ([] if bottom is None else [product.x])
        found = product.steps.backward([(product.y, dy)], wanted)
        for k, gradient in zip(learned, found, strict=False):
            self.accumulate(first + k, gradient)
        if bottom is not None:
            assert found[-1] is not None
            bottom.diff[...] = found[-1].reshape(bottom.shape)

    def allow_force_backward(self, index: int) -> bool:
        return index == 0 or (self._static and index == 2)


def linear(steps: Steps, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x times the weights (outputs, inputs), plus the bias."""
    columns, inner = weight.shape
    plan = MatmulPlan(dtype=x.dtype.name, inner=inner, columns=columns, transposed=True)
    return steps.run(plan, x, weight, bias)


__all__ = ["Recurrent", "linear"]
