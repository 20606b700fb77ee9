"""Caffe's binary files: networks with weights, solver states, single blobs. Read as views, written whole or not at all.

    net = read_caffemodel("weights.caffemodel")
    net.message            NetParameter, its blobs without numbers
    net.blobs[i][0].data   the first blob of net.layers[i]: a read-only view into the mapped file
    write_caffemodel("copy.caffemodel", net.message, net.blobs)

The same for .solverstate and .binaryproto, and `parse_binary` for any message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from astride.errors import ArgumentError, ModelFileError
from astride.proto import hdf5, wire_cut, wire_weave
from astride.proto.blobs import LEGACY_DIMENSIONS, BlobArray, declare
from astride.proto.files import Bytes, atomic_write
from astride.proto.limits import MAX_FILE_BYTES
from astride.proto.schema import Message, Schema
from astride.proto.sniff import Source, open_model

Blobs = Sequence[Sequence[BlobArray | NDArray[Any]]]
"""For each layer its blobs in order."""

# The tag of field 1 as a number. A NetParameter's field 1 is its name.
_NUMBER_FIRST = 0x08


@dataclass(frozen=True, slots=True, eq=False)
class NetFile:
    """A network file. `blobs[i]` are those of `layers[i]`; the messages keep the shapes but not the numbers."""

    message: Message
    blobs: list[list[BlobArray]]
    source: str

    @property
    def layers(self) -> Any:
        """`layers` of the old formats where the file has any, else `layer`: Caffe, too, then ignores the other."""
        return self.message.layers or self.message.layer


@dataclass(frozen=True, slots=True, eq=False)
class StateFile:
    """A solver's state: iter, learned_net and current_step in `message`, the solver's blobs in `history`."""

    message: Message
    history: list[BlobArray]
    source: str


def parse_binary(buffer: Bytes, message_name: str, *, source: str = "<bytes>", schema: Schema | None = None) -> Message:
    """Any message from its bytes, whole. For files with blobs the other readers here are the cheaper ones."""
    schema = schema or Schema.bvlc()
    view = memoryview(buffer).cast("B")
    wire_cut.check(view, message_name, schema, source)
    return _message(view, message_name, schema, source)


def read_caffemodel(source: Source, *, name: str | None = None, schema: Schema | None = None, partial: bool = False) -> NetFile:
    """A network with its weights, of any of Caffe's three formats. `source` is a path, bytes or an open file.

    Weights in HDF5 are read, too: of their layers there are the names only.
    `partial` lets required fields be missing: a fork's file, read for its weights, may use their numbers for something else.
    """
    schema = schema or Schema.bvlc()
    opened = open_model(source, expect="caffemodel", name=name, hdf5=True)
    if opened.kind == "hdf5":
        found = hdf5.read_weights(opened.view, opened.name)
        return NetFile(schema.message("NetParameter")(layer=[{"name": key} for key in found]), list(found.values()), opened.name)
    if opened.view[0] == _NUMBER_FIRST:
        raise ModelFileError(
            f"{opened.name} is no network: it begins with a number, as a solver state, a mean file or an ONNX model does",
            hint="read_solverstate, read_blob, or the .caffemodel beside it",
        )
    parts = wire_cut.cut(opened.view, "NetParameter", schema, opened.name)
    message = _message(parts.rest, "NetParameter", schema, opened.name, partial=partial)
    field = "layers" if message.layers else "layer"
    blobs = [parts.blobs.get((field, index), []) for index in range(len(getattr(message, field)))]
    return NetFile(message, blobs, opened.name)


def write_caffemodel(path: str | os.PathLike[str], message: Message, blobs: Blobs | None = None) -> None:
    """Write a network; `blobs` take the place of what the layers of `message` hold, `None` keeps that."""
    schema = Schema.of(message)
    if blobs is None:
        _check_size(path, message.ByteSize())
        atomic_write(path, [message.SerializeToString()])
        return
    skeleton = type(message)()
    skeleton.CopyFrom(message)
    layers = skeleton.layers or skeleton.layer
    if len(layers) != len(blobs):
        required = f"len(blobs) == number of layers: {len(blobs)} == {len(layers)}"
        raise ArgumentError("one list of blobs per layer is needed", required=required, hint="[] for a layer without blobs")
    arrays: list[BlobArray] = []
    for layer, own in zip(layers, blobs, strict=True):
        layer.ClearField("blobs")
        # The oldest format keeps a layer, and its blobs, one message further down.
        holder = layer.layer if layer.DESCRIPTOR.name == "V1LayerParameter" and layer.HasField("layer") else layer
        holder.ClearField("blobs")
        for blob in map(_as_blob, own):
            declare(holder.blobs.add(), blob)
            arrays.append(blob)
    _weave(path, skeleton, arrays, schema)


def read_solverstate(source: Source, *, name: str | None = None, schema: Schema | None = None) -> StateFile:
    """The state a solver saved beside the weights."""
    schema = schema or Schema.bvlc()
    opened = open_model(source, expect="solverstate", name=name, hdf5=True)
    if opened.kind == "hdf5":
        iteration, learned_net, step, blobs = hdf5.read_state(opened.view, opened.name)
        record = schema.message("SolverState")(iter=iteration, learned_net=learned_net, current_step=step)
        return StateFile(record, blobs, opened.name)
    parts = wire_cut.cut(opened.view, "SolverState", schema, opened.name)
    message = _message(parts.rest, "SolverState", schema, opened.name)
    history = [blob for index in range(len(message.history)) for blob in parts.blobs[("history", index)]]
    return StateFile(message, history, opened.name)


def write_solverstate(path: str | os.PathLike[str], message: Message, history: Sequence[BlobArray | NDArray[Any]]) -> None:
    """Write a solver's state; `history` takes the place of what `message` holds. A name that ends in .h5 makes it HDF5."""
    if os.fspath(path).endswith(".h5"):
        plain = [blob.data if isinstance(blob, BlobArray) else blob for blob in history]
        hdf5.write_state(os.fspath(path), message.iter, message.learned_net, message.current_step, plain)
        return
    skeleton = type(message)()
    skeleton.CopyFrom(message)
    skeleton.ClearField("history")
    arrays = [_as_blob(blob) for blob in history]
    for blob in arrays:
        declare(skeleton.history.add(), blob)
    _weave(path, skeleton, arrays, Schema.of(message))


def write_weights(
    path: str | os.PathLike[str],
    layers: Mapping[str, Sequence[NDArray[Any]]],
    diffs: Mapping[str, Sequence[NDArray[Any]]] | None = None,
) -> None:
    """Write weights alone, as HDF5 in Caffe's layout: layer name -> its parameters, and likewise their gradients."""
    hdf5.write_weights(os.fspath(path), layers, diffs)


def read_blob(source: Source, *, name: str | None = None) -> BlobArray:
    """The one blob of a .binaryproto, such as a mean image."""
    opened = open_model(source, expect="binaryproto", name=name)
    return wire_cut.cut(opened.view, "BlobProto", Schema.bvlc(), opened.name).blobs[("", 0)][0]


def write_blob(path: str | os.PathLike[str], array: BlobArray | NDArray[Any], *, legacy: bool = False) -> None:
    """Write one blob; `legacy` gives its four dimensions the old way, as Caffe's own mean files do."""
    blob = _as_blob(array)
    skeleton = Schema.bvlc().message("BlobProto")()
    if legacy:
        if len(blob.shape) != len(LEGACY_DIMENSIONS):
            raise ArgumentError(
                "the old form has four dimensions", given={"array": blob.data}, hint="array[None], or legacy=False"
            )
        blob = replace(blob, legacy=True)
    declare(skeleton, blob)
    _weave(path, skeleton, [blob], Schema.bvlc())


def _as_blob(blob: BlobArray | NDArray[Any]) -> BlobArray:
    return blob if isinstance(blob, BlobArray) else BlobArray.of(blob)


def _weave(path: str | os.PathLike[str], skeleton: Message, arrays: list[BlobArray], schema: Schema) -> None:
    numbers = sum(array.nbytes for blob in arrays for array in (blob.data, blob.diff) if array is not None)
    _check_size(path, numbers + skeleton.ByteSize())
    blobs: Iterator[BlobArray] = iter(arrays)
    chunks, size = wire_weave.weave(skeleton.SerializePartialToString(), skeleton.DESCRIPTOR.name, blobs, schema)
    _check_size(path, size)
    atomic_write(path, chunks)


def _check_size(path: str | os.PathLike[str], size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise ModelFileError(
            f"cannot write {os.fspath(path)}: protobuf files end at {MAX_FILE_BYTES} bytes",
            given={"size": size},
            hint="leave out the diffs, store float32 instead of float64, or keep the weights in HDF5",
        )


def _message(view: bytes | memoryview, message_name: str, schema: Schema, source: str, *, partial: bool = False) -> Message:
    from google.protobuf.message import DecodeError

    message = schema.message(message_name)()
    try:
        message.ParseFromString(bytes(view))
    except DecodeError as error:
        raise ModelFileError(
            f"{source}: protobuf cannot read this {message_name}: {error}", hint="download or copy the file again"
        ) from error
    missing = [] if partial else message.FindInitializationErrors()
    if missing:
        raise ModelFileError(f"{source}: required fields are missing: {', '.join(missing[:5])}", given={"message": message_name})
    return message
