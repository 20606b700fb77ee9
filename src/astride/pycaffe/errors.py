"""Errors that are also what scripts written for Caffe catch: RuntimeError, TypeError, AttributeError."""

from __future__ import annotations

from ..errors import ArgumentError, ModelFileError


class CallError(ArgumentError, RuntimeError):
    """A call that Caffe's C++ refuses, which Python sees as a RuntimeError."""


class FileError(ModelFileError, RuntimeError):
    """A file that cannot be opened; Caffe raises RuntimeError."""


class SignatureError(ArgumentError, TypeError):
    """Arguments of a number or kind that a call does not take; Caffe's binding, and protobuf, raise TypeError."""


class FieldError(ArgumentError, AttributeError):
    """A field or constant that a message does not have; protobuf raises AttributeError."""


__all__ = ["CallError", "FieldError", "FileError", "SignatureError"]
