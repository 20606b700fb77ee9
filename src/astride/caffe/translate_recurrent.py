"""The recurrent layers: Caffe's messages to layers."""

from __future__ import annotations

from collections.abc import Callable

from ..layers import Layer
from ..layers._recurrent import Recurrent
from ..layers.lstm import LSTM
from ..layers.lstm_unit import LSTMUnit
from ..layers.rnn import RNN
from ..net import Phase
from ..proto import Message
from .fields import filler


def _recurrent(message: Message, kind: type[Recurrent]) -> Layer:
    p = message.recurrent_param
    return kind(
        p.num_output, expose_hidden=p.expose_hidden, weight_filler=filler(p.weight_filler), bias_filler=filler(p.bias_filler)
    )


def _lstm(message: Message, phase: Phase) -> Layer:
    return _recurrent(message, LSTM)


def _rnn(message: Message, phase: Phase) -> Layer:
    return _recurrent(message, RNN)


def _lstm_unit(message: Message, phase: Phase) -> Layer:
    return LSTMUnit()


RECURRENT: dict[str, Callable[[Message, Phase], Layer]] = {"LSTM": _lstm, "LSTMUnit": _lstm_unit, "RNN": _rnn}
