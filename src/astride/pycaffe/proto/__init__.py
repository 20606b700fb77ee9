"""Where scripts look for Caffe's messages: `from caffe.proto import caffe_pb2`."""

from __future__ import annotations

from . import caffe_pb2

__all__ = ["caffe_pb2"]
