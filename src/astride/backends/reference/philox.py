"""Random numbers by their place alone: Philox 4x32-10, a generator that has a counter and no state.

Draw i is word i % 4 of what the counter (i // 4, stream) becomes under the key `seed`, so that threads, tiles and backends
draw the same. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def draws(count: int, seed: int, stream: int) -> NDArray[np.float32]:
    """`count` draws in (0, 1], multiples of 2^-24, of a seed and stream that fit 64 bits."""
    block = np.arange(-(-count // 4), dtype=np.uint64)
    counters = [block & _LOW, block >> _HALF, np.full_like(block, stream & 0xFFFFFFFF), np.full_like(block, stream >> 32)]
    words = philox(counters, (seed & 0xFFFFFFFF, seed >> 32))
    bits = np.stack(words, axis=-1).reshape(-1)[:count] >> np.uint64(8)
    return (bits + np.uint64(1)).astype(np.float32) * np.float32(2.0**-24)


def philox(counters: list[NDArray[np.uint64]], key: tuple[int, int]) -> list[NDArray[np.uint64]]:
    """Ten rounds of Philox 4x32 on arrays of 32-bit counters held in uint64."""
    c0, c1, c2, c3 = counters
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + WEYL[0]) & 0xFFFFFFFF, (k1 + WEYL[1]) & 0xFFFFFFFF
    return [c0, c1, c2, c3]
