"""What is made of weights that cannot change, kept as long as these live."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..fixed import is_frozen, owner
from ..protocol import Array

_kept: dict[int, dict[Hashable, Array]] = {}
"""By the identity of the array that owns the memory: it and what was made of it die together."""

_made: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
"""Arrays that are kept here: nobody writes to them either, so what is made of these is kept as well."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found for an array that cannot change, whose shape, strides and dtype were these: views can be given others."""

    source: weakref.ref[Array]
    form: tuple[Any, ...]
    found: Array


_seen: dict[tuple[int, Hashable], _Seen] = {}
"""By an array's identity: the short way to what is kept."""


def kept(source: Array, key: Hashable, make: Callable[[], Array]) -> Array:
    """What `make` gives, made once if `source` cannot change. `key` says what it is; the view of the memory counts by itself."""
    seen = _seen.get((id(source), key))
    if seen is not None and seen.source() is source and seen.form == (source.shape, source.strides, source.dtype):
        return seen.found
    found = _kept_or_made(source, key, make)
    if is_frozen(source):
        place = (id(source), key)
        form = (source.shape, source.strides, source.dtype)
        _seen[place] = _Seen(weakref.ref(source, lambda _: _seen.pop(place, None)), form, found)
    return found


def _kept_or_made(source: Array, key: Hashable, make: Callable[[], Array]) -> Array:
    if not (is_frozen(source) or _made.get(id(source)) is source):
        return make()
    of = owner(source)
    known = _kept.get(id(of))
    if known is None:
        known = _kept[id(of)] = {}
        weakref.finalize(of, _kept.pop, id(of), None)
    place = (source.__array_interface__["data"][0], source.shape, source.strides, source.dtype.str, key)
    found = known.get(place)
    if found is None:
        found = known[place] = make()
        _made[id(found)] = found
    return found


def counted() -> tuple[int, int]:
    """How many arrays are kept, and their bytes."""
    arrays = [array for known in list(_kept.values()) for array in list(known.values())]
    return len(arrays), sum(array.nbytes for array in arrays)
