"""Learning-rate policies: the rate as a pure function of the iteration, seven of them, as Caffe's solvers know them.

`step` and `multistep` count their steps in Caffe's solver (`current_step`) and write the count into the snapshot. The
count is an argument here: `advance` gives the next one, `rate` uses it, and nothing is remembered in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ArgumentError, UnsupportedError

SOURCE = "Caffe, src/caffe/solvers/sgd_solver.cpp, GetLearningRate"


@dataclass(frozen=True, slots=True)
class Policy:
    """A named policy with its parameters, in the names of Caffe's SolverParameter; None where the solver does not say.

    fixed      base_lr
    step       base_lr * gamma ^ (iter // stepsize)
    exp        base_lr * gamma ^ iter
    inv        base_lr * (1 + gamma * iter) ^ -power
    multistep  base_lr * gamma ^ (how many of `stepvalue` have passed)
    poly       base_lr * (1 - iter / max_iter) ^ power
    sigmoid    base_lr / (1 + exp(-gamma * (iter - stepsize)))
    """

    name: str
    base_lr: float
    gamma: float | None = None
    power: float | None = None
    stepsize: int | None = None
    stepvalue: tuple[int, ...] = ()
    max_iter: int | None = None

    def __post_init__(self) -> None:
        if self.name not in POLICIES:
            raise UnsupportedError(
                "unknown learning-rate policy",
                given={"lr_policy": self.name},
                required=f"one of {' '.join(POLICIES)}",
                hint='lr_policy: "step"',
            )
        for parameter in _NEEDS[self.name]:
            if getattr(self, parameter) in (None, ()):
                needed = f"{parameter} in the solver: there is none"
                raise self._error(f"the policy {self.name} needs {parameter}", parameter, needed)
        if not (math.isfinite(self.base_lr) and self.base_lr >= 0):
            raise self._error("the learning rate is no rate", "base_lr", f"0 <= base_lr < inf: {self.base_lr}")
        if self.name == "step" and (self.stepsize or 0) < 1:
            raise self._error("the steps have no length", "stepsize", f"stepsize >= 1: {self.stepsize}")
        if self.name == "poly" and (self.max_iter or 0) < 1:
            raise self._error("poly ends before it begins", "max_iter", f"max_iter >= 1: {self.max_iter}")
        if list(self.stepvalue) != sorted(self.stepvalue):
            raise self._error("the steps go back in time", "stepvalue", f"rising values: {list(self.stepvalue)}")

    def _error(self, problem: str, parameter: str, relation: str) -> ArgumentError:
        return ArgumentError(
            problem,
            given={"lr_policy": self.name, parameter: getattr(self, parameter)},
            required=relation,
            because=SOURCE,
            hint=f"{parameter}: {_EXAMPLE[parameter]}",
        )


def advance(policy: Policy, iteration: int, current_step: int = 0) -> int:
    """The count of steps at `iteration`, given the count before it.

    multistep takes at most one step per iteration, so a run that is restored with other stepvalues behaves as in Caffe.
    """
    if policy.name == "step":
        assert policy.stepsize is not None
        return iteration // policy.stepsize
    if policy.name == "multistep" and current_step < len(policy.stepvalue) and iteration >= policy.stepvalue[current_step]:
        return current_step + 1
    return current_step


def rate(policy: Policy, iteration: int, current_step: int | None = None) -> float:
    """The learning rate of `iteration`; without `current_step`, as in a run that started at iteration 0."""
    if current_step is None:
        passed = sum(iteration >= value for value in policy.stepvalue)
        current_step = passed if policy.name == "multistep" else advance(policy, iteration)
    try:
        return POLICIES[policy.name](policy, iteration, current_step)
    except (OverflowError, ValueError) as error:
        raise ArgumentError(
            f"the learning rate of iteration {iteration} is no number",
            given={"lr_policy": policy.name, "base_lr": policy.base_lr, "gamma": policy.gamma, "power": policy.power},
            required=f"a finite rate: {error}",
            because=SOURCE,
            hint="gamma: 0.1",
        ) from error


def _fixed(policy: Policy, iteration: int, current_step: int) -> float:
    return policy.base_lr


def _stepped(policy: Policy, iteration: int, current_step: int) -> float:
    return policy.base_lr * _given(policy.gamma) ** current_step


def _exp(policy: Policy, iteration: int, current_step: int) -> float:
    return policy.base_lr * _given(policy.gamma) ** iteration


def _inv(policy: Policy, iteration: int, current_step: int) -> float:
    return policy.base_lr * math.pow(1 + _given(policy.gamma) * iteration, -_given(policy.power))


def _poly(policy: Policy, iteration: int, current_step: int) -> float:
    # Past max_iter the base is negative and Caffe's pow gives NaN for most powers; the rate has reached 0 there.
    left = max(0.0, 1 - iteration / _given(policy.max_iter))
    return policy.base_lr * math.pow(left, _given(policy.power))


def _sigmoid(policy: Policy, iteration: int, current_step: int) -> float:
    z = _given(policy.gamma) * (iteration - _given(policy.stepsize))
    # Both forms are 1 / (1 + e^-z); each is used where its exponential cannot overflow.
    return policy.base_lr / (1 + math.exp(-z)) if z >= 0 else policy.base_lr * math.exp(z) / (1 + math.exp(z))


def _given(value: float | None) -> float:
    assert value is not None  # Policy has checked it
    return value


_Rate = Callable[[Policy, int, int], float]
POLICIES: dict[str, _Rate] = {
    "fixed": _fixed,
    "step": _stepped,
    "exp": _exp,
    "inv": _inv,
    "multistep": _stepped,
    "poly": _poly,
    "sigmoid": _sigmoid,
}
_NEEDS: dict[str, tuple[str, ...]] = {
    "fixed": (),
    "step": ("gamma", "stepsize"),
    "exp": ("gamma",),
    "inv": ("gamma", "power"),
    "multistep": ("gamma", "stepvalue"),
    "poly": ("power", "max_iter"),
    "sigmoid": ("gamma", "stepsize"),
}
_EXAMPLE = {"base_lr": "0.01", "gamma": "0.1", "power": "0.75", "stepsize": "1000", "stepvalue": "1000", "max_iter": "10000"}
