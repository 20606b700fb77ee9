"""A network as one HTML page: the drawing, a table of its layers, and totals. Nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..explain.layer import layer_views, parameter_counts
from ..net import Net
from .network import draw_network

STYLE = """
body { font: 14px/1.45 Helvetica, Arial, sans-serif; color: #1f2933; margin: 2em; }
main { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; }
figure { margin: 0; max-height: 90vh; overflow: auto; border: 1px solid #c9d1d9; border-radius: 7px; }
figure svg { display: block; }
.table { max-height: 90vh; overflow: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid #e4e7eb; white-space: nowrap; }
th { position: sticky; top: 0; background: #fff; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
small { color: #66727f; }
"""
HEADS = ("layer", "type", "", "output", "parameters", "multiply-adds", "bytes")


def network_page(net: Net) -> str:
    """The page as text."""
    views = [view for view in layer_views(net) if view.type != "Split"]
    rows = []
    for view in views:
        tops = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in view.tops)
        size = 0 if view.in_place else sum(4 * net.blobs[name].count for name, _ in view.tops)
        rows.append((view.name, view.type, view.summary, tops, view.numbers, view.products, size))
    products, sizes = (sum(row[i] for row in rows) for i in (5, 6))  # type: ignore[misc]
    totals = ("", "", "", "", parameter_counts(net)[0], products, sizes)  # shared parameters once
    title = escape(net.name or "network")
    head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    words = f"<small>{len(views)} layers, phase {escape(net.phase.value)}</small>"
    body = [_row(HEADS, "th"), *(_row(row) for row in rows), _row(totals)]
    table = "\n".join(["<table>", *body, "</table>"])
    return (
        f"{head}\n<h1>{title}</h1>\n<p>{words}</p>\n<main>\n<figure>\n{draw_network(net).svg()}</figure>\n"
        f'<div class="table">\n{table}\n</div>\n</main>\n</html>\n'
    )


def _row(cells: Sequence[object], kind: str = "td") -> str:
    made = []
    for place, cell in enumerate(cells):
        number = ' class="number"' if place >= 4 else ""
        text = f"{cell:,}" if isinstance(cell, int) and cell else "" if cell == 0 else escape(str(cell))
        made.append(f"<{kind}{number}>{text}</{kind}>")
    return f"<tr>{''.join(made)}</tr>"
