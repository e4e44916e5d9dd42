"""The source of one fused kernel for a whole query set.

The file has one function for each LFTA, so that numba compiles many small functions instead of a
huge one; ``run``, which passes a block through all of them batch by batch; and ``flush``.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.aggregation import aggregation_source, plan_aggregation
from gscope.capture.lfta.codegen.names import ALONE_PARAMETERS, BATCH_PARAMETERS, indented
from gscope.capture.lfta.codegen.pre_sample import IMPORTS as PRE_SAMPLE_IMPORTS
from gscope.capture.lfta.codegen.predicate import prefilter_source, shared_predicates
from gscope.capture.lfta.codegen.sampling import SampledSet
from gscope.capture.lfta.codegen.scope import PLAIN_VARIANTS, RECORD_VARIANTS, Literals
from gscope.capture.lfta.codegen.selection import selection_source
from gscope.capture.lfta.codegen.user import user_functions, user_imports
from gscope.capture.lfta.kernel_arguments import (
    RUN_PARAMETERS,
    BatchMemory,
    PacketAddresses,
    PacketRange,
    made_of,
)
from gscope.capture.lfta.state import WORD_NAMES, InterfaceState, LftaState
from gscope.capture.packet.fields import INNER
from gscope.queries.expressions.expressions import Literal, PacketField, walk
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta

_IMPORTS = """\
import numpy as np

from gscope.capture.kernels.language.intrinsics import (
    address_of, be16, be32, be64, bits_float, bswap64, float_bits, float_remainder, floor_divide,
    ld8, ld16, ld32, ld64, ldf64, lshr, prefetch, sdiv, select, shift_left, shift_right, srem, st8,
    st32, st64, stf64, ult, wrap_abs, wrap_add, wrap_mul, wrap_neg, wrap_sub
)
from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.lfta.batch_decoder import (
    HIGHEST_TIME, LIST_ALL, LIST_BYTES, LOWEST_TIME, locate_inners, measure, stage, stage_plain,
    stage_rest
)
from gscope.capture.lfta.kernel_arguments import BatchMemory, PacketAddresses, PacketRange
from gscope.capture.lfta.runtime_kernels import (
    INFINITY, NAN, append_bytes, byte_matches, compare_bytes, contains, copy_words, family_bits,
    first_epoch, fits_int, float_key, float_less, in_subnet, leading_ones, round_half_away,
    same_bytes, starts_with, store_address, swap_words, truncated, wide_less
)
from gscope.capture.lfta.search import is_in_addresses, is_in_floats, is_in_words
from gscope.capture.packet.fast_path import is_plain_ipv4, is_plain_ipv6
from gscope.capture.packet.payload import (
    carries_ports, data_begin, has_echo_header, ip_end, ipv6_low, is_icmp, transport_length,
    udp_data_length
)
from gscope.capture.packet.record import RECORD_BYTES

"""

PREAMBLE = f"{_IMPORTS}# Words of the interface's state and of an LFTA's (``s``).\n{WORD_NAMES}\n"
"""The beginning of every kernel's source, before its functions."""

MAX_PLAIN_LFTAS = 4
"""Limit of LFTAs in a set for which each has code of its own for plain packets, which takes time to
compile."""

INNER_FIELDS = "inner."
"""Prefix of the names of fields of packets inside packets."""


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A query set as source.

    Attributes:
        source: source of a Python module with ``run`` and ``flush``.
        literals: bytes of the STRING literals, whose address kernels get.
        slot_bytes: for each LFTA the bytes of a slot in each of its tables; () for a selection.
        scratch_words: words of scratch for each packet of a batch.
        user_functions: names of the user functions that it calls.
    """

    source: str
    literals: bytes
    slot_bytes: tuple[tuple[int, ...], ...]
    scratch_words: int
    user_functions: tuple[str, ...] = ()


def generate(lftas: Sequence[Lfta], marks: Mapping[str, int] | None = None) -> GeneratedKernel:
    """Return the kernel that runs ``lftas`` side by side.

    Args:
        lftas: the LFTAs.
        marks: for LFTAs that save the packets that pass, by name, the bit that marks these.

    Raises:
        UnsupportedError: an LFTA needs something that kernels do not support.
    """
    literals = Literals()
    for expression in _all_expressions(lftas):
        for part in walk(expression):
            if isinstance(part, Literal) and isinstance(part.value, bytes):
                literals.place(part.value)
    shared = shared_predicates(lftas)
    sampled = SampledSet.of(lftas)
    has_plain = _has_plain(lftas)
    is_alone = has_plain and len(lftas) == 1
    variants = (*PLAIN_VARIANTS, *RECORD_VARIANTS) if has_plain else RECORD_VARIANTS
    parts: list[list[str]] = []
    slot_bytes: list[tuple[int, ...]] = []
    scratch_words = 1
    if shared:
        parts.append(prefilter_source(shared, literals, variants))
    for number, lfta in enumerate(lftas):
        mark = None if marks is None else marks.get(lfta.name)
        if lfta.is_aggregation:
            plan = plan_aggregation(
                lfta,
                number,
                shared,
                literals,
                variants,
                sampled,
                is_alone=is_alone,
                mark=mark,
            )
            parts.append(aggregation_source(plan))
            slot_bytes.append(tuple(table.slot_bytes for table in plan.tables))
            scratch_words = max(scratch_words, plan.scratch_words)
        else:
            parts.append(selection_source(lfta, number, shared, literals, sampled, mark))
            slot_bytes.append(())
    body = [line for part in parts for line in ("", "", *part)]
    stage = "stage_plain" if has_plain else "stage"
    inner = INNER + "record = " in "\n".join(body)
    if is_alone:
        run = _run_alone(sampled)
    else:
        before = [*_before_lftas(bool(shared), inner), *sampled.begin_batch()]
        run = _run(lftas, stage, before, sampled)
    lines = [*body, "", "", *run, "", "", *_flush(lftas)]
    names = ", ".join(lfta.name for lfta in lftas)
    used = user_functions(_all_expressions(lftas))
    lines = [*user_imports(used), *lines]
    thinned = PRE_SAMPLE_IMPORTS if any(each.pre_sample is not None for each in lftas) else ""
    imports = f"{PREAMBLE}{sampled.preamble}{thinned}"
    head = f'"""LFTAs of gscope: {names}. Generated."""\n\n{imports}'
    source = head + "\n".join(lines) + "\n"
    return GeneratedKernel(source, bytes(literals.data), tuple(slot_bytes), scratch_words, used)


def _has_plain(lftas: Sequence[Lfta]) -> bool:
    """Return whether each LFTA decodes plain packets itself, without a record.

    A record pays if many LFTAs share it. Packets inside packets are found through it, and
    selections need one list of all packets in order.
    """
    parts = [part for expression in _all_expressions(lftas) for part in walk(expression)]
    return (
        len(lftas) <= MAX_PLAIN_LFTAS
        and all(lfta.is_aggregation for lfta in lftas)
        and not any(isinstance(x, PacketField) and x.name.startswith(INNER_FIELDS) for x in parts)
    )


def _all_expressions(lftas: Sequence[Lfta]) -> Iterator[Expression]:
    for lfta in lftas:
        if lfta.predicate is not None:
            yield lfta.predicate
        yield from (named.expression for named in (*lfta.keys, *lfta.columns))
        yield from (partial.argument for partial in lfta.partials if partial.argument is not None)
        if lfta.sampling is not None:
            yield from lfta.sampling.terms


def _run_head() -> Iterator[str]:
    yield "@kernel"
    yield "def run("
    yield from indented(textwrap.wrap(", ".join(RUN_PARAMETERS), 92))
    yield "):"
    yield '    """Process packets from ``first`` on.'
    yield ""
    yield "    Returns -1 when done, or the number of the LFTA that needs an empty output buffer."
    yield '    """'
    yield f"    packets = {made_of(PacketAddresses, 'address_of({})')}"
    yield f"    memory = {made_of(BatchMemory)}"
    yield f"    literals = interface[{InterfaceState.LITERALS}]"
    yield "    while first < stop:"
    yield f"        span = {made_of(PacketRange)}"


def _run_alone(sampled: SampledSet) -> Iterator[str]:
    """Yield ``run`` for a single LFTA, which sorts packets itself."""
    yield from _run_head()
    yield from sampled.begin_batch()
    yield f"        if lftas[0, {LftaState.ACTIVE}] != 0:"
    yield "            count = measure(packets, span, memory.lists)"
    arguments = f"{ALONE_PARAMETERS}{sampled.arguments(0)}"
    yield f"            if count != 0 and lfta_0({arguments}, s=lftas[0]):"
    yield f"                interface[{InterfaceState.WAITING}] = 0"
    yield f"                interface[{InterfaceState.POSITION}] = first"
    yield "                return 0"
    yield "        else:"
    yield "            count = stage_plain(packets, span, memory, interface)"
    yield "        if count == 0:"
    yield "            break"
    yield from _run_tail(sampled)


def _before_lftas(has_shared: bool, has_inner: bool) -> Iterator[str]:
    if has_inner:
        yield "        locate_inners(memory.records, memory.inner_records, count)"
    if has_shared:
        yield f"        prefilter({BATCH_PARAMETERS})"


def _run(
    lftas: Sequence[Lfta], stage: str, before: Sequence[str], sampled: SampledSet
) -> Iterator[str]:
    yield from _run_head()
    yield f"        count = {stage}(packets, span, memory, interface)"
    yield "        if count == 0:"
    yield "            break"
    yield from before
    yield f"        resume = interface[{InterfaceState.WAITING}]"
    for number in range(len(lftas)):
        yield f"        if resume <= {number} and lftas[{number}, {LftaState.ACTIVE}] != 0:"
        arguments = f"{BATCH_PARAMETERS}{sampled.arguments(number)}"
        yield f"            if lfta_{number}({arguments}, s=lftas[{number}]):"
        yield f"                interface[{InterfaceState.WAITING}] = {number}"
        yield f"                interface[{InterfaceState.POSITION}] = first"
        yield f"                return {number}"
    yield from _run_tail(sampled)


def _run_tail(sampled: SampledSet) -> Iterator[str]:
    yield from sampled.end_batch()
    yield f"        interface[{InterfaceState.WAITING}] = -1"
    yield "        first += count"
    yield f"    interface[{InterfaceState.POSITION}] = first"
    yield "    return -1"


def _flush(lftas: Sequence[Lfta]) -> Iterator[str]:
    yield "@kernel"
    yield "def flush(number, s, last):"
    yield (
        '    """Emit groups of an LFTA up to the epoch ``last``;'
        ' return False if room ran out (call again)."""'
    )
    for number, lfta in enumerate(lftas):
        if lfta.is_aggregation:
            yield f"    if number == {number}:"
            yield from indented([f"    return flush_{number}(s, last)"])
    yield "    return True"
