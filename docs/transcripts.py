"""The outputs that a page shows below its `$ astride ...` lines, written anew: `python docs/transcripts.py docs/porting.md`."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

BLOCK = re.compile(r"^```console\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def rewritten(page: str) -> str:
    """The page with every command's output as it is today."""
    return BLOCK.sub(lambda found: f"```console\n{_block(found['text'])}```", page)


def _block(text: str) -> str:
    """The commands of a block, each with what it prints. A backslash continues a command on the next line."""
    commands = re.findall(r"^\$ (?:[^\n]*\\\n)*[^\n]*$", text, re.MULTILINE)
    return "".join(f"{command}\n{printed(shlex.split(command[2:].replace(chr(92) + chr(10), ' ')))}" for command in commands)


def printed(words: list[str]) -> str:
    """What a command of astride writes to stdout, in 80 columns without colours."""
    from typer.testing import CliRunner

    from astride.cli import app

    done = CliRunner().invoke(app, words[1:], prog_name="astride", env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
