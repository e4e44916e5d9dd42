"""Machine code of kernels: made by LLVM for this processor, kept as an object file, loaded."""

from __future__ import annotations

import functools
import hashlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import llvmlite
from llvmlite import binding as _untyped_binding

if TYPE_CHECKING:
    from pathlib import Path

binding: Any = _untyped_binding

_DIGEST_BYTES = 32


class Optimization(IntEnum):
    """How much LLVM optimises. The code computes the same at each level."""

    NONE = 0
    """Compiled in a twentieth of the time, for a start without delay."""
    FULL = 3


class LoadedCode:
    """Machine code in memory, for as long as this object lives.

    Args:
        codes: what ``machine_code`` returned, for one or several modules that call each other.
    """

    def __init__(self, *codes: bytes) -> None:
        empty = binding.parse_assembly("")
        empty.triple = _machine(Optimization.FULL).triple
        # It takes the target machine over, and so gets one of its own.
        machine = _machine.__wrapped__(Optimization.FULL)
        self._engine = binding.create_mcjit_compiler(empty, machine)
        for code in codes:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of an exported function.

        Raises:
            KeyError: no module exports a function of this name.
        """
        address = int(self._engine.get_function_address(name))
        if address == 0:
            raise KeyError(name)
        return address


def machine_code(assembly: str, optimization: Optimization = Optimization.FULL) -> bytes:
    """Compile a module of LLVM assembly for this processor; return an object file."""
    machine = _machine(optimization)
    module = binding.parse_assembly(_target() + assembly)
    if optimization is not Optimization.NONE:
        tuning = binding.create_pipeline_tuning_options(speed_level=optimization.value)
        tuning.loop_vectorization = True
        tuning.slp_vectorization = False
        passes = binding.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


@functools.cache
def processor() -> str:
    """Return a word for what machine code depends on besides its source."""
    features = binding.get_host_cpu_features().flatten()
    parts = (
        llvmlite.__version__,
        binding.get_host_cpu_name(),
        features,
        _machine(Optimization.FULL).triple,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def write_code(code: bytes) -> bytes:
    """Return the content of a file for machine code, whose damage ``read_code`` notices."""
    return hashlib.sha256(code).digest() + code


def read_code(path: Path) -> bytes | None:
    """Return the machine code in a file; None if it is damaged."""
    content = path.read_bytes()
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if code and hashlib.sha256(code).digest() == digest else None


@functools.cache
def _target() -> str:
    """Return the lines of assembly that say for what a module is compiled.

    Each call of LLVM beside a translation waits for the interpreter's lock; these need none.
    """
    machine = _machine(Optimization.FULL)
    layout = str(machine.target_data)
    return f'target datalayout = "{layout}"\ntarget triple = "{machine.triple}"\n'


@functools.cache
def _machine(optimization: Optimization) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=optimization.value,
        codemodel="jitdefault",
        jit=True,
    )
