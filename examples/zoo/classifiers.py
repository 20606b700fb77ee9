"""Networks that name what is in an image: LeNet to GoogLeNet, plain stacks and inception modules."""

from __future__ import annotations

from text import AVE, Text

VGG16, VGG19 = (2, 2, 3, 3, 3), (2, 2, 4, 4, 4)
"""Convolutions in each of a VGG network's five blocks."""


def lenet() -> Text:
    """LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to Document Recognition, 1998, as Caffe ships it."""
    net = Text("LeNet", data=(64, 1, 28, 28))
    net.conv("conv1", 20, 5)
    net.pool("pool1", 2, 2)
    net.conv("conv2", 50, 5)
    net.pool("pool2", 2, 2)
    net.dense("ip1", 500)
    net.inplace("ReLU", "relu1")
    net.dense("ip2", 10)
    net.add("Softmax", "prob")
    return net


def alexnet(*, norm_first: bool = True) -> Text:
    """Krizhevsky, Sutskever, Hinton: ImageNet Classification with Deep Convolutional Neural Networks, 2012.

    CaffeNet is the same with pooling before normalisation.
    """
    net = Text("AlexNet" if norm_first else "CaffeNet", data=(10, 3, 227, 227))

    def shrink(number: int) -> None:
        steps = [lambda: net.add("LRN", f"norm{number}", lrn_param={"local_size": 5, "alpha": 1e-4, "beta": 0.75})]
        steps.insert(1 if norm_first else 0, lambda: net.pool(f"pool{number}", 3, 2))
        for step in steps:
            step()

    net.conv_relu("conv1", 96, 11, stride=4)
    shrink(1)
    net.conv_relu("conv2", 256, 5, pad=2, group=2)
    shrink(2)
    net.conv_relu("conv3", 384, 3, pad=1)
    net.conv_relu("conv4", 384, 3, pad=1, group=2)
    net.conv_relu("conv5", 256, 3, pad=1, group=2)
    net.pool("pool5", 3, 2)
    return _fully_connected(net, "fc8")


def vgg(blocks: tuple[int, ...]) -> Text:
    """Simonyan, Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition, 2014."""
    net = Text(f"VGG_{sum(blocks) + 3}", data=(1, 3, 224, 224))
    vgg_blocks(net, blocks)
    net.pool("pool5", 2, 2)
    return _fully_connected(net, "fc8")


def vgg_blocks(net: Text, blocks: tuple[int, ...] = VGG16, *, first_pad: int = 1) -> None:
    """The convolutions of VGG with the pooling between its blocks, but not after the last."""
    for block, count in enumerate(blocks, 1):
        if block > 1:
            net.pool(f"pool{block - 1}", 2, 2)
        for number in range(1, count + 1):
            pad = first_pad if (block, number) == (1, 1) else 1
            net.conv_relu(f"conv{block}_{number}", min(64 << (block - 1), 512), 3, pad=pad)


def _fully_connected(net: Text, last: str) -> Text:
    net.dense_relu("fc6", 4096, dropout=0.5)
    net.dense_relu("fc7", 4096, dropout=0.5)
    net.dense(last, 1000)
    net.add("Softmax", "prob")
    return net


def googlenet() -> Text:
    """Szegedy and others: Going Deeper with Convolutions, 2015; the deployed half, without the two classifiers for training."""
    net = Text("GoogLeNet", data=(10, 3, 224, 224))
    norm = {"local_size": 5, "alpha": 1e-4, "beta": 0.75}
    net.conv_relu("conv1/7x7_s2", 64, 7, stride=2, pad=3)
    net.pool("pool1/3x3_s2", 3, 2)
    net.add("LRN", "pool1/norm1", lrn_param=norm)
    net.conv_relu("conv2/3x3_reduce", 64, 1)
    net.conv_relu("conv2/3x3", 192, 3, pad=1)
    net.add("LRN", "conv2/norm2", lrn_param=norm)
    net.pool("pool2/3x3_s2", 3, 2)
    # 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; behind the pooling
    _inception(net, "3a", 64, 96, 128, 16, 32, 32)
    _inception(net, "3b", 128, 128, 192, 32, 96, 64)
    net.pool("pool3/3x3_s2", 3, 2)
    _inception(net, "4a", 192, 96, 208, 16, 48, 64)
    _inception(net, "4b", 160, 112, 224, 24, 64, 64)
    _inception(net, "4c", 128, 128, 256, 24, 64, 64)
    _inception(net, "4d", 112, 144, 288, 32, 64, 64)
    _inception(net, "4e", 256, 160, 320, 32, 128, 128)
    net.pool("pool4/3x3_s2", 3, 2)
    _inception(net, "5a", 256, 160, 320, 32, 128, 128)
    _inception(net, "5b", 384, 192, 384, 48, 128, 128)
    net.pool("pool5/7x7_s1", 7, 1, pool=AVE)
    net.inplace("Dropout", "pool5/drop_7x7_s1", dropout_param={"dropout_ratio": 0.4})
    net.dense("loss3/classifier", 1000)
    net.add("Softmax", "prob")
    return net


def _inception(net: Text, number: str, one: int, before3: int, three: int, before5: int, five: int, pooled: int) -> None:
    source, name = net.last, f"inception_{number}"
    tops = [net.conv_relu(f"{name}/1x1", one, 1, source)]
    net.conv_relu(f"{name}/3x3_reduce", before3, 1, source)
    tops.append(net.conv_relu(f"{name}/3x3", three, 3, pad=1))
    net.conv_relu(f"{name}/5x5_reduce", before5, 1, source)
    tops.append(net.conv_relu(f"{name}/5x5", five, 5, pad=2))
    net.pool(f"{name}/pool", 3, 1, source, pad=1)
    tops.append(net.conv_relu(f"{name}/pool_proj", pooled, 1))
    net.add("Concat", f"{name}/output", tops)


def squeezenet(*, version: str = "1.1") -> Text:
    """Iandola and others: SqueezeNet: AlexNet-level accuracy with 50x fewer parameters, 2016."""
    first = version == "1.0"
    net = Text(f"SqueezeNet_v{version}", data=(1, 3, 227, 227))
    net.conv_relu("conv1", 96 if first else 64, 7 if first else 3, stride=2)
    pooled_after = (1, 4, 8) if first else (1, 3, 5)
    net.pool("pool1", 3, 2)
    for number, (squeeze, expand) in enumerate(
        [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)], 2
    ):
        name = f"fire{number}"
        source = net.conv_relu(f"{name}/squeeze1x1", squeeze, 1)
        tops = [net.conv_relu(f"{name}/expand{k}x{k}", expand, k, source, pad=k // 2) for k in (1, 3)]
        net.add("Concat", f"{name}/concat", tops)
        if number in pooled_after:
            net.pool(f"pool{number}", 3, 2)
    net.inplace("Dropout", "drop9", dropout_param={"dropout_ratio": 0.5})
    net.conv_relu("conv10", 1000, 1)
    net.global_average("pool10")
    net.add("Softmax", "prob")
    return net
