"""What must hold of convolutions on any geometry. Data are integers, so that equal means equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compare import assert_same
from tests.properties.geometry import PAD_MODES, SETTINGS, Windows, integers, windows

import astride

GROUPS = st.integers(1, 3)
SEEDS = st.integers(0, 2**31)


def arrays(geometry: Windows, groups: int, seed: int) -> tuple[Any, Any]:
    x = integers(seed, (2, 2 * groups, *geometry.size))
    w = integers(seed + 1, (3 * groups, 2, *geometry.kernel))
    return x, w


def adjoint_of(geometry: Windows, dy: Any, w: Any, groups: int) -> Any:
    """conv_transpose with the output padding that gives the convolution's input size back."""
    reach = tuple((k - 1) * d + 1 for k, d in zip(geometry.kernel, geometry.dilation, strict=True))
    extra = tuple(
        n - ((o - 1) * s + r - lo - hi)
        for n, o, s, r, (lo, hi) in zip(geometry.size, dy.shape[2:], geometry.stride, reach, geometry.padding, strict=True)
    )
    return astride.conv_transpose(dy, w, output_padding=extra, groups=groups, **geometry.arguments)


@SETTINGS
@given(windows(), GROUPS, SEEDS)
def test_the_transposed_operator_is_the_adjoint(geometry: Windows, groups: int, seed: int) -> None:
    """<dy, conv x> = <conv_transpose dy, x>."""
    x, w = arrays(geometry, groups, seed)
    y = astride.conv(x, w, groups=groups, **geometry.arguments)
    dy = integers(seed + 2, y.shape)
    back = adjoint_of(geometry, dy, w, groups)
    assert back.shape == x.shape
    assert (dy * y).sum() == (back * x).sum()


@SETTINGS
@given(windows(), GROUPS, SEEDS)
def test_gradients_are_adjoint_in_every_argument(geometry: Windows, groups: int, seed: int) -> None:
    """<dy, f(u)> = <f'(dy), u>: for x it is the transposed operator's value, for w and b the identity itself."""
    x, w = arrays(geometry, groups, seed)
    b = integers(seed + 3, (w.shape[0],))
    y, pull = astride.vjp(astride.conv, x, w, b, groups=groups, **geometry.arguments)
    dy = integers(seed + 2, y.shape)
    dx, dw, db = pull(dy)
    assert_same(dx, adjoint_of(geometry, dy, w, groups))
    other = integers(seed + 4, w.shape)
    assert (dw * other).sum() == (dy * astride.conv(x, other, groups=groups, **geometry.arguments)).sum()
    assert_same(db, dy.sum(axis=(0, *range(2, dy.ndim))))


@SETTINGS
@given(windows(), GROUPS, SEEDS)
def test_transposed_gradients_are_adjoint(geometry: Windows, groups: int, seed: int) -> None:
    x, w = arrays(geometry, groups, seed)
    y = astride.conv(x, w, groups=groups, **geometry.arguments)
    z = integers(seed + 5, y.shape)
    reach = tuple((k - 1) * d + 1 for k, d in zip(geometry.kernel, geometry.dilation, strict=True))
    extra = tuple(
        n - ((o - 1) * s + r - lo - hi)
        for n, o, s, r, (lo, hi) in zip(geometry.size, y.shape[2:], geometry.stride, reach, geometry.padding, strict=True)
    )
    up, pull = astride.vjp(astride.conv_transpose, z, w, groups=groups, output_padding=extra, **geometry.arguments)
    dx, dw = pull(x)
    assert up.shape == x.shape
    assert_same(dx, y)
    other = integers(seed + 6, w.shape)
    again = astride.conv_transpose(z, other, groups=groups, output_padding=extra, **geometry.arguments)
    assert (dw * other).sum() == (x * again).sum()


@SETTINGS
@given(windows(), SEEDS)
def test_linearity(geometry: Windows, seed: int) -> None:
    x, w = arrays(geometry, 1, seed)
    z, v = integers(seed + 7, x.shape), integers(seed + 8, w.shape)

    def f(a: Any, c: Any) -> Any:
        return astride.conv(a, c, **geometry.arguments)

    assert_same(f(2 * x - 3 * z, w), 2 * f(x, w) - 3 * f(z, w))
    assert_same(f(x, w + v), f(x, w) + f(x, v))


@SETTINGS
@given(windows(crop=False), SEEDS)
def test_a_shift_by_a_stride_shifts_by_one(geometry: Windows, seed: int) -> None:
    """Away from the edges: two more strides of padding in front move every window by two."""
    x, w = arrays(geometry, 1, seed)
    y = astride.conv(x, w, **geometry.arguments)
    pads = tuple((lo + 2 * s, hi) for (lo, hi), s in zip(geometry.padding, geometry.stride, strict=True))
    shifted = astride.conv(x, w, **{**geometry.arguments, "padding": pads})
    inner = (slice(None), slice(None), *(slice(2, 2 + n) for n in y.shape[2:]))
    assert_same(np.ascontiguousarray(shifted[inner]), y)


@SETTINGS
@given(windows(), SEEDS)
def test_flipping_twice_is_nothing(geometry: Windows, seed: int) -> None:
    x, w = arrays(geometry, 1, seed)
    turned = w[(slice(None), slice(None), *[slice(None, None, -1)] * geometry.rank)]
    assert_same(astride.conv(x, turned, flip=True, **geometry.arguments), astride.conv(x, w, **geometry.arguments))


@SETTINGS
@given(windows(), SEEDS)
def test_channels_last_is_the_same(geometry: Windows, seed: int) -> None:
    x, w = arrays(geometry, 1, seed)
    y = astride.conv(x, w, **geometry.arguments)
    last = astride.conv(np.moveaxis(x, 1, -1), w, layout="channels_last", **geometry.arguments)
    assert_same(np.ascontiguousarray(np.moveaxis(last, -1, 1)), y)


@SETTINGS
@given(windows(), SEEDS)
def test_groups_are_convolutions_side_by_side(geometry: Windows, seed: int) -> None:
    x, w = arrays(geometry, 3, seed)
    y = astride.conv(x, w, groups=3, **geometry.arguments)
    parts = [astride.conv(x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3], **geometry.arguments) for g in range(3)]
    assert_same(y, np.concatenate(parts, axis=1))


@pytest.mark.parametrize("edge", PAD_MODES)
@SETTINGS
@given(geometry=windows(crop=False), seed=SEEDS)
def test_an_edge_mode_is_np_pad(edge: str, geometry: Windows, seed: int) -> None:
    if edge == "mirror" and min(geometry.size) == 1:
        return  # NumPy repeats a single pixel only since it has nothing to reflect
    x, w = arrays(geometry, 1, seed)
    grown = np.pad(x, ((0, 0), (0, 0), *geometry.padding), mode=PAD_MODES[edge])
    expected = astride.conv(grown, w, stride=geometry.stride, dilation=geometry.dilation)
    assert_same(astride.conv(x, w, edge=edge, **geometry.arguments), expected)


@SETTINGS
@given(windows(), SEEDS)
def test_it_is_a_sum_over_kernel_places(geometry: Windows, seed: int) -> None:
    """The definition, written with slices of a padded array and nothing else."""
    x, w = arrays(geometry, 1, seed)
    pads = tuple((max(lo, 0), max(hi, 0)) for lo, hi in geometry.padding)
    grown = np.pad(x, ((0, 0), (0, 0), *pads))
    grown = grown[
        (
            slice(None),
            slice(None),
            *(
                slice(max(-lo, 0), n + max(lo, 0) + max(hi, 0) - max(-hi, 0))
                for n, (lo, hi) in zip(x.shape[2:], geometry.padding, strict=True)
            ),
        )
    ]
    y = astride.conv(x, w, **geometry.arguments)
    expected = np.zeros_like(y)
    for place in np.ndindex(*geometry.kernel):
        taken = tuple(
            slice(j * d, j * d + (o - 1) * s + 1, s)
            for j, d, o, s in zip(place, geometry.dilation, y.shape[2:], geometry.stride, strict=True)
        )
        expected += np.einsum("nc...,oc->no...", grown[(slice(None), slice(None), *taken)], w[(slice(None), slice(None), *place)])
    assert_same(y, expected)
