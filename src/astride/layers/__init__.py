"""Layers: framework-neutral, one file each. A line in the table is all it takes to be found."""

from __future__ import annotations

from importlib import import_module

from ..errors import ArgumentError
from .blob import Blob
from .fillers import Filler, VarianceNorm
from .layer import Layer, Parameter
from .source import ArraySource, Source

LAYERS: dict[str, str] = {
    "AbsVal": "abs_val",
    "Accuracy": "accuracy",
    "AnnotatedData": "annotated_data",
    "ArgMax": "argmax",
    "Axpy": "axpy",
    "BN": "bn",
    "BNLL": "bnll",
    "BatchNorm": "batch_norm",
    "BatchReindex": "batch_reindex",
    "Bias": "bias",
    "BoxAnnotatorOHEM": "box_annotator_ohem",
    "CReLU": "crelu",
    "Clip": "clip",
    "Concat": "concat",
    "ContrastiveLoss": "contrastive_loss",
    "Convolution": "convolution",
    "ConvolutionDepthwise": "convolution_depthwise",
    "Correlation": "correlation",
    "Correlation1D": "correlation1d",
    "Crop": "crop",
    "Data": "data",
    "DecodeBBox": "decode_bbox",
    "Deconvolution": "deconvolution",
    "DenseImageData": "dense_image_data",
    "DepthwiseConv": "depthwise_conv",
    "DepthwiseConvolution": "depthwise_convolution",
    "DetectionEvaluate": "detection_evaluate",
    "DetectionOutput": "detection_output",
    "Dropout": "dropout",
    "DummyData": "dummy_data",
    "ELU": "elu",
    "Eltwise": "eltwise",
    "Embed": "embed",
    "EuclideanLoss": "euclidean_loss",
    "Exp": "exp",
    "Filter": "filter",
    "Flatten": "flatten",
    "FlowWarp": "flow_warp",
    "HDF5Data": "hdf5_data",
    "HDF5Output": "hdf5_output",
    "HardSigmoid": "hard_sigmoid",
    "HardSwish": "hard_swish",
    "HingeLoss": "hinge_loss",
    "Im2col": "im2col",
    "ImResize": "im_resize",
    "ImageData": "image_data",
    "InfogainLoss": "infogain_loss",
    "InnerProduct": "inner_product",
    "Input": "input",
    "Interp": "interp",
    "L1Loss": "l1_loss",
    "LRN": "lrn",
    "LSTM": "lstm",
    "LSTMUnit": "lstm_unit",
    "Log": "log",
    "MVN": "mvn",
    "MemoryData": "memory_data",
    "Mish": "mish",
    "MultiBoxLoss": "multibox_loss",
    "MultinomialLogisticLoss": "multinomial_logistic_loss",
    "Nms": "nms",
    "Noise": "noise",
    "Normalize": "normalize",
    "PReLU": "prelu",
    "PSROIPooling": "psroi_pooling",
    "Pad": "pad",
    "Parameter": "parameter",
    "Permute": "permute",
    "Pooling": "pooling",
    "Power": "power",
    "PriorBox": "prior_box",
    "Proposal": "proposal",
    "Python": "python",
    "RNN": "rnn",
    "ROIAlign": "roi_align",
    "ROIPooling": "roi_pooling",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "Reduction": "reduction",
    "Region": "region",
    "RegionLoss": "region_loss",
    "Reorg": "reorg",
    "Resample": "resample",
    "Reshape": "reshape",
    "Resize": "resize",
    "SPP": "spp",
    "Scale": "scale",
    "SegAccuracy": "seg_accuracy",
    "ShuffleChannel": "shuffle_channel",
    "Sigmoid": "sigmoid",
    "SigmoidCrossEntropyLoss": "sigmoid_cross_entropy_loss",
    "Silence": "silence",
    "Slice": "slice",
    "SmoothL1Loss": "smooth_l1_loss",
    "SmoothL1LossOHEM": "smooth_l1_loss_ohem",
    "Softmax": "softmax",
    "SoftmaxWithLoss": "softmax_loss",
    "SoftmaxWithLossOHEM": "softmax_loss_ohem",
    "Split": "split",
    "Swish": "swish",
    "TanH": "tanh",
    "Threshold": "threshold",
    "Tile": "tile",
    "Unpooling": "unpooling",
    "Upsample": "upsample",
    "WindowData": "window_data",
    "YoloDetectionOutput": "yolo_detection_output",
    "Yolov3DetectionOutput": "yolov3_detection_output",
}
"""type -> module. The class is the one of that type in the module."""


def layer_class(kind: str) -> type[Layer]:
    """The class of a layer type. Raises ArgumentError with the known types."""
    if kind not in LAYERS:
        raise ArgumentError("there is no such layer type", given={"type": kind}, required=f"one of {', '.join(LAYERS)}")
    module = import_module(f"{__name__}.{LAYERS[kind]}")
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Layer) and c.__dict__.get("type") == kind]
    return found[0]


__all__ = ["LAYERS", "ArraySource", "Blob", "Filler", "Layer", "Parameter", "Source", "VarianceNorm", "layer_class"]
