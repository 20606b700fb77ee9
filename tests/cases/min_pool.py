"""Min pooling: max pooling's cases with the order reversed."""

from __future__ import annotations

from astride.rules import has
from tests.cases import max_pool
from tests.cases.records import Case, Refusal

CASES = tuple(case for case in max_pool.CASES if has(case.rules, "min_pool") and "with_argmax" not in case.arguments)

REFUSALS = (
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(kernel=7, padding=1),
        ("min_pool [explicit]: the kernel is larger than the padded input", "on axis H: 7 <= 4 + 2"),
    ),
    Refusal(
        "pad not smaller than kernel",
        (1, 1, 8, 8),
        dict(kernel=2, padding=2),
        ("min_pool [caffe]", "pad < kernel, on axis H: 2 < 2"),
        rules="caffe",
    ),
    Refusal(
        "PyTorch has no minimum",
        (1, 1, 4),
        dict(kernel=2),
        ("min_pool [pytorch]: pytorch has no min_pool", 'rules="explicit"'),
        "UnsupportedError",
        "pytorch",
    ),
    Refusal("a name of no argument", (1, 1, 4), dict(kernel=2, tye="first"), ("there is no argument 'tye'", "tie")),
)

__all__ = ["CASES", "REFUSALS", "Case"]
