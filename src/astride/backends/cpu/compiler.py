"""From IR text to machine code, and from machine code to addresses. No C compiler takes part."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import Any

from .machine import Machine, machine

_lock = threading.RLock()
_loaded: list[Any] = []
"""Everything whose code may run stays here for the life of the process."""


@lru_cache(None)
def _target(m: Machine) -> Any:
    import llvmlite.binding as llvm

    if m.triple == llvm.get_process_triple():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(m.triple)
    return target.create_target_machine(cpu=m.cpu, features=m.features, opt=3, reloc="default", codemodel="jitdefault", jit=True)


def _optimised(text: str, m: Machine) -> tuple[Any, Any]:
    """The verified module after LLVM's passes: registers instead of memory, constants folded, loops straightened.

    Kernels are vectors already, so the passes that look for vectors or unroll loops are left out.
    """
    import llvmlite.binding as llvm

    target = _target(m)
    parsed = llvm.parse_assembly(f'target triple = "{m.triple}"\n{text}')
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.slp_vectorization = False
    options.loop_vectorization = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed, target


def _emitted(text: str, m: Machine, form: str) -> Any:
    """What the target machine makes of a module, which is gone when this returns."""
    parsed, target = _optimised(text, m)
    return getattr(target, form)(parsed)


def compile_object(text: str, m: Machine | None = None) -> bytes:
    """Machine code of a module, as the bytes of an object file."""
    with _lock:
        return bytes(_emitted(text, m or machine(), "emit_object"))


def assembly(text: str, m: Machine | None = None) -> str:
    """The assembly of a module, for people to read and tests to inspect."""
    with _lock:
        return str(_emitted(text, m or machine(), "emit_assembly"))


def load_object(code: bytes, names: tuple[str, ...]) -> tuple[int, ...]:
    """The addresses of an object file's functions, ready to be called.

    LLVM trusts what it loads: `code` must come from `compile_object`, or from a file whose digest says so.
    """
    import llvmlite.binding as llvm

    with _lock:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(machine()))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _loaded.append(engine)
        return tuple(int(engine.get_function_address(name)) for name in names)


if hasattr(os, "register_at_fork"):
    # A fork waits for who compiles: LLVM's own locks would stay locked in the child for ever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
