"""Networks that find things: SSD, Faster R-CNN, and the three small ones of MTCNN."""

from __future__ import annotations

from classifiers import vgg_blocks
from text import Text, Word

CLASSES = 21  # PASCAL VOC's twenty and the background

PRIORS = {
    # source: smallest and largest side of the default boxes, aspect ratios besides 1, pixels from one to the next
    "conv4_3_norm": (30, 60, [2], 8),
    "fc7": (60, 111, [2, 3], 16),
    "conv6_2": (111, 162, [2, 3], 32),
    "conv7_2": (162, 213, [2, 3], 64),
    "conv8_2": (213, 264, [2], 100),
    "conv9_2": (264, 315, [2], 300),
}


def ssd300(*, train: bool = False) -> Text:
    """Liu and others: SSD: Single Shot MultiBox Detector, 2016, on VGG-16.

    For training the boxes come in as `label`, rows of image, class, instance, x1, y1, x2, y2, difficult, as fractions.
    """
    labels = {"label": (1, 1, 2, 8)} if train else {}
    net = Text("SSD_300x300" + ("_train" if train else ""), data=(1, 3, 300, 300), **labels)
    vgg_blocks(net)
    net.pool("pool5", 3, 1, pad=1)
    net.conv_relu("fc6", 1024, 3, pad=6, dilation=6)
    net.conv_relu("fc7", 1024, 1)
    for number, inner, outputs, stride in ((6, 256, 512, 2), (7, 128, 256, 2), (8, 128, 256, 1), (9, 128, 256, 1)):
        net.conv_relu(f"conv{number}_1", inner, 1)
        net.conv_relu(f"conv{number}_2", outputs, 3, stride=stride, pad=stride - 1)
    scale = {"across_spatial": False, "scale_filler": {"type": "constant", "value": 20}, "channel_shared": False}
    net.add("Normalize", "conv4_3_norm", "conv4_3", norm_param=scale)
    parts: dict[str, list[str]] = {"loc": [], "conf": [], "priorbox": []}
    for source, (smallest, largest, ratios, step) in PRIORS.items():
        boxes = 2 + 2 * len(ratios)
        for part, values in (("loc", 4), ("conf", CLASSES)):
            name = f"{source}_mbox_{part}"
            net.conv(name, boxes * values, 3, source, pad=1)
            net.add("Permute", f"{name}_perm", permute_param={"order": [0, 2, 3, 1]})
            parts[part].append(net.add("Flatten", f"{name}_flat", flatten_param={"axis": 1}))
        prior = {"min_size": smallest, "max_size": largest, "aspect_ratio": ratios, "flip": True, "clip": False}
        prior |= {"variance": [0.1, 0.1, 0.2, 0.2], "step": step, "offset": 0.5}
        parts["priorbox"].append(net.add("PriorBox", f"{source}_mbox_priorbox", [source, "data"], prior_box_param=prior))
    loc, conf = (net.add("Concat", f"mbox_{part}", parts[part], concat_param={"axis": 1}) for part in ("loc", "conf"))
    priors = net.add("Concat", "mbox_priorbox", parts["priorbox"], concat_param={"axis": 2})
    return _ssd_loss(net, [loc, conf, priors]) if train else _ssd_detections(net, loc, conf, priors)


def _ssd_detections(net: Text, loc: str, conf: str, priors: str) -> Text:
    net.add("Reshape", "mbox_conf_reshape", conf, reshape_param={"shape": {"dim": [0, -1, CLASSES]}})
    net.add("Softmax", "mbox_conf_softmax", softmax_param={"axis": 2})
    conf = net.add("Flatten", "mbox_conf_flatten", flatten_param={"axis": 1})
    output = {"num_classes": CLASSES, "share_location": True, "background_label_id": 0}
    output |= {"nms_param": {"nms_threshold": 0.45, "top_k": 400}, "code_type": Word("CENTER_SIZE"), "keep_top_k": 200}
    output |= {"confidence_threshold": 0.01}
    net.add("DetectionOutput", "detection_out", [loc, conf, priors], detection_output_param=output)
    return net


def _ssd_loss(net: Text, bottoms: list[str]) -> Text:
    loss = {"loc_loss_type": Word("SMOOTH_L1"), "conf_loss_type": Word("SOFTMAX"), "loc_weight": 1.0, "num_classes": CLASSES}
    loss |= {"share_location": True, "match_type": Word("PER_PREDICTION"), "overlap_threshold": 0.5}
    loss |= {"use_prior_for_matching": True}
    loss |= {"background_label_id": 0, "use_difficult_gt": True, "neg_pos_ratio": 3.0, "neg_overlap": 0.5}
    loss |= {"code_type": Word("CENTER_SIZE"), "mining_type": Word("MAX_NEGATIVE")}
    fields = {"propagate_down": [True, True, False, False], "loss_param": {"normalization": Word("VALID")}}
    net.add("MultiBoxLoss", "mbox_loss", [*bottoms, "label"], multibox_loss_param=loss, **fields)
    return net


def faster_rcnn() -> Text:
    """Ren, He, Girshick, Sun: Faster R-CNN: Towards Real-Time Object Detection with Region Proposal Networks, 2015, on VGG-16."""
    net = Text("VGG_ILSVRC_16_layers_faster_rcnn", data=(1, 3, 600, 800), im_info=(1, 3))
    vgg_blocks(net)
    net.conv_relu("rpn_conv/3x3", 512, 3, pad=1)
    net.conv("rpn_cls_score", 18, 1, "rpn_conv/3x3")
    boxes = net.conv("rpn_bbox_pred", 36, 1, "rpn_conv/3x3")
    net.add("Reshape", "rpn_cls_score_reshape", "rpn_cls_score", reshape_param={"shape": {"dim": [0, 2, -1, 0]}})
    net.add("Softmax", "rpn_cls_prob")
    scores = net.add("Reshape", "rpn_cls_prob_reshape", reshape_param={"shape": {"dim": [0, 18, -1, 0]}})
    proposal = {"module": "rpn.proposal_layer", "layer": "ProposalLayer", "param_str": "'feat_stride': 16"}
    rois = net.add("Python", "proposal", [scores, boxes, "im_info"], top="rois", python_param=proposal)
    pooled = {"pooled_w": 7, "pooled_h": 7, "spatial_scale": 0.0625}
    net.add("ROIPooling", "roi_pool5", ["conv5_3", rois], top="pool5", roi_pooling_param=pooled)
    net.dense_relu("fc6", 4096, dropout=0.5)
    features = net.dense_relu("fc7", 4096, dropout=0.5)
    net.dense("bbox_pred", 4 * CLASSES, features)
    net.dense("cls_score", CLASSES, features)
    net.add("Softmax", "cls_prob")
    return net


def mtcnn_p() -> Text:
    """Zhang, Zhang, Li, Qiao: Joint Face Detection and Alignment using Multi-task Cascaded Networks, 2016: the first look."""
    net = Text("PNet", data=(1, 3, 12, 12))
    _conv_prelu(net, "1", 10, 3)
    net.pool("pool1", 2, 2)
    _conv_prelu(net, "2", 16, 3)
    features = _conv_prelu(net, "3", 32, 3)
    net.conv("conv4-1", 2, 1, features)
    net.conv("conv4-2", 4, 1, features)
    net.add("Softmax", "prob1", "conv4-1")
    return net


def mtcnn_r() -> Text:
    """The second look: it refines what the first proposed."""
    net = Text("RNet", data=(1, 3, 24, 24))
    _conv_prelu(net, "1", 28, 3)
    net.pool("pool1", 3, 2)
    _conv_prelu(net, "2", 48, 3)
    net.pool("pool2", 3, 2)
    _conv_prelu(net, "3", 64, 2)
    net.dense("conv4", 128)
    features = net.inplace("PReLU", "prelu4")
    net.dense("conv5-1", 2, features)
    net.dense("conv5-2", 4, features)
    net.add("Softmax", "prob1", "conv5-1")
    return net


def mtcnn_o() -> Text:
    """The third look: it decides, and marks five points of the face."""
    net = Text("ONet", data=(1, 3, 48, 48))
    for number, outputs, kernel, pooled in (("1", 32, 3, 3), ("2", 64, 3, 3), ("3", 64, 3, 2)):
        _conv_prelu(net, number, outputs, kernel)
        net.pool(f"pool{number}", pooled, 2)
    _conv_prelu(net, "4", 128, 2)
    net.dense("conv5", 256)
    features = net.inplace("PReLU", "prelu5")
    for name, outputs in (("conv6-1", 2), ("conv6-2", 4), ("conv6-3", 10)):
        net.dense(name, outputs, features)
    net.add("Softmax", "prob1", "conv6-1")
    return net


def _conv_prelu(net: Text, number: str, outputs: int, kernel: int) -> str:
    net.conv(f"conv{number}", outputs, kernel)
    return net.inplace("PReLU", f"prelu{number}")
