"""Networks that answer for every pixel: segmentation, edges and poses."""

from __future__ import annotations

from classifiers import VGG16, vgg_blocks
from text import MAX, Text, relu_of

FIXED = {"lr_mult": 0, "decay_mult": 0}
"""A parameter that is not learned: bilinear upsampling."""

BILINEAR = {"type": "bilinear"}


def fcn8s() -> Text:
    """Long, Shelhamer, Darrell: Fully Convolutional Networks for Semantic Segmentation, 2015: 21 classes of PASCAL VOC."""
    net = Text("FCN-8s", data=(1, 3, 500, 500))
    vgg_blocks(net, first_pad=100)
    net.pool("pool5", 2, 2)
    net.conv_relu("fc6", 4096, 7)
    net.inplace("Dropout", "drop6", dropout_param={"dropout_ratio": 0.5})
    net.conv_relu("fc7", 4096, 1)
    net.inplace("Dropout", "drop7", dropout_param={"dropout_ratio": 0.5})
    net.conv("score_fr", 21, 1)
    up = _upsample(net, "upscore2", 21, 4, 2, param=[{"lr_mult": 0}])
    for pool, offset, name in (("pool4", 5, "upscore_pool4"), ("pool3", 9, "upscore8")):
        net.conv(f"score_{pool}", 21, 1, pool)
        cut = _crop(net, f"score_{pool}c", up, offset)
        net.add("Eltwise", f"fuse_{pool}", [up, cut])
        kernel = 4 if pool == "pool4" else 16
        up = _upsample(net, name, 21, kernel, kernel // 2, param=[{"lr_mult": 0}])
    _crop(net, "score", "data", 31)
    return net


def _upsample(net: Text, name: str, outputs: int, kernel: int, stride: int, **fields: object) -> str:
    sizes = {"num_output": outputs, "kernel_size": kernel, "stride": stride, "bias_term": False, "weight_filler": BILINEAR}
    return net.add("Deconvolution", name, convolution_param=sizes, **fields)


def _crop(net: Text, name: str, like: str, offset: int) -> str:
    """The last top, as large as another blob in both directions, from `offset` on."""
    return net.add("Crop", name, [net.last, like], crop_param={"axis": 2, "offset": offset})


def hed() -> Text:
    """Xie, Tu: Holistically-Nested Edge Detection, 2015: five side outputs and their mixture, each as large as the image."""
    net = Text("HED", data=(1, 3, 400, 400))
    vgg_blocks(net, first_pad=35)
    # A side output is 2^(n-1) times smaller and starts 34 pixels early; the centres of pooled cells add the rest.
    sides = []
    for side, (source, offset) in enumerate(
        [("conv1_2", 34), ("conv2_2", 35), ("conv3_3", 36), ("conv4_3", 38), ("conv5_3", 42)], 1
    ):
        net.conv(f"score-dsn{side}" if side > 1 else "score-dsn1-up", 1, 1, source)
        if side > 1:
            stride = 1 << (side - 1)
            fixed = {"num_output": 1, "kernel_size": 2 * stride, "stride": stride, "bias_term": False, "weight_filler": BILINEAR}
            net.add("Deconvolution", f"score-dsn{side}-up", param=[FIXED], convolution_param=fixed)
        sides.append(_crop(net, f"upscore-dsn{side}", "data", offset))
        net.add("Sigmoid", f"sigmoid-dsn{side}")
    net.add("Concat", "concat-upscore", sides)
    net.conv("upscore-fuse", 1, 1, weight_filler={"type": "constant", "value": 0.2})
    net.add("Sigmoid", "sigmoid-fuse")
    return net


def segnet(*, classes: int = 11) -> Text:
    """Badrinarayanan, Kendall, Cipolla: SegNet, 2015: the decoder puts values back where the encoder's maxima were.

    BN and Upsample are layers of SegNet's fork; the sizes of 360 x 480 images are odd from the fourth pooling on.
    """
    net = Text("SegNet", data=(1, 3, 360, 480))
    sizes = {5: (23, 30), 4: (45, 60)}
    for block, count in enumerate(VGG16, 1):
        for number in range(1, count + 1):
            _conv_bn_relu(net, f"conv{block}_{number}", min(64 << (block - 1), 512))
        net.pool(f"pool{block}", 2, 2, pool=MAX, top=[f"pool{block}", f"pool{block}_mask"])
    for block in range(5, 0, -1):
        size = {"upsample_h": sizes[block][0], "upsample_w": sizes[block][1]} if block in sizes else {}
        net.add("Upsample", f"upsample{block}", [net.last, f"pool{block}_mask"], upsample_param={"scale": 2, **size})
        for number in range(VGG16[block - 1], 0, -1):
            outputs = min(64 << (block - 1), 512) if number > 1 else min(64 << max(block - 2, 0), 512)
            if (block, number) == (1, 1):
                net.conv("conv1_1_D", classes, 3, pad=1)
            else:
                _conv_bn_relu(net, f"conv{block}_{number}_D", outputs)
    net.add("Softmax", "prob")
    return net


def _conv_bn_relu(net: Text, name: str, outputs: int) -> None:
    net.conv(name, outputs, 3, pad=1)
    net.inplace("BN", f"{name}_bn", bn_param={"scale_filler": _constant(1), "shift_filler": _constant(0.001)})
    net.inplace("ReLU", relu_of(name))


def _constant(value: float) -> dict[str, object]:
    return {"type": "constant", "value": value}


def unet() -> Text:
    """Ronneberger, Fischer, Brox: U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015.

    Nothing is padded: 572 x 572 pixels give 388 x 388 answers, and what crosses over is cut to its middle.
    """
    net = Text("U-Net", data=(1, 1, 572, 572))
    crossing = []
    for level in range(5):
        width = 64 << level
        net.conv_relu(f"conv_d{level}a-b", width, 3)
        net.conv_relu(f"conv_d{level}b-c", width, 3)
        if level == 3 or level == 4:
            net.inplace("Dropout", f"drop{level}", dropout_param={"dropout_ratio": 0.5})
        if level < 4:
            crossing.append(net.last)
            net.pool(f"pool_d{level}", 2, 2)
    for level, offset in ((3, 4), (2, 16), (1, 40), (0, 88)):
        width = 64 << level
        up = {"num_output": width, "kernel_size": 2, "stride": 2}
        net.add("Deconvolution", f"upconv_u{level}", convolution_param=up)
        net.inplace("ReLU", f"relu_u{level}a")
        raised = net.last
        cut = net.add("Crop", f"crop_d{level}", [crossing[level], raised], crop_param={"axis": 2, "offset": offset})
        net.add("Concat", f"concat_u{level}", [raised, cut])
        net.conv_relu(f"conv_u{level}b-c", width, 3)
        net.conv_relu(f"conv_u{level}c-d", width, 3)
    net.conv("score", 2, 1)
    net.add("Softmax", "prob")
    return net


def openpose_body() -> Text:
    """Cao, Simon, Wei, Sheikh: Realtime Multi-Person 2D Pose Estimation using Part Affinity Fields, 2017: the 18 points of COCO.

    Six stages of two branches: L1 are affinity fields (38 maps), L2 confidence maps (19); the later stages see the earlier.
    """
    net = Text("OpenPose-body", image=(1, 3, 368, 368))
    for block, count in enumerate((2, 2, 4), 1):
        for number in range(1, count + 1):
            net.conv_relu(f"conv{block}_{number}", 64 << (block - 1), 3, pad=1)
        net.pool(f"pool{block}_stage1", 2, 2)
    for number, outputs in ((1, 512), (2, 512)):
        net.conv_relu(f"conv4_{number}", outputs, 3, pad=1)
    for number, outputs in ((3, 256), (4, 128)):
        net.conv_relu(f"conv4_{number}_CPM", outputs, 3, pad=1)
    features = source = net.last
    for stage in range(1, 7):
        branches = [_branch(net, stage, f"L{number}", source, maps) for number, maps in ((1, 38), (2, 19))]
        if stage < 6:
            source = net.add("Concat", f"concat_stage{stage + 1}", [*branches, features])
    net.add("Concat", "net_output", branches[::-1])
    return net


def _branch(net: Text, stage: int, branch: str, source: str, maps: int) -> str:
    prefix, suffix, wide, plain = ("conv5", f"CPM_{branch}", 3, 3) if stage == 1 else ("Mconv", f"stage{stage}_{branch}", 7, 5)
    names = [f"{prefix}_{n}_{suffix}" if stage == 1 else f"{prefix}{n}_{suffix}" for n in range(1, plain + 3)]
    for position, name in enumerate(names[:-1]):
        kernel = wide if position < plain else 1
        outputs = 512 if stage == 1 and kernel == 1 else 128
        net.conv_relu(name, outputs, kernel, source if position == 0 else None, pad=kernel // 2)
    return net.conv(names[-1], maps, 1)
