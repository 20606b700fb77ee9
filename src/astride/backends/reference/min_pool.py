"""Min pooling: max pooling with the order reversed. Not the negated maximum: the lowest integer has no negative."""

from __future__ import annotations

from .max_pool import KERNELS

__all__ = ["KERNELS"]
