"""Networks and solvers of Caffe's older formats brought to the current one, step by step as Caffe's own upgrade does.

    upgraded = upgrade(message, lines)       V0 -> V1 -> transform_param -> V2 -> Input layer -> BatchNorm
    upgraded.message                         the network in the current format; the given message stays as it was
    upgraded.origins                         for each layer, which layer of the given network it came from
    upgraded.notes                           what was done, and what the old file says that has no place any more

Source: Caffe, src/caffe/util/upgrade_proto.cpp. One thing differs: where Caffe drops whole layers and goes on (`layer` beside
`layers`, V1 layers among V0 layers) the network is refused, because what would be left is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import ArgumentError
from ..proto import Message, Parsed
from .inputs import input_layer
from .journal import SOURCE, Journal, Note
from .upgrade_v0 import check_v0_types, fold_padding, layer_from_v0
from .upgrade_v1 import layer_from_v1, move_transformations

SOLVER_TYPES = ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam")
"""By number in the older enumeration."""

_NORMALIZED = 3
"""Parameters of a BatchNorm layer whose text still gives them multipliers."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A message in the current format; without notes it is the very message that was given."""

    message: Message
    origins: list[int | None] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def lost(self) -> list[Note]:
        """What had to be left out. Caffe's own tool goes on, too, and reports an error in the end."""
        return [note for note in self.notes if note.lost]


def upgrade(message: Message, lines: Parsed | None = None, *, sized: bool = True) -> Upgraded:
    """A NetParameter of any format in the current one.

    `lines` knows where the message's parts stand in its text. `sized=False` is for files of weights, whose inputs may lack
    their sizes: they are then left out, as in Caffe.
    Raises PrototxtError: layers of two formats in one network; unknown V0 types; padding that no layer can take; inputs
    without their sizes.
    """
    old = len(message.layers) > 0
    if not (old or len(message.input) or any(map(_learns_statistics, message.layer))):
        return Upgraded(message, list(range(len(message.layer))))
    journal = Journal(message.layers if old else message.layer, lines)
    layers = list(_from_old(message, journal) if old else zip(message.layer, range(len(message.layer)), strict=True))
    current: Message = type(message)()
    current.CopyFrom(message)
    for name in ("layers", "layer", "input", "input_shape", "input_dim"):
        current.ClearField(name)
    origins: list[int | None] = [None] if _add_input(message, current, journal, sized) else []
    for layer, index in layers:
        current.layer.add().CopyFrom(layer)
        origins.append(index)
    for layer, origin in zip(current.layer, origins, strict=True):
        if _learns_statistics(layer):
            for spec in layer.param:
                spec.lr_mult = spec.decay_mult = 0.0
            journal.note(f'BatchNorm "{layer.name}": lr_mult and decay_mult of its running sums set to 0', origin)
    return Upgraded(current, origins, journal.notes)


def upgrade_solver(message: Message, lines: Parsed | None = None) -> Upgraded:
    """A SolverParameter with its type as a name, not as the number of older files.

    Raises ArgumentError: the type is given in both ways.
    """
    if not message.HasField("solver_type"):
        return Upgraded(message)
    if message.HasField("type"):
        raise ArgumentError(
            "the solver's type is given twice",
            given={"type": message.type, "solver_type": message.solver_type},
            required="type or the older solver_type, not both",
            because=f"{SOURCE}, UpgradeSolverType",
            hint=f'type: "{message.type}" alone',
        )
    current: Message = type(message)()
    current.CopyFrom(message)
    current.type = SOLVER_TYPES[message.solver_type]
    current.ClearField("solver_type")
    line = lines.line_of(message, "solver_type") if lines is not None else None
    return Upgraded(current, notes=[Note(f'solver_type is now type: "{current.type}"', line)])


def _from_old(message: Message, journal: Journal) -> Iterator[tuple[Message, int]]:
    """The layers of a V0 or V1 network as current ones, each with the index of the layer it came from."""
    if len(message.layer):
        problem = "the network has layers in two formats: layers { ... } and layer { ... }"
        error = journal.error(problem, 0, hint="one format for all of them; Caffe would ignore every layer { ... }")
        raise error.within(given={"layer { ... }": [layer.name for layer in message.layer[:5]]})
    layers: list[tuple[Message, int]] = list(zip(message.layers, range(len(message.layers)), strict=True))
    if any(layer.HasField("layer") for layer in message.layers):
        check_v0_types(message, journal)
        layers = [(layer_from_v0(layer, journal, index), index) for layer, index in fold_padding(message, journal)]
        journal.note(f"{len(layers)} V0 layers (layers {{ layer {{ ... }} }}) are now V1 layers")
    layers = [(move_transformations(layer, journal, index), index) for layer, index in layers]
    journal.note(f"{len(layers)} V1 layers (layers {{ ... }}) are now current ones (layer {{ ... }})")
    for layer, index in layers:
        yield layer_from_v1(layer, type(message)().layer.add()), index


def _add_input(message: Message, current: Message, journal: Journal, sized: bool) -> bool:
    """The `input` fields as an Input layer at the beginning of `current`. Returns whether there is one now."""
    if not len(message.input):
        return False
    if not sized and not len(message.input_shape) and not len(message.input_dim):
        journal.note(f"input {', '.join(message.input)} left out: a file of weights says no size")
        return False
    layer = input_layer(message)
    if layer is not None:
        current.layer.add().CopyFrom(layer)
    line = journal.lines.line_of(message, "input") if journal.lines is not None else None
    journal.notes.append(Note(f"input {', '.join(message.input)} is now an Input layer", line))
    return layer is not None


def _learns_statistics(layer: Message) -> bool:
    """Whether a BatchNorm layer's text lets the solver touch its running sums, as texts before 2017 seem to."""
    return (
        layer.type == "BatchNorm"
        and len(layer.param) == _NORMALIZED
        and any(spec.lr_mult != 0 or spec.decay_mult != 0 for spec in layer.param)
    )
