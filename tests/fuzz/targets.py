"""What a file is given to, and what counts as a finding: anything but an AstrideError, and anything slow."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from astride.errors import AstrideError

LIMIT_BYTES = 2**30
LIMIT_SECONDS = 5.0
NET_BYTES = 64 * 2**20
"""What a network may take: enough for the corpus, and small beside the limit of the process."""


class TooSlow(Exception):
    """Raised by the timer. No AstrideError, so nothing takes it for a refusal."""


def limit_process() -> None:
    """Give this process LIMIT_BYTES of address space and a timer that raises TooSlow. POSIX only.

    The timer counts the process's own seconds: how busy the machine is makes no difference.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    warnings.simplefilter("ignore")


def text(content: bytes) -> None:
    """A prototxt: read, written and read again, then built as a network and run once."""
    from astride.caffe import load_caffe
    from astride.caffe.dialects.choose import read_text
    from astride.proto import Schema, format, parse

    parsed = read_text(content, allow_unknown_fields=True)
    again = parse(format(parsed.message), "NetParameter", schema=Schema.of(parsed.message))
    # As texts: NaN is no equal of itself.
    if format(again.message) != format(parsed.message):
        raise AssertionError("another message after it was written and read again")
    for phase in ("TEST", "TRAIN"):
        net = load_caffe(content, phase=phase, max_memory=NET_BYTES, seed=1)
        if not net.sources and sum(blob.data.size for blob in net.blobs.values()) < 100_000:
            net.forward()


def solver(content: bytes) -> None:
    """A solver's prototxt with the network in it or beside it."""
    from astride.caffe import load_solver

    load_solver(content, net=_SMALL, max_memory=NET_BYTES)


def weights(content: bytes) -> None:
    """A .caffemodel or .h5 into a network of the corpus."""
    from astride.caffe import load_caffe

    load_caffe(_SMALL, content, allow_missing=True, max_memory=NET_BYTES, seed=1)


def binary(content: bytes) -> None:
    """A .caffemodel with the meaning of its fields, as text and back."""
    from astride.caffe.dialects.choose import read_binary
    from astride.caffe.upgrade import upgrade
    from astride.proto import format

    file = read_binary(content, allow_unknown_fields=True)
    format(upgrade(file.message, sized=False).message)


def state(content: bytes) -> None:
    """A .solverstate."""
    from astride.proto import read_solverstate

    read_solverstate(content)


def blob(content: bytes) -> None:
    """A .binaryproto."""
    from astride.proto import read_blob

    read_blob(content)


def message(content: bytes) -> None:
    """Any message, whole."""
    from astride.proto import parse_binary

    parse_binary(content, "SolverParameter")


_SMALL = Path(__file__).with_name("small.prototxt").read_text(encoding="utf-8")

TARGETS: dict[str, Callable[[bytes], None]] = {
    "text": text,
    "solver": solver,
    "weights": weights,
    "binary": binary,
    "state": state,
    "blob": blob,
    "message": message,
}


def attempt(target: str, content: bytes) -> tuple[str, str]:
    """("read" | "refused" | "finding", what happened). Needs `limit_process` for its timer."""
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    start = time.process_time()
    try:
        TARGETS[target](content)
        outcome = "read", ""
    except AstrideError as error:
        # Its message must be fit to be printed, too.
        outcome = "refused", f"{type(error).__name__}: {str(error)[:200]}"
    except TooSlow:
        outcome = "finding", f"TooSlow after {time.process_time() - start:.1f} s: {_place(traceback.extract_stack())}"
    except BaseException as error:
        outcome = "finding", f"{type(error).__name__}: {str(error)[:200]} at {_place(traceback.extract_tb(error.__traceback__))}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome


def _place(frames: Any) -> str:
    """The innermost place in astride's own code."""
    own = [frame for frame in frames if "astride" in frame.filename and "tests" not in frame.filename]
    frame = own[-1] if own else frames[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
