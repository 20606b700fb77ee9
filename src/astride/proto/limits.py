"""How much a Caffe file may ask for. Real files stay far below; a hostile one is refused before it costs memory."""

from __future__ import annotations

MAX_FILE_BYTES = 2**31 - 1
"""Protobuf counts bytes in a signed 32-bit integer, and so did every Caffe."""

MAX_TEXT_BYTES = 64 * 2**20
"""Of a prototxt, and of what a binary file holds besides the blobs' numbers."""

MAX_DEPTH = 64
"""Of messages inside messages. Caffe's own schema needs five."""

MAX_LAYERS = 16_384
"""A LayerParameter takes about 0.6 kB in memory even when it takes three bytes in the file, and 0.1 ms to read from text."""

MAX_MESSAGES = 100_000
"""Messages of any kind in one file. A network of a thousand layers has about ten thousand."""

MAX_FIELDS = 300_000
"""Fields of a binary file, besides the numbers of its blobs."""

MAX_VALUES = 250_000
"""Values in one text, besides runs of plain numbers, which are the weights of a network that has them in its text."""

MAX_NEAREST = 100
"""Unknown names for which the known one most like each is looked up: some milliseconds each."""

MAX_FAULTS = 1_000
"""Wrong or unknown fields of one text, after which the rest is not worth reading."""

MAX_AXES = 32
"""Caffe's own limit for a blob."""
