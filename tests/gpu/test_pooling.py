"""Pooling kernels as objects against `like.mps`: windows, edges, policies, gradients with and without a state."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_close, assert_same

import astride
from astride import gpu
from astride.errors import ArgumentError, ArrayError, AstrideError, UnsupportedError
from astride.like import mps

KINDS: dict[str, Any] = {
    "PoolingMax": mps.pooling_max,
    "PoolingAverage": mps.pooling_average,
    "PoolingL2Norm": mps.pooling_l2_norm,
    "DilatedPoolingMax": mps.dilated_pooling_max,
}
POLICIES = [a | r | s for a, r, s in itertools.product((0, 1, 2), (0, 4, 8, 12), (0, 16, 32))]


def both(device: Any, name: str, x: Any, *sizes: int, **options: Any) -> None:
    """Result and gradients, the latter from a state and computed anew, equal those of `like.mps`."""
    expected, pull = astride.vjp(KINDS[name], x, *sizes, **options)
    dy = np.random.default_rng(1).integers(-4, 5, expected.shape).astype(np.float32)
    kernel = getattr(gpu, name)(device, *sizes, **options)
    gradient = getattr(gpu, f"{name}Gradient")(device, *sizes, **options)
    commands = gpu.CommandBuffer(device)
    source, arriving = device.tensor(x), device.tensor(dy)
    y, state = kernel.encode_with_state(commands, source)
    plain = kernel.encode(commands, source)
    kept, anew = gradient.encode(commands, arriving, source, state), gradient.encode(commands, arriving, source)
    commands.commit()
    commands.wait()
    where = f"{name} {sizes} {options}"
    same = assert_same if "Max" in name else lambda a, e, w: assert_close(a, e, 1e-5, w)
    for result in (y, plain):
        same(result.numpy(), expected, where)
    for result in (kept, anew):
        same(result.numpy(), pull(dy)[0], f"{where}, gradient")


def sizes_of(name: str, width: int, height: int, *strides: int) -> tuple[int, ...]:
    return (width, height, *((2, 1) if name == "DilatedPoolingMax" else ()), *strides)


@pytest.mark.parametrize("edge", ["zero", "clamp"])
@pytest.mark.parametrize("name", KINDS)
def test_windows_edges_and_channels(device: Any, rng: np.random.Generator, name: str, edge: str) -> None:
    """Odd and even kernels; channels alone and in fours; negative data, which zeros outside beat."""
    for (width, height), channels in (((3, 3), 3), ((2, 2), 4), ((3, 2), 4), ((1, 4), 3)):
        x = rng.integers(-9, 3, (2, 7, 6, channels)).astype(np.float32)
        both(device, name, x, *sizes_of(name, width, height, 2, 1), edge_mode=edge)


@pytest.mark.parametrize("name", KINDS)
def test_offsets_and_destination_sizes(device: Any, rng: np.random.Generator, name: str) -> None:
    x = rng.integers(-9, 9, (1, 6, 5, 1)).astype(np.float32)
    for offset, destination in (((0, 0), None), ((1, 2), (2, 3)), ((-1, 0), (4, 4)), ((9, 9), (2, 2))):
        both(device, name, x, *sizes_of(name, 2, 3, 2, 2), offset=offset, destination_size=destination, edge_mode="clamp")


@pytest.mark.parametrize("name", ["PoolingMax", "PoolingAverage"])
def test_padding_policies(device: Any, rng: np.random.Generator, name: str) -> None:
    x = rng.integers(-9, 9, (1, 8, 7, 1)).astype(np.float32)
    for policy in POLICIES:
        both(device, name, x, 2, 3, 3, 2, padding_policy=policy)


@pytest.mark.parametrize("pads", [(0, 0), (1, 0), (2, 1)])
def test_zero_pad_sizes_count_with_clamp(device: Any, rng: np.random.Generator, pads: tuple[int, int]) -> None:
    x = rng.integers(-9, 9, (1, 5, 6, 2)).astype(np.float32)
    for edge in ("zero", "clamp"):
        both(device, "PoolingAverage", x, 3, 3, 2, 2, edge_mode=edge, zero_pad_size_x=pads[0], zero_pad_size_y=pads[1])


@pytest.mark.parametrize("reading", ["zero", "formula"])
def test_the_gradient_of_a_norm_of_zeros(device: Any, reading: str) -> None:
    x = np.zeros((1, 4, 4, 1), np.float32)
    x[0, 3, 3, 0] = 2
    for edge in ("zero", "clamp"):
        both(device, "PoolingL2Norm", x, 2, 2, 2, 2, zero_window=reading, edge_mode=edge, padding_policy=0)


def test_odd_numbers(device: Any) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0, 1, 1, 2, -1], np.float32)
    x = np.random.default_rng(3).choice(values, (2, 6, 6, 4))
    for name in ("PoolingMax", "PoolingAverage", "PoolingL2Norm"):
        both(device, name, x, 2, 2, 2, 2, padding_policy=0)


def test_a_minimum_is_a_maximum_of_the_negative(device: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (1, 7, 7, 3)).astype(np.float32)
    expected, pull = astride.vjp(mps.pooling_max, -x, 3, 3, 2, 2)
    commands = gpu.CommandBuffer(device)
    y, state = gpu.PoolingMin(device, 3, 3, 2, 2).encode_with_state(commands, device.tensor(x))
    dx = gpu.PoolingMinGradient(device, 3, 3, 2, 2).encode(commands, y, device.tensor(x), state)
    commands.commit()
    assert_same(y.numpy(), -expected)
    assert_same(dx.numpy(), -pull(expected)[0])


@pytest.mark.parametrize("seed", [0, 2**63 + 5])
def test_stochastic_pooling_draws_as_the_cpu_does(device: Any, rng: np.random.Generator, seed: int) -> None:
    x = rng.integers(0, 9, (2, 8, 8, 4)).astype(np.float32)
    options = dict(kernel=2, stride=2, layout="channels_last")
    expected, pull = astride.vjp(astride.stochastic_pool, x, training=True, seed=seed, **options)
    commands = gpu.CommandBuffer(device)
    sizes = dict(seed=seed, padding_policy=0)
    y, state = gpu.PoolingStochastic(device, 2, 2, 2, 2, **sizes).encode_with_state(commands, device.tensor(x))
    gradient = gpu.PoolingStochasticGradient(device, 2, 2, 2, 2, **sizes)
    kept, anew = gradient.encode(commands, y, device.tensor(x), state), gradient.encode(commands, y, device.tensor(x))
    mean = gpu.PoolingStochastic(device, 2, 2, 2, 2, training=False, padding_policy=0).encode(commands, device.tensor(x))
    other = gpu.PoolingStochastic(device, 2, 2, 2, 2, stream=1, **sizes).encode(commands, device.tensor(x))
    commands.commit()
    assert_same(y.numpy(), expected)
    for dx in (kept, anew):
        assert_same(dx.numpy(), pull(expected)[0])
    assert_close(mean.numpy(), astride.stochastic_pool(x, **options), 1e-6)
    assert (other.numpy() != expected).any()


def test_parameters_are_checked_when_set(device: Any) -> None:
    kernel = gpu.PoolingMax(device, 3, 3)
    kernel.offset = (1, 1)
    for name, value in (
        ("kernel_width", 0),
        ("kernel_width", 2.0),
        ("kernel_height", True),
        ("edge_mode", "mirror"),
        ("padding_policy", 3),
        ("offset", (1,)),
        ("offset", [1, 1]),
        ("strides", 2),
    ):
        with pytest.raises(ArgumentError):
            setattr(kernel, name, value)
    assert (kernel.kernel_width, kernel.edge_mode, kernel.offset) == (3, "zero", (1, 1))
    with pytest.raises(ArgumentError, match="offset"):
        gpu.PoolingMax(device, 3, 3, destination_size=(2, 2))
    with pytest.raises(ArgumentError, match="made for a device"):
        gpu.PoolingMax(None, 3, 3)  # type: ignore[arg-type]


def test_what_does_not_fit_is_refused_when_encoded(device: Any) -> None:
    x = device.tensor(np.zeros((1, 6, 6, 1), np.float32))
    kernel, gradient = gpu.PoolingMax(device, 3, 3, 2, 2), gpu.PoolingMaxGradient(device, 3, 3, 2, 2)
    commands = gpu.CommandBuffer(device)
    y, state = kernel.encode_with_state(commands, x)
    steps: list[tuple[type[AstrideError], str, Any]] = [
        (ArrayError, "images", lambda: kernel.encode(commands, x.reshape(6, 6))),
        (ArrayError, "images", lambda: kernel.encode(commands, x.numpy())),  # type: ignore[arg-type]
        (ArgumentError, "no rule for int32", lambda: kernel.encode(commands, device.empty((1, 6, 6, 1), "int32"))),
        (ArrayError, "does not fit", lambda: gradient.encode(commands, x, x)),
        (ArrayError, "another kernel", lambda: gpu.PoolingMaxGradient(device, 2, 2, 2, 2).encode(commands, y, x, state)),
        (ArrayError, "another kernel", lambda: gradient.encode(commands, y, x, "state")),  # type: ignore[arg-type]
        (UnsupportedError, "65535", lambda: gpu.PoolingMax(device, 70_000, 2).encode(commands, x)),
        (ArgumentError, "larger than", lambda: gpu.PoolingMax(device, 9, 9, padding_policy=0).encode(commands, x)),
    ]
    for error, says, step in steps:
        with pytest.raises(error, match=says):
            step()
