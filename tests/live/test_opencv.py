"""Small Caffe nets in OpenCV 4's Caffe importer, the last other reader of these files, against `like.caffe`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import caffe

cv2 = pytest.importorskip("cv2", reason="OpenCV 4 is not installed: pip install 'opencv-python-headless<5'")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not hasattr(cv2.dnn, "readNetFromCaffe"),
        reason="this OpenCV has no Caffe importer: pip install 'opencv-python-headless<5'",
    ),
]

TOLERANCE = 1e-5


def net_text(shape: tuple[int, ...], layer: str) -> str:
    dims = " ".join(f"dim: {n}" for n in shape)
    return f'input: "data" input_shape {{ {dims} }}\nlayer {{ name: "L" bottom: "data" top: "out" {layer} }}'


def opencv(x: Any, layer: str, weights: bytes | None = None) -> Any:
    """The result of a one-layer net."""
    files = [net_text(x.shape, layer).encode(), *([] if weights is None else [weights])]
    net = cv2.dnn.readNetFromCaffe(*[np.frombuffer(file, np.uint8) for file in files])
    net.setInput(x)
    return net.forward()


def fields(**values: Any) -> str:
    return " ".join(f"{key}: {value}" for key, value in values.items())


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
def test_pooling(pool: str) -> None:
    """Every window that has a real tap; where all lie outside OpenCV gives 0, Caffe -FLT_MAX or 0/0. Pads are on both axes
    or on none: OpenCV clips each axis by its own pad, Caffe both where either has one."""
    rng = np.random.default_rng(len(pool))
    compared = 0
    for _ in range(60):
        h, w = (int(n) for n in rng.integers(1, 9, 2))
        kernel_h, kernel_w = (int(n) for n in rng.integers(1, 4, 2))
        stride_h, stride_w = (int(n) for n in rng.integers(1, 4, 2))
        pad_h, pad_w = int(rng.integers(0, kernel_h)), int(rng.integers(0, kernel_w))
        if not (pad_h and pad_w):
            pad_h = pad_w = 0
        if h + 2 * pad_h < kernel_h or w + 2 * pad_w < kernel_w:
            continue  # less than a stride too large: Caffe has one window, OpenCV none
        window = dict(kernel_h=kernel_h, kernel_w=kernel_w, stride_h=stride_h, stride_w=stride_w, pad_h=pad_h, pad_w=pad_w)
        x = rng.normal(size=(2, 3, h, w)).astype("float32")
        y = caffe.pooling(x, pool=pool, **window)
        plan = astride.rules.caffe.pooling(x.shape, pool=pool, **window)
        inside = [np.array([any(0 <= p < axis.size for p in axis.taps(i)) for i in range(axis.out)]) for axis in plan.axes]
        real = np.logical_and.outer(*inside)
        got = opencv(x, f'type: "Pooling" pooling_param {{ pool: {pool} {fields(**window)} }}')
        assert got.shape == y.shape, window
        assert_near(y[..., real], got[..., real], TOLERANCE, str(window))
        compared += 1
    assert compared > 30


def computed_alike(seed: int) -> bool:
    """One random pooling by rules="opencv", pads of any size: equal in every window, or refused by both (False)."""
    rng = np.random.default_rng(seed)
    pool, ceil_mode = str(rng.choice(["MAX", "AVE"])), bool(rng.integers(2))
    h, w = (int(n) for n in rng.integers(1, 9, 2))
    kernel, stride = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
    padding = tuple(int(n) for n in rng.integers(0, 4, 2)) if rng.integers(2) else (0, 0)
    x = rng.integers(-9, 10, (1, 2, h, w)).astype("float32")
    if pool == "MAX" and rng.integers(3) == 0:
        x = rng.choice(np.array([np.nan, np.inf, -np.inf, 0, 1, 2], "float32"), x.shape)
    (kh, kw), (sh, sw), (ph, pw) = kernel, stride, padding
    window = dict(kernel_h=kh, kernel_w=kw, stride_h=sh, stride_w=sw, pad_h=ph, pad_w=pw, ceil_mode=str(ceil_mode).lower())
    operator = astride.max_pool if pool == "MAX" else astride.avg_pool
    try:
        got = opencv(x, f'type: "Pooling" pooling_param {{ pool: {pool} {fields(**window)} }}')
    except cv2.error:
        with pytest.raises(astride.ArgumentError):
            operator(x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, rules="opencv")
        return False
    y = operator(x, kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode, rules="opencv")
    assert_near(y, got, TOLERANCE, f"{seed}: {pool} {window}")
    return True


def test_its_own_rules() -> None:
    assert sum(computed_alike(seed) for seed in range(100)) > 50


@pytest.mark.conformance
def test_its_own_rules_completely() -> None:
    assert sum(computed_alike(seed) for seed in range(100, 2600)) > 1500


def test_global_pooling() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 5, 4)).astype("float32")
    for pool in ("MAX", "AVE"):
        got = opencv(x, f'type: "Pooling" pooling_param {{ pool: {pool} global_pooling: true }}')
        assert_near(caffe.pooling(x, pool=pool, global_pooling=True), got, TOLERANCE)


@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
def test_convolutions(kind: str, tmp_path: Any) -> None:
    """Weights go through a .caffemodel that astride writes and OpenCV reads. (OpenCV ignores a deconvolution's dilation, and
    reads outside its memory where the pad is not smaller than the kernel.)"""
    rng = np.random.default_rng(len(kind))
    for _ in range(25):
        group = int(rng.choice([1, 2, 3]))
        channels, filters = 2 * group, 3 * group
        kernel = int(rng.integers(1, 4))
        settings = dict(
            num_output=filters,
            kernel_size=kernel,
            stride=int(rng.integers(1, 3)),
            pad=int(rng.integers(0, min(kernel, 2))),
            dilation=int(rng.integers(1, 3)) if kind == "Convolution" else 1,
            group=group,
        )
        x = rng.normal(size=(1, channels, *(int(n) for n in rng.integers(6, 10, 2)))).astype("float32")
        layer = f'type: "{kind}" convolution_param {{ {fields(**settings)} }}'
        net = astride.load_caffe(net_text(x.shape, layer))
        for parameter in net.params["L"]:
            parameter.data[...] = rng.normal(size=parameter.shape)
        path = tmp_path / "net.caffemodel"
        net.save(path)
        w, b = (parameter.data.copy() for parameter in net.params["L"])
        fn = caffe.convolution if kind == "Convolution" else caffe.deconvolution
        y = fn(x, w, b, **settings)
        assert_near(net.forward(data=x)["out"], y, TOLERANCE, f"net, {settings}")
        assert_near(y, opencv(x, layer, path.read_bytes()), TOLERANCE, f"OpenCV, {settings}")


def convolved_alike(kind: str, seed: int, path: Path) -> bool:
    """A random convolution or deconvolution by rules="opencv" and by Caffe's: equal, or refused by OpenCV and the rules (False).

    Kernels, strides, pads and dilations differ between the axes. What would leave OpenCV's memory or is ignored by it stays
    out: a deconvolution's dilation, and pads as large as its kernel."""
    rng = np.random.default_rng([seed, len(kind)])
    forward = kind == "Convolution"
    group = int(rng.choice([1, 1, 2, 3, 4]))
    channels, filters = (group * int(n) for n in rng.integers(1, 4, 2))
    kernel, stride = (tuple(int(n) for n in rng.integers(1, 5 - i, 2)) for i in range(2))
    pad = tuple(int(rng.integers(0, k if not forward else 4)) for k in kernel)
    dilation = tuple(int(n) for n in rng.integers(1, 4, 2)) if forward and rng.integers(2) else (1, 1)
    x = rng.integers(-9, 10, (int(rng.integers(1, 3)), channels, *(int(n) for n in rng.integers(1, 11, 2)))).astype("float32")
    w = rng.integers(-4, 5, (filters, channels // group, *kernel) if forward else (channels, filters // group, *kernel))
    w, b = w.astype("float32"), rng.integers(-9, 10, filters).astype("float32") if rng.integers(4) else None
    (kh, kw), (sh, sw), (ph, pw) = kernel, stride, pad
    window = dict(kernel_h=kh, kernel_w=kw, stride_h=sh, stride_w=sw, pad_h=ph, pad_w=pw, group=group)
    text = f"{fields(num_output=filters, **window)} bias_term: {str(b is not None).lower()} " + " ".join(
        f"dilation: {d}" for d in dilation
    )
    layer = f'type: "{kind}" convolution_param {{ {text} }}'
    operator = astride.conv if forward else astride.conv_transpose
    arguments: dict[str, Any] = dict(stride=stride, padding=pad, groups=group) | (dict(dilation=dilation) if forward else {})
    reach = [(k - 1) * d + 1 - 2 * p for k, d, p in zip(kernel, dilation, pad, strict=True)]
    if forward and max(dilation) > 1 and any(r > n for r, n in zip(reach, x.shape[2:], strict=True)):
        with pytest.raises(astride.ArgumentError):  # OpenCV 4.14 does not return from some of these
            operator(x, w, b, rules="opencv", **arguments)
        return False
    net = astride.load_caffe(net_text((1, channels, 40, 40), layer))
    for parameter, array in zip(net.params["L"], (w, b), strict=False):
        parameter.data[...] = array
    net.save(path)
    what = f"{seed}: {x.shape} {layer}"
    try:
        got = opencv(x, layer, path.read_bytes())
    except cv2.error:
        with pytest.raises(astride.ArgumentError):
            operator(x, w, b, rules="opencv", **arguments)
        return False
    y = operator(x, w, b, rules="opencv", **arguments)
    assert_near(y, got, TOLERANCE, what)
    assert_near(net.forward(data=x)["out"], y, TOLERANCE, what)
    return True


@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
def test_its_own_convolutions(kind: str, tmp_path: Path) -> None:
    assert sum(convolved_alike(kind, seed, tmp_path / "net.caffemodel") for seed in range(40)) > 20


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
def test_its_own_convolutions_completely(kind: str, tmp_path: Path) -> None:
    assert sum(convolved_alike(kind, seed, tmp_path / "net.caffemodel") for seed in range(100, 700)) > 400


def test_the_comparison_can_fail() -> None:
    x = np.random.default_rng(4).normal(size=(1, 1, 6, 6)).astype("float32")
    got = opencv(x, 'type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }')
    with pytest.raises(AssertionError):
        assert_near(astride.avg_pool(x, kernel=3, stride=2, padding=1, rounding="ceil"), got, TOLERANCE)


def test_astride_reads_what_it_wrote(tmp_path: Any) -> None:
    """The same file, read back by astride itself."""
    x = np.random.default_rng(5).normal(size=(1, 2, 6, 6)).astype("float32")
    layer = 'type: "Convolution" convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } }'
    net = astride.load_caffe(net_text(x.shape, layer))
    net.save(tmp_path / "net.caffemodel")
    again = astride.load_caffe(net_text(x.shape, layer), tmp_path / "net.caffemodel")
    assert_near(again.forward(data=x)["out"], net.forward(data=x)["out"], 0.0)
