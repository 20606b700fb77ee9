"""WGSL programs with generated bindings: parameters first, then inputs, then outputs, all in group 0."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError

Typed = tuple[tuple[str, str], ...]
"""(name, WGSL type) pairs."""

SCALARS = {"f32": "<f", "u32": "<I", "i32": "<i"}
"""Types of parameters, and how their bytes are packed."""
ELEMENTS = {"f32": "float32", "f16": "float16", "i32": "int32", "u32": "uint32"}
"""Types of arrays, alone, as vec2 and vec4 of them, or atomic, and the dtype of the tensors that fit."""
VECTOR = re.compile(r"(?:vec[24]|atomic)<(\w+)>")

WORKGROUP = 64
PRELUDE = """fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
"""
"""`v != v` is folded to false by some drivers, and `max` with a NaN differs between them: only the bits tell."""


@dataclass(frozen=True, slots=True)
class Program:
    """One compute entry point with what it binds. `threads` of a dispatch are counted in workgroups of `workgroup`.

    `params` are the members of its uniform structure, 4 bytes each; none means no uniform binding.
    `first_line` is how many lines of `source` stand before the code that a user wrote.
    """

    name: str
    source: str
    inputs: Typed
    outputs: Typed
    params: Typed = ()
    entry: str = "main"
    constants: tuple[tuple[str, float], ...] = ()
    workgroup: int = WORKGROUP
    first_line: int = 0
    layout: tuple[bool, int, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", (bool(self.params), len(self.inputs), len(self.outputs)))

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """The uniform structure's bytes, its size a multiple of 16. Raises ArgumentError: names or values that do not fit."""
        names = {name for name, _ in self.params}
        if values.keys() != names:
            raise ArgumentError(
                f"the parameters are not those of {self.name}",
                given={"given": sorted(values)},
                required=f"{', '.join(sorted(names)) or 'none'}",
            )
        try:
            data = b"".join(struct.pack(SCALARS[kind], values[name]) for name, kind in self.params)
        except (struct.error, OverflowError) as error:
            raise ArgumentError(
                f"a parameter of {self.name} does not fit its type",
                given=dict(values),
                required=", ".join(f"{name}: {kind}" for name, kind in self.params),
                because=str(error),
            ) from error
        return data + b"\0" * (-len(data) % 16)


def bindings(inputs: Typed, outputs: Typed, params: Typed = ()) -> str:
    """WGSL declarations: `params` as `params.name`, arrays under their names."""
    lines = []
    if params:
        members = " ".join(f"{name}: {kind}," for name, kind in params)
        lines += [f"struct Params {{ {members} }};", "@group(0) @binding(0) var<uniform> params: Params;"]
    first = bool(params)
    for i, (name, kind) in enumerate(inputs):
        lines.append(f"@group(0) @binding({first + i}) var<storage, read> {name}: array<{kind}>;")
    for i, (name, kind) in enumerate(outputs):
        lines.append(f"@group(0) @binding({first + len(inputs) + i}) var<storage, read_write> {name}: array<{kind}>;")
    enable = "enable f16;\n" if any("f16" in kind for _, kind in (*inputs, *outputs)) else ""
    return enable + "\n".join(lines) + "\n"


def flat_program(
    name: str,
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str]],
    body: str,
    params: Sequence[tuple[str, str]] = (),
    *,
    functions: str = "",
    entry: str = "main",
    workgroup: int = WORKGROUP,
) -> Program:
    """A program whose invocations are numbered `i`, 0 <= i < params.count; others return before `body` runs.

    `count` is its first parameter, which `CommandBuffer.run` fills in. `functions` stand before the entry point.
    """
    declared = (("count", "u32"), *params)
    head = bindings(tuple(inputs), tuple(outputs), declared) + PRELUDE + functions
    head += (
        f"@compute @workgroup_size({workgroup})\n"
        f"fn {entry}(@builtin(workgroup_id) group_: vec3<u32>, @builtin(num_workgroups) groups_: vec3<u32>, "
        f"@builtin(local_invocation_index) lane_: u32) {{\n"
        f"let i = (group_.x + group_.y * groups_.x) * {workgroup}u + lane_;\n"
        f"if (i >= params.count) {{ return; }}\n"
    )
    return Program(name, head + body + "\n}\n", tuple(inputs), tuple(outputs), declared, entry, (), workgroup, head.count("\n"))


def element_dtype(kind: str) -> str:
    """The dtype of tensors bound as arrays of this WGSL type. Raises ArgumentError: no such type."""
    vector = VECTOR.fullmatch(kind)
    scalar = vector[1] if vector else kind
    if scalar not in ELEMENTS:
        raise ArgumentError("arrays have no such elements", given={"type": kind}, required=f"one of {', '.join(ELEMENTS)}")
    return ELEMENTS[scalar]
