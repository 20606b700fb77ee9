"""What the tests of recurrent layers share: a bench that forgets between passes, and plain loops over one number at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .gradients import Bench

Array = npt.NDArray[Any]


class Forgetful(Bench):
    """Every pass begins with nothing remembered, so that passes can be compared."""

    def forward(self) -> list[Array]:
        self.layer.forget()
        return super().forward()


def marks(*rows: str) -> Array:
    """cont, a row a time step: marks("00", "11") for two streams that begin and go on."""
    return np.array([[float(mark) for mark in row] for row in rows])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def lstm_loops(x: Array, cont: Array, params: list[Array], static: Array | None = None) -> Array:
    """Every number by itself, as the equations say."""
    time, streams = cont.shape
    outputs = params[-1].shape[1]
    y = np.zeros((time, streams, outputs))
    for n in range(streams):
        h, c = np.zeros(outputs), np.zeros(outputs)
        for t in range(time):
            g = params[0] @ x[t, n].reshape(-1) + params[1] + params[-1] @ (cont[t, n] * h)
            if static is not None:
                g = g + params[2] @ static[n].reshape(-1)
            i, f, o, new = g.reshape(4, outputs)
            for k in range(outputs):
                c[k] = cont[t, n] * sigmoid(f[k]) * c[k] + sigmoid(i[k]) * math.tanh(new[k])
            h = np.array([sigmoid(o[k]) * math.tanh(c[k]) for k in range(outputs)])
            y[t, n] = h
    return y


def rnn_loops(x: Array, cont: Array, params: list[Array], static: Array | None = None) -> Array:
    """Every stream by itself, as the equations say."""
    time, streams = cont.shape
    w_h, w_o, b_o = params[-3:]
    y = np.zeros((time, streams, len(b_o)))
    for n in range(streams):
        h = np.zeros(len(b_o))
        for t in range(time):
            g = params[0] @ x[t, n].reshape(-1) + params[1] + w_h @ (cont[t, n] * h)
            h = np.tanh(g if static is None else g + params[2] @ static[n].reshape(-1))
            y[t, n] = np.tanh(w_o @ h + b_o)
    return y
