"""Caffe's messages and enumerations, made at run time from astride's schema: there is no generated code.

    caffe_pb2.NetParameter(), caffe_pb2.TRAIN, caffe_pb2.PoolingParameter.MAX
    google.protobuf.text_format.Merge(text, message) and SerializeToString() work as usual

The fields of the forks are there, too, wherever they do not contradict BVLC's. The messages live in a descriptor pool of
their own, so that a real caffe_pb2 in the same process does not disturb them.
"""

from __future__ import annotations

from typing import Any

# Scripts reach for google.protobuf.text_format without importing it, as generated code did that for them.
import google.protobuf.text_format  # noqa: F401

from ...caffe.dialects import schema


def _messages() -> dict[str, Any]:
    known = schema()
    return {name: known.message(name) for name in known.messages}


def _constants(descriptor: Any) -> dict[str, Any]:
    """Every enumeration of the file, and its values as plain integers."""
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    found: dict[str, Any] = {}
    for name, enum in descriptor.enum_types_by_name.items():
        found[name] = EnumTypeWrapper(enum)
        found.update({value.name: value.number for value in enum.values})
    return found


_made = _messages()
DESCRIPTOR: Any = _made["NetParameter"].DESCRIPTOR.file
_made |= _constants(DESCRIPTOR)
globals().update(_made)
TRAIN: int = _made["TRAIN"]
TEST: int = _made["TEST"]

__all__ = [name for name in globals() if name == "DESCRIPTOR" or name in _made]


def __getattr__(name: str) -> Any:
    # Only for what is not there; the type checker learns from it that there may be more.
    raise AttributeError(f"Caffe's schema has no message or constant {name}")
