"""astride check: gradients of operators and layers against differences; and what is wrong with a network's text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, note, print_json, table, to_stdout

if TYPE_CHECKING:
    from ..explain.gradients import Checked

EXAMPLES = (
    "astride check max_pool --rules caffe,pytorch",
    "astride check --all",
    "astride check deploy.prototxt --weights weights.caffemodel",
    "astride check train_val.prototxt --gradients",
)


Target = Annotated[str | None, typer.Argument(metavar="OP|PROTOTXT", help="An operator, or a network's text.")]
Every = Annotated[bool, typer.Option("--all", help="Every operator under every framework's rules.")]
Rules = Annotated[str | None, typer.Option("--rules", "-r", metavar="NAMES", help="For operators: these frameworks only.")]
Rank = Annotated[int, typer.Option("--rank", min=1, max=3, metavar="N", help="For operators: how many axes.")]
Tolerance = Annotated[
    float, typer.Option("--tolerance", metavar="N", help="Greatest error that passes, relative to the largest gradient.")
]
Weights = Annotated[Path | None, typer.Option("--weights", metavar="FILE", help="For a PROTOTXT: do these weights fit?")]
Gradients = Annotated[bool, typer.Option("--gradients", help="For a PROTOTXT: check every layer's gradients too, in float64.")]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="For the random inputs.")]


def check(
    target: Target = None,
    every: Every = False,
    rules: Rules = None,
    rank: Rank = 2,
    tolerance: Tolerance = 1e-6,
    weights: Weights = None,
    gradients: Gradients = False,
    seed: Seed = 0,
    dialect: arguments.Dialect = None,
    json: Json = False,
) -> None:
    """Check an operator's gradients, or a network's text.

    OP: each gradient is compared with central differences in float64, argument by argument, under each framework's rules,
    on inputs without ties. --all does so for every operator.

    PROTOTXT: everything that is wrong with it in one list: syntax, unknown fields and layer types, layers that do not fit
    together, in both phases; and weights that do not fit. What may be meant otherwise is noted. With --gradients the layers'
    gradients as well.

    Exit status 1 if something is wrong.
    """
    if (target is None) == (not every):
        raise typer.BadParameter(
            "an operator or a prototxt, or --all" if not every else "--all needs no target", param_hint="OP|PROTOTXT"
        )
    if target is not None and arguments.is_network(target):
        good = _check_network(target, weights, dialect, gradients, tolerance, seed, json)
    else:
        good = _check_operators(target, arguments.names(rules), rank, tolerance, seed, json)
    if not good:
        raise typer.Exit(1)


# Operators


def _check_operators(target: str | None, rules: list[str], rank: int, tolerance: float, seed: int, json: bool) -> bool:
    from ..explain.gradients import SAMPLES, check_operator
    from ..ops import OPERATORS
    from ._output import to_stderr

    console = to_stderr()
    names = [target] if target is not None else [op for op in OPERATORS if op in SAMPLES]
    found: list[Checked] = []
    with console.status("") as status:
        for name in names:
            status.update(f"checking {name}")
            found += check_operator(name, rules or None, rank=rank, seed=seed, tolerance=tolerance)
    good = all(checked.good for checked in found)
    if json:
        print_json({"good": good, "tolerance": tolerance, "checks": [_operator_data(checked) for checked in found]})
    else:
        _show_operators(found, tolerance)
        left_out = [op for op in OPERATORS if op not in SAMPLES]
        if target is None and left_out:
            note(f"without a gradient: {', '.join(left_out)}")
    return good


def _operator_data(checked: Checked) -> dict[str, Any]:
    differences = [] if checked.report is None else checked.report.differences
    return {
        "op": checked.op,
        "rules": checked.rules,
        "variant": checked.variant,
        "good": checked.good,
        "refused": None if checked.error is None else checked.error.problem,
        "arguments": [
            {"name": _name(checked, d.argument), "error": d.error, "tried": d.tried, "kinks": d.kinks, "at": d.worst}
            for d in differences
        ],
    }


def _name(checked: Checked, argument: int) -> str:
    return checked.names[argument] if argument < len(checked.names) else str(argument)


def _show_operators(found: list[Checked], tolerance: float) -> None:
    from rich.text import Text

    console = to_stdout()
    shown = table("operator", "rules", "argument", "error", "tried", "kinks", "", right=("error", "tried", "kinks"))
    shown.padding = (0, 1, 0, 0)  # so that the longest operator fits beside its numbers
    shown.columns[0].no_wrap = True
    before: tuple[str, str] | None = None
    for checked in found:
        label = (" ".join(part for part in (checked.op, checked.variant) if part), checked.rules or "")
        if checked.report is None:
            shown.add_row(*label, "-", "", "", "", Text("refused", style="yellow"))
            continue
        for d in checked.report.differences:
            verdict = Text("agrees", style="green") if d.error <= tolerance else Text("DIFFERS", style="bold red")
            if d.tried == d.kinks:
                verdict = Text("NOT SEEN: kinks only", style="bold red")
            first = ("", "") if label == before else label
            shown.add_row(*first, _name(checked, d.argument), f"{d.error:.1e}", str(d.tried), str(d.kinks or ""), verdict)
            before = label
    console.print(shown)
    refused = {checked.error.problem: checked for checked in found if checked.error is not None}
    for problem, checked in refused.items():
        console.print(f"refused: {checked.op} by {checked.rules}, {problem}", style="yellow", markup=False)
    wrong = sum(not checked.good for checked in found)
    seen = sum(checked.report is not None for checked in found)
    console.print(f"{wrong} of {seen} differ by more than {tolerance:g}" if wrong else f"all {seen} agree within {tolerance:g}")


# Networks


def _check_network(
    target: str, weights: Path | None, dialect: str | None, gradients: bool, tolerance: float, seed: int, json: bool
) -> bool:
    from ._problems import check_text

    found = check_text(target, weights, dialect=dialect, gradients=gradients, seed=seed)
    wrong = [checked for checked in found.layers if not checked.good(tolerance)]
    good = not found.problems and not wrong
    if json:
        print_json(
            {
                "good": good,
                "remarks": found.remarks,
                "problems": [{"where": where, "message": message} for where, message in found.problems],
                "phases": found.phases,
                "layers": [
                    {**{n: getattr(c, n) for n in c.__dataclass_fields__}, "good": c.good(tolerance)} for c in found.layers
                ],
            }
        )
        return good
    console = to_stdout()
    for phase, summary in found.phases.items():
        console.print(f"[green]fits[/green]  phase {phase}: {summary['layers']} layers, {summary['parameters']:,} parameters")
    if weights is not None and not any(where == "weights" for where, _ in found.problems) and found.phases:
        console.print(f"[green]fits[/green]  weights {weights}")
    for remark in found.remarks:
        console.print("note ", style="bold yellow", end=" ")
        console.print(remark, markup=False, soft_wrap=True)
    for where, message in found.problems:
        console.print(f"[bold red]wrong[/bold red] {where}")
        for line in message.splitlines():
            console.print(f"      {line}", markup=False, soft_wrap=True)
    if found.layers:
        _show_layers(found.layers, tolerance)
    if not found.problems and not wrong:
        console.print("nothing wrong was found")
    return good


def _show_layers(layers: list[Any], tolerance: float) -> None:
    from rich.text import Text

    shown = table("layer", "type", "gradient of", "error", "tried", "kinks", "", right=("error", "tried", "kinks"))
    before = ""
    for checked in layers:
        if checked.type == "Split":
            continue
        verdict = Text("agrees", style="green") if checked.good(tolerance) else Text("DIFFERS", style="bold red")
        if checked.reason:
            verdict = Text(checked.reason, style="dim")
        numbers = ("", "", "") if checked.reason else (f"{checked.error:.1e}", str(checked.tried), str(checked.kinks or ""))
        label = ("", "") if checked.layer == before else (checked.layer, checked.type)
        shown.add_row(*label, checked.array, *numbers, verdict)
        before = checked.layer
    to_stdout().print(shown)
