"""Built-in kernels and one's own in one command buffer give what the host gives step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.compare import assert_close

import astride
from astride import gpu
from astride.like import mps


def test_pool_own_kernel_transposed_convolution_and_loss_gradient(device: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 12, 14, 4)).astype(np.float32)
    weights = rng.standard_normal((3, 3, 2, 4)).astype(np.float32)
    target = rng.standard_normal((2, 11, 13, 3)).astype(np.float32)
    strides = dict(stride_in_pixels_x=2, stride_in_pixels_y=2)

    pooled, pull_pool = astride.vjp(mps.pooling_average, x, 2, 2, 2, 2)
    slopes = np.where(pooled > 0, np.float32(1), np.float32(0.125))
    y, pull = astride.vjp(mps.convolution_transpose, pooled * slopes, weights, **strides)
    dh, dw, *_ = pull(y - target)
    dx = pull_pool(dh * slopes)[0]

    leaky = gpu.Kernel(device, "leaky", {"x": "f32"}, {"y": "f32"}, {"slope": "f32"}, "y[i] = max(x[i], x[i] * params.slope);")
    error = gpu.Kernel(device, "error", {"y": "f32", "t": "f32"}, {"dy": "f32"}, {}, "dy[i] = y[i] - t[i];")
    leaky_gradient = gpu.Kernel(
        device,
        "leaky_gradient",
        {"dy": "f32", "x": "f32"},
        {"dx": "f32"},
        {"slope": "f32"},
        "dx[i] = select(dy[i] * params.slope, dy[i], x[i] > 0.0);",
    )
    commands = gpu.CommandBuffer(device)
    source = device.tensor(x)
    pooled_there = gpu.PoolingAverage(device, 2, 2, 2, 2).encode(commands, source)
    h = leaky.encode(commands, pooled_there, slope=0.125)
    y_there = gpu.ConvolutionTranspose(device, weights, **strides).encode(commands, h)
    dy = error.encode(commands, y_there, device.tensor(target))
    back = gpu.ConvolutionTransposeGradient(device, weights, **strides)
    dh_there, (dw_there, _) = back.encode(commands, dy, h), back.encode_weights(commands, dy, h)
    dpooled = leaky_gradient.encode(commands, dh_there, pooled_there, slope=0.125)
    dx_there = gpu.PoolingAverageGradient(device, 2, 2, 2, 2).encode(commands, dpooled, source)
    commands.commit()
    commands.wait()
    for name, got, expected in (("y", y_there, y), ("dh", dh_there, dh), ("dw", dw_there, dw), ("dx", dx_there, dx)):
        assert_close(got.numpy(), expected, 1e-5, name)
