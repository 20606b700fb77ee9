"""The rules of the solver types against torch.optim, where the two are the same rule: constant rate, float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.train import UPDATES, Constants

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

pytestmark = pytest.mark.live

RATE, STEPS = 0.05, 12
# Adam's delta stands outside of the correction in torch; it is too small here to show.
CASES: list[tuple[str, Constants, str, dict[str, Any]]] = [
    ("SGD", Constants(momentum=0.9), "SGD", dict(momentum=0.9)),
    ("Nesterov", Constants(momentum=0.9), "SGD", dict(momentum=0.9, nesterov=True)),
    ("AdaGrad", Constants(delta=1e-3), "Adagrad", dict(eps=1e-3)),
    ("RMSProp", Constants(rms_decay=0.9, delta=1e-3), "RMSprop", dict(alpha=0.9, eps=1e-3)),
    ("AdaDelta", Constants(momentum=0.9, delta=1e-3), "Adadelta", dict(rho=0.9, eps=1e-3)),
    ("Adam", Constants(momentum=0.9, momentum2=0.99, delta=1e-14), "Adam", dict(betas=(0.9, 0.99), eps=1e-14)),
]


@pytest.mark.parametrize(
    ("kind", "constants", "theirs", "options"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_steps_are_torchs(
    kind: str, constants: Constants, theirs: str, options: dict[str, Any], rng: np.random.Generator
) -> None:
    update = UPDATES[kind]
    weights = rng.normal(size=(3, 4))
    parameter = torch.nn.Parameter(torch.tensor(weights))
    optimizer = getattr(torch.optim, theirs)([parameter], lr=RATE, **options)
    history = [np.zeros_like(weights) for _ in range(update.slots)]
    for iteration in range(STEPS):
        gradient = rng.normal(size=weights.shape)
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        diff = gradient.copy()
        factor = 1.0 if update.correction is None else update.correction(iteration, constants)
        update.compute(diff, history, RATE * factor, constants)
        weights = weights - diff
        np.testing.assert_allclose(weights, parameter.detach().numpy(), rtol=1e-11, atol=1e-13)
