"""Which layers a network has in a given state: Caffe's include and exclude rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import ArgumentError, PrototxtError
from ..net import Phase
from ..proto import Message


@dataclass(frozen=True, slots=True)
class State:
    """What rules ask about: the phase, a level, and the names of stages."""

    phase: Phase = Phase.TEST
    level: int = 0
    stages: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, phase: Phase, level: int, stages: Iterable[str], message: Message) -> State:
        """The state asked for, with the stages that the network's own text adds. Raises ArgumentError: no level or no stages."""
        if isinstance(level, bool) or not isinstance(level, int):
            raise ArgumentError("a level is a whole number", given={"level": level}, hint="level=0")
        stages = list(stages) if isinstance(stages, Iterable) else [None]
        if not all(isinstance(stage, str) for stage in stages):
            raise ArgumentError("stages are chosen by their names", given={"stages": stages}, hint='stages=("deploy",)')
        return cls(phase, level, frozenset(stages) | frozenset(message.state.stage))


def included(layer: Message, state: State) -> bool:
    """Whether the layer is part of the network. Raises PrototxtError where it has rules of both kinds."""
    if len(layer.include) and len(layer.exclude):
        raise PrototxtError(
            f'layer "{layer.name}" has include and exclude rules',
            required="rules of one kind",
            because="Caffe, src/caffe/net.cpp",
            hint="only include, or only exclude",
        )
    if len(layer.include):
        return any(meets(rule, state) for rule in layer.include)
    return not any(meets(rule, state) for rule in layer.exclude)


def meets(rule: Message, state: State) -> bool:
    """A rule is met where the phase is its own, the level in its range, all its stages are there and no not_stage is."""
    if rule.HasField("phase") and phase_name(rule) != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    return set(rule.stage) <= state.stages and not set(rule.not_stage) & state.stages


def phase_name(message: Message) -> str:
    """The name of a message's phase: TRAIN or TEST."""
    return enum_name(message, "phase")


def enum_name(message: Message, name: str) -> str:
    """The name of an enumeration's value."""
    kind = message.DESCRIPTOR.fields_by_name[name].enum_type
    return str(kind.values_by_number[getattr(message, name)].name)
