"""Generated kernels as machine code: compiled, kept beside their source, and called."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gscope.capture.kernels.intrinsics import call_at
from gscope.capture.kernels.jit import kernel, note_compiling
from gscope.capture.kernels.native.kinds import Kind, RecordKind
from gscope.capture.kernels.native.machine_code import (
    LoadedCode,
    machine_code,
    processor,
    read_code,
    write_code,
)
from gscope.capture.kernels.native.module import KernelModule, Linked
from gscope.capture.lfta import batch_decoder
from gscope.capture.lfta.batch_decoder import locate_inners, stage, stage_plain, stage_rest
from gscope.capture.lfta.kernel_arguments import (
    RUN_PARAMETERS,
    BatchMemory,
    BlockArrays,
    PacketAddresses,
    PacketRange,
    StateArrays,
)
from gscope.queries.ownership import is_trusted_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gscope.capture.kernels.native.kinds import AnyKind

_ARRAYS: dict[str, AnyKind] = dict.fromkeys(BlockArrays._fields, Kind.WORDS)
_STATE: dict[str, AnyKind] = {"interface": Kind.WORDS, "lftas": Kind.ROWS}
assert _STATE.keys() == set(StateArrays._fields)
RUN_KINDS = tuple((_ARRAYS | _STATE).get(name, Kind.INT) for name in RUN_PARAMETERS)
"""Kinds of the arguments of ``run``. Arrays of a block are used by their addresses only."""
FLUSH_KINDS: tuple[AnyKind, ...] = (Kind.INT, Kind.WORDS, Kind.INT)
"""Kinds of the arguments of ``flush``: the number of an LFTA, its words, an epoch."""


RUN, FLUSH = "gscope_run", "gscope_flush"

_BATCH: tuple[AnyKind, ...] = (
    *(
        RecordKind(each, (Kind.INT,) * len(each._fields))
        for each in (PacketAddresses, PacketRange, BatchMemory)
    ),
    Kind.WORDS,
)
DECODER: dict[Any, Linked] = {
    stage: Linked(_BATCH, Kind.INT),
    stage_plain: Linked(_BATCH, Kind.INT),
    stage_rest: Linked(_BATCH, Kind.NOTHING),
    locate_inners: Linked((Kind.INT,) * 3, Kind.NOTHING),
}
"""The decoder, which is compiled once for all kernels. They call each part once for a batch."""
DECODER_SOURCE = '"""The decoder of all kernels: parts of gscope.capture.lfta.batch_decoder."""\n'
"""The source beside which the decoder's machine code is kept."""


class NativeKernel(NamedTuple):
    """A kernel in memory.

    Attributes:
        run: see ``CompiledKernel``.
        flush: see ``CompiledKernel``.
        address: the address of the code of ``run``.
        code: the code, which must outlive the calls.
    """

    run: Callable[..., int]
    flush: Callable[..., int]
    address: int
    code: LoadedCode


def load_native(path: Path, imported: Callable[[], ModuleType], decoder: Path) -> NativeKernel:
    """Load the machine code of a generated source, or compile it and keep it beside the source.

    Args:
        path: the source.
        imported: returns the source as a module; called only if it must be compiled.
        decoder: where to keep the code of the decoder: the file of ``DECODER_SOURCE``.

    Raises:
        KernelSyntaxError: the source contains what the compiler does not support.
    """
    loaded = LoadedCode(
        _code(decoder, _decoder_assembly, Path(batch_decoder.__file__)),
        _code(path, lambda: _assembly(imported()), path),
    )
    run, flush = loaded.address(RUN), loaded.address(FLUSH)
    return NativeKernel(partial(_call, run), partial(_call, flush), run, loaded)


@kernel
def _call(address: int, *arguments: Any) -> int:
    return call_at(address, arguments)


def _decoder_assembly() -> str:
    made = KernelModule()
    for each, linked in DECODER.items():
        made.export(each, linked.kinds)
    return str(made)


def _assembly(module: ModuleType) -> str:
    made = KernelModule(DECODER)
    made.export(module.run, RUN_KINDS)
    made.export(module.flush, FLUSH_KINDS)
    return str(made)


def _code(path: Path, assembly: Callable[[], str], reported: Path) -> bytes:
    """Return the machine code kept beside a source; compile ``reported`` if there is none."""
    file = path.with_name(f"{path.stem}.{processor()}.o")
    code = _read(file)
    if code is None:
        note_compiling(reported)
        code = machine_code(assembly())
        with suppress(OSError):
            _keep(file, f"{path.stem}.", code)
    return code


def _read(file: Path) -> bytes | None:
    with suppress(OSError):
        if is_trusted_file(file):
            return read_code(file)
    return None


def _keep(file: Path, prefix: str, code: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(".tmp", prefix, file.parent)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(write_code(code))
    Path(temporary).replace(file)
