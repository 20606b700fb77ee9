"""Pictures of translations: the call, the lines, both windows in the same columns, and what was computed."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from astride.draw import draw_translation
from astride.explain import Place, Translation, translate
from astride.explain.beside import beside

PADDED = translate("pytorch", "AvgPool2d(3, 2, 1, ceil_mode=True)", "tensorflow", 6)
CROPPED = translate("onnx", "AveragePool(kernel_shape=[2, 2], pads=[0, 0, 1, 1])", "chainer", 6)
REFUSED = translate("pytorch", "LPPool2d(2, 3)", "tensorflow", 8)
FOUND = [
    PADDED,
    CROPPED,
    REFUSED,
    translate("keras", "Conv2DTranspose(8, 3, strides=2, padding='same')", "pytorch", 4),
    translate("pytorch", "Conv2d(4, 8, 3, padding=1, padding_mode='reflect')", "tensorflow", (5, 7)),
    translate("tensorflow", "tf.nn.max_pool2d(x, 3, 2, 'SAME')", "mps", 8),
]


def texts(found: Translation) -> list[str]:
    return [node.text or "" for node in ET.fromstring(draw_translation(found).svg()).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("found", FOUND, ids=lambda found: f"{found.source} {found.target}")
def test_pictures_are_drawn(found: Translation) -> None:
    canvas = draw_translation(found)
    image = np.asarray(Image.open(io.BytesIO(canvas.png())).convert("RGB"))
    inked = (image < 250).any(axis=2)
    assert 0.005 < inked.mean() < 0.5
    assert not inked[:, -8:].any() and not inked[-8:].any(), "something reaches over an edge"


def test_the_picture_says_what_to_write_and_what_was_computed() -> None:
    found = texts(PADDED)
    for text in ("pytorch in tensorflow", "AvgPool2d(3, 2, 1, ceil_mode=True)", 'y = tf.nn.avg_pool2d(x, 3, 2, "VALID")'):
        assert text in found, text
    assert found.count("equal") == 12 and found.count("window 3") == 2
    assert any("tensorflow cannot express it" in text for text in texts(REFUSED))


def test_windows_lie_where_the_source_has_them() -> None:
    source, target = beside(PADDED).sides
    for ours, theirs in zip(source.axes, target.axes, strict=True):
        assert ours.out == theirs.out == 4
        assert [w.pixels for w in ours.windows] == [w.pixels for w in theirs.windows]
    assert target.axes[0].windows[0].taps[0].place is Place.PADDING
    ours, theirs = (side.axes[0] for side in beside(CROPPED).sides)
    assert [w.pixels for w in ours.windows] == [w.pixels for w in theirs.windows] and theirs.unread == ours.unread
    keras, torch = (side.axes[0] for side in beside(FOUND[3]).sides)
    assert keras.windows == torch.windows and keras.size == torch.size == 8
    mirrored = beside(FOUND[4]).sides[1].axes[1].windows[0]
    assert [tap.reads for tap in mirrored.taps] == [1, 0, 1]
