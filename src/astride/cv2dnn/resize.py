"""OpenCV's resizing, which data sources need as well: it lives in data/opencv_resize.py."""

from __future__ import annotations

from ..data.opencv_resize import bilinear

__all__ = ["bilinear"]
