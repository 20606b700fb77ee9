"""The device that GPU tests run on: the best there is, a software one too. None: skipped, unless ASTRIDE_REQUIRE_GPU=1."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.setdefault("ASTRIDE_GPU", "any")


def device_or_skip() -> Any:
    """The device of `backend="webgpu"`, shared by all tests of a process."""
    from astride.backends.webgpu.device import shared
    from astride.errors import BackendUnavailable

    try:
        return shared()
    except BackendUnavailable as error:
        if os.environ.get("ASTRIDE_REQUIRE_GPU") == "1":
            raise
        pytest.skip(f"no WebGPU device: {error.problem} (try: {error.hint})")


@pytest.fixture(scope="session")
def device() -> Any:
    """The device, or a skip with the reason."""
    return device_or_skip()
