"""astride where."""

from __future__ import annotations

from tests.cli.console import astride


def test_the_map_of_an_operator() -> None:
    done = astride("where", "max_pool")
    assert done.lines[0] == "max_pool  greatest tap of each window"
    for path in ("src/astride/ops/max_pool.py:", "src/astride/rules/caffe.py:", "src/astride/backends/reference/max_pool.py:"):
        assert path in done.out
    assert "docs/ops/max_pool.md" in done.out and "reference:loops4" in done.out
    assert [line for line in done.lines if len(line) > 80] == []


def test_json() -> None:
    data = astride("where", "conv", "--json").data()
    assert data["op"] == "conv" and {rule["label"] for rule in data["rules"]} >= {"caffe", "pytorch"}
    assert all(rule["line"] > 0 for rule in data["rules"])


def test_an_unknown_operator_lists_the_known() -> None:
    done = astride("where", "maxpool", status=1)
    assert "max_pool, min_pool" in done.err and done.out == ""
