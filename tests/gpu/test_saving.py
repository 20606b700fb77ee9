"""Kernels as plain data and in safetensors files; hostile ones are refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from astride import gpu
from astride.errors import ArgumentError
from astride.gpu import safetensors, saving
from astride.gpu.base import DeviceKernel


@dataclass(eq=False)
class Weighted(DeviceKernel):
    """A kernel with an array, such as convolution has."""

    ARRAYS: ClassVar[frozenset[str]] = frozenset({"weights", "bias"})

    step: int
    scale: float = 1.0
    weights: Any = None
    bias: Any = None


@pytest.fixture
def weighted(monkeypatch: pytest.MonkeyPatch) -> type[Weighted]:
    monkeypatch.setitem(saving.KERNELS, "Weighted", "pooling")
    monkeypatch.setattr("astride.gpu.pooling.Weighted", Weighted, raising=False)
    return Weighted


def kernels(device: Any) -> list[DeviceKernel]:
    return [
        gpu.PoolingMax(device, 3, 2, 2, 1, offset=(1, -1), destination_size=(4, 5)),
        gpu.PoolingAverageGradient(device, 3, 2, edge_mode="clamp", zero_pad_size_x=2),
        gpu.PoolingL2Norm(device, 3, 2, zero_window="formula"),
        gpu.DilatedPoolingMax(device, 3, 2, 2, 3, 1, 1, padding_policy=28),
        gpu.PoolingStochastic(device, 2, 2, seed=2**63, training=True),
    ]


def parameters(kernel: DeviceKernel) -> Any:
    return kernel.to_dict()


def test_dictionaries_are_plain_data(device: Any) -> None:
    for kernel in kernels(device):
        data = json.loads(json.dumps(kernel.to_dict()))
        for again in (gpu.from_dict(data, device), type(kernel).from_dict(data, device)):
            assert type(again) is type(kernel) and parameters(again) == parameters(kernel)


def test_arrays_travel(device: Any, weighted: type[Weighted], rng: np.random.Generator, tmp_path: Path) -> None:
    w = rng.standard_normal((3, 4, 5)).astype(np.float32)
    kernel = weighted(device, 2, weights=w, bias=device.tensor(np.arange(3, dtype=np.float32)))
    again = gpu.from_dict(json.loads(json.dumps(kernel.to_dict())), device)
    gpu.save(tmp_path / "k.safetensors", {"first": kernel, "first.second": weighted(device, 3, weights=2 * w)})
    loaded = gpu.load(tmp_path / "k.safetensors", device)
    for found in (again, loaded["first"]):
        assert isinstance(found, Weighted) and found.step == 2
        np.testing.assert_array_equal(found.weights, w)
        np.testing.assert_array_equal(found.bias, [0, 1, 2])
    second = loaded["first.second"]
    assert isinstance(second, Weighted) and second.bias is None
    np.testing.assert_array_equal(second.weights, 2 * w)


def test_files_hold_several(device: Any, tmp_path: Path) -> None:
    path = tmp_path / "k.safetensors"
    made = {str(n): kernel for n, kernel in enumerate(kernels(device))}
    gpu.save(path, made)
    loaded = gpu.load(path, device)
    assert {n: parameters(k) for n, k in loaded.items()} == {n: parameters(k) for n, k in made.items()}


def without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in data.items() if k != key}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: None,
        lambda d: [d],
        lambda d: {},
        lambda d: d | {"format": "pickle"},
        lambda d: d | {"version": 2},
        lambda d: d | {"version": "1"},
        lambda d: d | {"kernel": "Kernel"},
        lambda d: d | {"kernel": "__import__"},
        lambda d: d | {"kernel": ["PoolingMax"]},
        lambda d: d | {"code": "1"},
        lambda d: without(d, "parameters"),
        lambda d: d | {"parameters": [1]},
        lambda d: d | {"parameters": d["parameters"] | {"device": 1}},
        lambda d: d | {"parameters": d["parameters"] | {"__class__": 1}},
        lambda d: d | {"parameters": without(d["parameters"], "kernel_width")},
        lambda d: d | {"parameters": d["parameters"] | {"kernel_width": "3"}},
        lambda d: d | {"parameters": d["parameters"] | {"kernel_width": 3.0}},
        lambda d: d | {"parameters": d["parameters"] | {"kernel_width": True}},
        lambda d: d | {"parameters": d["parameters"] | {"kernel_width": -1}},
        lambda d: d | {"parameters": d["parameters"] | {"kernel_width": 10**30}},
        lambda d: d | {"parameters": d["parameters"] | {"offset": [2**63, -(2**64)]}},
        lambda d: d | {"parameters": d["parameters"] | {"edge_mode": "x" * 100}},
        lambda d: d | {"parameters": d["parameters"] | {"offset": [1, 2, 3]}},
        lambda d: d | {"parameters": d["parameters"] | {"offset": [1, [2]]}},
        lambda d: d | {"parameters": d["parameters"] | {1: 2}},
        lambda d: d | {"arrays": {"weights": {"dtype": "float32", "shape": [1], "base64": "AAAAAA=="}}},
        lambda d: d | {"arrays": 3},
    ],
)
def test_hostile_dictionaries_are_refused(device: Any, spoil: Any) -> None:
    data = gpu.PoolingMax(device, 3, 3).to_dict()
    with pytest.raises(ArgumentError):
        gpu.from_dict(spoil(data), device)


@pytest.mark.parametrize("number", [10**400, 1e300, float("nan"), float("inf"), "1", None])
def test_numbers_beyond_float32_are_refused(device: Any, number: Any) -> None:
    data = gpu.Convolution(device, np.ones((4, 1, 1, 4), np.float32), neuron="relu").to_dict()
    with pytest.raises(ArgumentError, match="neuron_a"):
        gpu.from_dict(data | {"parameters": data["parameters"] | {"neuron_a": number}}, device)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: None,
        lambda a: {},
        lambda a: a | {"dtype": "object"},
        lambda a: a | {"dtype": "float64"},
        lambda a: a | {"dtype": ["float32"]},
        lambda a: a | {"shape": [3, 4]},
        lambda a: a | {"shape": [-2, -1]},
        lambda a: a | {"shape": [2.0]},
        lambda a: a | {"shape": 2},
        lambda a: a | {"shape": [2**40, 2**40]},
        lambda a: a | {"base64": "AAAA!AAAAAA="},
        lambda a: a | {"base64": "AAAA"},
        lambda a: a | {"base64": 7},
        lambda a: a | {"more": 7},
    ],
)
def test_hostile_arrays_are_refused(device: Any, weighted: type[Weighted], spoil: Any) -> None:
    data = weighted(device, 2, weights=np.zeros(2, np.float32)).to_dict()
    assert isinstance(gpu.from_dict(data, device), Weighted)
    with pytest.raises(ArgumentError):
        gpu.from_dict(data | {"arrays": {"weights": spoil(data["arrays"]["weights"])}}, device)


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"PK\3\4",
        file_of({}, length=2**63),
        file_of({}, length=100),
        file_of(b"{" * 5000),
        file_of(b"[" * 200_000),
        file_of([]),
        file_of(b'{"a": \xff}'),
        file_of({"a": entry()}, b"\0" * 7),
        file_of({"a": entry()}, b"\0" * 9),
        file_of({"a": entry(dtype="PY")}, b"\0" * 8),
        file_of({"a": entry(shape=(3,))}, b"\0" * 8),
        file_of({"a": entry(shape=(-2, -1))}, b"\0" * 8),
        file_of({"a": entry(shape=(2**62, 4))}, b"\0" * 8),
        file_of({"a": entry(offsets=(4, 12))}, b"\0" * 12),
        file_of({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12),
        file_of({"a": entry(offsets=(0,))}, b"\0" * 8),
        file_of({"a": entry(), "__metadata__": {"x": 1}}, b"\0" * 8),
        file_of({"a": entry(), "__metadata__": "x"}, b"\0" * 8),
        file_of({"a": {}}, b"\0" * 8),
        file_of({"a": 3}, b"\0" * 8),
        file_of(b'{"a": %b, "a": %b}' % ((json.dumps(entry()).encode(),) * 2), b"\0" * 8),
    ],
)
def test_hostile_files_are_refused(device: Any, tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "k.safetensors"
    path.write_bytes(raw)
    for step in (lambda: safetensors.read(path), lambda: gpu.load(path, device)):
        with pytest.raises(ArgumentError):
            step()


def test_files_with_other_contents_are_refused(device: Any, tmp_path: Path) -> None:
    path = tmp_path / "k.safetensors"
    array = {"a.b": np.zeros(2, np.float32)}
    good = json.dumps({"a": gpu.PoolingMax(device, 3, 3)._description()})
    for arrays, metadata in (
        (array, {}),
        ({}, {saving.KEY: "{"}),
        ({}, {saving.KEY: "[]"}),
        ({}, {saving.KEY: '{"a": 3}'}),
        (array, {saving.KEY: good}),
        ({"c": np.zeros(1, np.uint8)}, {saving.KEY: good}),
    ):
        safetensors.write(path, arrays, metadata)
        with pytest.raises(ArgumentError):
            gpu.load(path, device)


def test_own_kernels_are_not_saved_in_files(device: Any, tmp_path: Path) -> None:
    kernel: Any = gpu.Kernel(device, "k", {}, {"y": "f32"}, {}, "y[i] = 1.0;")
    with pytest.raises(ArgumentError, match="not saved"):
        gpu.save(tmp_path / "k", {"k": kernel})
    with pytest.raises(ArgumentError, match="no safetensors"):
        gpu.load(tmp_path / "absent", device)


def test_every_kernel_of_the_table_is_public() -> None:
    assert {*saving.KERNELS} <= {*gpu.__all__}
    for name in gpu.__all__:
        assert getattr(gpu, name).__doc__, name
