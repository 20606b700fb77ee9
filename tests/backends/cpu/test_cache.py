"""Kernels on disk: found again, made again where damaged, never taken for another's, and never in the way."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from astride.backends.cpu import cache
from astride.backends.cpu.compiler import compile_object
from astride.backends.cpu.ir import Function, module
from astride.backends.cpu.machine import machine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a process that remembers nothing."""
    monkeypatch.setenv("ASTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_addresses", {})
    yield tmp_path / "kernels"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were compiled."""
    texts: list[str] = []

    def counting(text: str) -> bytes:
        texts.append(text)
        return compile_object(text)

    monkeypatch.setattr(cache, "compile_object", counting)
    return texts


def text(number: int) -> str:
    f = Function("answer", result="i64")
    f.give(f.value("i64", number))
    return module(f)


def answer(number: int, specification: object = None) -> int:
    """What a kernel that gives this number gives, if the cache hands out the right one."""
    (address,) = cache.functions("answer", specification or number, lambda: text(number), ("answer",))
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def forget() -> None:
    """As a new process: nothing in memory."""
    cache._addresses.clear()


def entry(folder: Path) -> Path:
    (path,) = folder.glob("*.o")
    return path


def test_a_kernel_is_compiled_once(folder: Path, compiled: list[str]) -> None:
    assert answer(42) == 42 and len(compiled) == 1
    assert answer(42) == 42 and len(compiled) == 1  # from memory
    forget()
    assert answer(42) == 42 and len(compiled) == 1  # from disk
    assert answer(43) == 43 and len(compiled) == 2
    assert sorted(name for name, _, _ in cache.entries()) == ["answer", "answer"]


def test_the_specification_and_the_name_tell_kernels_apart(folder: Path) -> None:
    assert [answer(n, ("same kernel", n)) for n in (1, 2, 3)] == [1, 2, 3]
    forget()
    assert [answer(n, ("same kernel", n)) for n in (3, 2, 1)] == [3, 2, 1]
    (other,) = cache.functions("other", ("same kernel", 1), lambda: text(9).replace("answer", "other"), ("other",))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(other)() == 9


@pytest.mark.parametrize("what", ["machine", "LLVM", "sources"])
def test_other_surroundings_are_another_entry(
    what: str, folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(42)
    forget()
    before = cache._surroundings()
    if what == "machine":
        other = "avx2" if os.environ.get("ASTRIDE_CPU") == "plain" else "plain"
        monkeypatch.setattr(cache, "machine", lambda: machine(other))
    elif what == "LLVM":
        monkeypatch.setattr("llvmlite.binding.llvm_version_info", (1, 2, 3))
    else:
        copied = folder.parent / "a" / "b"
        copied.mkdir(parents=True)
        (folder.parent / "plan").mkdir()
        (folder.parent / "plan" / "kinds.py").write_text("")
        (copied / "cache.py").write_text("# changed")
        monkeypatch.setattr(cache, "__file__", str(copied / "cache.py"))
    cache._surroundings.cache_clear()
    try:
        assert cache._surroundings() != before
        assert answer(42) == 42 and len(compiled) == 2 and len(list(folder.glob("*.o"))) == 2
    finally:
        monkeypatch.undo()
        cache._surroundings.cache_clear()


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "without its code": lambda data: data[: len(cache.MARK) + 32],
    "one bit turned": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "another mark": lambda data: b"astride-kernel-0" + data[16:],
    "something appended": lambda data: data + b"\0",
    "text": lambda data: b"hello" * 100,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_made_again(how: str, folder: Path, compiled: list[str]) -> None:
    answer(42)
    path = entry(folder)
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[how](whole))
    forget()
    assert answer(42) == 42 and len(compiled) == 2
    assert entry(folder).read_bytes() == whole


def test_a_file_beyond_all_size_is_not_read(folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(42)
    monkeypatch.setattr(cache, "LARGEST", 100)
    forget()
    assert answer(42) == 42 and len(compiled) == 2


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")
def test_another_users_entry_is_not_run(folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(42)
    owner = os.getuid()
    status = os.stat_result((0o644, 0, 0, 1, owner + 1, 0, 10, 0, 0, 0))
    assert not cache._trusted(status) and cache._trusted(entry(folder).stat())
    monkeypatch.setattr(cache, "_trusted", lambda status: False)
    forget()
    assert answer(42) == 42 and len(compiled) == 2


def test_a_folder_that_cannot_be_written_leaves_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ASTRIDE_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_addresses", {})
    assert [answer(42), answer(42)] == [42, 42] and len(compiled) == 1
    assert cache.entries() == [] and cache.clear() == (0, 0)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_full_disk_leaves_memory_and_no_rest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert answer(42) == 42
    assert list(folder.iterdir()) == []


def test_the_oldest_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for number in range(4):
        answer(number + 1)
        (path,) = set(folder.glob("*.o")) - set(paths)
        os.utime(path, (1000 + number, 1000 + number))
        paths.append(path)
    monkeypatch.setattr(cache, "LIMIT", sum(path.stat().st_size for path in paths[:3]) + 8)
    os.utime(paths[0], (2000, 2000))  # used lately, so the second is the oldest now
    answer(5)
    assert [path.exists() for path in paths] == [True, False, False, True]
    monkeypatch.setattr(cache, "LIMIT", 1)
    answer(6)
    assert len(list(folder.glob("*.o"))) == 1, "the newest stays, however large"
    forget()
    assert answer(6) == 6


def test_using_an_entry_makes_it_young(folder: Path) -> None:
    answer(42)
    path = entry(folder)
    long_ago = time.time() - 2 * cache.REFRESH
    os.utime(path, (long_ago, long_ago))
    forget()
    answer(42)
    assert path.stat().st_mtime > long_ago + cache.REFRESH


def test_the_folder_is_looked_through_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(cache, "_trim", looked.append)
    monkeypatch.setattr(cache, "_unseen", cache.LIMIT)
    answer(1)
    size = entry(folder).stat().st_size
    assert len(looked) == 1, "the first entry of a process"
    answer(2), answer(3)
    assert len(looked) == 1
    monkeypatch.setattr(cache, "LIMIT", 64 * 3 * size)
    for number in range(4, 10):
        answer(number)
    assert 2 <= len(looked) <= 4, "every sixty-fourth of the limit"


def test_what_dead_processes_began_is_swept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(1)
    monkeypatch.setattr(cache, "_unseen", cache.LIMIT)
    dead, living = folder / ".new-dead", folder / ".new-living"
    dead.write_bytes(b"half")
    living.write_bytes(b"half")
    os.utime(dead, (1000, 1000))
    answer(2)
    assert not dead.exists() and living.exists()
    assert cache.clear()[0] == 2 and list(folder.iterdir()) == []


def test_clear_leaves_loaded_code(folder: Path, compiled: list[str]) -> None:
    answer(1), answer(2)
    bytes_ = sum(path.stat().st_size for path in folder.glob("*.o"))
    assert cache.clear() == (2, bytes_) and cache.entries() == []
    assert answer(1) == 1 and len(compiled) == 2


RACER = """
import ctypes, sys, time
from astride.backends.cpu import cache
from astride.backends.cpu.ir import Function, module
def text(number):
    f = Function("answer", result="i64")
    f.give(f.value("i64", number))
    return module(f)
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 9):
    (address,) = cache.functions("answer", number, lambda: text(number), ("answer",))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == number
print("right", flush=True)
"""


def test_processes_may_write_at_once(folder: Path, compiled: list[str]) -> None:
    command = [sys.executable, "-c", RACER]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for racer in racers:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert [racer.communicate(timeout=60)[0] for racer in racers] == ["right\n"] * 2
    assert len(list(folder.glob("*.o"))) == 8 and len(list(folder.iterdir())) == 8
    assert [answer(number) for number in range(1, 9)] == list(range(1, 9)) and compiled == []
