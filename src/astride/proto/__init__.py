"""Caffe's file formats: schema, text and wire codec. What the fields mean is no concern of this package.

schema.py        the messages, as a table of our own      message("NetParameter"), Schema
text.py          prototxt with the place of every field    read_prototxt, parse, format
wire.py          caffemodel, solverstate, binaryproto      read_caffemodel, write_caffemodel, ...
hdf5.py          the first two in HDF5                     by the same readers; needs h5py
sniff.py         what a wrong file really is               open_model
"""

from __future__ import annotations

from astride.proto.blobs import BlobArray
from astride.proto.files import atomic_write
from astride.proto.schema import Field, Message, MessageType, Schema, message, messages, nearest
from astride.proto.sniff import Opened, Source, open_model, sniff
from astride.proto.text import Parsed, format, parse, read_prototxt
from astride.proto.text_faults import Unknown
from astride.proto.text_tokens import Position
from astride.proto.wire import (
    NetFile,
    StateFile,
    parse_binary,
    read_blob,
    read_caffemodel,
    read_solverstate,
    write_blob,
    write_caffemodel,
    write_solverstate,
    write_weights,
)

__all__ = [
    "BlobArray",
    "Field",
    "Message",
    "MessageType",
    "NetFile",
    "Opened",
    "Parsed",
    "Position",
    "Schema",
    "Source",
    "StateFile",
    "Unknown",
    "atomic_write",
    "format",
    "message",
    "messages",
    "nearest",
    "open_model",
    "parse",
    "parse_binary",
    "read_blob",
    "read_caffemodel",
    "read_prototxt",
    "read_solverstate",
    "sniff",
    "write_blob",
    "write_caffemodel",
    "write_solverstate",
    "write_weights",
]
