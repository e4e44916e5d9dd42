"""Kernels, their parts and their decoder as LLVM assembly; imported only where one is compiled.

The functions of each LFTA of a kernel are a module of their own, which ``run`` and ``flush`` of
another call: ``run`` once for a batch. LLVM takes a third less time for small modules than for one
with all LFTAs, and each is kept as soon as it is compiled. The module of a kernel with one LFTA is
not divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.language.kinds import Kind, record_of_ints
from gscope.capture.kernels.native.module import KernelModule, Linked
from gscope.capture.kernels.native.source import (
    parameters_of,
    python_function,
    translated_module,
)
from gscope.capture.kernels.native.translations import Translations
from gscope.capture.lfta.batch_decoder import locate_inners, stage, stage_plain, stage_rest
from gscope.capture.lfta.kernel_arguments import (
    RUN_PARAMETERS,
    BatchMemory,
    BlockArrays,
    PacketAddresses,
    PacketRange,
    SamplingRule,
    StateArrays,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from gscope.capture.kernels.language.kinds import AnyKind

_ARRAYS: dict[str, AnyKind] = dict.fromkeys(BlockArrays._fields, Kind.WORDS)
_STATE: dict[str, AnyKind] = {"interface": Kind.WORDS, "lftas": Kind.ROWS}
assert _STATE.keys() == set(StateArrays._fields)
RUN_KINDS = tuple((_ARRAYS | _STATE).get(name, Kind.INT) for name in RUN_PARAMETERS)
"""Kinds of the arguments of ``run``. Arrays of a block are used by their addresses only."""
FLUSH_KINDS: tuple[AnyKind, ...] = (Kind.INT, Kind.WORDS, Kind.INT)
"""Kinds of the arguments of ``flush``: the number of an LFTA, its words, an epoch."""

_RECORDS: tuple[AnyKind, ...] = tuple(
    record_of_ints(each) for each in (PacketAddresses, PacketRange, BatchMemory, SamplingRule)
)
_BATCH: tuple[AnyKind, ...] = (*_RECORDS[:3], Kind.WORDS)
_PARTS: dict[str, AnyKind] = {
    **dict(zip(("packets", "span", "memory", "sampling"), _RECORDS, strict=True)),
    "s": Kind.WORDS,
}
"""Kinds of the arguments of an LFTA's functions, by name; all others are INT."""
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


class KernelTranslator:
    """Translates the modules of a generated kernel.

    Args:
        name: its name.
        text: its source.
        parts: how many LFTAs are modules of their own, which is all or none.

    Attributes:
        name: its name.
    """

    def __init__(self, name: str, text: str, parts: int = 0) -> None:
        self.name = name
        self._module = translated_module(name, text)
        self._parts = parts
        self._translations = Translations()

    def kernel(self) -> str:
        """Return the functions ``run`` and ``flush``, with all that they call."""
        linked = {
            function: Linked(kinds, Kind.INT)
            for number in range(self._parts)
            for function, kinds in _functions(self._module, number)
        }
        made = KernelModule({**DECODER, **linked}, self._translations)
        made.export(self._module.run, RUN_KINDS)
        made.export(self._module.flush, FLUSH_KINDS)
        return str(made)

    def part(self, number: int) -> str:
        """Return the functions of an LFTA, with all that they call."""
        made = KernelModule(DECODER, self._translations)
        for function, kinds in _functions(self._module, number):
            made.export(function, kinds)
        return str(made)


def _functions(module: ModuleType, number: int) -> Iterator[tuple[Any, tuple[AnyKind, ...]]]:
    """Yield the functions of an LFTA that ``run`` and ``flush`` call.

    Each comes with its arguments' kinds.
    """
    for name in (f"lfta_{number}", f"flush_{number}"):
        called = getattr(module, name, None)
        # Selections have no groups to flush.
        if (function := python_function(called)) is not None:
            parameters = parameters_of(function)
            yield called, tuple(_PARTS.get(each, Kind.INT) for each in parameters)
