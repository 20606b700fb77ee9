"""LSTM: a sequence read with gates that choose what to remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..backends.protocol import Array, Arrays
from ..plan import ElementwisePlan
from ..plan.dense import Function
from ._recurrent import Recurrent, linear
from ._steps import Steps


class LSTM(Recurrent):
    """Long short-term memory. With h and c of the step before, both 0 where cont is 0, and sums g of four gates,

        g = W_x x + b + W_static static + W_h (cont h)        i, f, o = sigmoid(g_i, g_f, g_o)
        c = cont f c + i tanh(g_g)                            h = o tanh(c)

    where h is the output. All time steps are in one blob.

    Bottoms     x (time, streams, ...), everything behind the second axis an input; cont (time, streams), 1 where a stream
                goes on and 0 where it begins anew; if given, a static input (streams, ...), the same at every step; with
                expose_hidden h and c of the step before the first, (1, streams, outputs) each
    Tops        h of every step (time, streams, outputs); with expose_hidden h and c of the last, (1, streams, outputs)
    Parameters  W_x (4 outputs, inputs), b (4 outputs), W_static (4 outputs, static inputs) if there is one,
                W_h (4 outputs, outputs); rows in the order i, f, o, g. Fillers: one for all the weights, one for b
    State       without expose_hidden h and c of the last step begin the next pass, at first they are 0: `forget()` makes
                them 0 again. Fewer streams go on from the first ones, more begin at 0. A compiled network begins every
                call at 0, and a snapshot does not hold them, as Caffe's does not
    Gradient    through time within a pass, to x, the static input and the parameters. None to cont, to h and c from
                outside, or from the tops that show them
    Quirks      a cont other than 0 and 1 scales; the gradient of g_f is then that of a sigmoid whose value is cont f, as
                in Caffe. The number of time steps may change from pass to pass, which Caffe refuses
    Source      Caffe, src/caffe/layers/lstm_layer.cpp, lstm_unit_layer.cpp, recurrent_layer.cpp; golden layers/lstm
    """

    type = "LSTM"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 5)
    tops: ClassVar[tuple[int, int | None]] = (1, 3)
    gates = 4
    remembers = 2

    def declare_step(self, dtype: str) -> None:
        self.declare((4 * self.outputs, self.outputs), dtype, self.weight_filler)

    def step(
        self, steps: Steps, entering: Array, gate: Array, before: list[Array], weights: Sequence[Array]
    ) -> tuple[Array, list[Array]]:
        h, c = before
        going_on = steps.apply(Function.MULTIPLY, h, gate)
        sums = steps.apply(Function.ADD, linear(steps, going_on, weights[0]), entering)
        c, h = lstm_step(steps, c, sums, gate)
        return h, [h, c]


def lstm_step(steps: Steps, c: Array, sums: Array, gate: Array) -> tuple[Array, Array]:
    """(c, h) after a time step, of c before it, the gates' sums, and `gate`, of c's shape, which says whether c counts."""
    into, forget, out, new = steps.parts(sums, 4)
    into, out = steps.apply(Function.SIGMOID, into), steps.apply(Function.SIGMOID, out)
    kept = steps.apply(Function.MULTIPLY, _forget_gate(steps, forget, gate), c)
    c = steps.apply(Function.ADD, kept, steps.apply(Function.MULTIPLY, into, steps.apply(Function.TANH, new)))
    return c, steps.apply(Function.MULTIPLY, out, steps.apply(Function.TANH, c))


def _forget_gate(steps: Steps, g: Array, gate: Array) -> Array:
    """f = cont * sigmoid(g), with the slope f (1 - f)."""

    def apply(function: Function, *arrays: Array | None, **fields: float) -> Array:
        plan = ElementwisePlan(dtype=g.dtype.name, function=function, **fields)  # type: ignore[arg-type]
        return ops.forward(plan, *arrays)[0]

    f = apply(Function.MULTIPLY, apply(Function.SIGMOID, g), gate)

    def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
        slope = apply(Function.MULTIPLY, f, apply(Function.POWER, f, scale=-1.0, shift=1.0))
        return (apply(Function.MULTIPLY, gradients[0], slope),)

    return steps.note("forget gate", g, f, pull)
