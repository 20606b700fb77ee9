"""Caffe's oldest layers (`layers { layer { type: "conv" } }`, 2013) brought to V1.

Source: Caffe, src/caffe/util/upgrade_proto.cpp, UpgradeV0PaddingLayers and UpgradeV0LayerParameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..errors import Listing
from ..proto import Message, nearest
from .journal import Journal

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": "ACCURACY",
        "bnll": "BNLL",
        "concat": "CONCAT",
        "conv": "CONVOLUTION",
        "data": "DATA",
        "dropout": "DROPOUT",
        "euclidean_loss": "EUCLIDEAN_LOSS",
        "flatten": "FLATTEN",
        "hdf5_data": "HDF5_DATA",
        "hdf5_output": "HDF5_OUTPUT",
        "im2col": "IM2COL",
        "images": "IMAGE_DATA",
        "infogain_loss": "INFOGAIN_LOSS",
        "innerproduct": "INNER_PRODUCT",
        "lrn": "LRN",
        "multinomial_logistic_loss": "MULTINOMIAL_LOGISTIC_LOSS",
        "pool": "POOLING",
        "relu": "RELU",
        "sigmoid": "SIGMOID",
        "softmax": "SOFTMAX",
        "softmax_loss": "SOFTMAX_LOSS",
        "split": "SPLIT",
        "tanh": "TANH",
        "window_data": "WINDOW_DATA",
    }
)
"""V0 layer type -> V1's. `padding` is none: it goes into the layer after it."""

_REPEATED = ("blobs", "blobs_lr", "weight_decay")
_ANY = "any type"
_KNOWN = f"one of {', '.join(TYPES)}"
_SHOWN = 100
"""Layers in one message."""


def _weighted(name: str) -> dict[str, str]:
    return {"conv": f"convolution_param.{name}", "innerproduct": f"inner_product_param.{name}"}


def _windowed(name: str) -> dict[str, str]:
    return {"conv": f"convolution_param.{name}", "pool": f"pooling_param.{name}"}


FIELDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "num_output": _weighted("num_output"),
        "biasterm": _weighted("bias_term"),
        "weight_filler": _weighted("weight_filler"),
        "bias_filler": _weighted("bias_filler"),
        "pad": _windowed("pad"),
        "kernelsize": _windowed("kernel_size"),
        "stride": _windowed("stride"),
        "group": {"conv": "convolution_param.group"},
        "pool": {"pool": "pooling_param.pool"},
        "dropout_ratio": {"dropout": "dropout_param.dropout_ratio"},
        "local_size": {"lrn": "lrn_param.local_size"},
        "alpha": {"lrn": "lrn_param.alpha"},
        "beta": {"lrn": "lrn_param.beta"},
        "k": {"lrn": "lrn_param.k"},
        "source": {
            "data": "data_param.source",
            "hdf5_data": "hdf5_data_param.source",
            "images": "image_data_param.source",
            "window_data": "window_data_param.source",
            "infogain_loss": "infogain_loss_param.source",
        },
        "batchsize": {
            "data": "data_param.batch_size",
            "hdf5_data": "hdf5_data_param.batch_size",
            "images": "image_data_param.batch_size",
            "window_data": "window_data_param.batch_size",
        },
        "scale": {_ANY: "transform_param.scale"},
        "meanfile": {_ANY: "transform_param.mean_file"},
        "cropsize": {_ANY: "transform_param.crop_size"},
        "mirror": {_ANY: "transform_param.mirror"},
        "rand_skip": {"data": "data_param.rand_skip", "images": "image_data_param.rand_skip"},
        "shuffle_images": {"images": "image_data_param.shuffle"},
        "new_height": {"images": "image_data_param.new_height"},
        "new_width": {"images": "image_data_param.new_width"},
        "concat_dim": {"concat": "concat_param.concat_dim"},
        "det_fg_threshold": {"window_data": "window_data_param.fg_threshold"},
        "det_bg_threshold": {"window_data": "window_data_param.bg_threshold"},
        "det_fg_fraction": {"window_data": "window_data_param.fg_fraction"},
        "det_context_pad": {"window_data": "window_data_param.context_pad"},
        "det_crop_mode": {"window_data": "window_data_param.crop_mode"},
        "hdf5_output_param": {"hdf5_output": "hdf5_output_param"},
    }
)
"""V0 field -> layer type -> where V1 has it. A field of a layer type that is not named here has no place in V1."""


def fold_padding(message: Message, journal: Journal) -> list[tuple[Message, int]]:
    """Copies of the layers without those of type "padding", whose pad goes to the convolution or pooling after them."""
    made_by: dict[str, int | None] = dict.fromkeys(message.input)
    kept: list[tuple[Message, int]] = []
    for index, connection in enumerate(message.layers):
        if not connection.HasField("layer"):
            problem = "a V1 layer (without layer { ... } inside) stands among V0 layers"
            raise journal.error(problem, index, hint="one format for all of them; Caffe would empty this layer")
        copy: Message = type(connection)()
        copy.CopyFrom(connection)
        if connection.layer.type != "padding":
            kept.append((copy, index))
        for place, blob in enumerate(connection.bottom):
            if blob not in made_by:
                near = nearest(blob, made_by)
                raise journal.error(f'no layer before it makes the bottom "{blob}"', index, hint=near and f'bottom: "{near}"')
            source = made_by[blob]
            if source is not None and message.layers[source].layer.type == "padding":
                padding = message.layers[source]
                _check_padding(padding, connection, journal, index)
                copy.layer.pad = padding.layer.pad
                copy.bottom[place] = padding.bottom[0]
                text = f'padding layer "{padding.layer.name}" is now pad: {padding.layer.pad} of "{connection.layer.name}"'
                journal.note(text, source)
        made_by.update(dict.fromkeys(connection.top, index))
    return kept


def _check_padding(padding: Message, taker: Message, journal: Journal, index: int) -> None:
    """Raise PrototxtError unless a padding layer feeds just one convolution or pooling, the only ones that can pad."""
    if taker.layer.type not in ("conv", "pool"):
        problem = f'padding goes into a convolution or a pooling, not into a layer of type "{taker.layer.type}"'
        raise journal.error(problem, index)
    for layer, what, count in (
        (taker, "bottom", len(taker.bottom)),
        (padding, "bottom", len(padding.bottom)),
        (padding, "top", len(padding.top)),
    ):
        if count != 1:
            raise journal.error(f'"{layer.layer.name}" needs exactly one {what} to be joined: {count}', index)


def check_v0_types(message: Message, journal: Journal) -> None:
    """Raise PrototxtError that lists every layer of a type that V0 does not have."""
    unknown = [(index, x.layer) for index, x in enumerate(message.layers) if x.layer.HasField("type") and not _known(x.layer)]
    if not unknown:
        return
    near = {layer.type: nearest(layer.type, TYPES) for _, layer in unknown[:_SHOWN]}
    first, layer = unknown[0]
    if len(unknown) == 1:
        hint = f'type: "{near[layer.type]}"' if near[layer.type] else _KNOWN
        raise journal.error(f'V0 has no layer type "{layer.type}"', first, hint=hint)
    lines = [
        f'{journal.place(index, "type")}layer "{layer.name}" of type "{layer.type}"'
        + (f", perhaps {near[layer.type]}" if near[layer.type] else "")
        for index, layer in unknown[:_SHOWN]
    ]
    more = [f"... and {len(unknown) - _SHOWN} more"] if len(unknown) > _SHOWN else []
    error = journal.error(f"{len(unknown)} layers are of types that V0 lacks", first, hint=_KNOWN)
    raise error.within(given={"layers": Listing([*lines, *more])})


def _known(layer: Message) -> bool:
    return layer.type in TYPES or layer.type == "padding"


def layer_from_v0(connection: Message, journal: Journal, index: int) -> Message:
    """The V1 layer of a V0 one. What V1 has no place for is left out, with a note.

    Raises PrototxtError: a negative size, which V0's fields could hold and V1's cannot.
    """
    old = connection.layer
    new: Message = type(connection)()
    new.bottom.extend(connection.bottom)
    new.top.extend(connection.top)
    for name in _REPEATED:
        getattr(new, name).extend(getattr(old, name))
    if old.HasField("name"):
        new.name = old.name
    if old.HasField("type"):
        new.type = new.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_name[TYPES[old.type]].number
    for descriptor, value in old.ListFields():
        name = descriptor.name
        if name in ("name", "type", *_REPEATED):
            continue
        places = FIELDS.get(name, {})
        path = places.get(old.type) or places.get(_ANY)
        if path is None:
            journal.note(f'{name} left out: a layer of type "{old.type}" has no such field', index, lost=True)
        elif isinstance(value, int) and value < 0:
            raise journal.error(f"{name} is negative: {value}", index)
        else:
            _put(new, path, value)
    for descriptor, _ in connection.ListFields():
        if descriptor.name not in ("bottom", "top", "layer"):
            journal.note(f"{descriptor.name} left out: in V0's format it belongs into layer {{ ... }}", index, lost=True)
    return new


def _put(layer: Message, path: str, value: object) -> None:
    """Set a field, given as `convolution_param.pad`; the first value of one that V1 repeats."""
    *parents, name = path.split(".")
    for parent in parents:
        layer = getattr(layer, parent)
    target = getattr(layer, name)
    if hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    elif hasattr(target, "append"):
        target.append(value)
    else:
        setattr(layer, name, value)
