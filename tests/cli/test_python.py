"""astride python: scripts run as Python runs them, with a caffe to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.console import astride

SCRIPT = """
import sys
import caffe
print(__name__, sys.argv[1:], caffe.__version__)
sys.path[0] == {folder!r} or sys.exit("another folder is first")
if "--status" in sys.argv:
    sys.exit(int(sys.argv[-1]))
if "--words" in sys.argv:
    sys.exit("something is wrong")
if "--error" in sys.argv:
    raise ValueError("so it goes")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "script.py").write_text(SCRIPT.format(folder=str(tmp_path / "deep")))
    (tmp_path / "module.py").write_text("import sys, caffe\nprint(sys.argv[1:], __name__)")
    return "deep/script.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from astride.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, "python", *arguments], capture_output=True, text=True)


def test_a_script_with_its_own_arguments(script: str) -> None:
    done = run(script, "--json", "-h", "x")
    assert (done.returncode, done.stdout) == (0, "__main__ ['--json', '-h', 'x'] 1.0.0\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [(("--status", "3"), 3, ""), (("--status", "0"), 0, ""), (("--words",), 1, "something is wrong\n")],
)
def test_the_exit_status_is_the_script_s(script: str, arguments: tuple[str, ...], status: int, words: str) -> None:
    done = run(script, *arguments)
    assert (done.returncode, done.stderr) == (status, words)


def test_an_error_shows_the_script_s_traceback(script: str) -> None:
    done = run(script, "--error")
    assert done.returncode == 1 and done.stderr.endswith("ValueError: so it goes\n")
    assert "script.py" in done.stderr and "runpy" not in done.stderr and "cli/python.py" not in done.stderr


def test_a_module(script: str) -> None:
    done = run("-m", "module", "-v")
    assert (done.returncode, done.stdout) == (0, "['-v'] __main__\n"), done.stderr
    missing = run("-m", "nowhere_at_all")
    assert missing.returncode == 1 and "nowhere_at_all" in missing.stderr


def test_json_beside_what_the_script_prints(script: str) -> None:
    done = astride("python", "--json", script, "--status", "2", status=2)
    data = done.data()
    assert (data["script"], data["arguments"], data["exit"]) == (script, ["--status", "2"], 2) and data["seconds"] >= 0
    assert "__main__" in done.err


def test_a_script_that_is_not_there(script: str) -> None:
    assert "there is no file nothing.py" in astride("python", "nothing.py", status=2).err


@pytest.fixture(autouse=True)
def forget_caffe():  # type: ignore[no-untyped-def]
    yield
    from astride import pycaffe

    pycaffe.uninstall()
