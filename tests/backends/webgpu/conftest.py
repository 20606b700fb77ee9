"""The device, for every test in this folder."""

from __future__ import annotations

from tests.gpu_device import device

__all__ = ["device"]
