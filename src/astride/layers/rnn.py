"""RNN: a sequence read with one hidden layer that sees itself a step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..plan.dense import Function
from ._recurrent import Recurrent, linear
from ._steps import Steps


class RNN(Recurrent):
    """The plain recurrent network. With h of the step before, 0 where cont is 0,

        h = tanh(W_x x + b + W_static static + W_h (cont h))        y = tanh(W_o h + b_o)

    where y is the output. All time steps are in one blob.

    Bottoms     x (time, streams, ...), everything behind the second axis an input; cont (time, streams), 1 where a stream
                goes on and 0 where it begins anew; if given, a static input (streams, ...), the same at every step; with
                expose_hidden h of the step before the first, (1, streams, outputs)
    Tops        y of every step (time, streams, outputs); with expose_hidden h of the last, (1, streams, outputs)
    Parameters  W_x (outputs, inputs), b (outputs), W_static (outputs, static inputs) if there is one, W_h and W_o
                (outputs, outputs), b_o (outputs). Fillers: one for all the weights, one for both biases
    State       without expose_hidden h of the last step begins the next pass, at first it is 0: `forget()` makes it 0
                again. Fewer streams go on from the first ones, more begin at 0. A compiled network begins every call at
                0, and a snapshot does not hold it, as Caffe's does not
    Gradient    through time within a pass, to x, the static input and the parameters. None to cont, to h from outside,
                or from the top that shows it
    Quirks      the number of time steps may change from pass to pass, which Caffe refuses
    Source      Caffe, src/caffe/layers/rnn_layer.cpp, recurrent_layer.cpp; golden layers/rnn
    """

    type = "RNN"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 4)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)

    def declare_step(self, dtype: str) -> None:
        for _ in range(2):
            self.declare((self.outputs, self.outputs), dtype, self.weight_filler)
        self.declare((self.outputs,), dtype, self.bias_filler)

    def step(
        self, steps: Steps, entering: Array, gate: Array, before: list[Array], weights: Sequence[Array]
    ) -> tuple[Array, list[Array]]:
        going_on = steps.apply(Function.MULTIPLY, before[0], gate)
        h = steps.apply(Function.TANH, steps.apply(Function.ADD, linear(steps, going_on, weights[0]), entering))
        return steps.apply(Function.TANH, linear(steps, h, *weights[1:])), [h]
