"""Write the zoo's prototxt files, or say which of them are out of date.

    python examples/zoo/write.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import classifiers  # noqa: E402
import dense  # noqa: E402
import detectors  # noqa: E402
import residual  # noqa: E402
from text import Text  # noqa: E402

NETWORKS: dict[str, Callable[[], Text]] = {
    "lenet": classifiers.lenet,
    "alexnet": classifiers.alexnet,
    "caffenet": partial(classifiers.alexnet, norm_first=False),
    "vgg16": partial(classifiers.vgg, classifiers.VGG16),
    "vgg19": partial(classifiers.vgg, classifiers.VGG19),
    "googlenet": classifiers.googlenet,
    "squeezenet_v1.0": partial(classifiers.squeezenet, version="1.0"),
    "squeezenet_v1.1": classifiers.squeezenet,
    "resnet50": residual.resnet50,
    "mobilenet_v1": residual.mobilenet_v1,
    "mobilenet_v2": residual.mobilenet_v2,
    "densenet121": residual.densenet121,
    "fcn8s": dense.fcn8s,
    "hed": dense.hed,
    "segnet": dense.segnet,
    "unet": dense.unet,
    "openpose_body": dense.openpose_body,
    "ssd300": detectors.ssd300,
    "ssd300_train": partial(detectors.ssd300, train=True),
    "faster_rcnn_vgg16": detectors.faster_rcnn,
    "mtcnn_p": detectors.mtcnn_p,
    "mtcnn_r": detectors.mtcnn_r,
    "mtcnn_o": detectors.mtcnn_o,
}


def main() -> int:
    """Write every file, or with --check write nothing and return 1 if one differs."""
    stale = []
    for name, make in NETWORKS.items():
        path, text = HERE / f"{name}.prototxt", str(make())
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text)
    print(", ".join(stale) or "every file is as its definition says")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
