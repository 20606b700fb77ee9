"""Arrays that cannot change: whose memory nobody can write to, so that what is made of them may be kept.

An array that is only marked read-only is not one of them: whoever owns its memory can take the mark off, write, and set it again.
Here memory is a `bytes` object, which Python itself lets nobody write to; NumPy refuses to unmark an array over one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .protocol import Array


def frozen(array: Any) -> Array:
    """A copy that cannot change, or the array itself if it is one already.

    Backends keep what they make of frozen weights, such as the order in which kernels read them, for as long as these live:

    >>> import numpy as np, astride
    >>> w = astride.frozen(np.ones((8, 3, 3, 3), np.float32))
    >>> y = astride.conv(np.ones((1, 3, 9, 9), np.float32), w)  # weights are packed once, not once a call
    >>> w[0] = 2
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    given = np.asarray(array)
    if is_frozen(given):
        return given
    if given.dtype.hasobject:
        raise TypeError("an array of Python objects cannot be frozen")
    return np.frombuffer(given.tobytes(), given.dtype).reshape(given.shape) if given.size else given.copy()


def is_frozen(array: Array) -> bool:
    """Whether nobody can write to the array's memory."""
    return not array.flags.writeable and isinstance(owner(array).base, bytes)


def owner(array: Array) -> Array:
    """The array that the array is a view of, at the end of all views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
