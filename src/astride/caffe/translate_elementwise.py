"""The layers that compute element by element: Caffe's messages to layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..layers import Layer
from ..layers.abs_val import AbsVal
from ..layers.bias import Bias
from ..layers.bnll import BNLL
from ..layers.clip import Clip
from ..layers.eltwise import Eltwise
from ..layers.elu import ELU
from ..layers.exp import Exp
from ..layers.log import Log
from ..layers.power import Power
from ..layers.prelu import PReLU
from ..layers.relu import ReLU
from ..layers.scale import Scale
from ..layers.sigmoid import Sigmoid
from ..layers.swish import Swish
from ..layers.tanh import TanH
from ..layers.threshold import Threshold
from ..net import Phase
from ..plan.dense import Function
from ..plan.kinds import Nan
from ..proto import Message
from .fields import filler
from .state import enum_name

OPERATIONS = {"PROD": Function.MULTIPLY, "SUM": Function.ADD, "MAX": Function.MAXIMUM}
NATURAL = -1.0
"""The base of Exp and Log that stands for e."""


def _abs_val(message: Message, phase: Phase) -> Layer:
    return AbsVal()


def _bias(message: Message, phase: Phase) -> Layer:
    p = message.bias_param
    return Bias(axis=p.axis, num_axes=p.num_axes, filler=filler(p.filler))


def _bnll(message: Message, phase: Phase) -> Layer:
    return BNLL()


def _clip(message: Message, phase: Phase) -> Layer:
    return Clip(message.clip_param.min, message.clip_param.max, nan=Nan.COMPARED)


def _eltwise(message: Message, phase: Phase) -> Layer:
    p = message.eltwise_param
    function = OPERATIONS[enum_name(p, "operation")]
    return Eltwise(
        function,
        coeffs=tuple(p.coeff),
        second_wins_ties=True,
        nan=Nan.COMPARED,
        stable_gradient=p.stable_prod_grad,
    )


def _elu(message: Message, phase: Phase) -> Layer:
    return ELU(alpha=message.elu_param.alpha)


def _exp(message: Message, phase: Phase) -> Layer:
    return Exp(**_curve(message.exp_param))


def _log(message: Message, phase: Phase) -> Layer:
    return Log(**_curve(message.log_param))


def _curve(p: Message) -> dict[str, Any]:
    return {"base": None if p.base == NATURAL else p.base, "scale": p.scale, "shift": p.shift}


def _power(message: Message, phase: Phase) -> Layer:
    p = message.power_param
    return Power(power=p.power, scale=p.scale, shift=p.shift)


def _prelu(message: Message, phase: Phase) -> Layer:
    p = message.prelu_param
    # An absent filler is the layer's own, not the constant 0 of an empty message.
    return PReLU(channel_shared=p.channel_shared, filler=filler(p.filler) if p.HasField("filler") else None)


def _relu(message: Message, phase: Phase) -> Layer:
    return ReLU(slope=message.relu_param.negative_slope)


def _scale(message: Message, phase: Phase) -> Layer:
    p = message.scale_param
    return Scale(
        axis=p.axis,
        num_axes=p.num_axes,
        bias=p.bias_term,
        filler=filler(p.filler) if p.HasField("filler") else None,
        bias_filler=filler(p.bias_filler),
    )


def _sigmoid(message: Message, phase: Phase) -> Layer:
    return Sigmoid()


def _swish(message: Message, phase: Phase) -> Layer:
    return Swish(beta=message.swish_param.beta)


def _tanh(message: Message, phase: Phase) -> Layer:
    return TanH()


def _threshold(message: Message, phase: Phase) -> Layer:
    return Threshold(threshold=message.threshold_param.threshold)


ELEMENTWISE: dict[str, Callable[[Message, Phase], Layer]] = {
    "AbsVal": _abs_val,
    "BNLL": _bnll,
    "Bias": _bias,
    "Clip": _clip,
    "ELU": _elu,
    "Eltwise": _eltwise,
    "Exp": _exp,
    "Log": _log,
    "PReLU": _prelu,
    "Power": _power,
    "ReLU": _relu,
    "Scale": _scale,
    "Sigmoid": _sigmoid,
    "Swish": _swish,
    "TanH": _tanh,
    "Threshold": _threshold,
}
