"""Caffe's fields as integers per axis: a field for all axes, repeated once per axis, or in its _h/_w forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..plan import Shape
from ._arguments import PerAxis, spatial, whole

POOLING = "Caffe, src/caffe/layers/pooling_layer.cpp"
CONVOLUTION = "Caffe, src/caffe/layers/conv_layer.cpp"


def per_axis_fields(
    shape: Shape, kernel_size: Any, stride: Any, pad: Any, dilation: Any, kernel_hw: Any, stride_hw: Any, pad_hw: Any
) -> tuple[PerAxis, PerAxis, PerAxis, PerAxis, PerAxis]:
    """Repeated fields (one value for all axes, or one per axis) or their _h/_w forms, which exist for two axes only."""
    _, sizes = spatial(shape, "channels_first")
    rank = len(sizes)
    kernel = _repeated("kernel", kernel_size, kernel_hw, rank, None)
    return (
        sizes,
        kernel,
        _repeated("stride", stride, stride_hw, rank, 1),
        _repeated("pad", pad, pad_hw, rank, 0),
        _repeated("dilation", dilation, (None, None), rank, 1),
    )


def _repeated(name: str, values: Any, hw: tuple[int | None, int | None], rank: int, default: int | None) -> PerAxis:
    values = tuple(values) if isinstance(values, Sequence) else (() if values is None else (values,))
    minimum = 0 if name == "pad" else 1
    if hw != (None, None):
        if rank != 2 or values:
            raise ArgumentError(
                f"{name}_h and {name}_w stand alone, for two spatial axes",
                given={name: values, f"{name}_h": hw[0], f"{name}_w": hw[1], "spatial axes": rank},
                because=CONVOLUTION,
                hint=f"{name}_h and {name}_w without {name}{'_size' if name == 'kernel' else ''}",
            )
        if default is None and None in hw:
            raise ArgumentError(
                "kernel_h and kernel_w come together",
                given={"kernel_h": hw[0], "kernel_w": hw[1]},
                because=CONVOLUTION,
                hint="both",
            )
        return tuple(whole(default if v is None else v, name, minimum) for v in hw)
    if not values:
        if default is None:
            raise ArgumentError("the kernel is not given", given={"kernel_size": ()}, because=CONVOLUTION, hint="kernel_size=3")
        return (default,) * rank
    if len(values) not in (1, rank):
        raise ArgumentError(
            f"{name} needs one value, or one per axis",
            given={name: values},
            required=f"1 or {rank} values: {len(values)}",
            because=CONVOLUTION,
            hint=f"one {name}",
        )
    return tuple(whole(v, name, minimum) for v in (values * rank if len(values) == 1 else values))


def field_pair(name: str, both: int | None, h: int | None, w: int | None, default: int | None) -> PerAxis:
    """A field and its _h/_w forms: one or the other, as PoolingLayer's set-up checks."""
    field = "kernel_size" if name == "kernel" else name
    if both is not None and (h is not None or w is not None):
        raise ArgumentError(
            f"{field} excludes {name}_h and {name}_w",
            given={field: both, f"{name}_h": h, f"{name}_w": w},
            because=POOLING,
            hint="one of the two forms",
        )
    if (h is None) != (w is None):
        raise ArgumentError(
            f"{name}_h and {name}_w come together", given={f"{name}_h": h, f"{name}_w": w}, because=POOLING, hint="both"
        )
    minimum = 0 if name == "pad" else 1
    if h is not None and w is not None:
        return (whole(h, f"{name}_h", minimum), whole(w, f"{name}_w", minimum))
    value = default if both is None else both
    if value is None:
        raise ArgumentError(
            "the kernel is not given", given={field: None}, because=POOLING, hint="kernel_size=3, or global_pooling=True"
        )
    return (whole(value, field, minimum),) * 2
