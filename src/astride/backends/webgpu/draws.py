"""Philox 4x32-10 in WGSL: the draws of `backends/reference/philox.py`, bit for bit, made on the device.

Draw i is word i % 4 of what the counter (i // 4, stream) becomes under the key `seed`.
Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from functools import lru_cache

from ...plan import Shape
from .commands import CommandBuffer
from .program import Program, flat_program
from .tensor import Tensor

FUNCTIONS = """fn high(a: u32, b: u32) -> u32 {
let a0 = a & 0xffffu; let a1 = a >> 16u; let b0 = b & 0xffffu; let b1 = b >> 16u;
let middle = a1 * b0 + ((a0 * b0) >> 16u);
let low = a0 * b1 + (middle & 0xffffu);
return a1 * b1 + (middle >> 16u) + (low >> 16u);
}
fn draw(bits: u32) -> f32 { return f32((bits >> 8u) + 1u) * 5.9604644775390625e-8; }
"""

BODY = """var c = vec4<u32>(i, 0u, params.stream_lo, params.stream_hi);
var key = vec2<u32>(params.seed_lo, params.seed_hi);
for (var round = 0u; round < 10u; round++) {
c = vec4<u32>(high(0xcd9e8d57u, c.z) ^ c.y ^ key.x, 0xcd9e8d57u * c.z, high(0xd2511f53u, c.x) ^ c.w ^ key.y, 0xd2511f53u * c.x);
key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
}
for (var word = 0u; word < 4u; word++) {
if (4u * i + word < params.total) { y[4u * i + word] = ELEMENT(draw(c[word])); }
}
"""


@lru_cache
def program(element: str) -> Program:
    """One invocation for every four draws."""
    names = [(name, "u32") for name in ("seed_lo", "seed_hi", "stream_lo", "stream_hi", "total")]
    return flat_program("draws", [], [("y", element)], BODY.replace("ELEMENT", element), names, functions=FUNCTIONS)


def encode(commands: CommandBuffer, shape: Shape, dtype: str, seed: int, stream: int) -> Tensor:
    """Encode draws in (0, 1], multiples of 2^-24, of a seed and stream that fit 64 bits: place i of the tensor is draw i."""
    y = commands.device.empty(shape, dtype)
    words = {"seed_lo": seed & 0xFFFFFFFF, "seed_hi": seed >> 32, "stream_lo": stream & 0xFFFFFFFF, "stream_hi": stream >> 32}
    commands.run(program(y.wgsl), [], [y], -(-y.size // 4), total=y.size, **words)
    return y
