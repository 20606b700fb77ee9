"""nn.Conv1d to 3d with every padding mode, and what follows from it, against the installed PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride

torch = pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [1, 2, "same"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_modules(rank: int, padding: Any, mode: str, rng: np.random.Generator) -> None:
    kernel = (3, 2, 3)[:rank]
    module = getattr(torch.nn, f"Conv{rank}d")(
        4, 6, kernel, padding=padding, padding_mode=mode, groups=2, dilation=2 if padding == "same" else 1, dtype=torch.float64
    )
    x = rng.normal(size=(2, 4, 6, 5, 4)[: rank + 2])
    leaf = torch.from_numpy(x).requires_grad_()
    theirs = module(leaf)
    w, b = module.weight.detach().numpy(), module.bias.detach().numpy()
    arguments: dict[str, Any] = dict(padding=padding, dilation=2 if padding == "same" else 1, groups=2, padding_mode=mode)
    y, pull = astride.vjp(astride.conv, x, w, b, rules="pytorch", **arguments)
    assert_near(y, theirs.detach().numpy(), 1e-12)
    g = rng.normal(size=y.shape)
    expected = torch.autograd.grad(theirs, [leaf, module.weight, module.bias], torch.from_numpy(g))
    for mine, other in zip(pull(g), expected, strict=True):
        assert_near(mine, other.numpy(), 1e-12)
