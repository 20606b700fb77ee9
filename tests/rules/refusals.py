"""How a refusal is tried: by its plan alone, so that no array is needed."""

from __future__ import annotations

import pytest
from tests.cases.records import Refusal

import astride


def assert_refused(op: str, refusal: Refusal) -> None:
    """The plan is refused by an error of the stated class that says the stated texts, and says whose rules they are."""
    weights = {} if refusal.w_shape is None else {"w_shape": refusal.w_shape}
    with pytest.raises(getattr(astride, refusal.error)) as raised:
        astride.plan(op, refusal.shape, rules=refusal.rules, dtype=refusal.dtype, **weights, **refusal.arguments)
    message = str(raised.value)
    assert message.startswith(f"{op} [{refusal.rules}]: "), message
    for text in refusal.says:
        assert text in message, f"{text!r} is not in:\n{message}"
