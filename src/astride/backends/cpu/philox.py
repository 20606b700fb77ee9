"""Random numbers by their place alone, Philox 4x32-10, in vectors: lanes are counters, of four draws each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cache import functions
from .ir import Value, module
from .ir_types import vector
from .machine import Machine, machine
from .schedule import CHUNK_BYTES
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

SEED, STREAM = 0, 2
"""Fields: two words of 32 bits each."""

MULTIPLIERS, WEYL, ROUNDS, LOW = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10, 0xFFFFFFFF


def text(machine: Machine) -> str:
    """The module of `draw`: a are the draws, float32; a unit is one vector of counters."""
    f, lanes = kernel_function("draw"), machine.lanes("i64")
    kind = vector(lanes, "i64")
    key, stream = ([f.splat(f.field(f.geometry, start + k), lanes) for k in range(2)] for start in (SEED, STREAM))
    with f.loop(f.begin, f.end) as unit:
        block = f.splat(unit * lanes, lanes) + f.value(kind, list(range(lanes)) if lanes > 1 else 0)
        counter, k = [block & LOW, block >> 32, *stream], list(key)
        for _ in range(ROUNDS):
            p, q = counter[0] * MULTIPLIERS[0], counter[2] * MULTIPLIERS[1]
            counter = [(q >> 32) ^ counter[1] ^ k[0], q & LOW, (p >> 32) ^ counter[3] ^ k[1], p & LOW]
            k = [(word + step) & LOW for word, step in zip(k, WEYL, strict=True)]
        parts = [((word >> 8) + 1).to("i32").to("float") * 2.0**-24 for word in counter]
        place = f.at(f.a, unit * (16 * lanes))
        if lanes == 1:
            for n, part in enumerate(parts):
                f.store(part, f.at(place, 4 * n))
        else:
            f.store(_in_turn(parts, lanes), place)
    return module(f)


def _in_turn(parts: list[Value], lanes: int) -> Value:
    """Four vectors as one: their first lanes, their second ones..."""
    f = parts[0].f
    whole = f.joined(parts)
    return f.shuffle(whole, whole, [n % 4 * lanes + n // 4 for n in range(4 * lanes)])


def draws(count: int, seed: int, stream: int) -> NDArray[np.float32]:
    """`count` draws in (0, 1], multiples of 2^-24, of a seed and stream that fit 64 bits: the reference's, to the bit."""
    (address,) = functions("philox", (), lambda: text(machine()), ("draw",))
    each = 4 * machine().lanes("i64")
    units = -(-count // each)
    found = np.empty(units * each, np.float32)
    geometry = Geometry([seed & LOW, seed >> 32, stream & LOW, stream >> 32], [])
    if units:
        run(address, geometry.address, address_of(found), 0, 0, 0, units, max(CHUNK_BYTES // (4 * each), 1))
    return found[:count]
