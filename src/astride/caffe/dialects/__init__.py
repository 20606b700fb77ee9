"""The dialects of Caffe's schema: BVLC's, and what each fork has added to it or made otherwise.

    schema("ssd")                 one fork's schema, with its own field numbers: for bytes
    schema("ssd+ceil_mode")       two forks in one, the first one's numbers where both have one
    schema("mine.proto")          the dialect of a caffe.proto of one's own
    schema()                      every name that any fork has: for text, where numbers do not matter
    read_text("deploy.prototxt")  a text in the dialect whose fields it uses

One file a fork. Forks gave the same numbers to different fields, so no schema can read the bytes of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ...errors import ArgumentError
from ...proto import Schema, nearest
from . import (
    ascend,
    autocrop,
    cambricon,
    cascade_rcnn,
    ceil_mode,
    centernet,
    deconvnet,
    deeplab,
    enet,
    faster_rcnn,
    flownet,
    intel,
    mobile,
    noise,
    nvcaffe,
    openpose,
    openvino,
    pspnet,
    refinedet,
    rfcn,
    ristretto,
    segnet,
    shufflenet,
    ssd,
    tsn,
    yolo,
    yolo2,
)
from ._fork import Fork
from .from_proto import from_proto, shared_enums

FORKS: Mapping[str, Fork] = {
    "ceil_mode": ceil_mode.FORK,
    "ssd": ssd.FORK,
    "faster_rcnn": faster_rcnn.FORK,
    "rfcn": rfcn.FORK,
    "pspnet": pspnet.FORK,
    "tsn": tsn.FORK,
    "deeplab": deeplab.FORK,
    "deeplab1": deeplab.V1,
    "segnet": segnet.FORK,
    "enet": enet.FORK,
    "deconvnet": deconvnet.FORK,
    "yolo": yolo.FORK,
    "refinedet": refinedet.FORK,
    "shufflenet": shufflenet.FORK,
    "flownet": flownet.FORK,
    "nvcaffe": nvcaffe.FORK,
    "ristretto": ristretto.FORK,
    "openpose": openpose.FORK,
    "intel": intel.FORK,
    "mobile": mobile.FORK,
    "resize": mobile.RESIZE,
    "openvino": openvino.FORK,
    "cascade_rcnn": cascade_rcnn.FORK,
    "ascend": ascend.FORK,
    "autocrop": autocrop.FORK,
    "yolo2": yolo2.FORK,
    "region": yolo2.REGION,
    "rtpose": openpose.RTPOSE,
    "cambricon": cambricon.FORK,
    "noise": noise.FORK,
    "centernet": centernet.FORK,
}
"""The most used first: where several forks have the fields of a text, the first of them reads it."""

DIALECTS = ("bvlc", *FORKS)

ANY = "any"
"""The name of the schema that has every fork's names."""


def schema(dialect: str | None = None) -> Schema:
    """A dialect's schema; without one BVLC's with every name that a fork has. Raises ArgumentError: no such dialect."""
    return _any() if dialect is None or dialect == ANY else _one(dialect)


@cache
def _any() -> Schema:
    return Schema.bvlc().merged_all(ANY, [(fork.messages, fork.enums) for fork in FORKS.values()], wins=False)


@cache
def _one(dialect: str) -> Schema:
    return _laid_over(Schema.bvlc(), dialect)


@cache
def complete(dialect: str) -> Schema:
    """A dialect's schema with every other fork's names besides: for text of layers of several forks. Its own numbers stay."""
    return _laid_over(schema(ANY), dialect)


def _laid_over(ground: Schema, dialect: str) -> Schema:
    # The last first: whoever comes later in the loop wins, and that is to be the first named.
    for name in reversed(_names(dialect)):
        if name.endswith(".proto"):
            fork = from_proto(Path(name))
            ground = ground.merged(dialect, shared_enums(fork), enums=fork.enums, wins=True)
        elif name != "bvlc":
            ground = ground.merged(dialect, FORKS[name].messages, enums=FORKS[name].enums, wins=True)
    return ground


def _names(dialect: str) -> list[str]:
    names = [name.strip() for name in dialect.split("+")]
    for name in names:
        if name not in DIALECTS and not name.endswith(".proto"):
            raise ArgumentError(
                "there is no such dialect",
                given={"dialect": dialect},
                required=f"one of {', '.join(DIALECTS)}, or several of them with + between; or a .proto file",
                hint=nearest(name, DIALECTS),
            )
    return names
