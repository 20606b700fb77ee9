"""Convolution kernels named after Metal Performance Shaders', on tensors (N, H, W, C); `like.mps` computes the same on arrays.

Weights are (outputs, kernel_height, kernel_width, inputs / groups), as MPS has them, float32. NumPy arrays are copied, so that
what was given may change; a tensor is used as it is, whatever it holds when the command buffer runs: weights in training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..backends.protocol import Array
from ..backends.webgpu import conv
from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.dense_recipe import epilogue
from ..backends.webgpu.product import PLAIN, Epilogue
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError, ArrayError, UnsupportedError
from ..like.mps import SIZE_SAME, _place, _policy
from ..plan import ConvPlan, ElementwisePlan, Shape
from ..plan.dense import Function
from ..rules import mps
from .base import DeviceKernel

NEURONS = {"none": None, "relu": Function.RELU, "sigmoid": Function.SIGMOID, "tanh": Function.TANH, "elu": Function.ELU}
"""What may follow the sum in the same kernel; `neuron_a` is the slope of relu below zero, or elu's factor."""

SIZES = ("stride_in_pixels_x", "stride_in_pixels_y", "groups")


@dataclass(eq=False)
class Weighted(DeviceKernel):
    """What all convolution kernels share."""

    ARRAYS: ClassVar[frozenset[str]] = frozenset({"weights"})
    WHOLE: ClassVar[tuple[str, ...]] = SIZES

    weights: Array | Tensor

    _: KW_ONLY
    stride_in_pixels_x: int = 1
    stride_in_pixels_y: int = 1
    groups: int = 1
    destination_size: tuple[int, int] | None = None
    padding_policy: int = SIZE_SAME

    @property
    def kernel_width(self) -> int:
        return self.weights.shape[2]

    @property
    def kernel_height(self) -> int:
        return self.weights.shape[1]

    @property
    def output_channels(self) -> int:
        return self.weights.shape[0]

    def check(self) -> None:
        """Raise ArgumentError for sizes below 1 or an unknown policy, ArrayError for weights that are none."""
        self._hold("weights", 4, "(outputs, kernel_height, kernel_width, inputs / groups)")
        if 0 in self.weights.shape:
            raise ArrayError("the weights are empty", given={"weights": self.weights.shape}, operator=type(self).__name__)
        for name in self.WHOLE:
            value = getattr(self, name)
            if not 1 <= value < 2**31:
                raise ArgumentError(f"{name} is out of range", given={name: value}, required=f"1 <= {name} < 2^31: {value}")
        if self.output_channels % self.groups:
            raise ArgumentError(
                "the outputs are not divisible by groups",
                given={"weights": self.weights.shape, "groups": self.groups},
                required=f"outputs % groups == 0: {self.output_channels} % {self.groups}",
            )

    def plan(self, shape: Shape) -> ConvPlan:
        """What the kernel computes of a source of this shape (N, H, W, C). Raises ArgumentError: it does not fit."""
        raise NotImplementedError

    def _hold(self, name: str, rank: int, what: str) -> None:
        """Keep an array's copy that cannot be written to, and its tensor when that is first asked for. Raises ArrayError."""
        value: Any = getattr(self, name)
        if getattr(self, f"_{name}_checked", None) is value:
            return
        if not isinstance(value, Tensor | np.ndarray) or value.ndim != rank or value.dtype != np.float32:
            raise ArrayError(
                f"{name} do not fit" if name == "weights" else f"{name} does not fit",
                given={name: value if isinstance(value, Tensor | np.ndarray) else type(value).__name__},
                required=f"{what}, float32",
                operator=type(self).__name__,
            )
        if isinstance(value, Tensor):
            value.check(self.device)
        else:
            value = np.array(value, np.float32, order="C")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, f"_{name}_checked", value)
        object.__setattr__(self, f"_{name}_tensor", None)

    def _tensor(self, name: str) -> Tensor:
        """The array on the device, sent there once and again where the device was lost."""
        value = getattr(self, name)
        if isinstance(value, Tensor):
            return value
        kept: Tensor | None = getattr(self, f"_{name}_tensor")
        if kept is None or kept.generation != self.device.generation:
            kept = self.device.tensor(value)
            object.__setattr__(self, f"_{name}_tensor", kept)
        return kept

    def _plan_for(self, commands: CommandBuffer, source: Tensor, name: str = "source") -> ConvPlan:
        """The plan, if it can be encoded. Raises ArrayError: no image tensor; UnsupportedError: no device computes it."""
        if commands.device is not self.device:
            raise ArgumentError("the kernel was made for another device", operator=type(self).__name__, hint="one Device for all")
        if not isinstance(source, Tensor) or source.ndim != 4 or source.dtype != np.float32:
            raise ArrayError(
                f"{name} is no tensor of images",
                given={name: source if isinstance(source, Tensor) else type(source).__name__},
                required="a tensor (N, H, W, C), float32",
                hint="device.tensor(array)",
                operator=type(self).__name__,
            )
        try:
            plan = self.plan(source.shape)
        except ArgumentError as error:
            raise error.within(operator=type(self).__name__, given={name: source})
        reason = conv.refuses(plan)
        if reason is not None:
            raise UnsupportedError(f"no device computes this: {reason}", operator=type(self).__name__, given={name: source})
        return plan


@dataclass(eq=False)
class Plain(Weighted):
    """Where a convolution's windows lie. `offset` (x, y) is the centre of the first in the source; even kernels lean back."""

    WHOLE: ClassVar[tuple[str, ...]] = (*SIZES, "dilation_rate_x", "dilation_rate_y")

    _: KW_ONLY
    dilation_rate_x: int = 1
    dilation_rate_y: int = 1
    offset: tuple[int, int] | None = None
    edge_mode: str = "zero"

    def check(self) -> None:
        super().check()
        if self.edge_mode not in ("zero", "clamp"):
            raise ArgumentError("there is no such edge mode", given={"edge_mode": self.edge_mode}, required="one of zero, clamp")
        _place(self.offset, self.destination_size, self.padding_policy)

    def plan(self, shape: Shape) -> ConvPlan:
        place = _place(self.offset, self.destination_size, self.padding_policy)
        del place["rules"]
        arguments = dict(
            stride=(self.stride_in_pixels_y, self.stride_in_pixels_x),
            dilation=(self.dilation_rate_y, self.dilation_rate_x),
            groups=self.groups,
            edge=self.edge_mode,
            **place,
        )
        outputs, height, width, inputs = self.weights.shape
        return _plan(mps.conv, shape, (outputs, inputs, height, width), tuple(arguments.items()))


@dataclass(eq=False)
class Transposed(Weighted):
    """Where the pixels of a transposed convolution go: zeros between them, then plain correlation, the kernel not turned."""

    _: KW_ONLY
    offset: tuple[int, int] = (0, 0)
    kernel_offset_x: int = 0
    kernel_offset_y: int = 0

    def check(self) -> None:
        super().check()
        _policy(self.padding_policy)

    def plan(self, shape: Shape) -> ConvPlan:
        size = self.destination_size
        arguments = dict(
            stride=(self.stride_in_pixels_y, self.stride_in_pixels_x),
            groups=self.groups,
            layout="channels_last",
            padding=_policy(self.padding_policy)["padding"],
            offset=(self.offset[1], self.offset[0]),
            kernel_offset=(self.kernel_offset_y, self.kernel_offset_x),
            size=None if size is None else (size[1], size[0]),
        )
        outputs, height, width, inputs = self.weights.shape
        shapes = (inputs * self.groups, outputs // self.groups, height, width)
        return _plan(mps.conv_transpose, shape, shapes, tuple(arguments.items()))


@lru_cache(maxsize=512)
def _plan(rule: Callable[..., ConvPlan], shape: Shape, w: Shape, arguments: tuple[tuple[str, Any], ...]) -> ConvPlan:
    return rule(shape, w, "float32", **dict(arguments))


@dataclass(eq=False)
class Forward(Weighted):
    """Kernels that convolve, with a bias and a neuron in the same pass over the result."""

    ARRAYS: ClassVar[frozenset[str]] = frozenset({"weights", "bias"})

    bias: Array | Tensor | None = None
    _: KW_ONLY
    neuron: str = "none"
    neuron_a: float = 0.0

    def check(self) -> None:
        super().check()
        if self.bias is not None:
            self._hold("bias", 1, f"({self.output_channels},)")
            if self.bias.shape != (self.output_channels,):
                raise ArrayError(
                    "bias does not fit the weights",
                    given={"bias": self.bias.shape, "weights": self.weights.shape},
                    required=f"bias.shape == ({self.output_channels},): {self.bias.shape}",
                )
        if self.neuron not in NEURONS:
            raise ArgumentError("there is no such neuron", given={"neuron": self.neuron}, required=f"one of {', '.join(NEURONS)}")

    def encode(self, commands: CommandBuffer, source: Tensor) -> Tensor:
        """Encode convolving the source (N, H, W, C); the result is there once the command buffer is committed."""
        plan = self._plan_for(commands, source)
        bias = None if self.bias is None else self._tensor("bias")
        return conv.encode_forward(commands, plan, source, self._tensor("weights"), bias, self._epilogue(), w_last=True)

    def _epilogue(self) -> Epilogue:
        function = NEURONS[self.neuron]
        if function is None:
            return PLAIN
        slope = self.neuron_a if function in (Function.RELU, Function.ELU) else 0.0
        return epilogue(ElementwisePlan(dtype="float32", function=function, slope=slope), self.bias is not None)


@dataclass(eq=False)
class Gradient(Weighted):
    """Kernels that give the gradients of a convolution without neuron: of its source, its weights and its bias."""

    def encode(self, commands: CommandBuffer, gradient: Tensor, source: Tensor, state: None = None) -> Tensor:
        """Encode the gradient of the source, given that of the result; a convolution has no state to spare anything with.

        Raises ArrayError: the gradient has not the shape of the result.
        """
        plan = self._checked(commands, gradient, source)
        return conv.encode_input_gradient(commands, plan, gradient, self._tensor("weights"), source.shape, w_last=True)

    def encode_weights(self, commands: CommandBuffer, gradient: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encode the gradients of the weights, shaped as they are, and of the bias (outputs,)."""
        plan = self._checked(commands, gradient, source)
        dw = conv.encode_weights_gradient(commands, plan, source, gradient, self.weights.shape)
        return dw, conv.encode_bias_gradient(commands, plan, gradient)

    def _checked(self, commands: CommandBuffer, gradient: Tensor, source: Tensor) -> ConvPlan:
        plan = self._plan_for(commands, source)
        wanted = plan.output_shape(source.shape, plan.weight_shape)
        if not isinstance(gradient, Tensor) or gradient.shape != wanted or gradient.dtype != np.float32:
            raise ArrayError(
                "the gradient does not fit the result",
                given={"gradient": gradient if isinstance(gradient, Tensor) else type(gradient).__name__, "source": source},
                required=f"shape {wanted}, float32",
                operator=type(self).__name__,
            )
        return plan


@dataclass(eq=False)
class Convolution(Plain, Forward):
    """MPSCNNConvolution: correlation, channels in `groups`, which need multiples of four channels."""


@dataclass(eq=False)
class ConvolutionGradient(Plain, Gradient):
    """MPSCNNConvolutionGradient: of the source by `encode`, of weights and bias by `encode_weights`."""


@dataclass(eq=False)
class ConvolutionTranspose(Transposed, Forward):
    """MPSCNNConvolutionTranspose. "Same" gives (n - 1) * stride + 1 pixels, not n * stride."""


@dataclass(eq=False)
class ConvolutionTransposeGradient(Transposed, Gradient):
    """MPSCNNConvolutionTransposeGradient: of the source by `encode`, of weights and bias by `encode_weights`."""
