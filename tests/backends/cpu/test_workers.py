"""Threads: every unit once, whoever computes it; nobody waits for a helper; forks, exits and limits do no harm."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import astride
from astride.backends.cpu import workers as module_of_workers
from astride.backends.cpu.compiler import compile_object, load_object
from astride.backends.cpu.ir import Function, module
from astride.backends.cpu.window import kernel_function
from astride.backends.cpu.workers import Workers, address_of, run


def adding() -> int:
    """A kernel whose unit i adds a[i] + 1 to b[i]: a unit left out or computed twice shows."""
    f: Function = kernel_function("adding")
    with f.loop(f.begin, f.end) as i:
        place = f.at(f.b, i * 8)
        f.store(f.load("i64", place) + f.load("i64", f.at(f.a, i * 8)) + 1, place)
    (address,) = load_object(compile_object(module(f)), ("adding",))
    return address


@pytest.fixture(scope="module")
def kernel() -> int:
    return adding()


@pytest.fixture
def crew() -> Iterator[Workers]:
    """Workers of this test's own."""
    made = Workers()
    yield made
    made.stop()


SIZES = [(1, 1), (2, 1), (7, 3), (64, 1), (1000, 7), (4096, 64), (4097, 4096)]


@pytest.mark.parametrize(("total", "chunk"), SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_every_unit_once(threads: int, total: int, chunk: int, kernel: int, crew: Workers) -> None:
    a, b = np.arange(total), np.zeros(total, np.int64)
    for _ in range(20):
        crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, total, chunk, threads)
    np.testing.assert_array_equal(b, 20 * (a + 1))


def test_no_more_helpers_than_asked_for_or_than_chunks(kernel: int, crew: Workers) -> None:
    a, b = np.arange(100), np.zeros(100, np.int64)
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 40, 8)
    assert len(crew._threads) == 2  # three chunks: the caller and two
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 1, 4)
    assert len(crew._threads) == 3
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 1, 2)
    assert len(crew._threads) == 3
    np.testing.assert_array_equal(b, 3 * (a + 1))


def test_one_thread_and_one_chunk_wake_nobody(kernel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Any:
        raise AssertionError("threads were asked for")

    monkeypatch.setattr(module_of_workers, "workers", never)
    a, b = np.arange(100), np.zeros(100, np.int64)
    run(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 1, 1)
    run(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 100, 8)
    with astride.use(threads=1):
        run(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 1)
    np.testing.assert_array_equal(b, 3 * (a + 1))
    with astride.use(threads=2), pytest.raises(AssertionError, match="asked for"):
        run(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 100, 1)


def test_workers_sleep_and_wake(kernel: int, crew: Workers) -> None:
    """Helpers that sleep are rung for, and come in the end."""
    a, b = np.arange(64), np.zeros(64, np.int64)
    rounds = 0

    def launch() -> None:
        nonlocal rounds
        crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 3)
        rounds += 1

    def wait(asleep: int) -> bool:
        patience = threading.Event()
        for _ in range(1000):
            if crew._asleep == asleep:
                return True
            patience.wait(0.01)
        return False

    launch()
    assert wait(2), "both helpers find nothing to do and go to sleep"
    rings = crew._rings
    launch()
    assert crew._rings == rings + 1
    assert wait(2)
    np.testing.assert_array_equal(b, rounds * (a + 1))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be kept off a processor here")
def test_helpers_are_kept_off_the_callers_processor(kernel: int, crew: Workers) -> None:
    own = os.sched_getaffinity(0)
    where = [-1]
    crew._here = lambda: where[0]
    a, b = np.arange(64), np.zeros(64, np.int64)
    for where[0] in sorted(own):
        crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 3)
        assert len(crew._threads) == 2
        for thread in crew._threads:
            assert os.sched_getaffinity(thread.native_id or 0) == (own - {where[0]} or own)
    assert os.sched_getaffinity(0) == own, "the caller's own processors are left as they are"


def test_callers_from_several_python_threads(kernel: int, crew: Workers) -> None:
    """One gets the helpers, the others work alone; all are right."""
    outcomes: list[bool] = []

    def caller(number: int) -> None:
        a, b = np.arange(500) * number, np.zeros(500, np.int64)
        for _ in range(50):
            crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 500, 3, 3)
        outcomes.append(bool((b == 50 * (a + 1)).all()))

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(60)
    assert outcomes == [True] * 4


def test_a_system_without_more_threads(kernel: int, crew: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    a, b = np.arange(64), np.zeros(64, np.int64)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 4)
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 4)  # and it is not asked again
    assert crew._threads == []
    np.testing.assert_array_equal(b, 2 * (a + 1))


def test_after_the_end_callers_work_alone(kernel: int) -> None:
    crew = Workers()
    a, b = np.arange(64), np.zeros(64, np.int64)
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 3)
    crew.stop()
    assert not any(thread.is_alive() for thread in crew._threads)
    crew.launch(kernel, 0, a.ctypes.data, b.ctypes.data, 0, 0, 64, 1, 4)
    assert len(crew._threads) == 2
    np.testing.assert_array_equal(b, 2 * (a + 1))


@pytest.mark.parametrize("how", ["plain", "read-only", "strided", "empty", "bfloat16", "reversed"])
def test_addresses(how: str) -> None:
    import ml_dtypes

    array: Any = np.arange(12.0).reshape(3, 4)
    if how == "read-only":
        array.flags.writeable = False
    elif how == "strided":
        array = array[1:, ::2]
    elif how == "reversed":
        array = array[::-1]
    elif how == "empty":
        array = array[:0]
    elif how == "bfloat16":
        array = array.astype(ml_dtypes.bfloat16)
    assert address_of(array) == array.__array_interface__["data"][0]


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_results_do_not_depend_on_threads(layout: str, rng: np.random.Generator) -> None:
    """Bit for bit, sums and ties included."""
    shape = (3, 40, 41, 24) if layout == "channels_last" else (3, 24, 40, 41)
    x = rng.normal(size=shape).astype(np.float32)
    found = []
    for threads in (1, 2, 3, 4):
        with astride.use(backend="cpu", threads=threads):
            y, pull = astride.vjp(astride.avg_pool, x, kernel=3, stride=2, padding=1, layout=layout, rules="pytorch")
            z, pull_max = astride.vjp(astride.max_pool, x, kernel=3, stride=2, padding=1, layout=layout, rules="pytorch")
            found.append([y, z, pull(y)[0], pull_max(z)[0]])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


USE = """
import os, sys
import numpy as np, astride
x = np.arange(64 * 128 * 128, dtype="float32").reshape(1, 64, 128, 128)
def pooled():
    with astride.use(backend="cpu", threads=THREADS):
        y = astride.max_pool(x, kernel=2, rules="pytorch")
    assert (y == x[:, :, 1::2, 1::2]).all()
pooled()
"""


def python(text: str, threads: int | None = 3, **environment: str) -> str:
    """What a new process prints; it must end by itself, with status 0."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", USE.replace("THREADS", str(threads)) + text],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


RUNS = 20


def test_a_process_ends() -> None:
    """At exit workers may look, sleep, or not have begun: many processes, each with a little more time before the end."""
    begun = [
        subprocess.Popen([sys.executable, "-c", USE.replace("THREADS", "3") + f"import time; time.sleep({k % 4} * 0.001)"])
        for k in range(RUNS)
    ]
    assert [process.wait(timeout=120) for process in begun] == [0] * RUNS


def test_exit_handlers_may_still_pool() -> None:
    """One that was registered before the workers runs after they have gone."""
    late = "import atexit\natexit.register(pooled)\n"
    assert python("print('end')\n" + late) == "end\n"
    early = USE.replace("THREADS", "3").replace("\npooled()\n", "\n" + late + "pooled()\n")
    subprocess.run([sys.executable, "-c", early], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_workers_of_its_own() -> None:
    text = """
import threading, warnings
from astride.backends.cpu.workers import workers
before = workers()
warnings.simplefilter("ignore")  # forks of processes with threads are warned about
child = os.fork()
if child == 0:
    pooled()
    assert workers() is not before and len(workers()._threads) == 2
    grandchild = os.fork()
    if grandchild == 0:
        pooled()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 7
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
pooled()
assert workers() is before
print("well")
"""
    assert python(text) == "well\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_while_another_thread_launches_or_compiles() -> None:
    text = """
import signal, threading, warnings
from astride.backends.cpu import compiler
from astride.backends.cpu.ir import Function, module
warnings.simplefilter("ignore")
stop = threading.Event()
def busy():
    while not stop.is_set():
        pooled()
thread = threading.Thread(target=busy)
thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        pooled()
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
stop.set()
thread.join()
f = Function("f", a="ptr")
f.store(f.value("i64", 1), f.a)
code, stop = module(f), threading.Event()
def compiling():
    while not stop.is_set():
        compiler.compile_object(code)
thread = threading.Thread(target=compiling)
thread.start()
for _ in range(5):  # LLVM has locks of its own, which nobody would unlock in the child
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        compiler.load_object(compiler.compile_object(code), ("f",))
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
stop.set()
thread.join()
print("well")
"""
    assert python(text) == "well\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_processes_of_multiprocessing() -> None:
    text = """
import multiprocessing, warnings
warnings.simplefilter("ignore")
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.apply(pooled), pool.apply(pooled)
print("well")
"""
    assert python(text) == "well\n"


def test_the_environment_caps_threads() -> None:
    text = """
from astride.backends.cpu import workers
from astride import settings
print(settings.threads(), workers._workers is None or len(workers._workers._threads))
"""
    assert python(text, None, OMP_NUM_THREADS="1") == "1 True\n"
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    expected = min(available, 2)
    assert python(text, None, OMP_NUM_THREADS="2,1") == f"{expected} {expected - 1 if expected > 1 else True}\n"
    assert python(text, 4, OMP_NUM_THREADS="1") == "1 3\n", "what is asked for in the program goes before the environment"
