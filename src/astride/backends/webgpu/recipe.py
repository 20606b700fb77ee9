"""Recipes: an operator as dispatches in order, plain data that needs no device.

A recipe names its arrays. Whoever encodes it brings a tensor for each name; those of `scratch` live between its steps only.
A kernel here works out which of a flat grid's groups it is, since a dimension has 65,535 groups at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .commands import CommandBuffer
from .program import Program, Typed, bindings
from .tensor import Tensor

MOST_GROUPS = 65535
"""Groups a dimension of a dispatch, by WebGPU's default limits."""

MOST_TERMS = 16384
"""Terms one invocation adds up. Software drivers stop a loop after 65,535 turns without a word, nested ones counted together."""

WORKERS = 64
"""Invocations a group in kernels without workgroup memory."""

Values = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Step:
    """One dispatch: a program, the names of what it binds, its numbers, and the groups of its flat grid.

    `flops` are the operations that the operator needs of it, for whoever compares its time with the machine's limit.
    """

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    numbers: Values
    groups: int
    flops: int = 0

    @property
    def grid(self) -> tuple[int, int, int]:
        """The flat grid folded into two dimensions; the last row may be longer than what is left."""
        rows = max(-(-self.groups // MOST_GROUPS), 1)
        return (-(-self.groups // rows), rows, 1)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Steps in order, and how many float32 elements each array has that lives between them only."""

    steps: tuple[Step, ...] = ()
    scratch: Mapping[str, int] = field(default_factory=dict)

    def then(self, other: Recipe) -> Recipe:
        """Both, one after the other; scratch arrays of one name are one array of the greater size."""
        sizes = dict(self.scratch)
        for name, size in other.scratch.items():
            sizes[name] = max(size, sizes.get(name, 0))
        return Recipe(self.steps + other.steps, sizes)

    @property
    def flops(self) -> int:
        return sum(step.flops for step in self.steps)


def encode(recipe: Recipe, commands: CommandBuffer, tensors: Mapping[str, Tensor]) -> None:
    """Encode every step. Scratch memory returns to the pool when the command buffer has been submitted."""
    made = {name: commands.device.empty((size,)) for name, size in recipe.scratch.items()}
    known = {**tensors, **made}
    for step in recipe.steps:
        commands.dispatch(
            step.program, [known[n] for n in step.inputs], [known[n] for n in step.outputs], step.grid, step.numbers
        )


def kinds(numbers: Values) -> Typed:
    """The WGSL types of a kernel's numbers: f32 for float, i32 for int."""
    return tuple((name, "f32" if isinstance(value, float) else "i32") for name, value in numbers.items())


def main(threads: int) -> str:
    """How kernels begin: `group` is their place in the flat grid, `lane` the invocation's in its group."""
    return f"""
@compute @workgroup_size({threads})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>,
        @builtin(local_invocation_index) li: u32) {{
  let group = i32(wid.x + wid.y * nwg.x);
  let lane = i32(li);
"""


@lru_cache(maxsize=4096)
def program(
    name: str, inputs: Typed, outputs: Typed, params: Typed, functions: str, body: str, threads: int = WORKERS
) -> Program:
    """A program of `threads` invocations a group that binds its numbers as `params`; `body` is what `main` goes on with."""
    source = bindings(inputs, outputs, params) + functions + main(threads) + body + "}\n"
    return Program(name, source, inputs, outputs, params, workgroup=threads)


def each(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    numbers: Values,
    body: str,
    *,
    functions: str = "",
    names: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    flops: int = 0,
) -> Step:
    """A dispatch that runs `body` for every `i` below numbers["count"].

    `inputs` and `outputs` are the arrays' names in the text; `names` says which of the recipe's arrays they are where that is
    another, `types` their elements where they are not f32.
    """
    names, types = names or {}, types or {}
    head = f"  let i = group * {WORKERS} + lane;\n  if (i >= params.count) {{ return; }}\n"
    made = program(
        name,
        tuple((n, types.get(n, "f32")) for n in inputs),
        tuple((n, types.get(n, "f32")) for n in outputs),
        kinds(numbers),
        functions,
        head + body,
    )
    groups = -(-int(numbers["count"]) // WORKERS)
    return Step(made, tuple(names.get(n, n) for n in inputs), tuple(names.get(n, n) for n in outputs), numbers, groups, flops)


NON_FINITE = "fn odd(v: f32) -> bool { return (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u; }\n"
"""Whether a number is a NaN or an infinity: the only test that drivers leave alone."""

__all__ = ["MOST_GROUPS", "MOST_TERMS", "NON_FINITE", "WORKERS", "Recipe", "Step", "Values", "each", "encode", "kinds", "program"]
