"""OpenCV's models: a network with the preparation of its images, and its answer in plain terms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, UnsupportedError
from .blobs import blobFromImage
from .loading import readNet
from .network import Net

Array = npt.NDArray[Any]
SOURCE = "OpenCV 4.14, modules/dnn/src/model.cpp"


class Model:
    """A network and how its images are made: `Model(weights, prototxt)`, either first, or `Model(net)`.

    What is set stays set; every setter returns the model. `setInputSize` is needed before the first frame.
    """

    def __init__(self, model: Any, config: Any = "") -> None:
        self._net = model if isinstance(model, Net) else readNet(model, config)
        self._scale: float = 1.0
        self._size: Any = (0, 0)
        self._mean: Any = (0.0, 0.0, 0.0, 0.0)
        self._swap = self._crop = False
        self._names: list[str] = list(self._net.getUnconnectedOutLayersNames())

    def setInputParams(
        self, scale: float = 1.0, size: Any = (0, 0), mean: Any = (0, 0, 0, 0), swapRB: bool = False, crop: bool = False
    ) -> None:
        """Everything `blobFromImage` takes, at once."""
        self._scale, self._size, self._mean, self._swap, self._crop = scale, size, mean, swapRB, crop

    def setInputSize(self, *size: Any) -> Self:
        """`(width, height)`, or width and height."""
        self._size = size[0] if len(size) == 1 else size
        return self

    def setInputMean(self, mean: Any) -> Self:
        """One number a channel, in the order of the blob."""
        self._mean = mean
        return self

    def setInputScale(self, scale: float) -> Self:
        """Multiplied after the mean is taken off."""
        self._scale = scale
        return self

    def setInputCrop(self, crop: bool) -> Self:
        """Whether the image keeps its proportions and its centre is cut."""
        self._crop = crop
        return self

    def setInputSwapRB(self, swapRB: bool) -> Self:
        """Whether red and blue are exchanged."""
        self._swap = swapRB
        return self

    def setOutputNames(self, outNames: Any) -> Self:
        """The layers whose outputs count. Default: those nobody reads."""
        self._names = list(outNames)
        return self

    def setPreferableBackend(self, backendId: int) -> Self:
        """Taken, without effect, as `Net` does."""
        self._net.setPreferableBackend(backendId)
        return self

    def setPreferableTarget(self, targetId: int) -> Self:
        """Taken, without effect."""
        self._net.setPreferableTarget(targetId)
        return self

    def enableWinograd(self, useWinograd: bool) -> Self:
        """Taken, without effect."""
        return self

    def predict(self, frame: Any) -> tuple[Array, ...]:
        """The outputs for one image (H, W, C)."""
        if tuple(self._size) == (0, 0):
            raise ArgumentError("the size of the input is not set", hint="model.setInputSize(300, 300)", because=SOURCE)
        self._net.setInput(blobFromImage(frame, self._scale, self._size, self._mean, self._swap, self._crop))
        outputs: tuple[Array, ...] = self._net.forward(self._names)
        return outputs


class DetectionModel(Model):
    """A network that ends in a DetectionOutput."""

    def __init__(self, model: Any, config: Any = "") -> None:
        super().__init__(model, config)
        self._across = False

    def setNmsAcrossClasses(self, value: bool) -> Self:
        """Kept for `getNmsAcrossClasses`; see `detect`."""
        self._across = bool(value)
        return self

    def getNmsAcrossClasses(self) -> bool:
        """What was set; False at first."""
        return self._across

    def detect(self, frame: Any, confThreshold: float = 0.5, nmsThreshold: float = 0.0) -> tuple[Any, Any, Any]:
        """What is in an image: (classes (N,) int32, confidences (N,) float32, boxes (N, 4) int32), each () for none.

        Boxes are x y width height in pixels, inside the image. The network has suppressed them already: `nmsThreshold` and
        `setNmsAcrossClasses` are for YOLO's outputs in OpenCV, and without effect here as there.
        Raises UnsupportedError: the network does not end in a DetectionOutput
        """
        last = self._net.getLayer(self._net.getLayerNames()[-1])
        if last.type != "DetectionOutput":
            raise UnsupportedError(
                "only tables of a DetectionOutput are read",
                given={"layer": last.name, "type": last.type},
                hint="model.predict(frame), and decode its outputs",
            )
        rows = np.concatenate([output.reshape(-1, 7) for output in self.predict(frame)])
        rows = rows[rows[:, 2] >= np.float32(confThreshold)]
        boxes = _boxes(rows[:, 3:], np.shape(frame)[1], np.shape(frame)[0])
        classes, confidences = rows[:, 1].astype(np.int32), rows[:, 2]
        return (classes, confidences, boxes) if len(classes) else ((), (), ())


class ClassificationModel(Model):
    """A network that ends in one number a class."""

    def __init__(self, model: Any, config: Any = "") -> None:
        super().__init__(model, config)
        self._softmax = False

    def setEnableSoftmaxPostProcessing(self, enable: bool) -> Self:
        """Whether the numbers become probabilities first, where the network has no Softmax."""
        self._softmax = bool(enable)
        return self

    def getEnableSoftmaxPostProcessing(self) -> bool:
        """What was set; False at first."""
        return self._softmax

    def classify(self, frame: Any) -> tuple[int, float]:
        """(the best class of an image, its number)."""
        scores = self.predict(frame)[0].reshape(-1)
        if self._softmax:
            grown = np.exp(scores - scores.max())
            scores = grown / grown.sum()
        best = int(scores.argmax())
        return best, float(scores[best])


class SegmentationModel(Model):
    """A network that ends in scores of labels for each pixel."""

    def segment(self, frame: Any) -> Array:
        """The best label of each pixel, (H, W) uint8, at the size of the network's output."""
        scores = self.predict(frame)[0]
        if scores.ndim != 4 or scores.shape[1] > 256:
            raise UnsupportedError("these are no scores of labels", given={"output": scores}, required="(1, C, H, W), C <= 256")
        labels: Array = scores[0].argmax(axis=0).astype(np.uint8)
        return labels


def _boxes(corners: Array, width: int, height: int) -> Array:
    """x0 y0 x1 y1 as parts of the image, or in pixels, to whole x y width height inside it."""
    whole = corners.astype(np.int32)
    # OpenCV tells parts from pixels by the size of the box: one of two pixels at most is taken for parts.
    parts = ((whole[:, 2:] - whole[:, :2] + 1) <= 2).any(axis=1, keepdims=True)
    scaled = (corners * np.array([width, height, width, height], np.float32)).astype(np.int32)
    ends = np.where(parts, scaled, whole)
    sides = ends[:, 2:] - ends[:, :2] + 1
    most = np.array([width, height], np.int32)
    start = ends[:, :2].clip(0, most - 1)
    return np.concatenate([start, np.maximum(1, np.minimum(sides, most - start))], axis=1).astype(np.int32)
