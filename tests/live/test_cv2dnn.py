"""`astride.cv2dnn` against `cv2.dnn` of OpenCV 4: blobs, boxes, networks and what they say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cv2dnn.files import random_input, written
from tests.cv2dnn.generated import NETS, conv, data, layer, one
from tests.cv2dnn.ssd import ssd

from astride import cv2dnn

cv2 = pytest.importorskip("cv2", reason="OpenCV 4 is not installed: pip install 'opencv-python-headless<5'")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not hasattr(cv2.dnn, "readNetFromCaffe"),
        reason="this OpenCV has no Caffe importer: pip install 'opencv-python-headless<5'",
    ),
]


def test_names_and_numbers() -> None:
    for name in cv2dnn.__all__:
        assert hasattr(cv2.dnn, name), name
        if name.isupper() or name.startswith("SoftNMS"):
            assert getattr(cv2dnn, name) == getattr(cv2.dnn, name), name


# Blobs


def pictures(rng: np.random.Generator) -> Any:
    rows, columns = rng.integers(1, 70, 2)
    shape = (rows, columns) if rng.integers(4) == 0 else (rows, columns, rng.choice([1, 3, 4]))
    return rng.integers(0, 256, shape).astype(np.uint8)


def test_blobs_of_bytes_are_equal() -> None:
    rng = np.random.default_rng(1)
    for _ in range(400):
        image = pictures(rng)
        size = tuple(int(n) for n in rng.integers(1, 70, 2)) if rng.integers(4) else (0, 0)
        call = dict(
            scalefactor=float(rng.choice([1.0, 0.017, 1 / 127.5])),
            size=size,
            mean=tuple(float(n) for n in rng.choice([0.0, 104.0, 127.5, 123.68], 3)),
            swapRB=bool(rng.integers(2)),
            crop=bool(rng.integers(2)),
        )
        theirs, ours = cv2.dnn.blobFromImage(image, **call), cv2dnn.blobFromImage(image, **call)
        np.testing.assert_array_equal(ours, theirs, err_msg=f"{image.shape} {call}")
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape


def test_halving_is_a_mean_of_four() -> None:
    image = np.random.default_rng(2).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    for size in ((30, 20), (30, 40), (60, 20), (20, 10)):
        np.testing.assert_array_equal(cv2dnn.blobFromImage(image, size=size), cv2.dnn.blobFromImage(image, size=size))


def test_blobs_of_bytes_stay_bytes() -> None:
    image = np.random.default_rng(3).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    theirs = cv2.dnn.blobFromImage(image, size=(11, 13), swapRB=True, ddepth=cv2.CV_8U)
    np.testing.assert_array_equal(cv2dnn.blobFromImage(image, size=(11, 13), swapRB=True, ddepth=cv2.CV_8U), theirs)
    assert cv2dnn.blobFromImage(image, ddepth=np.uint8).dtype == theirs.dtype == np.uint8


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16", "int16"])
def test_blobs_of_other_numbers(dtype: str) -> None:
    """Floats to 1e-5 of the greatest; whole numbers to one, since a half may be rounded either way."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        rows, columns, height, width = (int(n) for n in rng.integers(1, 60, 4))
        image = rng.uniform(0, 250, (rows, columns, 3)).astype(dtype)
        theirs = cv2.dnn.blobFromImage(image, 0.5, (width, height), (1, 2, 3), True)
        ours = cv2dnn.blobFromImage(image, 0.5, (width, height), (1, 2, 3), True)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.5 if "int" in dtype else 250e-5)


def test_several_images() -> None:
    rng = np.random.default_rng(5)
    images = [rng.integers(0, 256, (h, w, 3)).astype(np.uint8) for h, w in ((20, 30), (15, 9), (40, 40))]
    for size in ((0, 0), (12, 17)):
        np.testing.assert_array_equal(
            cv2dnn.blobFromImages(images, 0.5, size, (1, 2, 3)), cv2.dnn.blobFromImages(images, 0.5, size, (1, 2, 3))
        )
    blob = cv2dnn.blobFromImages(images, 0.5, (12, 17))
    for ours, theirs in zip(cv2dnn.imagesFromBlob(blob), cv2.dnn.imagesFromBlob(blob), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_parameters_of_a_blob() -> None:
    rng = np.random.default_rng(6)
    compared = 0
    for _ in range(200):
        image = rng.integers(0, 256, (*rng.integers(2, 60, 2), 3)).astype(np.uint8)
        both = [module.Image2BlobParams() for module in (cv2.dnn, cv2dnn)]
        values: dict[str, Any] = dict(
            scalefactor=tuple(float(n) for n in rng.choice([1.0, 0.5, 0.017], 4)),
            size=tuple(int(n) for n in rng.integers(2, 60, 2)),
            mean=tuple(float(n) for n in rng.choice([0.0, 104.0], 4)),
            swapRB=bool(rng.integers(2)),
            datalayout=int(rng.choice([cv2.dnn.DNN_LAYOUT_NCHW, cv2.dnn.DNN_LAYOUT_NHWC])),
            paddingmode=int(rng.integers(3)),
            borderValue=(7.0, 8.0, 9.0, 0.0),
        )
        for params in both:
            for name, value in values.items():
                setattr(params, name, value)
        try:
            theirs = cv2.dnn.blobFromImageWithParams(image, both[0])
        except cv2.error:
            assert values["paddingmode"] == cv2.dnn.DNN_PMODE_LETTERBOX  # a side of no pixel
            continue
        np.testing.assert_array_equal(cv2dnn.blobFromImageWithParams(image, both[1]), theirs, err_msg=str(values))
        box, size = tuple(int(n) for n in rng.integers(1, 20, 4)), image.shape[1::-1]
        assert both[1].blobRectToImageRect(box, size) == both[0].blobRectToImageRect(box, size), (values, box, size)
        compared += 1
    assert compared > 150


# Boxes


def boxes(rng: np.random.Generator, whole: bool) -> Any:
    count = int(rng.integers(1, 25))
    found = rng.integers(-3, 20, (count, 4)) if whole else rng.uniform(-3, 20, (count, 4))
    found[:, 2:] = abs(found[:, 2:])
    scores = rng.choice(np.linspace(0, 1, 11), count) if rng.integers(2) else rng.uniform(0, 1, count)
    return found.tolist(), scores.tolist()


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    assert list(ours) == list(theirs)


def test_suppression_is_equal() -> None:
    rng = np.random.default_rng(7)
    for _ in range(1000):
        found, scores = boxes(rng, bool(rng.integers(2)))
        how = (
            float(rng.choice([0, 0.3])),
            float(rng.choice([0.3, 0.5, 0.7, 0.9])),
            float(rng.choice([1, 0.9, 0.5])),
            int(rng.choice([0, 3, 10])),
        )
        same(cv2dnn.NMSBoxes(found, scores, *how), cv2.dnn.NMSBoxes(found, scores, *how))
        classes = rng.integers(0, 3, len(scores)).tolist()
        same(cv2dnn.NMSBoxesBatched(found, scores, classes, *how), cv2.dnn.NMSBoxesBatched(found, scores, classes, *how))


def test_soft_suppression_is_equal() -> None:
    rng = np.random.default_rng(8)
    for _ in range(500):
        found, scores = boxes(rng, whole=True)
        how = (
            float(rng.choice([0, 0.3])),
            float(rng.choice([0.3, 0.7])),
            int(rng.choice([0, 3])),
            float(rng.choice([0.2, 0.5])),
            int(rng.choice([1, 2])),
        )
        updated, kept = cv2dnn.softNMSBoxes(found, scores, *how)
        their_updated, their_kept = cv2.dnn.softNMSBoxes(found, scores, *how)
        same(kept, their_kept)
        np.testing.assert_allclose(updated, their_updated, rtol=1e-6)


# Networks


def assert_close(got: Any, expected: Any, name: str = "") -> None:
    """To 1e-5 of the greatest number: OpenCV's fast convolutions round otherwise."""
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(1, abs(expected).max(initial=0)), err_msg=name)


def pair(text: str, folder: Path) -> tuple[Any, Any]:
    """The same files, read by both."""
    paths = written(text, folder)
    return cv2dnn.readNetFromCaffe(*paths), cv2.dnn.readNetFromCaffe(*paths)


@pytest.mark.parametrize("name", NETS)
def test_networks_are_equal(name: str, tmp_path: Path) -> None:
    text = NETS[name]
    ours, theirs = pair(text, tmp_path)
    x = random_input(text)
    for net in (ours, theirs):
        net.setInput(x)
    assert ours.getUnconnectedOutLayers().tolist() == theirs.getUnconnectedOutLayers().tolist()
    assert len(ours.getLayerNames()) == len(theirs.getLayerNames())
    # A convolution that OpenCV names after its top is found by both names.
    outputs = list(theirs.getUnconnectedOutLayersNames())
    for got, expected in zip(ours.forward(outputs), theirs.forward(outputs), strict=True):
        assert_close(got, expected)
    for number in range(len(theirs.getLayerNames()) + 1):
        assert ours.getLayer(number).type == theirs.getLayer(number).type


@pytest.mark.parametrize("name", ["residual", "inception", "slice", "cascade", "segmentation"])
def test_every_layer_has_its_output(name: str, tmp_path: Path) -> None:
    """Those that are overwritten in place included, and other sizes of the input. OpenCV gets a network that ends there: asked
    for the middle of one with layers in place, it gives memory that was overwritten, or fails."""
    text = NETS[name]
    paths = written(text, tmp_path)
    ours = cv2dnn.readNetFromCaffe(*paths)
    rng = np.random.default_rng(9)
    shape = random_input(text).shape
    for x in (rng.normal(size=shape), rng.normal(size=(3, *shape[1:]))):
        x = x.astype(np.float32)
        how = ("data", 0.5, (1, 2, 3, 4)[: shape[1]] if shape[1] <= 4 else (0,))
        ours.setInput(x, *how)
        ended = text.splitlines()[:1]
        for line, layer_name in zip(text.splitlines()[1:], ours.getLayerNames(), strict=True):
            ended.append(line)
            Path(paths[0]).write_text("\n".join(ended))
            theirs = cv2.dnn.readNetFromCaffe(*paths)
            theirs.setInput(x, *how)
            assert_close(ours.forward(layer_name), theirs.forward(), layer_name)
            theirs.setInput(x, *how)  # OpenCV scales the input again with every forward
            outputs = theirs.forward([], theirs.getLayerNames()[-1])
            # OpenCV's max pooling has a second output, the places, that the text does not name.
            for got, expected in zip(
                ours.forward([], layer_name), outputs, strict=theirs.getLayer(len(ended) - 1).type != "Pooling"
            ):
                assert_close(got, expected, layer_name)


@pytest.mark.parametrize("name", ["softmax", "convolution", "batch norm", "prelu", "inner product"])
def test_weights_are_shown_alike(name: str, tmp_path: Path) -> None:
    ours, theirs = pair(NETS[name], tmp_path)
    for number in range(1, len(theirs.getLayerNames()) + 1):
        mine, its = ours.getLayer(number), theirs.getLayer(number)
        assert (mine.name, mine.type) == (its.name, its.type)
        assert ours.getLayerId(mine.name) == theirs.getLayerId(its.name) == number
        for a, b in zip(mine.blobs, its.blobs, strict=True):
            if its.type == "BatchNorm":  # OpenCV shows them divided by the third
                continue
            np.testing.assert_array_equal(a, b)


def test_shapes_operations_and_memory(tmp_path: Path) -> None:
    """Where OpenCV counts otherwise is said in the manual."""
    text = data(2, 3, 9, 8) + conv("c", "data", 4, 3) + layer("r", "ReLU", "c", "c") + layer("p", "Softmax", "c", "p")
    ours, theirs = pair(text, tmp_path)
    for shape in ((2, 3, 9, 8), (1, 3, 20, 30)):
        assert ours.getFLOPS(shape) == theirs.getFLOPS(shape)
        assert ours.getFLOPS(1, shape) == theirs.getFLOPS(1, shape)
        assert ours.getMemoryConsumption(shape) == theirs.getMemoryConsumption(shape)
        assert ours.getMemoryConsumption(1, shape) == theirs.getMemoryConsumption(1, shape)
        assert str(ours.getLayersShapes(shape)) == str(theirs.getLayersShapes(shape))
    assert ours.getLayerTypes() == theirs.getLayerTypes()
    assert ours.getLayersCount("ReLU") == theirs.getLayersCount("ReLU") == 1


@pytest.mark.parametrize("classes", [2, 4])
def test_detections_are_equal(classes: int, tmp_path: Path) -> None:
    """The rows of the table, which OpenCV sorts otherwise once `keep_top_k` has left some out."""
    found = 0
    for seed in range(8):
        text = ssd(classes, threshold=(0.02, 0.6)[seed % 2])
        paths = written(text, tmp_path, seed)
        x = random_input(text, seed) / (1 + seed % 3)
        tables = []
        for module in (cv2dnn, cv2.dnn):
            net = module.readNetFromCaffe(*paths)
            net.setInput(x)
            rows = net.forward()[0, 0]
            tables.append(rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1]))])
        np.testing.assert_allclose(tables[0], tables[1], rtol=1e-4, atol=1e-4, err_msg=str(seed))
        found += len(tables[0])
    assert found > 100


def test_models_are_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    frames = [rng.integers(0, 256, (*rng.integers(20, 90, 2), 3)).astype(np.uint8) for _ in range(6)]
    prototxt, weights = written(ssd(threshold=0.02), tmp_path)
    found = 0
    for confidence, overlap, across in ((0.5, 0.0, False), (0.2, 0.3, False), (0.2, 0.3, True), (0.99999, 0.0, False)):
        for frame in frames:
            results = []
            for module in (cv2dnn, cv2.dnn):
                model = module.DetectionModel(weights, prototxt)
                model.setInputParams(0.02, (32, 32), (127.0, 127.0, 127.0), True)
                model.setNmsAcrossClasses(across)
                classes, scores, places = model.detect(frame, confidence, overlap)
                assert [type(part) for part in (classes, scores, places)] == [type(classes)] * 3
                results.append(sorted((int(c), round(float(s), 4), *map(int, b)) for c, s, b in zip(classes, scores, places)))
            assert len(results[0]) == len(results[1]), (confidence, overlap, across)
            np.testing.assert_allclose(results[0], results[1], atol=1.001, rtol=1e-3)
            found += len(results[0])
    assert found > 50


def test_models_of_classes_and_labels(tmp_path: Path) -> None:
    frame = np.random.default_rng(13).integers(0, 256, (40, 30, 3)).astype(np.uint8)
    for name, size, softmax in (("inception", (12, 12), False), ("inner product", (6, 5), True)):
        prototxt, weights = written(NETS[name], tmp_path)
        both = [module.ClassificationModel(weights, prototxt) for module in (cv2dnn, cv2.dnn)]
        for model in both:
            model.setInputParams(1 / 64, size, (127.0, 127.0, 127.0))
            model.setEnableSoftmaxPostProcessing(softmax)
        (ours, score), (theirs, expected) = (model.classify(frame) for model in both)
        assert ours == theirs and abs(score - expected) < 1e-5
    prototxt, weights = written(NETS["segmentation"], tmp_path)
    masks = []
    for module in (cv2dnn, cv2.dnn):
        model = module.SegmentationModel(weights, prototxt)
        model.setInputSize(16, 16).setInputScale(1 / 64).setInputMean((127.0, 127.0, 127.0))
        if module is cv2dnn:
            assert len(model.predict(frame)) == 1
        else:
            model = module.SegmentationModel(weights, prototxt)
            model.setInputParams(1 / 64, (16, 16), (127.0, 127.0, 127.0))
        masks.append(model.segment(frame))
    assert masks[0].dtype == masks[1].dtype and (masks[0] == masks[1]).mean() > 0.99


def test_where_opencv_is_not_caffe(tmp_path: Path) -> None:
    """Each of these is Caffe's value here, and another one in OpenCV 4.14."""
    x = np.random.default_rng(10).uniform(0.1, 1, (1, 3, 4, 4)).astype(np.float32)

    def results(text: str) -> tuple[Any, Any]:
        ours, theirs = pair(text, tmp_path)
        for net in (ours, theirs):
            net.setInput(x)
        return ours.forward(), theirs.forward()

    ours, theirs = results(one("LRN", "lrn_param { local_size: 3 alpha: 0.3 beta: 0.75 k: 2 }", x.shape))
    assert abs(ours - theirs).max() > 1e-3, "OpenCV takes no k"
    ours, theirs = results(one("Log", "log_param { base: 2 shift: 0.5 }", x.shape))
    np.testing.assert_allclose(ours, np.log2(x + np.float32(0.5)), rtol=1e-4, atol=1e-5)
    assert abs(ours - theirs).max() > 1e-3, "OpenCV takes neither base nor shift"
    far = "pooling_param { pool: MAX kernel_size: 1 stride: 3 pad: 0 }"
    ours, theirs = results(one("Pooling", far, (1, 3, 4, 4)))
    np.testing.assert_array_equal(ours, theirs)
    apart = "pooling_param { pool: AVE kernel_h: 1 kernel_w: 3 stride: 2 pad_h: 0 pad_w: 1 }"
    ours, theirs = results(one("Pooling", apart, (1, 3, 4, 4)))
    assert ours.shape == (1, 3, 2, 3) and theirs.shape == (1, 3, 3, 3), "each axis by its own pad"


def test_the_files_of_real_networks(shared: Path) -> None:
    rng = np.random.default_rng(11)
    for folder, text, weights, outputs, shape in (
        ("mtcnn", "det1.prototxt", "det1.caffemodel", ["prob1", "conv4-2"], (1, 3, 40, 33)),
        ("mtcnn", "det2.prototxt", "det2.caffemodel", ["prob1", "conv5-2"], (2, 3, 24, 24)),
        ("mtcnn", "det3.prototxt", "det3.caffemodel", ["prob1", "conv6-2", "conv6-3"], (2, 3, 48, 48)),
        ("ultralight", "RFB-320.prototxt", "RFB-320.caffemodel", ["boxes", "scores"], (1, 3, 240, 320)),
        ("cifar10_everpeace", "cifar10_quick.prototxt", "cifar10_quick_iter_5000.caffemodel", ["prob"], (2, 3, 32, 32)),
    ):
        paths = [str(shared / "models" / folder / name) for name in (text, weights)]
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        results = []
        for module in (cv2dnn, cv2.dnn):
            net = module.readNetFromCaffe(*paths)
            net.setInput(x)
            results.append(net.forward(outputs))
        for got, expected in zip(*results, strict=True):
            assert_close(got, expected, text)


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    ours, theirs = pair(NETS["convolution"], tmp_path)
    x = random_input(NETS["convolution"])
    ours.setInput(x)
    theirs.setInput(x * 1.001)
    with pytest.raises(AssertionError):
        assert_close(ours.forward(), theirs.forward())
