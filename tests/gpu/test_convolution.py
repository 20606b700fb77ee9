"""Convolution kernels as objects: equal to `like.mps` on arrays, gradients included; checked, and saved with their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_close, assert_same

import astride
from astride import gpu
from astride.errors import ArgumentError, ArrayError
from astride.like import mps

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"stride_in_pixels_x": 2, "stride_in_pixels_y": 3},
    "dilated": {"dilation_rate_x": 2, "dilation_rate_y": 3},
    "grouped": {"groups": 2},
    "clamped": {"edge_mode": "clamp", "offset": (-1, 2)},
    "placed": {"offset": (1, 0), "destination_size": (4, 5)},
    "valid": {"padding_policy": mps.SIZE_VALID_ONLY},
    "full": {"padding_policy": mps.SIZE_FULL | mps.REMAINDER_BOTTOM_RIGHT},
}
BACK: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"stride_in_pixels_x": 2, "stride_in_pixels_y": 3},
    "grouped": {"groups": 2, "stride_in_pixels_x": 2},
    "moved": {"kernel_offset_x": 1, "kernel_offset_y": -1, "offset": (1, 0), "stride_in_pixels_y": 2},
    "placed": {"destination_size": (9, 8), "stride_in_pixels_x": 2},
    "full": {"padding_policy": mps.SIZE_FULL},
}
KERNELS = {
    "Convolution": (gpu.Convolution, gpu.ConvolutionGradient, mps.convolution),
    "ConvolutionTranspose": (gpu.ConvolutionTranspose, gpu.ConvolutionTransposeGradient, mps.convolution_transpose),
}
ALL = [("Convolution", name, case) for name, case in CASES.items()] + [("ConvolutionTranspose", n, c) for n, c in BACK.items()]


def arrays(groups: int = 1, size: tuple[int, int] = (3, 2)) -> tuple[Any, Any, Any]:
    """A source (2, 7, 6, 8), weights of 16 outputs, a bias: small integers."""
    rng = np.random.default_rng(9)
    width, height = size
    shapes = (2, 7, 6, 8), (16, height, width, 8 // groups), (16,)
    x, w, b = (rng.integers(-3, 4, shape).astype("float32") for shape in shapes)
    return x, w, b


@pytest.mark.parametrize(("kernel", "name", "case"), ALL, ids=[f"{k} {n}" for k, n, _ in ALL])
def test_agrees_with_like_mps(device: Any, kernel: str, name: str, case: dict[str, Any]) -> None:
    forward, gradient, rule = KERNELS[kernel]
    # an odd and an even size; both of them even where an axis has no other special thing about it
    x, w, b = arrays(case.get("groups", 1), (4, 2) if name == "plain" else (3, 2))
    y, pull = astride.vjp(rule, x, w, b, **case)
    dy = np.random.default_rng(3).integers(-2, 3, y.shape).astype("float32")
    expected = pull(dy)
    commands = gpu.CommandBuffer(device)
    source, up = device.tensor(x), device.tensor(dy)
    result = forward(device, w, b, **case).encode(commands, source)
    back = gradient(device, w, **case)
    dx, (dw, db) = back.encode(commands, up, source), back.encode_weights(commands, up, source)
    commands.commit()
    for found, wanted, what in zip((result, dx, dw, db), (y, *expected), ("y", "dx", "dw", "db"), strict=True):
        assert_same(found.numpy(), wanted, f"{name}, {what}")


@pytest.mark.parametrize("neuron", ["none", "relu", "sigmoid", "tanh", "elu"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_neuron_in_the_same_kernel(device: Any, neuron: str, bias: bool) -> None:
    x, w, b = arrays()
    w = w / 16
    sums = mps.convolution(x, w, b if bias else None)
    expected = {
        "none": sums,
        "relu": np.where(sums > 0, sums, 0.25 * sums),
        "sigmoid": 1 / (1 + np.exp(-sums)),
        "tanh": np.tanh(sums),
        "elu": np.where(sums > 0, sums, 0.25 * np.expm1(sums)),
    }[neuron].astype("float32")
    commands = gpu.CommandBuffer(device)
    kernel = gpu.Convolution(device, w, b if bias else None, neuron=neuron, neuron_a=0.25)
    y = kernel.encode(commands, device.tensor(x))
    commands.commit()
    assert_close(y.numpy(), expected, 1e-6)


def test_weights_are_copied_and_tensors_are_not(device: Any) -> None:
    x, w, _ = arrays()
    kernel, live = gpu.Convolution(device, w), device.tensor(w)
    trained = gpu.Convolution(device, live)
    expected = mps.convolution(x, w)
    w[...] = 0
    live.write(w)
    commands = gpu.CommandBuffer(device)
    fixed, moved = (k.encode(commands, device.tensor(x)) for k in (kernel, trained))
    commands.commit()
    assert_same(fixed.numpy(), expected)
    assert not moved.numpy().any()
    with pytest.raises(ValueError, match="read-only"):
        kernel.weights[...] = 1
    kernel.weights = w
    commands = gpu.CommandBuffer(device)
    emptied = kernel.encode(commands, device.tensor(x))
    commands.commit()
    assert not emptied.numpy().any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_saved_and_loaded(device: Any, tmp_path: Path, kernel: str) -> None:
    x, w, b = arrays()
    made = KERNELS[kernel][0](device, w, b, stride_in_pixels_x=2, neuron="relu", neuron_a=0.5)
    gpu.save(tmp_path / "kernels.safetensors", {"first": made})
    results = []
    for again in (made, gpu.from_dict(made.to_dict(), device), gpu.load(tmp_path / "kernels.safetensors", device)["first"]):
        assert again.to_dict() == made.to_dict()
        commands = gpu.CommandBuffer(device)
        y = again.encode(commands, device.tensor(x))
        commands.commit()
        results.append(y.numpy())
    assert_same(results[1], results[0])
    assert_same(results[2], results[0])


def test_sizes_follow_from_the_weights(device: Any) -> None:
    kernel = gpu.Convolution(device, np.zeros((4, 3, 5, 2), np.float32))
    assert (kernel.kernel_width, kernel.kernel_height, kernel.output_channels) == (5, 3, 4)


def test_refusals(device: Any) -> None:
    x, w, b = arrays()
    for bad in (w.astype("float64"), w[0], "weights", w[:0]):
        with pytest.raises(ArrayError, match="weights"):
            gpu.Convolution(device, bad)
    with pytest.raises(ArrayError, match="bias"):
        gpu.Convolution(device, w, b[:-1])
    for more in (
        {"stride_in_pixels_x": 0},
        {"edge_mode": "mirror"},
        {"neuron": "gelu"},
        {"groups": 5},
        {"padding_policy": 1 << 14},
    ):
        with pytest.raises(ArgumentError):
            gpu.Convolution(device, w, b, **more)
    kernel = gpu.Convolution(device, w, b)
    with pytest.raises(ArrayError):
        kernel.bias = b[:-1]
    assert kernel.bias is not None
    assert kernel.bias.shape == (16,)
    commands = gpu.CommandBuffer(device)
    with pytest.raises(ArrayError, match="no tensor of images"):
        kernel.encode(commands, x)
    with pytest.raises(ArgumentError, match="channels"):
        kernel.encode(commands, device.tensor(x[..., :4].copy()))
    with pytest.raises(ArrayError, match="gradient does not fit"):
        gpu.ConvolutionGradient(device, w).encode(commands, device.tensor(x), device.tensor(x))
