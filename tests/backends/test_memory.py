"""Arrays as they come: any strides, byte order, read-only. Inputs stay untouched, results are fresh or in `out`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import aside, assert_agree, climb, forward, run
from tests.cases.records import Case, Inputs, inputs_of
from tests.compare import assert_same, assert_unchanged

from astride import dispatch
from astride.errors import ArrayError

PICKED = {
    "max_pool": ("two axes", "two axes, channels last", "Caffe", "three axes", "edge-wrap-first"),
    "min_pool": ("two axes", "three axes, channels last"),
    "avg_pool": ("two axes", "two axes, channels last", "Caffe", "edge-mirror"),
    "lp_pool": ("two axes", "two axes, channels last", "PyTorch, p infinite"),
    "stochastic_pool": ("one axis, training", "one axis, channels last, training", "two axes, test time"),
    "adaptive_pool": ("two axes", "maximum, channels last"),
    "max_unpool": ("two axes", "two axes, channels last", "places in the tensor"),
    "conv": ("two axes", "two axes, channels last", "groups", "batch groups", "flipped", "edge-clamp", "1x1"),
    "conv_transpose": ("two axes", "two axes, channels last", "groups", "flipped", "1x1"),
}


def case_of(op: str, name: str) -> Case:
    found: Case = next(case for case in import_module(f"tests.cases.{op}").CASES if case.name == name)
    return found


CASES = [(op, case_of(op, name)) for op, names in PICKED.items() for name in names]
EACH = [(op, case, kernel) for op, case in CASES for kernel in climb(inputs_of(op, case).plan)]
EACH_IDS = [f"{op}: {case}, {kernel}" for op, case, kernel in EACH]


def transposed(array: Any) -> Any:
    """The same values, the axes' order in memory reversed."""
    return np.ascontiguousarray(array.T).T


def reversed_(array: Any) -> Any:
    """Negative strides along every axis."""
    turned = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[turned])[turned]


def foreign(array: Any) -> Any:
    """The other byte order."""
    return array.astype(array.dtype.newbyteorder())


def read_only(array: Any) -> Any:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def surrounded(array: Any) -> Any:
    """Every second element of a field of poison: whoever reads beside the array, or writes there, is seen."""
    poison = 1e30 if array.dtype.kind == "f" else 99
    field = np.full([2 * n + 3 for n in array.shape], poison, array.dtype)
    inner = field[tuple(slice(2, 2 * n + 2, 2) for n in array.shape)]
    inner[...] = array
    return inner


def unaligned(array: Any) -> Any:
    """One byte off every boundary."""
    raw = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype) if array.nbytes else array
    shifted = raw.reshape(array.shape)
    shifted[...] = array
    return shifted


VARIANTS: dict[str, Callable[[Any], Any]] = {
    "transposed": transposed,
    "reversed": reversed_,
    "foreign byte order": foreign,
    "read-only": read_only,
    "surrounded": surrounded,
    "unaligned": unaligned,
}


@pytest.mark.parametrize(("op", "case", "kernel"), EACH, ids=EACH_IDS)
def test_any_memory(op: str, case: Case, kernel: str) -> None:
    inputs = inputs_of(op, case)
    plain = run(inputs, kernel)
    for name, change in VARIANTS.items():
        arrays = tuple(None if a is None else change(a) for a in inputs.arrays)
        before = [None if a is None else a.tobytes() for a in arrays]
        assert_agree(inputs, run(Inputs(inputs.plan, arrays, change(inputs.dy)), kernel), plain, f"{kernel}, {name}")
        for array, bytes_ in zip(arrays, before, strict=True):
            if array is not None and bytes_ is not None:
                assert_unchanged(array, bytes_, f"{kernel}, {name}")
                field = array
                while field.base is not None and isinstance(field.base, np.ndarray):
                    field = field.base
                if name == "surrounded" and field.dtype.kind == "f":
                    assert (field == field.dtype.type(1e30)).sum() == field.size - array.size, (
                        "something was written beside the array"
                    )


@pytest.mark.parametrize(("op", "case", "kernel"), EACH, ids=EACH_IDS)
def test_results_are_fresh_and_contiguous(op: str, case: Case, kernel: str) -> None:
    inputs = inputs_of(op, case)
    result = run(inputs, kernel)
    assert result.y.flags.c_contiguous and result.y.flags.owndata and result.y.flags.writeable
    for gradient, array in zip(result.gradients, inputs.arrays, strict=True):
        if gradient is not None and array is not None:
            assert gradient.shape == array.shape and gradient.dtype == array.dtype and gradient.flags.c_contiguous
            assert not any(np.shares_memory(gradient, a) for a in (*inputs.arrays, inputs.dy) if a is not None)


@pytest.mark.parametrize(("op", "case", "kernel"), EACH, ids=EACH_IDS)
def test_out_is_filled_in_place(op: str, case: Case, kernel: str) -> None:
    """A contiguous `out` and one of any strides; all of it written, nothing beside it."""
    inputs = inputs_of(op, case)
    y = forward(inputs, kernel)
    for out in (np.full_like(y, 77), surrounded(np.full_like(y, 77)), transposed(np.full_like(y, 77))):
        result = forward(inputs, kernel, out=out)
        assert result is out
        assert_same(aside(out), y, kernel)


@pytest.mark.parametrize(("op", "case"), CASES, ids=[f"{op}: {case}" for op, case in CASES])
def test_out_may_not_overlap_an_input(op: str, case: Case) -> None:
    inputs = inputs_of(op, case)
    y = forward(inputs, "auto")
    for at, (role, array) in enumerate(zip(inputs.plan.roles, inputs.arrays, strict=True)):
        if array is None or array.dtype != y.dtype:
            continue
        room = np.zeros(array.size + y.size - 1, y.dtype)
        inner = room[: array.size].reshape(array.shape)
        inner[...] = array
        arrays = list(inputs.arrays)
        arrays[at] = inner
        with pytest.raises(ArrayError, match=f"out overlaps {role}") as error:
            dispatch.forward(inputs.plan, *arrays, out=room[array.size - 1 :].reshape(y.shape))
        assert "an array of its own, or no out" in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda y: y[:-1], "out does not fit the result"),
        (lambda y: y.astype("float64"), "out does not fit the result"),
        (lambda y: y.astype(y.dtype.newbyteorder()), "out does not fit the result"),
        (lambda y: y.tolist(), "out does not fit the result"),
        (read_only, "out is read-only"),
    ],
)
def test_out_must_fit(change: Callable[[Any], Any], says: str) -> None:
    inputs = inputs_of("max_pool", case_of("max_pool", "two axes"))
    with pytest.raises(ArrayError, match=says):
        forward(inputs, "auto", out=change(forward(inputs, "auto")))


@pytest.mark.parametrize(("op", "case", "kernel"), EACH, ids=EACH_IDS)
def test_an_empty_batch(op: str, case: Case, kernel: str) -> None:
    """No images: an empty result, and gradients of zero for what is shared by all images."""
    inputs = inputs_of(op, replace(case, shape=(0, *case.shape[1:])))
    result = run(inputs, kernel)
    assert result.y.size == 0 and result.y.shape[0] == 0
    for role, gradient, array in zip(inputs.plan.roles, result.gradients, inputs.arrays, strict=True):
        if gradient is not None and array is not None:
            assert_same(gradient, np.zeros_like(array), f"gradient of {role}")


@pytest.mark.parametrize(("op", "case", "kernel"), EACH, ids=EACH_IDS)
def test_only_what_is_wanted_is_computed(op: str, case: Case, kernel: str) -> None:
    inputs = inputs_of(op, case)
    every = run(inputs, kernel)
    _, saved = dispatch.forward(inputs.plan, *inputs.arrays, save=True, backend=kernel)
    assert saved is not None
    for at in range(len(inputs.plan.roles)):
        want = tuple(i == at for i in range(len(inputs.plan.roles)))
        some = dispatch.backward(inputs.plan, inputs.dy, saved, want=want)
        for i, (gradient, expected) in enumerate(zip(some, every.gradients, strict=True)):
            if i != at or expected is None:
                assert gradient is None
            else:
                assert_same(gradient, expected, f"gradient {i}")


def test_elements_beyond_two_gigabytes_of_strides() -> None:
    """Strides are in bytes and may pass 2^31 where the memory itself is shared."""
    row = np.arange(6.0, dtype="float32")
    far = np.lib.stride_tricks.as_strided(row, (70_000, 1, 6), (0, 2**33, 4))[::35_000]
    inputs = inputs_of("max_pool", Case("far", far.shape, dict(kernel=2)))
    for kernel in climb(inputs.plan):
        y = dispatch.forward(inputs.plan, far, backend=kernel)[0]
        assert y.tolist() == [[[1, 3, 5]], [[1, 3, 5]]]
