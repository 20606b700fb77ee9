"""A drop-in for the Caffe side of `cv2.dnn`, which OpenCV 5 no longer has, without OpenCV.

    from astride import cv2dnn                                       # was: import cv2
    net = cv2dnn.readNetFromCaffe("deploy.prototxt", "net.caffemodel")     # cv2.dnn.readNetFromCaffe
    net.setInput(cv2dnn.blobFromImage(image, 1.0, (300, 300), (104, 177, 123)))
    detections = net.forward()

Names, arguments, defaults and returned types are those of OpenCV 4.14. The networks compute by Caffe's own rules.

network.py    Net, Layer                 loading.py    readNetFromCaffe, readNet
blobs.py      blobFromImage and back     boxes.py      NMSBoxes
weights.py    Layer.blobs                costs.py      shapes, operations, bytes
models.py     DetectionModel and the like
"""

from __future__ import annotations

from .blobs import (
    DNN_LAYOUT_NCDHW,
    DNN_LAYOUT_NCHW,
    DNN_LAYOUT_ND,
    DNN_LAYOUT_NDHWC,
    DNN_LAYOUT_NHWC,
    DNN_LAYOUT_PLANAR,
    DNN_LAYOUT_UNKNOWN,
    DNN_PMODE_CROP_CENTER,
    DNN_PMODE_LETTERBOX,
    DNN_PMODE_NULL,
    Image2BlobParams,
    blobFromImage,
    blobFromImages,
    blobFromImagesWithParams,
    blobFromImageWithParams,
    imagesFromBlob,
)
from .boxes import (
    SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
    SOFT_NMSMETHOD_SOFTNMS_LINEAR,
    NMSBoxes,
    NMSBoxesBatched,
    SoftNMSMethod_SOFTNMS_GAUSSIAN,
    SoftNMSMethod_SOFTNMS_LINEAR,
    softNMSBoxes,
)
from .loading import readNet, readNetFromCaffe
from .models import ClassificationModel, DetectionModel, Model, SegmentationModel
from .network import Layer, Net

DNN_BACKEND_DEFAULT = 0
DNN_BACKEND_HALIDE = 1
DNN_BACKEND_INFERENCE_ENGINE = 2
DNN_BACKEND_OPENCV = 3
DNN_BACKEND_VKCOM = 4
DNN_BACKEND_CUDA = 5
DNN_BACKEND_WEBNN = 6
DNN_BACKEND_TIMVX = 7
DNN_BACKEND_CANN = 8

DNN_TARGET_CPU = 0
DNN_TARGET_OPENCL = 1
DNN_TARGET_OPENCL_FP16 = 2
DNN_TARGET_MYRIAD = 3
DNN_TARGET_VULKAN = 4
DNN_TARGET_FPGA = 5
DNN_TARGET_CUDA = 6
DNN_TARGET_CUDA_FP16 = 7
DNN_TARGET_HDDL = 8
DNN_TARGET_NPU = 9
DNN_TARGET_CPU_FP16 = 10


def getAvailableTargets(be: int) -> list[int]:
    """The targets a backend has here: the CPU, for the default backend and OpenCV's own."""
    return [DNN_TARGET_CPU] if be in (DNN_BACKEND_DEFAULT, DNN_BACKEND_OPENCV) else []


__all__ = [
    "ClassificationModel",
    "DetectionModel",
    "Model",
    "SegmentationModel",
    "DNN_BACKEND_CANN",
    "DNN_BACKEND_CUDA",
    "DNN_BACKEND_DEFAULT",
    "DNN_BACKEND_HALIDE",
    "DNN_BACKEND_INFERENCE_ENGINE",
    "DNN_BACKEND_OPENCV",
    "DNN_BACKEND_TIMVX",
    "DNN_BACKEND_VKCOM",
    "DNN_BACKEND_WEBNN",
    "DNN_LAYOUT_NCDHW",
    "DNN_LAYOUT_NCHW",
    "DNN_LAYOUT_ND",
    "DNN_LAYOUT_NDHWC",
    "DNN_LAYOUT_NHWC",
    "DNN_LAYOUT_PLANAR",
    "DNN_LAYOUT_UNKNOWN",
    "DNN_PMODE_CROP_CENTER",
    "DNN_PMODE_LETTERBOX",
    "DNN_PMODE_NULL",
    "DNN_TARGET_CPU",
    "DNN_TARGET_CPU_FP16",
    "DNN_TARGET_CUDA",
    "DNN_TARGET_CUDA_FP16",
    "DNN_TARGET_FPGA",
    "DNN_TARGET_HDDL",
    "DNN_TARGET_MYRIAD",
    "DNN_TARGET_NPU",
    "DNN_TARGET_OPENCL",
    "DNN_TARGET_OPENCL_FP16",
    "DNN_TARGET_VULKAN",
    "SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN",
    "SOFT_NMSMETHOD_SOFTNMS_LINEAR",
    "Image2BlobParams",
    "Layer",
    "NMSBoxes",
    "NMSBoxesBatched",
    "Net",
    "SoftNMSMethod_SOFTNMS_GAUSSIAN",
    "SoftNMSMethod_SOFTNMS_LINEAR",
    "blobFromImage",
    "blobFromImageWithParams",
    "blobFromImages",
    "blobFromImagesWithParams",
    "getAvailableTargets",
    "imagesFromBlob",
    "readNet",
    "readNetFromCaffe",
    "softNMSBoxes",
]
