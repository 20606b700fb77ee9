"""The fixed sample of the convolution benchmark: layers of known networks that span what convolutions are.

Nothing is chosen by its result. Batches are 1 and 8 where the network does not name its own; where one layer would take a
tenth of a second, it has fewer images, or the channels named in its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """x is (images, inputs, *size), y has `outputs` channels. Padding is a pair (below, above) for each axis; of a transposed
    convolution it is what the convolution that it turns round would have."""

    name: str
    transposed: bool
    images: int
    inputs: int
    size: tuple[int, ...]
    outputs: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[Pair, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def op(self) -> str:
        return "conv_transpose" if self.transposed else "conv"

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.images, self.inputs, *self.size)

    @property
    def w_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return (self.inputs, self.outputs // self.groups, *self.kernel)
        return (self.outputs, self.inputs // self.groups, *self.kernel)

    @property
    def out(self) -> tuple[int, ...]:
        """y's size."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        parts = zip(self.size, reach, self.stride, self.padding, strict=True)
        if self.transposed:
            return tuple((n - 1) * s + r - low - high for n, r, s, (low, high) in parts)
        return tuple((n + low + high - r) // s + 1 for n, r, s, (low, high) in parts)

    @property
    def same_padding(self) -> bool:
        """Whether both ends of every axis are padded alike."""
        return all(low == high for low, high in self.padding)

    @property
    def options(self) -> dict[str, Any]:
        """astride's keywords."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}

    @property
    def flops(self) -> float:
        """Multiplications and additions, those of padding included, as everyone counts them."""
        pixels = self.size if self.transposed else self.out
        count = 2.0 * self.images * self.inputs * self.outputs / self.groups
        for n in (*pixels, *self.kernel):
            count *= n
        return count


def conv(
    name: str,
    images: int,
    inputs: int,
    size: Any,
    outputs: int,
    kernel: Any,
    stride: Any = 1,
    padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    transposed: bool = False,
) -> Case:
    """A case whose numbers hold for each of two axes where they are not tuples; a pair (below, above) as well."""
    size = size if isinstance(size, tuple) else (size, size)
    each = [n if isinstance(n, tuple) else (n,) * len(size) for n in (kernel, stride, dilation)]
    pairs = ((padding, padding) if isinstance(padding, int) else padding,) * len(size)
    return Case(name, transposed, images, inputs, size, outputs, each[0], each[1], pairs, each[2], groups)


def transposed(name: str, images: int, inputs: int, size: Any, outputs: int, kernel: Any, stride: Any, padding: Any = 0) -> Case:
    """The same, transposed."""
    return conv(name, images, inputs, size, outputs, kernel, stride, padding, transposed=True)


UP = (0, 1)
"""One pixel above: what TensorFlow's SAME pads where strides are even."""

CASES = [
    # One pixel.
    conv("ResNet 1x1 64>256", 8, 64, 56, 256, 1),
    conv("ResNet 1x1 256>64 N1", 1, 256, 56, 64, 1),
    conv("ResNet 1x1 1024>256", 8, 1024, 14, 256, 1),
    conv("ResNet 1x1 2048>512", 8, 2048, 7, 512, 1),
    conv("ResNet 1x1/2 256>512 N1", 1, 256, 56, 512, 1, 2),
    conv("GoogLeNet 4a 1x1 N1", 1, 480, 14, 192, 1),
    conv("MobileNet 1x1 144>32 N1", 1, 144, 28, 32, 1),
    conv("ShuffleNet 1x1 g3", 8, 240, 28, 60, 1, 1, 0, 3),
    # Three by three.
    conv("VGG conv1_1 N1", 1, 3, 224, 64, 3, 1, 1),
    conv("VGG conv2_2 N1", 1, 128, 112, 128, 3, 1, 1),
    conv("ResNet 3x3 64", 8, 64, 56, 64, 3, 1, 1),
    conv("ResNet 3x3 64 N1", 1, 64, 56, 64, 3, 1, 1),
    conv("ResNet 3x3 128", 8, 128, 28, 128, 3, 1, 1),
    conv("ResNet 3x3 256", 8, 256, 14, 256, 3, 1, 1),
    conv("ResNet 3x3 256 N1", 1, 256, 14, 256, 3, 1, 1),
    conv("ResNet 3x3 512", 8, 512, 7, 512, 3, 1, 1),
    conv("ResNet 3x3/2 128 N1", 1, 128, 56, 128, 3, 2, 1),
    conv("AlexNet conv3", 8, 256, 13, 384, 3, 1, 1),
    conv("MobileNet conv1 N1", 1, 3, 224, 32, 3, 2, UP),
    conv("ResNeXt 3x3 g32", 8, 128, 56, 128, 3, 1, 1, 32),
    conv("DeepLab 3x3 rate 12", 1, 128, 41, 128, 3, 1, 12, 1, 12),
    # Larger windows.
    conv("LeNet conv1", 64, 1, 28, 20, 5),
    conv("LeNet conv2", 64, 20, 12, 50, 5),
    conv("CIFAR-10 conv1", 64, 3, 32, 32, 5, 1, 2),
    conv("GoogLeNet 5x5 16>32", 8, 16, 28, 32, 5, 1, 2),
    conv("AlexNet conv2 g2 N2", 2, 96, 27, 256, 5, 1, 2, 2),
    conv("DeepSpeech 5x10/2 N1", 1, 32, (79, 341), 32, (5, 10), 2),
    conv("ResNet 7x7/2", 8, 3, 224, 64, 7, 2, 3),
    conv("ResNet 7x7/2 N1", 1, 3, 224, 64, 7, 2, 3),
    conv("AlexNet conv1", 8, 3, 227, 96, 11, 4),
    # Each channel by itself.
    conv("MobileNet dw 144 of 56", 8, 144, 56, 144, 3, 1, 1, 144),
    conv("MobileNet dw 144 of 56 N1", 1, 144, 56, 144, 3, 1, 1, 144),
    conv("MobileNet dw/2 144 N1", 1, 144, 56, 144, 3, 2, UP, 144),
    conv("MobileNet dw 384 of 14", 8, 384, 14, 384, 3, 1, 1, 384),
    conv("MobileNet dw 960 of 7 N1", 1, 960, 7, 960, 3, 1, 1, 960),
    # One axis and three.
    conv("WaveNet rate 16", 1, 64, (16000,), 64, 2, 1, (16, 0), 1, 16),
    conv("wav2vec2 conv0", 1, 1, (16000,), 512, 10, 5),
    conv("wav2vec2 conv3", 1, 512, (799,), 512, 3, 2),
    conv("C3D conv1a N1", 1, 3, (16, 112, 112), 64, 3, 1, 1),
    conv("C3D conv5a N1", 1, 512, (2, 7, 7), 512, 3, 1, 1),
    # Transposed.
    transposed("U-Net up4 2x2/2", 1, 128, 98, 64, 2, 2),
    transposed("ENet 3x3/2 N1", 1, 32, 64, 32, 3, 2, 1),
    transposed("DCGAN 4x4/2", 8, 256, 8, 128, 4, 2, 1),
    transposed("FCN upscore2 4x4/2", 1, 21, 16, 21, 4, 2),
    transposed("FCN upscore8 16x16/8", 1, 21, 35, 21, 16, 8),
]
