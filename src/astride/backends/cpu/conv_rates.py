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
    "columns": Rate(0.94, 5, 0.069, 19),
    "depthwise moved": Rate(0.58, 7, 0.052, 25),
    "depthwise planes": Rate(1.05, 5, 0.003, 25),
    "depthwise rows": Rate(1.05, 5, 0.011, 23),
    "depthwise whole": Rate(1.00, 20, 0.0, 8),
    "few": Rate(1.05, 21, 0.445, 25),
    "lanewise tiles": Rate(0.40, 250, 0.174, 8),
    "lanewise weights": Rate(0.40, 250, 0.003, 21),
    "planes": Rate(0.90, 11, 0.005, 18),
    "short": Rate(1.00, 40, 0.100, 10),
    "slabs": Rate(0.84, 203, 0.009, 16),
    "tiles": Rate(0.84, 250, 0.164, 8),
    "weights columns": Rate(1.03, 125, 0.607, 25),
    "weights depthwise": Rate(1.05, 14, 0.090, 25),
    "weights depthwise planes": Rate(1.05, 30, 0.004, 10),
    "weights depthwise whole": Rate(1.00, 40, 0.0, 8),
    "weights matrix": Rate(0.87, 250, 0.132, 14),
    "weights packed": Rate(0.88, 250, 0.161, 8),
    "weights tiles": Rate(0.86, 250, 0.196, 8),
    "weights winograd": Rate(0.74, 49, 0.062, 25),
    "winograd": Rate(0.82, 195, 0.137, 25),
}
NARROW = {
    "columns": Rate(0.83, 8, 0.040, 25),
    "depthwise moved": Rate(0.76, 16, 0.071, 25),
    "depthwise planes": Rate(1.05, 46, 0.038, 8),
    "depthwise rows": Rate(0.83, 16, 0.014, 24),
    "depthwise whole": Rate(0.90, 60, 0.0, 8),
    "few": Rate(0.88, 112, 0.297, 8),
    "lanewise tiles": Rate(0.52, 138, 0.032, 25),
    "lanewise weights": Rate(0.40, 250, 0.005, 25),
    "planes": Rate(0.91, 35, 0.008, 25),
    "short": Rate(1.00, 40, 0.100, 10),
    "slabs": Rate(0.90, 157, 0.004, 22),
    "tiles": Rate(0.88, 248, 0.107, 8),
    "weights columns": Rate(0.92, 105, 0.511, 25),
    "weights depthwise": Rate(1.05, 5, 0.104, 25),
    "weights depthwise planes": Rate(1.05, 67, 0.004, 8),
    "weights depthwise whole": Rate(0.90, 60, 0.0, 8),
    "weights matrix": Rate(0.94, 108, 0.220, 23),
    "weights packed": Rate(0.89, 250, 0.145, 12),
    "weights tiles": Rate(0.77, 250, 0.497, 8),
    "weights winograd": Rate(0.73, 5, 0.144, 25),
    "winograd": Rate(0.80, 70, 0.071, 25),
}
"""Of vectors of 64 and of 32 bytes."""

KINDS = {64: Kind(3.7e9, 1, 1, 4, 0.104, WIDE), 32: Kind(3.7e9, 2, 2, 4, 0.093, NARROW)}
"""By the bytes of vectors; others are taken for 32. Zen 4 takes two cycles for products of vectors of 64 bytes where some
processors of Intel take one, for which products are overestimated beside what is moved."""
