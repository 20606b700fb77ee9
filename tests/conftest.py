"""What every test can ask for."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import numpy as np
import pytest

# The same examples in every run, however busy the machine is; more of them with --hypothesis-profile=sweep.
hypothesis.settings.register_profile("astride", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.register_profile("sweep", deadline=None, derandomize=True, max_examples=1000)
hypothesis.settings.load_profile("astride")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers in every run and in every process."""
    return np.random.default_rng(20260)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of handed-over material beside the repository; tests that read it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with the recorded reference material is not here")
    return folder
