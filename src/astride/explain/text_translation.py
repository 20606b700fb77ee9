"""A translation for the terminal, in 80 columns: what to write, for which inputs, what was computed, what stays different."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .beside import beside
from .data import axis_to_dict, plain
from .facts import sizes as by_x
from .numbers import number
from .text_windows import DIFFERENT, MARK, WIDTH
from .translate import SIZES, Holds, Translation
from .trials import Difference

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

INPUT, RESULT = 18, 30


def render_translation(found: Translation) -> Iterable[RenderableType]:
    """What to print, top to bottom, for a rich console."""
    from rich.text import Text

    yield Text.assemble((f"{found.source}  ", "bold"), found.call)
    yield Text(f"  {found.operation.op} of {by_x(found.sizes)}, {_geometry(found)}", style="dim")
    yield Text()
    if not found.expressed:
        yield Text.assemble((f"{found.target}  ", "bold"), ("cannot be expressed", "bold red"))
        yield _paragraph(f"{found.reason}", 2)
        yield Text()
        yield from _unverified(found)
        return
    yield Text.assemble((f"{found.target}", "bold"), (f"  {found.names}", "dim"))
    for line in found.lines:
        yield _code(line)
    yield Text()
    if found.condition:
        yield _paragraph(f"only where {found.condition}", 0, DIFFERENT)
    if found.holds is not None:
        yield _paragraph(holding(found), 0)
        yield Text()
    yield from _trials(found)
    yield from _differing(found)
    yield from _unverified(found)


def _geometry(found: Translation) -> str:
    plan: Any = found.source_plan
    outs = plan.output_sizes if hasattr(plan, "output_sizes") else tuple(axis.out for axis in plan.axes)
    return f"which gives {by_x(outs)}"


def holding(found: Translation) -> str:
    """For which sizes the lines are right as they stand; nothing where that was not tried."""
    if found.holds is None:
        return ""
    follows = found.steps is not None and any(found.steps.arguments.get(name) is not None for name in SIZES)
    return _holds(found.holds, found.sizes, ", with the output's size in them," if follows else "")


def _holds(holds: Holds, sizes: tuple[int, ...], follows: str) -> str:
    if holds.everywhere:
        return f"the same lines{follows} are right for every size tried, {_spans(holds.tried)}"
    if len(holds.right) < 2:
        return f"the lines are for {by_x(sizes)}; for another size ask again with --size"
    right = f"the same lines{follows} are right for sizes {_spans(holds.right)} of {_spans(holds.tried)}"
    return f"{right}; for another one ask again with --size"


def _spans(numbers: tuple[int, ...]) -> str:
    """`3 to 19`, or `2, 4, 6, ..., 18`."""
    if len(numbers) > 2 and all(b - a == 1 for a, b in pairwise(numbers)):
        return f"{numbers[0]} to {numbers[-1]}"
    if len(numbers) > 6:
        return f"{', '.join(map(str, numbers[:3]))}, ..., {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _trials(found: Translation) -> Iterable[Text]:
    from rich.text import Text

    yield Text(f"both computed in float64 on {by_x(found.sizes)}", style="bold")
    asked = found.trials[0].gradient_asked
    yield Text(f"  {'x':<{INPUT}}{'y':<{RESULT}}{'gradient' if asked else ''}".rstrip(), style="dim")
    for trial in found.trials:
        cells = [said_of(trial.forward)] + ([said_of(trial.gradient)] if asked else [])
        text = Text.assemble((f"{'' if trial.equal else MARK:<2}", DIFFERENT), f"{trial.name:<{INPUT}}")
        for i, (cell, differs) in enumerate(zip(cells, (trial.forward, trial.gradient))):
            padded = cell if i == len(cells) - 1 else f"{cell:<{RESULT}}"
            text.append(padded, style=DIFFERENT if differs else "")
        yield text
    if not asked:
        yield _paragraph("gradients are not compared: one of the two has none", 2, "dim")
    yield Text()


def said_of(difference: Difference | None) -> str:
    """What a trial showed, in a few words."""
    if difference is None:
        return "equal"
    return f"{number(difference.source)}, not {number(difference.target)} ({difference.count} of {difference.of})"


def _differing(found: Translation) -> Iterable[Text]:
    from rich.text import Text

    if not found.differing:
        return
    yield Text("what no padding or flag changes", style="bold")
    for name, (ours, theirs) in found.differing.items():
        yield _paragraph(f"{name}: {ours} in {found.source}; {theirs} in {found.target}", 2)
    yield Text()


def _unverified(found: Translation) -> Iterable[Text]:
    from rich.text import Text

    for name, said in found.unverified.items():
        yield Text(f"unverified in the rules of {name}", style="bold yellow")
        for sentence in said:
            yield _paragraph(sentence, 2)


def _code(line: str) -> Text:
    """A line of code, broken behind commas where it is too long."""
    from rich.text import Text

    broken = textwrap.wrap(
        line, WIDTH, initial_indent="  ", subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False
    )
    return Text("\n".join(broken), style="dim" if line.startswith("#") else "cyan")


def _paragraph(text: str, by: int, style: str = "") -> Text:
    from rich.text import Text

    indent = " " * by
    broken = textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return Text("\n".join(broken), style=style)


def translation_to_dict(found: Translation) -> dict[str, Any]:
    """Plain data: what `astride explain --from ... --json` prints."""
    steps = found.steps
    return {
        "from": found.source,
        "to": found.target,
        "call": found.call,
        "op": found.operation.op,
        "sizes": list(found.sizes),
        "expressed": found.expressed,
        "exact": found.exact,
        "lines": list(found.lines),
        "reason": found.reason,
        "condition": found.condition,
        "steps": None
        if steps is None
        else {
            "pads": plain(steps.pads),
            "fill": steps.fill,
            "arguments": {name: plain(value) for name, value in steps.arguments.items()},
            "turn": steps.turn,
            "crop": plain(steps.crop),
            "factors": plain(steps.factors),
        },
        "plans": [found.source_plan.to_dict(), None if found.target_plan is None else found.target_plan.to_dict()],
        "holds": None if found.holds is None else {"tried": list(found.holds.tried), "right": list(found.holds.right)},
        "trials": [
            {
                "x": trial.name,
                "forward": _difference(trial.forward),
                "gradient": _difference(trial.gradient) if trial.gradient_asked else "not compared",
            }
            for trial in found.trials
        ],
        "windows": {name: [axis_to_dict(axis) for axis in side.axes] for name, side in zip(("from", "to"), beside(found).sides)},
        "differing": {name: list(pair) for name, pair in found.differing.items()},
        "unverified": {name: list(said) for name, said in found.unverified.items()},
    }


def _difference(found: Difference | None) -> Any:
    if found is None:
        return "equal"
    return {"place": list(found.place), "from": found.source, "to": found.target, "count": found.count, "of": found.of}
