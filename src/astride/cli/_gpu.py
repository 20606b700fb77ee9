"""What `astride bench gpu` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ._output import print_json, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from ..bench.gpu import Limits, Measured

UNTIMED = {
    True: "the adapter is software, which computes on the CPU: no GPU timing was taken",
    False: "the adapter has no timestamps: no timing was taken",
}


def bench_gpu(cases: str | None, rounds: int, json: bool) -> None:
    """Count, and where there is a GPU time, the kernels. Exit status 1 if one gives other numbers than the CPU."""
    from ..backends.webgpu.device import Device
    from ..bench.gpu import Limits, asked_for, measure, timed_on

    asked = asked_for(cases)
    device = Device(allow_software=True)
    limits: Limits | None = None
    rows: list[Measured] = []
    with to_stderr().status("") as status:
        for found in measure(device, asked, rounds):
            if isinstance(found, Limits):
                limits = found
            else:
                rows.append(found)
                status.update(f"{found.op} {found.case}")
    said = None if timed_on(device) else UNTIMED[device.software]
    if json:
        bounds = None if limits is None else {"bytes": limits.bytes, "flops": limits.flops}
        about = {"device": str(device), "software": device.software, "timed": said is None, "limits": bounds}
        print_json({**about, "rounds": rounds, "kernels": [row.to_dict() for row in rows]})
    else:
        _show(str(device), limits, rows, said)
    if any(row.agrees is False for row in rows):
        raise typer.Exit(1)


def _show(device: str, limits: Limits | None, rows: list[Measured], said: str | None) -> None:
    from ..draw.ladder import duration

    console = to_stdout()
    shown = table("operator", "case", "", "MB", "Mflop", "time", "of limit", right=("MB", "Mflop", "time", "of limit"))
    for row in rows:
        counts = f"{row.bytes / 1e6:.1f}", f"{row.flops / 1e6:.0f}"
        if row.seconds is None or row.least is None:
            shown.add_row(row.op, row.case, row.direction, *counts, "-", "-")
            continue
        shown.add_row(row.op, row.case, row.direction, *counts, duration(row.seconds), f"{row.least / row.seconds:.0%}")
        for name, seconds in row.kernels.items() if len(row.kernels) > 1 else ():
            shown.add_row("", "", f"  {name}", "", "", duration(seconds), "")
    console.print(shown)
    console.print(device, style="dim")
    if limits is not None:
        console.print(
            f"limits measured here: {limits.bytes / 1e9:.0f} GB/s copied, {limits.flops / 1e9:.0f} Gflop/s", style="dim"
        )
    if said is not None:
        console.print(said, style="bold")
    wrong = [row for row in rows if row.agrees is False]
    for row in wrong:
        console.print(f"WRONG: {row.op} {row.case} differs from the CPU", style="bold red")


__all__ = ["bench_gpu"]
