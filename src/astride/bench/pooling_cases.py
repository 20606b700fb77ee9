"""The fixed sample of the pooling benchmark: the ten shapes the kernels were designed on, and poolings of known networks.

Nothing is chosen by its result. Batches are cut to what keeps a whole run short; 1-D shapes have one spatial axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """x is (images, channels, *size). Padding is (below, above) for every axis alike, or one pair an axis."""

    name: str
    op: str
    images: int
    channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def options(self) -> dict[str, Any]:
        """astride's keywords. Averages divide by what lies inside; norms are Euclidean, their sums not scaled, as PyTorch's."""
        more: dict[str, Any] = {"lp_pool": {"p": 2.0, "scaled": False}}.get(self.op, {})
        return {"kernel": self.kernel, "stride": self.stride, "padding": self.padding, **more}

    def shape(self, layout: str) -> tuple[int, ...]:
        """The shape of x in a layout."""
        return (
            (self.images, self.channels, *self.size) if layout == "channels_first" else (self.images, *self.size, self.channels)
        )

    @property
    def same_padding(self) -> bool:
        """Whether both ends of every axis are padded alike."""
        return all(low == high for low, high in self.padding)


def case(name: str, op: str, images: int, channels: int, size: Any, kernel: Any, stride: Any, padding: Any = 0) -> Case:
    """A case whose numbers hold for each of two axes where they are not tuples; padding may be a pair (below, above) as well."""
    size = size if isinstance(size, tuple) else (size, size)
    rank = len(size)

    def each(value: Any) -> tuple[int, ...]:
        return value if isinstance(value, tuple) else (value,) * rank

    pairs = padding if isinstance(padding, tuple) and isinstance(padding[0], tuple) else None
    if pairs is None:
        pairs = (padding,) * rank if isinstance(padding, tuple) else ((padding, padding),) * rank
    return Case(name, op, images, channels, size, each(kernel), each(stride), pairs)


UP = (0, 1)
"""One pixel above: how Caffe and `ceil_mode` round up."""

CASES = [
    # The shapes of the design.
    case("max 2x2/2 of 112", "max_pool", 32, 64, 112, 2, 2),
    case("max 3x3/2 p1 of 112", "max_pool", 32, 64, 112, 3, 2, 1),
    case("max 3x3/2 ceil of 56", "max_pool", 32, 192, 56, 3, 2, UP),
    case("avg 3x3/1 of 28", "avg_pool", 32, 192, 28, 3, 1, 1),
    case("global avg 7x7", "avg_pool", 32, 2048, 7, 7, 1),
    case("L2 2x2/2 of 56", "lp_pool", 32, 64, 56, 2, 2),
    case("L2 3x3/2 of 56", "lp_pool", 32, 64, 56, 3, 2),
    case("max 5x5/1 of 20", "max_pool", 8, 256, 20, 5, 1, 2),
    case("avg 2x2 of 4096", "avg_pool", 1, 1, 4096, 2, 2),
    case("max 2x2x2 of 32x112x112", "max_pool", 2, 32, (32, 112, 112), 2, 2),
    # Networks.
    case("LeNet pool1", "max_pool", 64, 20, 24, 2, 2),
    case("LeNet pool2", "max_pool", 64, 50, 8, 2, 2),
    case("CIFAR-10 full pool1", "max_pool", 100, 32, 32, 3, 2, UP),
    case("CIFAR-10 full pool2", "avg_pool", 100, 32, 16, 3, 2, UP),
    case("AlexNet pool1", "max_pool", 16, 96, 55, 3, 2),
    case("AlexNet pool2", "max_pool", 16, 256, 27, 3, 2),
    case("AlexNet pool5", "max_pool", 16, 256, 13, 3, 2),
    case("VGG pool1", "max_pool", 1, 64, 224, 2, 2),
    case("VGG pool3", "max_pool", 1, 256, 56, 2, 2),
    case("VGG pool5", "max_pool", 1, 512, 14, 2, 2),
    case("GoogLeNet pool1", "max_pool", 8, 64, 114, 3, 2, UP),
    case("GoogLeNet 3a pool", "max_pool", 8, 192, 28, 3, 1, 1),
    case("GoogLeNet 4e pool", "max_pool", 8, 528, 14, 3, 1, 1),
    case("GoogLeNet 5a pool", "max_pool", 8, 832, 7, 3, 1, 1),
    case("GoogLeNet pool5", "avg_pool", 8, 1024, 7, 7, 1),
    case("Inception v3 pool", "max_pool", 4, 64, 147, 3, 2),
    case("Inception v3 mixed", "avg_pool", 8, 192, 35, 3, 1, 1),
    case("ResNet-50 pool1", "max_pool", 8, 64, 112, 3, 2, UP),
    case("ResNet-50 pool5", "avg_pool", 1, 2048, 7, 7, 1),
    case("SqueezeNet 1.0 pool1", "max_pool", 1, 96, 111, 3, 2),
    case("SqueezeNet 1.1 pool3", "max_pool", 1, 256, 13, 3, 2),
    case("ShuffleNet pool1", "max_pool", 1, 24, 112, 3, 2, UP),
    case("U-Net pool1", "max_pool", 1, 64, 568, 2, 2),
    case("U-Net pool4", "max_pool", 1, 512, 64, 2, 2),
    case("YOLOv2 pool1", "max_pool", 1, 32, 416, 2, 2),
    case("YOLOv3 SPP 9", "max_pool", 1, 512, 19, 9, 1, 4),
    case("YOLOv3 SPP 13", "max_pool", 1, 512, 19, 13, 1, 6),
    case("DS-CNN pool", "avg_pool", 1, 64, (25, 5), (24, 5), (24, 5)),
    case("C3D pool1", "max_pool", 1, 64, (16, 112, 112), (1, 2, 2), (1, 2, 2)),
    case("3-D U-Net pool1", "max_pool", 1, 64, (64, 64, 64), 2, 2),
    case("speech 1-D", "max_pool", 16, 64, (300,), 3, 2, 1),
]
