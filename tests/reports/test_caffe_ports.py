"""Field reports of people who moved networks to or from Caffe: sizes, statistics, what has to be installed, groups."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.explain.layer import layer_views
from astride.net import Net

INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [SHAPE] } } }\n'
POOL = (
    'layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param { kernel_size: 3 stride: 2 pad: 1 MORE } }\n'
)
CUT = """layer { name: "like" type: "DummyData" top: "like" dummy_data_param { shape { dim: [1, 1, 56, 56] } } }
layer { name: "cut" type: "Crop" bottom: "pool" bottom: "like" top: "cut" crop_param { axis: 2 offset: 0 } }
"""


def pooled(x: np.ndarray) -> np.ndarray:
    """MaxPool2d(3, 2, 1) of (112, 112): 56 windows an axis, the first from -1, none of them past 111."""
    padded = np.pad(x, 1, constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3))[::2, ::2].max(axis=(2, 3))


def test_caf_07_a_max_pool_of_112_is_56_by_a_field_or_by_a_crop() -> None:
    x = np.random.default_rng(0).integers(-1000, 0, (1, 3, 112, 112)).astype(np.float32)
    expected = np.stack([pooled(plane) for plane in x[0]])[None]
    assert expected.shape == (1, 3, 56, 56)
    start = INPUT.replace("SHAPE", "1, 3, 112, 112")
    plain = start + POOL.replace("MORE", "")
    for text, top in (
        (start + POOL.replace("MORE", "round_mode: FLOOR"), "pool"),  # Caffe since 2019
        (start + POOL.replace("MORE", "ceil_mode: false"), "pool"),  # its forks
        (plain + CUT, "cut"),  # every Caffe since 2016
    ):
        net = load_caffe(text)
        net.forward(data=x)
        np.testing.assert_array_equal(net.blobs[top].data, expected)
    assert load_caffe(plain).forward(data=x)["pool"].shape == (1, 3, 57, 57)


def test_caf_17_the_given_eps_and_the_factor_count() -> None:
    """Variances of 1e-6, as sums of 5e-7 with a factor of 0.5, and an eps of 1e-7: with a least eps of 1e-5 a third of it."""
    text = INPUT.replace("SHAPE", "2, 3, 4, 4") + (
        'layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 3 kernel_size: 1'
        ' bias_term: false weight_filler { type: "gaussian" std: 0.01 } } }\n'
        'layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" batch_norm_param { use_global_stats: true eps: 1e-7 } }\n'
    )
    net = load_caffe(text, seed=1)
    sums = np.array([1e-4, 2e-4, -1e-4], np.float32), np.full(3, 5e-7, np.float32), np.full(1, 0.5, np.float32)
    for parameter, values in zip(net.params["bn"], sums, strict=True):
        parameter.data[...] = values
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 4)).astype(np.float32) * np.float32(0.1)
    y = net.forward(data=x)["bn"]
    conv = net.blobs["conv"].data.astype(np.float64)
    mean, var = (sums[i].astype(np.float64).reshape(1, 3, 1, 1) / 0.5 for i in (0, 1))
    expected = (conv - mean) / np.sqrt(var + 1e-7)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(net.compile()(data=x)["bn"], expected, rtol=1e-4, atol=1e-4)  # here it is in the weights
    assert "eps: 1e-07" in net.to_prototxt()


FRESH = """
import json, sys
import astride
early = [name for name in sys.modules if name.partition(".")[0] in ("google", "caffe")]
import numpy as np
from pathlib import Path
from astride.caffe import load_caffe
text = Path(astride.__file__).parent / "examples" / "lenet" / "lenet.prototxt"
net = load_caffe(text, seed=1)
y = net.forward(data=np.ones(net.blobs["data"].shape, np.float32))["prob"]
generated = [name for name in sys.modules if name.endswith("_pb2") and not name.startswith("google.protobuf.")]
print(json.dumps([astride.__file__, early, generated, list(y.shape), float(y.sum())]))
"""
COMPILED = {".so", ".pyd", ".dylib", ".dll", ".c", ".cc", ".cpp", ".cu", ".pyx", ".proto"}


def test_caf_40_one_wheel_without_a_compiler(root: Path, tmp_path: Path) -> None:
    """What the wheel holds, alone in a folder, runs LeNet where no program can be found, neither compiler nor protoc."""
    said = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert said["project"]["requires-python"] == ">=3.11" and said["build-system"]["build-backend"] == "hatchling.build"
    assert said["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/astride"]}  # no hook, so py3-none-any
    assert not [name for name in said["project"]["dependencies"] if "grpc" in name or "protoc-" in name or "caffe" in name]
    installed = tmp_path / "site" / "astride"
    shutil.copytree(root / "src" / "astride", installed, ignore=shutil.ignore_patterns("__pycache__"))
    assert [path for path in installed.rglob("*") if path.suffix in COMPILED] == []
    env = {**os.environ, "PYTHONPATH": str(installed.parent), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", FRESH], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    file, early, generated, shape, total = json.loads(done.stdout)
    assert Path(file) == installed / "__init__.py" and early == [] and generated == []
    assert shape == [1, 10] and total == pytest.approx(1, rel=1e-5)


def upsampling(channels: int, group: int) -> Net:
    fields = f"num_output: {channels} group: {group} kernel_size: 4 stride: 2 pad: 1 bias_term: false"
    layer = f'layer {{ name: "up" type: "Deconvolution" bottom: "data" top: "up" convolution_param {{ {fields} }} }}'
    return load_caffe(INPUT.replace("SHAPE", f"128, {channels}, 14, 14") + layer)


def test_caf_43_a_grouped_deconvolution_is_one_of_each_channel() -> None:
    """And does a 64th of the multiplications of one that mixes all channels."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (128, 64, 14, 14)).astype(np.float32)
    weights = rng.integers(-4, 5, (64, 1, 4, 4)).astype(np.float32)
    grouped, alone = upsampling(64, 64), upsampling(1, 1)
    grouped.params["up"][0].data[...] = weights
    y = grouped.forward(data=x)["up"]
    assert y.shape == (128, 64, 28, 28)
    for channel in range(64):
        alone.params["up"][0].data[...] = weights[channel]
        np.testing.assert_array_equal(y[:, [channel]], alone.forward(data=x[:, [channel]])["up"])
    products = [layer_views(net)[-1].products for net in (grouped, upsampling(64, 1))]
    assert products == [128 * 64 * 14 * 14 * 16, 64 * 128 * 64 * 14 * 14 * 16]
