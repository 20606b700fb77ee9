"""The memory of large results: used again, but never while anything still looks at it; bounded; safe among threads and forks."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import astride
from astride.backends import memory
from astride.backends.memory import HUGE, SMALLEST, Pool

FLOATS = np.dtype(np.float32)
MANY = 3 * HUGE // 4
"""Numbers of an array of three blocks' units."""


@pytest.fixture
def pool() -> Pool:
    return Pool(kept_bytes=16 * HUGE)


def place(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_arrays_are_as_numpys(pool: Pool) -> None:
    y = pool.empty((3, 5, MANY), FLOATS)
    assert y.shape == (3, 5, MANY) and y.dtype == FLOATS
    assert y.flags.c_contiguous and y.flags.writeable and y.flags.aligned and type(y) is np.ndarray
    assert place(y) % 64 == 0
    y[...] = 7
    assert float(y.sum(dtype=np.float64)) == 7.0 * y.size


def test_memory_is_used_again(pool: Pool) -> None:
    y = pool.empty((MANY,), FLOATS)
    where = place(y)
    del y
    assert pool.held() == 3 * HUGE
    z = pool.empty((MANY - 5,), FLOATS)
    assert place(z) == where and pool.held() == 0


VIEWS: dict[str, Callable[[np.ndarray], Any]] = {
    "slice": lambda y: y[1:, 5:],
    "transpose": lambda y: y.T,
    "other dtype": lambda y: y.view(np.int32),
    "memoryview": lambda y: memoryview(y),
    "reversed": lambda y: y[::-1, ::-1],
    "row of a row": lambda y: y[2][3:][:7],
}


@pytest.mark.parametrize("kind", VIEWS)
def test_not_while_something_looks_at_it(kind: str, pool: Pool) -> None:
    y = pool.empty((4, MANY // 4), FLOATS)
    y[...] = 1
    view = VIEWS[kind](y)
    before = np.array(view)
    where = place(y)
    del y
    gc.collect()
    z = pool.empty((MANY,), FLOATS)
    z[...] = 2
    assert place(z) != where
    np.testing.assert_array_equal(np.array(view), before)
    del view
    gc.collect()
    assert pool.held() == 3 * HUGE


def test_a_block_serves_about_its_size(pool: Pool) -> None:
    y = pool.empty((8 * HUGE // 4,), FLOATS)
    where = place(y)
    del y
    small, large = pool.empty((HUGE // 4,), FLOATS), pool.empty((9 * HUGE // 4,), FLOATS)
    assert where not in (place(small), place(large)) and pool.held() == 8 * HUGE
    assert place(pool.empty((7 * HUGE // 4,), FLOATS)) == where


def test_what_is_kept_is_bounded(pool: Pool) -> None:
    arrays = [pool.empty((MANY,), FLOATS) for _ in range(8)]
    huge = pool.empty((20 * HUGE // 4,), FLOATS)
    del huge
    assert pool.held() == 0, "larger than all that may be kept"
    arrays.clear()
    assert 0 < pool.held() <= 16 * HUGE
    pool.clear()
    assert pool.held() == 0


def test_arrays_die_in_any_thread_and_at_any_moment(pool: Pool) -> None:
    """A collector may run while the lock is held: here each thread's arrays die in cycles."""
    failures: list[str] = []

    class Cycle:
        def __init__(self, array: np.ndarray) -> None:
            self.array, self.me = array, self

    def user(number: int) -> None:
        for _ in range(60):
            y = pool.empty((MANY,), FLOATS)
            y[:: HUGE // 64] = number
            Cycle(y)
            if not (y[:: HUGE // 64] == number).all():
                failures.append("two arrays in one place")
            del y
            gc.collect(0)

    threads = [threading.Thread(target=user, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == [] and not any(thread.is_alive() for thread in threads)
    gc.collect()
    assert pool.held() <= 16 * HUGE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_process_has_memory_of_its_own(pool: Pool) -> None:
    y = pool.empty((MANY,), FLOATS)
    y[...] = 1
    child = os.fork()
    if child == 0:
        y[...] = 2
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert (y == 1).all()


def test_a_system_without_memory(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> None:
    def none(*arguments: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", none)
    with pytest.raises(MemoryError):
        pool.empty((MANY,), FLOATS)


def test_small_results_are_numpys_own() -> None:
    assert memory.empty((SMALLEST // 4 - 1,), FLOATS).base is None
    assert memory.empty((SMALLEST // 4,), FLOATS).base is not None
    assert memory.empty((0, 10**9), FLOATS).shape == (0, 10**9)


def test_results_of_kernels_live_there() -> None:
    """Forward and backward; one result is not overwritten by the next."""
    x = np.zeros((1, 9, 1024, 1024), np.float32)
    x[0, :, ::2, ::2] = 1
    with astride.use(backend="cpu", threads=1):
        y = astride.max_pool(x, kernel=2)
        assert y.nbytes >= SMALLEST and y.base is not None and y.flags.c_contiguous
        again = astride.max_pool(x - 1, kernel=2)
        assert (y == 1).all() and (again == 0).all()
        where = place(y)
        del y
        third, pull = astride.vjp(astride.max_pool, x, kernel=2)
        assert place(third) == where
        (dx,) = pull(third)
        assert dx.base is not None and (dx == x).all()
