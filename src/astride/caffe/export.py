"""A network back into Caffe's files: its text, and its weights."""

from __future__ import annotations

from os import PathLike, fspath

from ..net import Net
from ..proto import BlobArray, Message, format, write_caffemodel
from ..proto import write_weights as write_weights_hdf5


class CaffeFormat:
    """Keeps the message a network was made from: its layers after the rules of phase and stage, in their own fields."""

    def __init__(self, message: Message) -> None:
        self.message = message

    def text(self, net: Net) -> str:
        """The network as prototxt, with its inputs' shapes of now and without weights."""
        message = self.current(net)
        for layer in message.layer:
            layer.ClearField("blobs")
        return format(message)

    def save(self, net: Net, path: str | PathLike[str], *, diffs: bool = False) -> None:
        """The network as .caffemodel, atomically; by a name that ends in .h5 its weights alone, as HDF5.

        With `diffs` the parameters' gradients are written, too.
        """
        if fspath(path).endswith(".h5"):
            weights = {name: [p.data for p in parameters] for name, parameters in net.params.items()}
            gradients = {name: [p.diff for p in parameters] for name, parameters in net.params.items()} if diffs else None
            write_weights_hdf5(path, weights, gradients)
            return
        message = self.current(net)
        owned = [net.params.get(layer.name, []) for layer in message.layer]
        write_caffemodel(path, message, [[BlobArray.of(p.data, p.diff if diffs else None) for p in own] for own in owned])

    def current(self, net: Net) -> Message:
        """A copy of the message in which the inputs have the shapes they have in the network."""
        message: Message = type(self.message)()
        message.CopyFrom(self.message)
        for layer in message.layer:
            if layer.type == "Input":
                del layer.input_param.shape[:]
                for name in layer.top:
                    layer.input_param.shape.add().dim.extend(net.blobs[name].shape)
        return message


def write_weights(net: Net, path: str | PathLike[str]) -> None:
    """Write the network's .caffemodel: what `Net.save` does."""
    net.save(path)
