"""Keras 3.15 on TensorFlow: the rules of keras.ops' pooling and convolution.

Source: keras-team/keras, keras/src/backend/common/backend_utils.py, keras/src/backend/tensorflow/nn.py and
keras/src/layers/convolutional/base_conv.py; confirmed by running it on TensorFlow 2.21 (tests/golden/semantics, tests/live).
Windows, ties and NaN are TensorFlow's. On another backend they are that backend's; nothing here is about those.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape
from ..plan.kinds import IndexBase
from . import _sizes, tensorflow
from ._arguments import on_axis, only_each, per_axis, spatial
from ._weights import weights_of
from ._words import words_only

OPS = "Keras 3.15, keras/src/backend/tensorflow/nn.py"
CONV = "Keras 3.15, keras/src/layers/convolutional/base_conv.py"
SIZES = "Keras 3.15, keras/src/backend/common/backend_utils.py"


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """TensorFlow's maximum, padded by "valid" or "same" only, undilated."""
    only_each(dilation, "dilation", 1, OPS)
    padding = words_only(padding, OPS)
    plan = tensorflow.max_pool(shape, dtype, kernel=kernel, stride=stride, padding=padding, layout=layout)
    return replace(plan, index_base=IndexBase.PLANE)


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """TensorFlow's average: divides by the taps inside the input."""
    only_each(dilation, "dilation", 1, OPS)
    return tensorflow.avg_pool(shape, dtype, kernel=kernel, stride=stride, padding=padding, layout=layout)


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """ "valid", "same", or for one axis "causal", which pads dilation * (kernel - 1) in front alone. A stride and a dilation
    above 1 exclude each other."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    d = per_axis(dilation, rank, "dilation")
    _stride_or_dilation(per_axis(stride, rank, "stride"), d)
    if isinstance(padding, str) and padding.lower() == "causal":
        if rank != 1:
            raise ArgumentError(
                '"causal" padding is for one spatial axis', given={"padding": padding}, because=CONV, hint='padding="same"'
            )
        kernel, _ = weights_of(w_shape, rank, shape[1] if place == "channels_first" else shape[-1], groups)
        padding = ((_sizes.reach(kernel[0], d[0]) - 1, 0),)
    else:
        padding = words_only(padding, CONV)
    return tensorflow.conv(shape, w_shape, dtype, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout)


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """TensorFlow's, of the size that `output_padding` says. None: n*stride ("same") or n*stride + max(K - stride, 0) ("valid"),
    K being the dilated kernel. A number o: (n-1)*stride + K % 2 + o or (n-1)*stride + K + o, which None is not a case of."""
    _, sizes = spatial(shape, layout)
    rank = len(sizes)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    _stride_or_dilation(s, d)
    padding = words_only(padding, SIZES)
    wanted = None
    if output_padding is not None:
        more = per_axis(output_padding, rank, "output_padding", 0)
        reaches = [_sizes.reach(int(k), di) for k, di in zip(w_shape[2:], d, strict=False)]
        wanted = tuple(
            (n - 1) * si + (k % 2 if padding == "same" else k) + o for n, si, k, o in zip(sizes, s, reaches, more, strict=False)
        )
    return tensorflow.conv_transpose(
        shape,
        w_shape,
        dtype,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        output_size=wanted,
        layout=layout,
    )


def _stride_or_dilation(stride: tuple[int, ...], dilation: tuple[int, ...]) -> None:
    if max(stride) > 1 and max(dilation) > 1:
        i = stride.index(max(stride))
        raise ArgumentError(
            "a stride and a dilation above 1 exclude each other",
            given={"stride": stride, "dilation": dilation},
            required=f"{on_axis('stride == 1 or dilation == 1', i, len(stride))}: {max(stride)} and {max(dilation)}",
            because=CONV,
            hint="stride=1, or dilation=1",
        )
