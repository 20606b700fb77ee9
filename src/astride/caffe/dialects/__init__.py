"""The dialects of Caffe's schema: BVLC's, and what each fork has added to it or made otherwise.

    schema("ssd")          one fork's schema, with its own field numbers: for bytes, and for text that is surely its
    schema()               all names that any fork has: for text, where numbers do not matter
    read_text(source)      a text in the dialect whose fields it uses

One file a fork. Forks gave the same numbers to different fields, so no schema can read the bytes of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...errors import ArgumentError
from ...proto import Schema, nearest
from . import enet, faster_rcnn, flownet, intel, pspnet, refinedet, rfcn, ristretto, segnet, shufflenet, ssd, yolo
from ._fork import Fork

FORKS: Mapping[str, Fork] = {
    "ssd": ssd.FORK,
    "faster_rcnn": faster_rcnn.FORK,
    "rfcn": rfcn.FORK,
    "pspnet": pspnet.FORK,
    "segnet": segnet.FORK,
    "enet": enet.FORK,
    "yolo": yolo.FORK,
    "refinedet": refinedet.FORK,
    "shufflenet": shufflenet.FORK,
    "flownet": flownet.FORK,
    "ristretto": ristretto.FORK,
    "intel": intel.FORK,
}
"""The most used first: where several forks have all the fields of a text, the first of them reads it."""

DIALECTS = ("bvlc", *FORKS)

ANY = "any fork"
"""The name of the schema that has every fork's names."""


@cache
def schema(dialect: str | None = None) -> Schema:
    """A dialect's schema; without one BVLC's with every name that a fork has. Raises ArgumentError: no such dialect."""
    if dialect == "bvlc":
        return Schema.bvlc()
    if dialect is not None:
        if dialect not in FORKS:
            near = nearest(dialect, DIALECTS)
            raise ArgumentError(
                "there is no such dialect", given={"dialect": dialect}, required=f"one of {', '.join(DIALECTS)}", hint=near
            )
        fork = FORKS[dialect]
        return Schema.bvlc().merged(dialect, fork.messages, enums=fork.enums, wins=True)
    merged = Schema.bvlc()
    for fork in FORKS.values():
        merged = merged.merged(ANY, fork.messages, enums=fork.enums, wins=False)
    return merged
