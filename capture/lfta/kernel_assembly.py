"""Kernels and their decoder as LLVM assembly; imported only where one of them is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.native.kinds import Kind, RecordKind
from gscope.capture.kernels.native.module import KernelModule, Linked
from gscope.capture.lfta.batch_decoder import locate_inners, stage, stage_plain, stage_rest
from gscope.capture.lfta.kernel_arguments import (
    RUN_PARAMETERS,
    BatchMemory,
    BlockArrays,
    PacketAddresses,
    PacketRange,
    StateArrays,
)

if TYPE_CHECKING:
    from types import ModuleType

    from gscope.capture.kernels.native.kinds import AnyKind

_ARRAYS: dict[str, AnyKind] = dict.fromkeys(BlockArrays._fields, Kind.WORDS)
_STATE: dict[str, AnyKind] = {"interface": Kind.WORDS, "lftas": Kind.ROWS}
assert _STATE.keys() == set(StateArrays._fields)
RUN_KINDS = tuple((_ARRAYS | _STATE).get(name, Kind.INT) for name in RUN_PARAMETERS)
"""Kinds of the arguments of ``run``. Arrays of a block are used by their addresses only."""
FLUSH_KINDS: tuple[AnyKind, ...] = (Kind.INT, Kind.WORDS, Kind.INT)
"""Kinds of the arguments of ``flush``: the number of an LFTA, its words, an epoch."""

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


def decoder_assembly() -> str:
    """Return the parts of the decoder that kernels link."""
    made = KernelModule()
    for each, linked in DECODER.items():
        made.export(each, linked.kinds)
    return str(made)


def kernel_assembly(module: ModuleType) -> str:
    """Return the functions ``run`` and ``flush`` of a generated kernel, with all that they call."""
    made = KernelModule(DECODER)
    made.export(module.run, RUN_KINDS)
    made.export(module.flush, FLUSH_KINDS)
    return str(made)
