"""What the manual takes from the code itself: who computes what, what each framework's rules are, the command line's help.

Written to docs/_generated before the pages are read; `python docs/generate.py` does it alone.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from dataclasses import MISSING, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import layer_pages

from astride import backends, layers, ops, plan, rules
from astride.caffe.dialects import FORKS
from astride.errors import AstrideError

SHAPE, WEIGHTS = (2, 4, 9, 9), (4, 4, 3, 3)  # a window of 3 and stride 2 fits 9 exactly, which some rules insist on
DENSE = "any"
WINDOWS = ("global_pool", "unfold", "fold")
"""Operators of windows that have no rule of their own: they take another operator's."""


def write(folder: Path) -> None:
    """Write every generated file anew."""
    (folder / "ops").mkdir(parents=True, exist_ok=True)
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "support.md").write_text(support_table(list(ops.OPERATORS)), encoding="utf-8")
    (folder / "layers.md").write_text(layer_table(), encoding="utf-8")
    layer_pages.write(folder / "layers", table)
    (folder / "dialects.md").write_text(dialect_table(), encoding="utf-8")
    (folder / "cli.md").write_text(command_line(), encoding="utf-8")
    (folder / "ops" / "toctree.md").write_text(contents(), encoding="utf-8")
    for op in ops.OPERATORS:
        (folder / "ops" / f"{op}.md").write_text(signature(op) + "\n" + support_table([op]), encoding="utf-8")
    for name in rules.RULES:
        (folder / "rules" / f"{name}.md").write_text(framework(name), encoding="utf-8")
    (folder / "rules" / "toctree.md").write_text(toctree("Frameworks", list(rules.RULES)), encoding="utf-8")
    (folder / "rules" / "sizes.md").write_text(sizes(), encoding="utf-8")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def contents() -> str:
    """The list of operators' pages: those that have a framework's rules, then those that need none."""
    ruled = [op for op in ops.OPERATORS if op in WINDOWS or any(rules.has(name, op) for name in rules.RULES)]
    return toctree("Windows", ruled) + toctree("What a network needs besides", [op for op in ops.OPERATORS if op not in ruled])


def toctree(caption: str, pages: list[str]) -> str:
    """A Sphinx table of contents with one title a page."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", f":caption: {caption}", "", *pages, "```", "", ""])


# Operators × rules × backends × direction


def samples(op: str, name: str, size: int = SHAPE[-1]) -> list[plan.Plan]:
    """The plans a framework's rule makes of a window of 3 and stride 2; of the whole plane where it takes no other."""
    rule, shape = rules.rule(name, op), (*SHAPE[:2], size, size)
    if op in ("conv", "conv_transpose", "deform_conv", "conv_integer"):
        return [rule(shape, WEIGHTS, "uint8" if op == "conv_integer" else "float32", stride=2)]
    if op == "adaptive_pool":
        return accepted(rule, shape, [dict(output_size=4, reduce=reduce) for reduce in ("average", "max")])
    if op == "fractional_pool":
        return [rule(shape, "float32", kernel=3, output_size=4)]
    if op == "stochastic_pool":
        return [rule(shape, "float32", kernel=3, stride=2, training=training) for training in (True, False)]
    return accepted(rule, shape, [dict(kernel=3, stride=2)]) or [rule(shape, "float32", kernel=size)]


def accepted(rule: Any, shape: tuple[int, ...], calls: list[dict[str, Any]]) -> list[plan.Plan]:
    """The plans of those calls that the rule does not refuse."""
    made = []
    for arguments in calls:
        try:
            made.append(rule(shape, "float32", **arguments))
        except AstrideError:
            continue
    return made


def support_table(operators: list[str]) -> str:
    """Rows: an operator under one framework's rules. Cells: the kernels of a backend that take its plan."""
    rows = []
    for op in operators:
        for name in rules.RULES:
            if rules.has(name, op):
                rows.append(
                    [
                        f"[{op}](/ops/{op}.md)",
                        f"[{name}](/rules/{name}.md)",
                        *(takers(op, samples(op, name), b) for b in backends.BACKENDS),
                    ]
                )
        if not any(rules.has(name, op) for name in rules.RULES):
            rows.append([f"[{op}](/ops/{op}.md)", DENSE, *(takers(op, [], b) for b in backends.BACKENDS)])
    return table(["operator", "rules", *(f"{b}, forward and backward" for b in backends.BACKENDS)], rows)


def takers(op: str, plans: list[plan.Plan], backend: str) -> str:
    """The kernels that take one of these plans (all kernels where there is no rule to make a plan), best first."""
    try:
        kernels = [k for name in ops.FORMS.get(op, (op,)) for k in backends.backend(backend).kernels(name)]
    except AstrideError:
        return "not installed"
    names = list(dict.fromkeys(k.name for k in kernels if not plans or any(k.declines(p) is None for p in plans)))
    return ", ".join(f"`{name}`" for name in names) or "—"


def signature(op: str) -> str:
    """The operator's public functions as they are called."""
    module = importlib.import_module(f"astride.ops.{op}")
    public = importlib.import_module("astride").__all__
    functions = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name in public
    ]
    lines = [f"astride.{f.__name__}{_spelled(inspect.signature(f))}" for f in functions]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def _spelled(found: inspect.Signature) -> str:
    """A signature without its annotations, wrapped where it is long."""
    bare = found.replace(
        parameters=[p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    first, *rest = textwrap.wrap(str(bare), 100)
    return "\n".join([first, *(f"    {line}" for line in rest)])


# Frameworks


def framework(name: str) -> str:
    """A table of one framework's rules: its arguments, and what its plan says where that is not a plan's default."""
    rows = []
    for op in ops.OPERATORS:
        if rules.has(name, op):
            rows.append(
                [
                    f"[{op}](/ops/{op}.md)",
                    arguments(rules.rule(name, op)),
                    "<br>".join(unusual(samples(op, name)[0])) or "the defaults",
                ]
            )
    return table(["operator", "arguments and their defaults", "what the plan says"], rows)


def arguments(rule: Any) -> str:
    """The rule's keyword arguments."""
    named = [p for p in inspect.signature(rule).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return " ".join(f"`{p.name}`" if p.default is p.empty else f"`{p.name}={_short(p.default)}`" for p in named)


def _short(value: Any) -> str:
    return str(value) if isinstance(value, StrEnum) else repr(value)


def unusual(made: plan.Plan) -> list[str]:
    """The plan's enumerations that differ from the class's defaults, and those that decide the operator's result."""
    found = []
    for field in fields(made):
        value = getattr(made, field.name)
        if field.name in ("axes", "dtype", "layout") or (field.default is MISSING and not isinstance(value, StrEnum)):
            continue
        if value != field.default:
            found.append(f"{field.name}: {_short(value)}")
    return found


def sizes() -> str:
    """Output sizes of one window under every framework's defaults."""
    windowed = ["max_pool", "avg_pool", "conv", "conv_transpose"]
    rows = [[f"[{name}](/rules/{name}.md)", *(size_of(op, name, 8) for op in windowed)] for name in rules.RULES]
    return table(["rules", *windowed], rows)


def size_of(op: str, name: str, size: int) -> str:
    """The output's size along one axis, or why there is none."""
    if not rules.has(name, op):
        return "—"
    try:
        made = samples(op, name, size)[0]
    except AstrideError:
        return "refused"
    if made.axes[0].kernel != 3:
        return "refused"
    shape = (*SHAPE[:2], size, size)
    return str(made.output_shape(shape, WEIGHTS, None)[-1] if op.startswith("conv") else made.output_shape(shape)[-1])


# Layers


def layer_table() -> str:
    """Every layer type with the first line of its module, which says what it does."""
    rows = []
    for kind, module in layers.LAYERS.items():
        said = (importlib.import_module(f"astride.layers.{module}").__doc__ or "").splitlines()[0]
        rows.append([f"[`{kind}`](/layers/{module}.md)", said.partition(": ")[2] or said])
    return table(["type", "what it does"], rows)


# The command line


def dialect_table() -> str:
    """Every dialect: what it is, and where its names, numbers, types and defaults were read."""
    rows = [[f"`{name}`", fork.about, ", ".join(fork.sources)] for name, fork in FORKS.items()]
    refused = [[f"`{name}`", f"`{key}`", why] for name, fork in FORKS.items() for key, why in sorted(fork.refused.items())]
    first = table(["dialect", "what it adds", "read in"], [["`bvlc`", "Caffe itself", "BVLC/caffe"], *rows])
    return (
        first
        + "\nFields that change numbers and that nothing here computes, so that a network that sets them is refused:\n\n"
        + (table(["dialect", "field", "what it asks for"], refused))
    )


def command_line() -> str:
    """`--help` of astride and of each of its commands."""
    from typer.testing import CliRunner

    from astride import cli

    runner = CliRunner()
    pages = []
    for words in [[], *([name] for name in cli.COMMANDS)]:
        done = runner.invoke(
            cli.app, [*words, "--help"], env={"COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1"}, prog_name="astride"
        )
        if done.exit_code:
            raise RuntimeError(f"astride {' '.join(words)} --help failed: {done.output}")
        title = f"## {words[0]}\n\n" if words else ""
        pages.append(f"{title}```text\n{done.output.strip()}\n```\n")
    return "\n".join(pages)


if __name__ == "__main__":
    write(Path(__file__).parent / "_generated")
