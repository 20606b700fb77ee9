"""Networks built on batch normalisation: residual, depthwise and densely connected ones."""

from __future__ import annotations

from text import AVE, FLOOR, Text


def resnet50() -> Text:
    """He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016: strides in the first 1x1, as in their files.

    Caffe rounds sizes up, so their first pooling needs no padding to give 56 of 112.
    """
    net = Text("ResNet-50", data=(1, 3, 224, 224))
    _conv_bn(net, "conv1", 64, 7, stride=2, pad=3)
    net.inplace("ReLU", "conv1/relu")
    net.pool("pool1", 3, 2)
    for stage, (count, inner) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 2):
        for block in range(count):
            name, source = f"res{stage}{chr(ord('a') + block)}", net.last
            stride = 2 if stage > 2 and block == 0 else 1
            shortcut = source
            if block == 0:
                shortcut = _conv_bn(net, f"{name}/branch1", 4 * inner, 1, source, stride=stride)
            _conv_bn(net, f"{name}/branch2a", inner, 1, source, stride=stride)
            net.inplace("ReLU", f"{name}/branch2a/relu")
            _conv_bn(net, f"{name}/branch2b", inner, 3, pad=1)
            net.inplace("ReLU", f"{name}/branch2b/relu")
            branch = _conv_bn(net, f"{name}/branch2c", 4 * inner, 1)
            net.add("Eltwise", name, [shortcut, branch])
            net.inplace("ReLU", f"{name}/relu")
    net.pool("pool5", 7, 1, pool=AVE)
    net.dense("fc1000", 1000)
    net.add("Softmax", "prob")
    return net


def _conv_bn(net: Text, name: str, outputs: int, kernel: int, bottom: str | None = None, **fields: int) -> str:
    net.conv(name, outputs, kernel, bottom, bias_term=False, **fields)
    return net.normalised(name)


def mobilenet_v1() -> Text:
    """Howard and others: MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications, 2017."""
    net = Text("MobileNet", data=(1, 3, 224, 224))
    _conv_bn(net, "conv1", 32, 3, stride=2, pad=1)
    net.inplace("ReLU", "conv1/relu")
    inputs = 32
    blocks = [("2_1", 64, 1), ("2_2", 128, 2), ("3_1", 128, 1), ("3_2", 256, 2), ("4_1", 256, 1), ("4_2", 512, 2)]
    blocks += [(f"5_{n}", 512, 1) for n in range(1, 6)] + [("5_6", 1024, 2), ("6", 1024, 1)]
    for number, outputs, stride in blocks:
        for part, channels, fields in (
            ("dw", inputs, {"kernel": 3, "stride": stride, "pad": 1, "group": inputs}),
            ("sep", outputs, {"kernel": 1}),
        ):
            _conv_bn(net, f"conv{number}/{part}", channels, **fields)
            net.inplace("ReLU", f"conv{number}/{part}/relu")
        inputs = outputs
    net.global_average("pool6")
    net.conv("fc7", 1000, 1)
    net.add("Softmax", "prob")
    return net


def mobilenet_v2() -> Text:
    """Sandler and others: MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018. ReLU6 is a layer of several forks."""
    net = Text("MobileNet-v2", data=(1, 3, 224, 224))
    _conv_bn(net, "conv1", 32, 3, stride=2, pad=1)
    net.inplace("ReLU6", "conv1/relu")
    inputs, number = 32, 0
    for expand, outputs, count, stride in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for repeat in range(count):
            number += 1
            name, source, inner = f"block{number}", net.last, expand * inputs
            if expand > 1:
                _conv_bn(net, f"{name}/expand", inner, 1)
                net.inplace("ReLU6", f"{name}/expand/relu")
            _conv_bn(net, f"{name}/dwise", inner, 3, stride=stride if repeat == 0 else 1, pad=1, group=inner)
            net.inplace("ReLU6", f"{name}/dwise/relu")
            linear = _conv_bn(net, f"{name}/linear", outputs, 1)
            if repeat:
                net.add("Eltwise", f"{name}/sum", [source, linear])
            inputs = outputs
    _conv_bn(net, "conv_last", 1280, 1)
    net.inplace("ReLU6", "conv_last/relu")
    net.global_average("pool")
    net.conv("fc7", 1000, 1)
    net.add("Softmax", "prob")
    return net


def densenet121() -> Text:
    """Huang, Liu, van der Maaten, Weinberger: Densely Connected Convolutional Networks, 2017; growth 32."""
    net = Text("DenseNet-121", data=(1, 3, 224, 224))
    _conv_bn(net, "conv1", 64, 7, stride=2, pad=3)
    net.inplace("ReLU", "conv1/relu")
    net.pool("pool1", 3, 2, pad=1, round_mode=FLOOR)  # Caffe's own rounding would give 57 rows of 112
    channels = 64
    for stage, count in enumerate((6, 12, 24, 16), 2):
        for layer in range(1, count + 1):
            name, source = f"conv{stage}_{layer}", net.last
            _bn_relu(net, f"{name}/x1")
            net.conv(f"{name}/x1", 128, 1, bias_term=False)
            net.normalised(f"{name}/x2")
            net.inplace("ReLU", f"{name}/x2/relu")
            grown = net.conv(f"{name}/x2", 32, 3, pad=1, bias_term=False)
            net.add("Concat", f"concat{stage}_{layer}", [source, grown])
            channels += 32
        if stage < 5:
            channels //= 2
            _bn_relu(net, f"conv{stage}_blk")
            net.conv(f"conv{stage}_blk", channels, 1, bias_term=False)
            net.pool(f"pool{stage}", 2, 2, pool=AVE)
    _bn_relu(net, "conv5_blk")
    net.global_average("pool5")
    net.conv("fc6", 1000, 1)
    net.add("Softmax", "prob")
    return net


def _bn_relu(net: Text, name: str) -> None:
    """Normalise what several layers read: into a blob of its own."""
    net.normalised(name, top=f"{name}/bn")
    net.inplace("ReLU", f"{name}/relu")
