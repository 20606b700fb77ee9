"""What predictions of convolution's times multiply counts by: constants of kinds of machines, and of the ways on each.

Fitted to times measured by `benchmarks/choice.py --fit` on one machine, AMD's Zen 4, with vectors of 64 and of 32 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """A way's constants: the share of the most products possible that its full tiles reach, cycles for every tile besides, cycles
    for every byte moved, and microseconds for a call."""

    share: float
    tile: float
    byte: float
    call: float


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of machine: cycles a second, vectors multiplied and added a cycle, and read a cycle; the cycles until a sum can be
    added to again; cycles for a byte from beyond the cache; and the ways' constants."""

    clock: float
    fma: float
    reads: float
    latency: float
    memory: float
    rates: dict[str, Rate]


WIDE = {
    "columns": Rate(0.94, 5, 0.061, 18),
    "depthwise moved": Rate(0.60, 7, 0.058, 25),
    "depthwise planes": Rate(1.05, 5, 0.003, 25),
    "depthwise rows": Rate(1.05, 5, 0.003, 23),
    "few": Rate(1.05, 15, 0.436, 25),
    "lanewise weights": Rate(0.5, 250, 0.2, 12),
    "lanewise tiles": Rate(0.40, 250, 0.158, 8),
    "planes": Rate(0.91, 39, 0.006, 17),
    "slabs": Rate(0.84, 215, 0.010, 15),
    "tiles": Rate(0.85, 250, 0.161, 8),
    "weights columns": Rate(1.02, 103, 0.514, 25),
    "weights depthwise": Rate(1.05, 6, 0.020, 24),
    "weights matrix": Rate(0.87, 250, 0.084, 12),
    "weights packed": Rate(0.84, 250, 0.122, 8),
    "weights tiles": Rate(0.83, 250, 0.079, 12),
    "weights winograd": Rate(0.73, 45, 0.063, 25),
    "winograd": Rate(0.83, 204, 0.138, 25),
}
NARROW = {
    "columns": Rate(0.85, 60, 0.3, 15),
    "weights depthwise": Rate(0.7, 5, 0.01, 30),
    "weights columns": Rate(0.8, 100, 0.2, 20),
    "few": Rate(0.7, 20, 0.2, 15),
    "weights matrix": Rate(0.9, 100, 0.15, 12),
    "depthwise moved": Rate(1.05, 5, 0.085, 45),
    "depthwise planes": Rate(1.05, 48, 0.036, 3),
    "depthwise rows": Rate(0.71, 6, 0.003, 50),
    "lanewise weights": Rate(0.5, 250, 0.2, 12),
    "lanewise tiles": Rate(1.05, 199, 0.015, 17),
    "planes": Rate(0.74, 15, 0.013, 12),
    "slabs": Rate(0.87, 92, 0.176, 19),
    "tiles": Rate(0.87, 138, 0.217, 6),
    "weights packed": Rate(0.93, 250, 0.141, 28),
    "weights tiles": Rate(0.79, 250, 0.274, 10),
    "weights winograd": Rate(0.73, 5, 0.086, 50),
    "winograd": Rate(0.81, 47, 0.068, 10),
}
"""Of vectors of 64 and of 32 bytes."""

KINDS = {64: Kind(3.7e9, 1, 1, 4, 0.138, WIDE), 32: Kind(3.7e9, 2, 2, 4, 0.080, NARROW)}
"""By the bytes of vectors; others are taken for 32. Zen 4 takes two cycles for products of vectors of 64 bytes where some
processors of Intel take one, for which products are overestimated beside what is moved."""
