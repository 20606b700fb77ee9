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
    "columns": Rate(0.85, 60, 0.3, 15),
    "weights columns": Rate(0.8, 100, 0.2, 20),
    "few": Rate(0.7, 20, 0.2, 15),
    "weights matrix": Rate(0.9, 100, 0.15, 12),
    "depthwise moved": Rate(1.05, 46, 0.116, 30),
    "depthwise planes": Rate(1.05, 7, 0.003, 32),
    "depthwise rows": Rate(1.05, 53, 0.003, 31),
    "lanewise tiles": Rate(0.60, 250, 0.132, 13),
    "planes": Rate(0.90, 30, 0.007, 7),
    "slabs": Rate(0.86, 35, 0.171, 16),
    "tiles": Rate(0.85, 77, 0.194, 12),
    "weights packed": Rate(0.82, 8, 0.168, 15),
    "weights tiles": Rate(0.85, 136, 0.153, 10),
    "weights winograd": Rate(0.89, 78, 0.108, 28),
    "winograd": Rate(0.84, 34, 0.228, 6),
}
NARROW = {
    "columns": Rate(0.85, 60, 0.3, 15),
    "weights columns": Rate(0.8, 100, 0.2, 20),
    "few": Rate(0.7, 20, 0.2, 15),
    "weights matrix": Rate(0.9, 100, 0.15, 12),
    "depthwise moved": Rate(1.05, 5, 0.085, 45),
    "depthwise planes": Rate(1.05, 48, 0.036, 3),
    "depthwise rows": Rate(0.71, 6, 0.003, 50),
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

KINDS = {64: Kind(3.7e9, 1, 1, 4, 0.083, WIDE), 32: Kind(3.7e9, 2, 2, 4, 0.080, NARROW)}
"""By the bytes of vectors; others are taken for 32. Zen 4 takes two cycles for products of vectors of 64 bytes where some
processors of Intel take one, for which products are overestimated beside what is moved."""
