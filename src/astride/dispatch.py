"""The only place that chooses a kernel, and the only place that checks arrays against a plan.

A named backend (or rung, `reference:loops2`) never falls back: it computes or the call fails with its reasons.
`auto` asks backends in the table's order and takes the first kernel that accepts the plan; `explain` shows who declined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import settings
from .backends import BACKENDS, backend, memory
from .backends.epilogue import Epilogue
from .backends.protocol import Array, Arrays, Kernel, Saved, dtype_name
from .errors import ArgumentError, ArrayError, AstrideError, BackendUnavailable, UnsupportedError
from .plan import Plan, Shape, windows_listed


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel taken, where it lives, and who declined before it: (`backend:kernel`, reason)."""

    backend: str
    kernel: Kernel
    declined: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return f"{self.backend}:{self.kernel.name}"


def choose(plan: Plan, name: str | None = None) -> Choice:
    """The kernel that will compute this plan under the given or current backend setting.

    Raises ArgumentError: no such backend or rung; BackendUnavailable: a named one is not installed;
    UnsupportedError: nobody allowed takes the plan, with everyone's reason.
    """
    wanted = name or settings.current().backend
    if not isinstance(wanted, str):
        raise ArgumentError("a backend is chosen by its name", given={"backend": wanted}, hint='backend="auto"')
    declined: list[tuple[str, str]] = []
    for place, kernel in _candidates(plan.op, wanted, declined):
        reason = kernel.declines(plan)
        if reason is None:
            return Choice(place, kernel, tuple(declined))
        declined.append((f"{place}:{kernel.name}", reason))
    raise UnsupportedError(
        f"no kernel of backend {wanted} takes this plan",
        operator=plan.op,
        reasons=dict(declined),
        hint=None if wanted == "auto" else 'backend="auto"',
    )


def _candidates(op: str, wanted: str, declined: list[tuple[str, str]]) -> list[tuple[str, Kernel]]:
    """Kernels in the order to ask, as (backend, kernel)."""
    if wanted == "auto":
        found: list[tuple[str, Kernel]] = []
        for place in BACKENDS:
            try:
                found += [(place, kernel) for kernel in backend(place).kernels(op)]
            except BackendUnavailable as error:
                declined.append((place, error.problem))
        return found
    place, _, rung = wanted.partition(":")
    kernels = backend(place).kernels(op)
    if not rung:
        if not kernels:
            declined.append((place, f"has no {op}"))
        return [(place, kernel) for kernel in kernels]
    chosen = [kernel for kernel in kernels if kernel.name == rung]
    if not chosen:
        names = ", ".join(f"{place}:{kernel.name}" for kernel in kernels) or "none"
        raise ArgumentError(
            f"backend {place} has no kernel of that name for {op}",
            given={"backend": wanted},
            required=f"one of {names}",
            hint=f'backend="{place}"',
        )
    return [(place, kernel) for kernel in chosen]


def forward(
    plan: Plan,
    *arrays: Array | None,
    out: Array | None = None,
    save: bool = False,
    backend: str | None = None,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> tuple[Array, Saved | None]:
    """Compute a plan on arrays in the order of its roles. With `save`, also what backward needs. A `residual` of
    y's shape and dtype is added to y, and an `epilogue` is what is done with y in the end. Neither is the plan's nor has a
    gradient: they are for networks that are only used.

    Inputs are not modified and may have any strides; the result is fresh and C-contiguous unless `out` is given.
    Raises ArrayError: dtype, rank, sizes or layout differ from the plan, or `out` does not fit or overlaps an input;
    ArgumentError: the result, or what the kernel works in, does not fit into memory; and what `choose` raises.
    """
    given = arrays if len(arrays) == len(plan.roles) else (*arrays, *[None] * (len(plan.roles) - len(arrays)))
    try:
        ready = _prepared(plan, given, backend or settings.current().backend)
        shape, chosen = ready.shape, ready.chosen
        if out is not None:
            y = _check_out(plan, out, shape, given)
        else:
            y = np.empty(shape, ready.dtype) if ready.small else _new(shape, ready.dtype, chosen.kernel.numpy)
        finished = epilogue is not None or residual is not None
        if residual is not None:
            _check_residual(residual, y)
        if not chosen.kernel.numpy:
            read = given if ready.native else tuple(map(_native, given))
            if finished and chosen.kernel.finishes:
                result, saved = chosen.kernel.forward(plan, *read, out=y, save=save, epilogue=epilogue, residual=residual)
            else:
                result, saved = chosen.kernel.forward(plan, *read, out=y, save=save)
        else:
            with np.errstate(all="ignore"):  # NaN and infinities are results by rule, not accidents of how NumPy computes them
                result, saved = chosen.kernel.forward(plan, *map(_native, given), out=y, save=save)
        if finished and not chosen.kernel.finishes:
            (epilogue or Epilogue()).apply(result, residual)
    except AstrideError as error:
        raise error.within(operator=plan.op, given=_named(plan, given))
    except MemoryError as error:
        if not chosen.kernel.numpy and (backend or settings.current().backend) == "auto":
            # a copy that this kernel works on does not fit; the reference reads arrays where they lie
            return forward(plan, *arrays, out=out, save=save, backend="reference", epilogue=epilogue, residual=residual)
        raise ArgumentError(
            "the kernel needs more memory than there is",
            given={"y": f"{shape} {plan.output_dtype}", **_named(plan, given)},
            because=str(error) or None,
            hint="smaller arrays, less padding or a smaller kernel",
            operator=plan.op,
        ) from error
    if saved is None:
        return result, None
    return result, Saved(saved.shapes, saved.offsets, saved.x, saved.y, saved.w, saved.extra, ready.name)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A plan whose arrays have been checked and whose kernel is chosen: true of all arrays of these shapes and dtypes."""

    plan: Plan
    shapes: tuple[Shape | None, ...]
    dtypes: tuple[Any, ...]
    shape: Shape
    dtype: np.dtype[Any]
    chosen: Choice
    name: str
    native: bool
    small: bool
    """`native`: every array has this machine's byte order. `small`: the result needs no question for memory."""

    def fits(self, plan: Plan, arrays: Arrays) -> bool:
        if plan is not self.plan:
            return False
        for array, shape, dtype in zip(arrays, self.shapes, self.dtypes, strict=False):
            if array is None:
                if shape is not None:
                    return False
            elif type(array) is not np.ndarray or array.shape != shape or array.dtype is not dtype:
                return False
        return len(arrays) == len(self.shapes)


READY_KEPT, WINDOWS_KEPT = 1024, 1024
"""How many plans are remembered, and how many windows one of them may list."""
_ready: dict[tuple[int, str], _Ready] = {}


def forget() -> None:
    """Drop what calls have remembered: for whoever exchanges a backend's kernels, as tests do."""
    _ready.clear()
    _chosen.clear()


def _prepared(plan: Plan, arrays: Arrays, wanted: str) -> _Ready:
    """The checks and the choice of a call, remembered for the next one. Raises what they raise."""
    ready = _ready.get((id(plan), wanted)) if isinstance(wanted, str) else None
    if ready is not None and ready.fits(plan, arrays):
        return ready
    shape = _check(plan, arrays)
    dtype = _dtype(plan.output_dtype, arrays[0])
    shapes, dtypes = tuple(None if a is None else a.shape for a in arrays), tuple(None if a is None else a.dtype for a in arrays)
    native = all(d is None or d.isnative for d in dtypes)
    small = math.prod(shape) * dtype.itemsize < min(settings.ASKED_FROM, memory.SMALLEST)
    chosen = choose(plan, wanted)
    ready = _Ready(plan, shapes, dtypes, shape, dtype, chosen, chosen.name, native, small)
    _remember(_ready, plan, wanted, ready)
    return ready


def _remember(kept: dict[tuple[int, str], Any], plan: Plan, wanted: str, value: Any) -> None:
    """Keep what was found for a plan, unless it lists very many windows or its kernels come and go with a user's function."""
    if plan.op != "window_reduce" and windows_listed(plan) <= WINDOWS_KEPT:
        if len(kept) >= READY_KEPT:
            kept.clear()
        kept[id(plan), wanted] = value


_chosen: dict[tuple[int, str], tuple[Plan, tuple[Shape | None, ...], Shape, Kernel]] = {}


def _gradient_of(plan: Plan, shapes: tuple[Shape | None, ...], wanted: str, dy: Array) -> Kernel:
    """The kernel of a plan's gradient, which dy fits; remembered with y's shape for the next call.

    Raises ArrayError: dy is not like y; and what `choose` raises.
    """
    found = _chosen.get((id(plan), wanted)) if isinstance(wanted, str) else None
    known = found is not None and found[0] is plan and found[1] == shapes
    shape = found[2] if found is not None and known else plan.output_shape(*shapes)
    if dy.shape != shape:
        raise ArrayError("dy has another shape than y", required=f"dy.shape == {shape}: {dy.shape}", hint="numpy.ones_like(y)")
    if dtype_name(dy.dtype) != plan.output_dtype:
        raise ArrayError(
            "dy has another dtype than y",
            required=f"dy.dtype == {plan.output_dtype}: {dy.dtype.name}",
            hint=f"dy.astype({plan.output_dtype!r})",
        )
    if found is not None and known:
        return found[3]
    kernel = choose(plan, wanted).kernel
    _remember(_chosen, plan, wanted, (plan, shapes, shape, kernel))
    return kernel


def backward(plan: Plan, dy: Array, saved: Saved, *, want: Sequence[bool] | None = None, backend: str | None = None) -> Arrays:
    """Gradients of `sum(dy * y)` in the order of the plan's roles; None for absent, unwanted and integer arrays.

    Computed by the kernel that made `saved` unless a backend is named here.
    Raises ArrayError: dy has another shape or dtype than y; and what `choose` raises.
    """
    present = [shape is not None and role not in plan.integer_roles for role, shape in zip(plan.roles, saved.shapes, strict=True)]
    asked = present if want is None else [p and bool(w) for p, w in zip(present, (*want, *[False] * len(present)), strict=False)]
    try:
        kernel = _gradient_of(plan, saved.shapes, backend or saved.kernel, dy)
        if not kernel.numpy:
            return kernel.backward(plan, np.asarray(_native(dy)), saved, want=asked)
        with np.errstate(all="ignore"):
            return kernel.backward(plan, np.asarray(_native(dy)), saved, want=asked)
    except AstrideError as error:
        raise error.within(operator=f"{plan.op} backward", given={"dy": dy})


def double_backward(plan: Plan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """Gradients of the sum of every cotangent times the gradient `backward` gave, with respect to dy and to the arrays.

    Computed by the kernel that made `saved`, or where it has no double backward by the next of any backend that has.
    Raises UnsupportedError: the operator has none.
    """
    declined: list[tuple[str, str]] = []
    first = choose(plan, saved.kernel).kernel
    kernels = [(saved.kernel.partition(":")[0], first), *_candidates(plan.op, "auto", declined)]
    for _, kernel in kernels:
        if kernel.twice is not None and kernel.declines(plan) is None:
            try:
                return kernel.twice(plan, np.asarray(dy), saved, cotangents, want=want)
            except AstrideError as error:
                raise error.within(operator=f"{plan.op} double backward", given={"dy": dy})
    raise UnsupportedError(
        "the operator has no double backward",
        operator=plan.op,
        reasons={f"{place}:{kernel.name}": "has no double backward" for place, kernel in kernels[1:]},
    )


def _check(plan: Plan, arrays: Arrays) -> Shape:
    """Every array present that must be, of the plan's dtype, and together of shapes that fit. The output's shape."""
    if len(arrays) > len(plan.roles):
        raise ArrayError(f"{plan.op} takes {len(plan.roles)} arrays", required=", ".join(plan.roles))
    for role, array in zip(plan.roles, arrays, strict=True):
        if array is None:
            if role not in plan.optional:
                raise ArrayError(f"{role} is missing", required=", ".join(plan.roles))
            continue
        if not isinstance(array, np.ndarray):
            raise ArrayError(f"{role} is not a NumPy array", given={role: type(array).__name__}, hint=f"numpy.asarray({role})")
        if role in plan.integer_roles:
            if array.dtype.kind not in "iu":
                raise ArrayError(
                    f"{role} are not integers", required=f"an integer dtype: {array.dtype.name}", hint=f"{role}.astype('int64')"
                )
        elif dtype_name(array.dtype) != plan.dtype_of(role):
            wanted = plan.dtype_of(role)
            raise ArrayError(
                f"{role} has another dtype than the plan; nothing is promoted",
                required=f"{role}.dtype == {wanted}: {array.dtype.name}",
                hint=f"{role}.astype({wanted!r})",
            )
    return plan.output_shape(*[None if a is None else a.shape for a in arrays])


def _new(shape: Shape, dtype: np.dtype[Any], plain: bool) -> Array:
    """An array for the result. Raises ArgumentError: it is larger than the memory that is free."""
    hint = "a larger stride, less padding or a smaller batch; or out=, an array on disk (numpy.memmap)"
    if math.prod(shape) * dtype.itemsize >= settings.ASKED_FROM:
        settings.refuse_beyond_memory("the result", shape, dtype.name, dtype.itemsize, hint)
    return np.empty(shape, dtype) if plain else memory.empty(shape, dtype)


def _check_out(plan: Plan, out: Any, shape: Shape, arrays: Arrays) -> Array:
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype.name != plan.output_dtype or not out.dtype.isnative:
        raise ArrayError(
            "out does not fit the result",
            given={"out": out},
            required=f"shape {shape}, dtype {plan.output_dtype}",
            hint=f"numpy.empty({shape}, {plan.output_dtype!r})",
        )
    if not out.flags.writeable:
        raise ArrayError("out is read-only", given={"out": out}, hint="out=out.copy()")
    for role, array in zip(plan.roles, arrays, strict=True):
        if array is not None and np.may_share_memory(out, array) and np.shares_memory(out, array):
            raise ArrayError(f"out overlaps {role}", given={"out": out}, hint="an array of its own, or no out")
    return out


def _check_residual(residual: Any, y: Array) -> None:
    """Raise ArrayError: the residual is not like y, or overlaps it."""
    if not isinstance(residual, np.ndarray) or residual.shape != y.shape or residual.dtype != y.dtype:
        raise ArrayError(
            "the residual is not like the result",
            given={"residual": residual},
            required=f"shape {y.shape}, dtype {y.dtype.name}",
        )
    if np.may_share_memory(residual, y) and np.shares_memory(residual, y):
        raise ArrayError("the result overlaps the residual", given={"residual": residual}, hint="an array of its own, or no out")


def _dtype(name: str, x: Array | None) -> np.dtype[Any]:
    """The dtype of that name; x's own where it matches, so that extension types (bfloat16) need no registry."""
    return x.dtype.newbyteorder("=") if x is not None and x.dtype.name == name else np.dtype(name)


def _native(array: Array | None) -> Array | None:
    return array if array is None or array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _named(plan: Plan, arrays: Arrays) -> dict[str, Any]:
    return {role: a for role, a in zip(plan.roles, arrays, strict=False) if isinstance(a, np.ndarray)}
