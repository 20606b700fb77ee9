"""Kernels of your own: WGSL between the built-in ones, in the same command buffer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.device import LIMITS, Device
from ..backends.webgpu.program import SCALARS, Program, element_dtype, flat_program
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError, ArrayError
from .base import made_for

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
PLACE = re.compile(r"─ (?:wgsl)?:(\d+):(\d+)")
NOTE = re.compile(r"^ +(?:│ )?= (.+)$", re.MULTILINE)
RESERVED = frozenset({"i", "params", "is_nan", "count", "lane_", "group_", "groups_", "Params"})
FORMAT, VERSION = "astride.gpu.source", 1
BODY_MAX = 1 << 20
NESTING_MAX, STATEMENT_MAX, ELSE_MAX = 100, 16 << 10, 300
"""Brackets in brackets, characters of a statement, and `else`s of a body: compilers of WGSL descend into them on the stack, and
one that runs out of it ends the process."""


class Kernel:
    """A kernel whose `body`, in WGSL, runs once for each element of the first output, or `count` times.

    inputs, outputs   names of tensors and their WGSL element types: {"x": "f32"} or [("x", "f32")]
    params            names of numbers and their types, f32, u32 or i32, read as `params.name`
    body              statements; `i` is the invocation, 0 <= i < params.count; is_nan(v) is there

    It is compiled when made. Errors name the line of `body`.
    >>> from astride import gpu
    >>> leaky = lambda device: gpu.Kernel(
    ...     device, "leaky", {"x": "f32"}, {"y": "f32"}, {"slope": "f32"}, "y[i] = select(x[i] * params.slope, x[i], x[i] > 0.0);"
    ... )
    """

    def __init__(
        self,
        device: Device,
        name: str,
        inputs: Mapping[str, str] | Sequence[tuple[str, str]],
        outputs: Mapping[str, str] | Sequence[tuple[str, str]],
        params: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: str = "",
    ) -> None:
        self.device, self.name, self.body = made_for(device), _name(name, "kernel"), body
        self.inputs, self.outputs = _pairs(inputs, "inputs"), _pairs(outputs, "outputs")
        self.params = _pairs(params, "params")
        _check_declarations(self)
        self.program: Program = flat_program(self.name, self.inputs, self.outputs, body, self.params)
        _compile(device, self.program, body)

    def __repr__(self) -> str:
        names = ", ".join(f"{name}: {kind}" for name, kind in (*self.inputs, *self.params))
        return f"<Kernel {self.name}({names}) -> {', '.join(name for name, _ in self.outputs)}>"

    def encode(
        self,
        commands: CommandBuffer,
        *inputs: Tensor,
        shape: tuple[int, ...] | None = None,
        outputs: Sequence[Tensor] | None = None,
        count: int | None = None,
        **params: float,
    ) -> Any:
        """Encode the kernel. The result is the output tensor, or a tuple of them where there are several.

        Outputs are made: of `shape`, or of the first input's. `outputs` gives your own instead. `count` invocations run: as many
        as the first output has elements (groups of them where it holds vectors) unless said otherwise.
        """
        if commands.device is not self.device:
            raise ArgumentError("the kernel was made for another device", operator=self.name, hint="one Device for all")
        self._check_tensors(inputs, outputs)
        if outputs is None:
            if shape is None and not inputs:
                raise ArgumentError("the shape of the outputs is not given", operator=self.name, hint="shape=(...)")
            like = inputs[0].shape if shape is None else shape
            outputs = [self.device.empty(like, element_dtype(kind)) for _, kind in self.outputs]
        if not outputs:
            raise ArrayError("no output is given", operator=self.name)
        lanes = int(self.outputs[0][1][3]) if self.outputs[0][1].startswith("vec") else 1
        threads = -(-outputs[0].size // lanes) if count is None else count
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads < 2**32:
            raise ArgumentError(
                "count is out of range", given={"count": count}, operator=self.name, required="0 <= count < 2^32"
            )
        commands.run(self.program, inputs, list(outputs), threads, **params)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _check_tensors(self, inputs: Sequence[Any], outputs: Any) -> None:
        if outputs is not None and not isinstance(outputs, Sequence):
            raise ArrayError("outputs is no list of tensors", given={"outputs": type(outputs).__name__}, operator=self.name)
        for tensor in (*inputs, *(outputs or ())):
            if not isinstance(tensor, Tensor):
                raise ArrayError(
                    "this is no tensor", given={"given": type(tensor).__name__}, hint="device.tensor(array)", operator=self.name
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the WGSL in it."""
        declared = {part: [list(pair) for pair in getattr(self, part)] for part in ("inputs", "outputs", "params")}
        return {"format": FORMAT, "version": VERSION, "name": self.name, **declared, "body": self.body}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], device: Device) -> Self:
        """The kernel that `to_dict` wrote: it compiles a program that you trust not to loop for ever; no file is loaded so.

        Raises ArgumentError: anything else than such data, or WGSL that does not compile.
        """
        wanted = {"format", "version", "name", "inputs", "outputs", "params", "body"}
        if not isinstance(data, Mapping) or {*data} != wanted or data["format"] != FORMAT or data["version"] != VERSION:
            raise ArgumentError(
                "this is no saved kernel of your own", required=f'a table with "format": "{FORMAT}", version {VERSION}'
            )
        return cls(device, data["name"], data["inputs"], data["outputs"], data["params"], data["body"])


def _pairs(declared: Any, what: str) -> tuple[tuple[str, str], ...]:
    """(name, type) pairs of a table or list of pairs. Raises ArgumentError."""
    try:
        pairs = tuple((name, kind) for name, kind in (declared.items() if isinstance(declared, Mapping) else declared))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} are names with types", given={what: declared}, hint='{"x": "f32"}') from error
    for name, kind in pairs:
        _name(name, what)
        if not isinstance(kind, str):
            raise ArgumentError(f"{what} are names with types", given={name: kind}, hint='{"x": "f32"}')
    return pairs


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
        raise ArgumentError(
            f"this is no name for WGSL ({what})",
            given={"name": name},
            required="a letter, then letters, digits and underscores",
        )
    return name


def _check_declarations(kernel: Kernel) -> None:
    names = [kernel.name, *(name for name, _ in (*kernel.inputs, *kernel.outputs))]
    if len(set(names)) < len(names) or len({name for name, _ in kernel.params}) < len(kernel.params):
        raise ArgumentError("a name is declared twice", operator=kernel.name, given={"names": names})
    if not kernel.outputs:
        raise ArgumentError("a kernel needs an output", operator=kernel.name, hint='outputs={"y": "f32"}')
    for _, kind in (*kernel.inputs, *kernel.outputs):
        element_dtype(kind)
        if "f16" in kind and "shader-f16" not in kernel.device.features:
            raise ArgumentError("the adapter has no 16-bit numbers", operator=kernel.name, given={"device": str(kernel.device)})
    for name, kind in kernel.params:
        if kind not in SCALARS:
            raise ArgumentError(
                "params have no such type", operator=kernel.name, given={name: kind}, required=f"one of {', '.join(SCALARS)}"
            )
    if 4 * (len(kernel.params) + 1) > LIMITS["max-uniform-buffer-binding-size"]:
        raise ArgumentError("more params than WebGPU binds at once", operator=kernel.name, given={"params": len(kernel.params)})
    most = LIMITS["max-storage-buffers-per-shader-stage"]
    if len(kernel.inputs) + len(kernel.outputs) > most:
        raise ArgumentError(
            "more tensors than WebGPU binds at once", operator=kernel.name, required=f"inputs + outputs <= {most}"
        )
    if not isinstance(kernel.body, str) or len(kernel.body) > BODY_MAX or not _is_unicode(kernel.body):
        raise ArgumentError("the body is WGSL text", operator=kernel.name, given={"body": type(kernel.body).__name__})
    problem = _too_deep(kernel.body)
    if problem:
        raise ArgumentError(f"the body goes too deep for compilers of WGSL: {problem}", operator=kernel.name, hint="`let`s")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _too_deep(body: str) -> str:
    """What of a body would have a compiler descend too far, or an empty text."""
    if len(re.findall(r"\belse\b", body)) > ELSE_MAX:
        return f"more than {ELSE_MAX} times else"
    for statement in re.split(r"[;{}]", body):
        if len(statement) > STATEMENT_MAX:
            return f"a statement of more than {STATEMENT_MAX} characters"
        for opening, closing in ("([", ")]"), ("<", ">"):
            depth = 0
            for c in statement:
                depth = max(depth + (c in opening) - (c in closing), 0)
                if depth > NESTING_MAX:
                    return f"more than {NESTING_MAX} brackets in brackets"
    return ""


def _compile(device: Device, program: Program, body: str) -> None:
    """Compile now. Raises ArgumentError with the place in the user's own lines."""
    import wgpu

    try:
        device.pipeline(program.source, program.entry, program.constants, program.layout)
    except wgpu.GPUValidationError as error:
        text = str(error)
        message = next((line.split("error:", 1)[1] for line in text.splitlines() if "error:" in line), text).strip()
        note, found = NOTE.search(text), PLACE.search(text)
        message = re.sub(r"\[\d+\]", "an expression", note[1]) if note and "invalid" in message else message
        lines = body.splitlines() or [""]
        line = int(found[1]) - program.first_line if found else 0
        given: dict[str, Any] = {}
        if found and 1 <= line <= len(lines):
            given = {f"line {line}, column {found[2]}": lines[line - 1].strip()}
        elif found and line > len(lines):
            given = {"after line": len(lines)}
        raise ArgumentError(
            f"the WGSL does not compile: {message}", operator=program.name, given=given, because=None
        ) from error
