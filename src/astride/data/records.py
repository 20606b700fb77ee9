"""Databases of Caffe's records: images and labels, raw or encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import AstrideError, ModelFileError
from ..proto import Message, Schema
from .databases import Database
from .pixels import decode_pixels
from .samples import Array, Samples
from .transformer import Transformer


def read_datum(message: Message, *, color: bool | None = None) -> Array:
    """A Datum's image (C, H, W): bytes or float32.

    Raises ModelFileError: encoded, but no image; another number of values than its sizes say.
    """
    if message.encoded:
        return decode_pixels(message.data, color=color)
    shape = (message.channels, message.height, message.width)
    count = len(message.data) or len(message.float_data)
    if min(shape) < 1 or shape[0] * shape[1] * shape[2] != count:
        raise ModelFileError(
            "a record has another number of values than its sizes say",
            given={"channels, height, width": shape, "values": count},
            required=f"{shape[0]} * {shape[1]} * {shape[2]} == {count}",
            because="Caffe, src/caffe/data_transformer.cpp",
            hint="encoded: true, if it holds an image file",
        )
    values = np.frombuffer(message.data, np.uint8) if len(message.data) else np.array(message.float_data, np.float32)
    return values.reshape(shape)


class RecordSource(Samples):
    """Datum records in the order of their keys: images, prepared by `transform`, and labels.

    color       of encoded images: True for three channels, False for one, None for what they have
    """

    message = "Datum"

    def __init__(
        self,
        database: Database,
        *,
        transform: Transformer | None = None,
        color: bool | None = None,
        shuffle: bool = False,
        rand_skip: int = 0,
        record: type[Any] | None = None,
    ) -> None:
        super().__init__(shuffle=shuffle, rand_skip=rand_skip)
        self.database, self.transform, self.color = database, transform, color
        self._class: Any = Schema.bvlc().message(self.message) if record is None else record

    def __len__(self) -> int:
        return len(self.database)

    def sample(self, place: int, random: np.random.Generator) -> Sequence[Array]:
        try:
            return self.parts(self._parsed(place), random)
        except AstrideError as error:
            error.within(given={"database": str(self.database.path), "record": place})
            raise

    def parts(self, message: Any, random: np.random.Generator) -> Sequence[Array]:
        """What is made of a record."""
        image = read_datum(message, color=self.color)
        image = image.astype(np.float32) if self.transform is None else self.transform(image, random)
        return image, np.array(message.label, np.float32)

    def _parsed(self, place: int) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return self._class.FromString(self.database[place])
        except DecodeError as error:
            raise ModelFileError(
                f"a record is no {self.message}", because=str(error), hint="a database that convert_imageset wrote"
            ) from error
