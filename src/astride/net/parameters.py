"""What a network's text says of parameters, applied: multipliers, and sharing by name."""

from __future__ import annotations

from ..errors import ArgumentError
from ..layers import Parameter
from .graph import Node, ParamSpec


class Sharing:
    """Parameters in the order of the layers. The first of a name owns its memory; later ones use it."""

    def __init__(self) -> None:
        self.learnable: list[Parameter] = []
        self._owners: dict[str, tuple[Parameter, ParamSpec, Node]] = {}

    def add(self, node: Node) -> None:
        """Take in a layer's parameters. Raises ArgumentError: too many param blocks, or a sharer that does not fit."""
        own = node.layer.params
        if len(node.params) > len(own):
            raise ArgumentError(
                "more param blocks than the layer has parameters",
                given={"param blocks": len(node.params)},
                required=f"at most {len(own)}: {len(node.params)}",
                operator=node.where,
            )
        for i, parameter in enumerate(own):
            spec = node.params[i] if i < len(node.params) else ParamSpec()
            parameter.name = spec.name
            if spec.lr_mult is not None:
                parameter.lr_mult = spec.lr_mult
            if spec.decay_mult is not None:
                parameter.decay_mult = spec.decay_mult
            if spec.name and spec.name in self._owners:
                own[i] = self._shared(node, parameter, spec)
            else:
                self.learnable.append(parameter)
                if spec.name:
                    self._owners[spec.name] = (parameter, spec, node)

    def _shared(self, node: Node, parameter: Parameter, spec: ParamSpec) -> Parameter:
        owner, first, maker = self._owners[spec.name]
        fits = parameter.count == owner.count if spec.permissive else parameter.shape == owner.shape
        if not fits:
            what = "count" if spec.permissive else "shape"
            mine, theirs = (parameter.count, owner.count) if spec.permissive else (parameter.shape, owner.shape)
            raise ArgumentError(
                f'the parameter named "{spec.name}" does not fit the layer that shares it',
                given={"this": parameter.shape, f"in {maker.where}": owner.shape},
                required=f"equal {what}: {mine} == {theirs}",
                operator=node.where,
                hint="another name" if spec.permissive or parameter.count != owner.count else "share_mode: PERMISSIVE",
            )
        for what in ("lr_mult", "decay_mult"):
            mine, theirs = getattr(spec, what), getattr(first, what)
            if mine is not None and theirs is not None and mine != theirs:
                raise ArgumentError(
                    f'the parameter named "{spec.name}" has two {what}',
                    given={"this": mine, f"in {maker.where}": theirs},
                    required=f"{mine} == {theirs}",
                    operator=node.where,
                )
            if mine is not None:
                setattr(owner, what, mine)
                setattr(first, what, mine)
        if parameter.shape == owner.shape:
            return owner
        parameter.share(owner, data=True, diff=True)
        parameter.lr_mult, parameter.decay_mult = owner.lr_mult, owner.decay_mult
        return parameter
