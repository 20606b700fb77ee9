"""The code blocks of the manual and the README, and how they are run.

```python blocks of one page are one program, run from top to bottom in an empty folder.
```pycon blocks are doctests in the same namespace.
```console blocks hold command lines after `$ `; those of `astride` are run.
A block after the comment `<!-- not run: reason -->` is for the reader only.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(?P<mark>`{3,})(?P<language>[\w{}-]*)[^\n`]*\n(?P<text>.*?)^(?P=mark)\s*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^\n]+?) -->\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the line its text begins on."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """All blocks that are meant to run, in order."""
    return [
        Block(m["language"], m["text"], page.count("\n", 0, m.start("text")) + 1)
        for m in FENCE.finditer(page)
        if not NOT_RUN.search(page[: m.start()])
    ]


def run_python(page: Path, found: list[Block]) -> int:
    """Run the page's Python in the current folder. The number of blocks that ran; any failure raises."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    ran = 0
    for block in found:
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, namespace)
            ran += 1
        elif block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, namespace, page.name, str(page), block.line)
            doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test, clear_globs=False)
            namespace = test.globs
            ran += 1
    return ran


def commands(found: list[Block]) -> list[list[str]]:
    """The `astride` command lines of the console blocks; a backslash at the end of a line continues it."""
    lines = [
        line[2:]
        for b in found
        if b.language == "console"
        for line in b.text.replace("\\\n", " ").splitlines()
        if line.startswith("$ ")
    ]
    return [words for words in map(shlex.split, lines) if words[0] == "astride"]


def run_command(words: list[str], folder: Path) -> str:
    """What the command printed. A failure raises with what it said."""
    script = "import sys; from astride.cli import main; sys.argv = sys.argv[1:]; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=folder, capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise AssertionError(f"{shlex.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
