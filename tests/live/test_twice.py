"""Double backward against the installed PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import pytorch as F

torch = pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

CALLS: list[tuple[str, Callable[[np.random.Generator], tuple[Any, ...]], dict[str, Any]]] = [
    ("conv1d", lambda r: (r.normal(size=(2, 3, 9)), r.normal(size=(4, 3, 3)), r.normal(size=4)), dict(stride=2, padding=1)),
    ("conv2d", lambda r: (r.normal(size=(2, 4, 7, 6)), r.normal(size=(6, 2, 3, 2)), None), dict(groups=2, dilation=2, padding=2)),
    ("conv3d", lambda r: (r.normal(size=(1, 2, 4, 5, 4)), r.normal(size=(3, 2, 2, 3, 2)), r.normal(size=3)), dict(padding=1)),
    (
        "conv_transpose2d",
        lambda r: (r.normal(size=(2, 4, 4, 3)), r.normal(size=(4, 2, 3, 2)), r.normal(size=4)),
        dict(stride=2, padding=1, output_padding=1, groups=2),
    ),
    ("avg_pool2d", lambda r: (r.normal(size=(2, 3, 7, 6)), 3, 2, 1), dict(ceil_mode=True)),
    ("avg_pool3d", lambda r: (r.normal(size=(1, 2, 4, 4, 4)), 2), dict(divisor_override=3)),
    ("max_pool2d", lambda r: (r.normal(size=(2, 3, 7, 6)), 3, 2, 1), {}),
    ("max_pool1d", lambda r: (r.normal(size=(2, 3, 9)), 3, 1, 1, 2), {}),
    ("lp_pool2d", lambda r: (np.abs(r.normal(size=(2, 3, 7, 6))), 3.0, 2), dict(ceil_mode=True)),
    ("lp_pool1d", lambda r: (r.normal(size=(2, 3, 9)), 2.0, 3, 2), {}),
    ("adaptive_avg_pool2d", lambda r: (r.normal(size=(2, 3, 7, 6)), (3, 4)), {}),
    ("adaptive_max_pool2d", lambda r: (r.normal(size=(2, 3, 7, 6)), (3, 4)), {}),
    (
        "max_unpool2d",
        lambda r: (r.normal(size=(2, 3, 3, 2)), r.permuted(np.tile(np.arange(20), (6, 1)), axis=1)[:, :6].reshape(2, 3, 3, 2), 2),
        dict(output_size=(5, 4)),
    ),
    ("max_unpool1d", lambda r: (r.normal(size=(2, 3, 3)), np.tile(np.array([4, 0, 3]), (2, 3, 1)), 2), {}),
    (
        "max_unpool3d",
        lambda r: (r.normal(size=(1, 2, 2, 2, 2)), np.tile(np.arange(8).reshape(2, 2, 2) * 5, (1, 2, 1, 1, 1)), 2),
        {},
    ),
    ("unfold", lambda r: (r.normal(size=(2, 3, 6, 5)), 3), dict(padding=1, stride=2)),
    ("fold", lambda r: (r.normal(size=(2, 12, 20)), (6, 5), 2), {}),
]


@pytest.mark.parametrize(("name", "made", "keywords"), CALLS, ids=[name for name, _, _ in CALLS])
def test_agrees(name: str, made: Any, keywords: dict[str, Any], rng: np.random.Generator) -> None:
    args = made(rng)
    y, pull = astride.vjp(getattr(F, name), *args, **keywords)
    g = rng.normal(size=y.shape)
    gradients, pull2 = astride.vjp(pull, g)
    cotangents = tuple(None if dx is None else rng.normal(size=dx.shape) for dx in gradients)
    ours = pull2(cotangents)

    theirs = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    leaves = [t.requires_grad_() for t in theirs if isinstance(t, torch.Tensor) and t.is_floating_point()]
    seed = torch.from_numpy(g).requires_grad_()
    first = torch.autograd.grad(getattr(torch.nn.functional, name)(*theirs, **keywords), leaves, seed, create_graph=True)
    total = sum((torch.from_numpy(c) * dx).sum() for c, dx in zip([c for c in cotangents if c is not None], first, strict=True))
    second = torch.autograd.grad(total, [seed, *leaves], allow_unused=True, materialize_grads=True)
    found = [s for s in ours if s is not None]
    assert len(found) == len(second)
    for mine, other in zip(found, second, strict=True):
        assert_near(mine, other.numpy(), 1e-9, name, scale=1.0)


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_agrees(rank: int, rng: np.random.Generator) -> None:
    """Its samples are a keyword that astride and PyTorch name differently."""
    x, samples = rng.normal(size=(2, 3, *[7] * rank)), rng.random((2, 3, rank))
    operator, function = getattr(F, f"fractional_max_pool{rank}d"), getattr(torch.nn.functional, f"fractional_max_pool{rank}d")
    y, pull = astride.vjp(operator, x, 2, output_size=4, _random_samples=samples)
    g, cotangent = rng.normal(size=y.shape), rng.normal(size=x.shape)
    by_g, by_x, *_ = astride.vjp(pull, g)[1]((cotangent,))
    leaf, seed = (torch.from_numpy(a).requires_grad_() for a in (x, g))
    theirs = function(leaf, 2, output_size=4, _random_samples=torch.from_numpy(samples))
    (first,) = torch.autograd.grad(theirs, leaf, seed, create_graph=True)
    (second,) = torch.autograd.grad((torch.from_numpy(cotangent) * first).sum(), [seed])
    assert_near(by_g, second.numpy(), 0)
    assert not by_x.any()
