"""Interp, Upsample, Resample and Resize: images at other sizes, against loops written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import load_caffe
from astride.errors import ArgumentError, ArrayError
from astride.layers.interp import Interp
from astride.layers.resample import Filter, Resample
from astride.layers.resize import Resize
from astride.layers.upsample import Upsample

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(12)
X = RANDOM.normal(size=(2, 2, 4, 5))


def bilinear(x: np.ndarray, out: tuple[int, int]) -> np.ndarray:
    """DeepLab's loop, pixel by pixel, in float32."""
    f = np.float32
    h, w = x.shape[2:]
    ratio = [f(n - 1) / f(m - 1) if m > 1 else f(0) for n, m in zip((h, w), out, strict=True)]
    y = np.zeros((*x.shape[:2], *out), np.float32)
    for i in range(out[0]):
        row = ratio[0] * f(i)
        a, p = int(row), int(int(row) < h - 1)
        u1 = row - f(a)
        for j in range(out[1]):
            column = ratio[1] * f(j)
            b, q = int(column), int(int(column) < w - 1)
            v1 = column - f(b)
            upper = (f(1) - v1) * x[:, :, a, b] + v1 * x[:, :, a, b + q]
            lower = (f(1) - v1) * x[:, :, a + p, b] + v1 * x[:, :, a + p, b + q]
            y[:, :, i, j] = (f(1) - u1) * upper + u1 * lower
    return y


@pytest.mark.parametrize(
    ("fields", "out"),
    [
        ("height: 7 width: 9", (7, 9)),
        ("height: 1 width: 3", (1, 3)),
        ("height: 4 width: 5", (4, 5)),
        ("zoom_factor: 3", (10, 13)),
        ("shrink_factor: 2", (2, 3)),
        ("shrink_factor: 2 zoom_factor: 3", (4, 7)),
        ("zoom_factor: 2 height: 3 width: 3", (7, 9)),
        ("shrink_factor: 2 zoom_factor: 3 height: 3 width: 6", (3, 6)),
    ],
)
def test_interp_is_deeplabs(fields: str, out: tuple[int, int]) -> None:
    x = X.astype(np.float32)
    y = single(f'type: "Interp" interp_param {{ {fields} }}', x=x.shape).forward(x=x)["y"]
    assert y.shape[2:] == out
    np.testing.assert_array_equal(y, bilinear(x, out))


def test_interp_cuts_first_and_follows_a_second_bottom() -> None:
    x = X.astype(np.float32)
    y = single('type: "Interp" interp_param { height: 6 width: 6 pad_beg: -1 pad_end: -2 }', x=x.shape).forward(x=x)["y"]
    np.testing.assert_array_equal(y, bilinear(x[:, :, 1:2, 1:3], (6, 6)))
    net = single('type: "Interp"', x=x.shape, like=(1, 1, 3, 8))
    np.testing.assert_array_equal(net.forward(x=x)["y"], bilinear(x, (3, 8)))


def test_interp_nearest() -> None:
    y = single('type: "Interp" interp_param { height: 1 width: 5 interp_type: "nearest" }', x=(1, 1, 1, 3)).forward(
        x=[[[[1, 2, 3]]]]
    )["y"]
    assert y.reshape(-1).tolist() == [1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "options", [{"zoom": 2}, {"size": (2, 7)}, {"shrink": 2, "crop_begin": 1}, {"size": (9, 3), "nearest": True}]
)
def test_interp_gradient(options: dict[str, Any]) -> None:
    check_gradient(Bench(Interp(**options), [X]))


def test_interp_refuses() -> None:
    for text, words in (
        ("", "the top has no size"),
        ("zoom_factor: 0", "count from 1"),
        ("zoom_factor: 2 pad_beg: 1", "it does not pad"),
        ("zoom_factor: 2 pad_beg: -4", "nothing is left"),
        ('zoom_factor: 2 interp_type: "cubic"', "no such interpolation"),
    ):
        with pytest.raises(ArgumentError, match=words):
            single(f'type: "Interp" interp_param {{ {text} }}', x=(1, 1, 4, 4))
    with pytest.raises(ArgumentError, match="four axes"):
        Bench(Interp(zoom=2), [np.zeros((3, 4))])


POOLED = """
force_backward: true
input: "x" input_shape { dim: 1 dim: 1 dim: %d dim: %d }
layer { name: "p" type: "Pooling" bottom: "x" top: "p" top: "mask" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "u" type: "Upsample" bottom: "p" bottom: "mask" top: "y" upsample_param { %s } }
"""


@pytest.mark.parametrize(
    ("size", "fields"),
    [
        ((4, 4), "scale: 2"),
        ((4, 4), ""),
        ((4, 4), "scale_h: 2 scale_w: 2"),
        ((3, 4), "scale: 2 pad_out_h: true"),
        ((3, 3), "upsample_h: 3 upsample_w: 3"),
    ],
)
def test_upsample_puts_maxima_back(size: tuple[int, int], fields: str) -> None:
    x = RANDOM.permutation(size[0] * size[1]).reshape(1, 1, *size) + 1.0
    net = load_caffe(POOLED % (*size, fields))
    y = net.forward(x=x)["y"]
    assert y.shape == x.shape
    largest = np.zeros_like(x)
    for i in range(0, size[0], 2):
        for j in range(0, size[1], 2):
            block = x[0, 0, i : i + 2, j : j + 2]
            largest[0, 0, i : i + 2, j : j + 2] = np.where(block == block.max(), block, 0)
    np.testing.assert_array_equal(y, largest)
    np.testing.assert_array_equal(net.backward(y=np.ones(x.shape))["x"], largest > 0)


def test_upsample_repeats_pixels() -> None:
    y = single('type: "Upsample" upsample_param { scale: 2 }', x=(1, 1, 1, 2)).forward(x=[[[[1, 2]]]])["y"]
    assert y.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]
    assert single('type: "Upsample"', x=(1, 1, 2, 2)).blobs["y"].shape == (1, 1, 2, 2)
    check_gradient(Bench(Upsample(scale=(2, 3)), [X]))


def test_upsample_gradient_by_a_mask() -> None:
    mask = np.stack([RANDOM.permutation(80)[:20] for _ in range(4)]).reshape(2, 2, 4, 5)
    check_gradient(Bench(Upsample(), [X, mask]), [True, False])


def test_upsample_refuses() -> None:
    with pytest.raises(ArgumentError, match="an index for each value"):
        Bench(Upsample(), [X, X[:1]])
    with pytest.raises(ArgumentError, match="scale == 2 where pad_out"):
        Upsample(scale=(4, 4), less=(1, 0))
    with pytest.raises((ArrayError, ArgumentError), match=r"outside|index"):
        Bench(Upsample(), [np.ones((1, 1, 1, 1)), np.full((1, 1, 1, 1), 4)]).forward()


def resampled(x: np.ndarray, out: tuple[int, int], kind: str, antialias: bool) -> np.ndarray:
    """FlowNet's loop, pixel by pixel."""

    def weight(d: float) -> float:
        d = abs(d)
        if kind == "LINEAR":
            return max(1 - d, 0)
        return d * d * (1.5 * d - 2.5) + 1 if d <= 1 else d * (d * (-0.5 * d + 2.5) - 4) + 2 if d < 2 else 0

    h, w = x.shape[2:]
    fy, fx = h / out[0], w / out[1]
    shrinks = antialias and (fx > 1 or fy > 1)
    ax, ay = (1 / fx, 1 / fy) if shrinks else (1, 1)
    width = 4 if kind == "CUBIC" else 2
    rx, ry = (2 if f < 1 else int(np.ceil(width / a)) for f, a in ((fx, ax), (fy, ay)))
    y = np.zeros((*x.shape[:2], *out))
    for i in range(out[0]):
        for j in range(out[1]):
            px, py = j * fx + fy / 2 - 0.5, i * fy + fx / 2 - 0.5
            mx, my = (int(np.floor(abs(p) + 0.5)) * (-1 if p < 0 else 1) for p in (px, py))
            total = 0.0
            for r in range(max(my - ry, 0), min(my + ry, h - 1) + 1):
                for c in range(max(mx - rx, 0), min(mx + rx, w - 1) + 1):
                    k = ax * weight(ax * (px - c)) * ay * weight(ay * (py - r))
                    y[:, :, i, j] += k * x[:, :, r, c]
                    total += k
            y[:, :, i, j] /= total or 1
    return y


@pytest.mark.parametrize("kind", ["LINEAR", "CUBIC"])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("out", [(8, 10), (2, 2), (3, 9), (4, 5)])
def test_resample_is_flownets(kind: str, antialias: bool, out: tuple[int, int]) -> None:
    text = (
        f'type: "Resample" resample_param {{ height: {out[0]} width: {out[1]} type: {kind} antialias: {str(antialias).lower()} }}'
    )
    y = single(text, x=X.shape).forward(x=X)["y"]
    np.testing.assert_allclose(y, resampled(X, out, kind, antialias), rtol=1e-4, atol=1e-5)


def test_resample_nearest_and_by_a_second_bottom() -> None:
    y = single('type: "Resample" resample_param { type: NEAREST }', x=(1, 1, 2, 2), like=(1, 1, 4, 4)).forward(
        x=[[[[1, 2], [3, 4]]]]
    )["y"]
    assert y[0, 0].tolist() == [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    for kind in Filter:
        check_gradient(Bench(Resample(filter=kind, size=(3, 7)), [X]))
    with pytest.raises(ArgumentError, match="the top has no size"):
        single('type: "Resample"', x=(1, 1, 2, 2))
    with pytest.raises(ArgumentError, match="no such filter"):
        single('type: "Resample" resample_param { type: AREA width: 2 height: 2 }', x=(1, 1, 2, 2))


def test_resize_from_the_first_corner_on() -> None:
    y = single('type: "Resize" resize_param { height: 1 width: 4 }', x=(1, 1, 1, 2)).forward(x=[[[[2, 4]]]])["y"]
    assert y.reshape(-1).tolist() == [2, 3, 4, 2]
    scaled = single(
        'type: "Resize" resize_param { is_pyramid_test: true out_height_scale: 1.5 out_width_scale: 0.5 }', x=(1, 1, 3, 4)
    )
    assert scaled.blobs["y"].shape == (1, 1, 4, 2)
    check_gradient(Bench(Resize(size=(7, 3)), [X]))
    with pytest.raises(ArgumentError, match="one of the two"):
        Resize()
    with pytest.raises(ArgumentError, match="no pixels"):
        Bench(Resize(scale=(0.1, 1)), [X])
