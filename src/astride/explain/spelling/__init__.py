"""How each framework writes its operators: reading a call, and writing one.

call.py       text -> a name and values, nothing executed      statements.py  the same of notations that are not Python
form.py       functions with their parameters; what is shared in reading and writing
<framework>   FORMS that are read, CHOICES there are, write(), and how it pads, crops and scales
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...errors import ArgumentError, AstrideError
from ...proto import nearest
from .call import Word, Written, parsed
from .form import Choices, Form, Operation, bound

SPELLINGS = (
    "caffe", "pytorch", "tensorflow", "keras", "jax", "onnx", "mxnet", "chainer", "mlx", "coreml",
    "tflite", "onnxruntime", "openvino", "onednn", "ncnn", "mps", "opencv", "darknet", "numpy_loops", "explicit",
)  # fmt: skip
"""The frameworks whose calls are read and written. The module has the same name."""


def spelling(framework: str) -> Any:
    """A framework's module. Raises ArgumentError: its calls are not known."""
    if framework not in SPELLINGS:
        raise ArgumentError(
            "calls of this framework are not read",
            given={"framework": framework},
            required=f"one of {', '.join(SPELLINGS)}",
            hint=nearest(framework, SPELLINGS),
        )
    return import_module(f"{__name__}.{framework}")


def ranks(framework: str, op: str) -> tuple[int, ...]:
    """How many axes a framework's operator may have."""
    known: dict[str, tuple[int, ...]] = getattr(spelling(framework), "RANKS", {})
    return known.get(op, (1, 2, 3))


def read(framework: str, text: str, *, rank: int | None = None) -> Operation:
    """The operator that a call of this framework makes.

    Arrays are written as names or by their shapes: `F.conv2d(x, (8, 3, 3, 3), stride=2)`.
    Raises ArgumentError: no call, a function the framework has not got, arguments it does not take.
    """
    module = spelling(framework)
    call: Written = module.parse(text) if hasattr(module, "parse") else parsed(text)
    found = [form for form in module.FORMS if form.function == call.function]
    if not found:
        known = list(dict.fromkeys(form.function for form in module.FORMS))
        raise ArgumentError(
            f"{framework} has no such function here",
            given={"call": text},
            required=f"one of {', '.join(known)}",
            hint=nearest(call.function, known),
        )
    form: Form = found[0]
    given = bound(form, call.positional, call.keywords, text)
    try:
        operation: Operation = form.read(given, form.rank or rank)
    except AstrideError:
        raise
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise ArgumentError(
            "an argument is of another kind than this function takes",
            given={"call": text},
            required=f"{form.function}{form.signature}",
            because=str(error),
        ) from error
    return operation


__all__ = ["SPELLINGS", "Choices", "Operation", "Word", "Written", "parsed", "ranks", "read", "spelling"]
