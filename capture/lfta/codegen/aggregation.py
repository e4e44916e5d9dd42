"""An aggregating LFTA as code: select and pack a batch's packets, fold them into group tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.batch_decoder import IS_USUAL, LIST_ALL, LIST_BYTES
from gscope.capture.lfta.codegen import partials as slots
from gscope.capture.lfta.codegen.epochs import epoch_source, rising_times
from gscope.capture.lfta.codegen.group_table import (
    ENTRY_HEAD_WORDS,
    WORD,
    GroupTable,
    table_source,
    tables_source,
)
from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.marks import mark_packet
from gscope.capture.lfta.codegen.names import ALONE_PARAMETERS, BATCH_PARAMETERS, packet_loop
from gscope.capture.lfta.codegen.packing import pack, plan_packing
from gscope.capture.lfta.codegen.predicate import passes
from gscope.capture.lfta.codegen.scope import PLAIN_VARIANTS, Literals, Lowered, Scope
from gscope.capture.lfta.state import PACKETS_PER_BATCH, InterfaceState, LftaState
from gscope.capture.lfta.value_ranges import ANY_INT
from gscope.capture.packet.layers import PREFETCH_BYTES
from gscope.errors import UnsupportedError
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.capture.lfta.codegen.sampling import SampledSet
    from gscope.capture.lfta.codegen.scope import Variant
    from gscope.capture.lfta.value_ranges import Range
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import Lfta

_EPOCH = "epoch"
"""Variable with a packet's epoch if the epoch is computed for a whole batch."""

# Odd numbers without structure (fractions of the golden ratio, and MurmurHash3's and xxHash's
# constants).
_MULTIPLIERS = (
    -7046029254386353131,
    -4417276706812531889,
    1609587929392839161,
    -8796714831421723037,
    2870177450012600261,
    -49064778989728563,
)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The plan of an aggregating LFTA's code.

    Attributes:
        number: number of the LFTA in the kernel.
        tables: one, or one for packets with IPv4 keys and one for the others.
        scopes: code of each variant whose packets can pass, and its table.
        sampled: whether the set of LFTAs samples.
        is_alone: whether it is the only LFTA of its set, and sorts plain packets while packing.
    """

    lfta: Lfta
    number: int
    tables: tuple[GroupTable, ...]
    scopes: tuple[tuple[Scope, GroupTable], ...]
    sampled: SampledSet
    is_alone: bool

    @property
    def entry_words(self) -> int:
        """Words of a scratch entry."""
        return max((table.entry_words for table in self.tables), default=0)

    @property
    def scratch_words(self) -> int:
        """Words of scratch for each packet of a batch: every table has entries of its own."""
        return self.entry_words * len(self.tables)

    @property
    def parameters(self) -> str:
        """The parameters of ``lfta_<number>``, all but its state ``s``."""
        given = ALONE_PARAMETERS if self.is_alone else BATCH_PARAMETERS
        return f"{given}{self.sampled.parameters}"


@dataclass(slots=True)
class _Pass:
    """A variant whose packets may pass, with its lowered keys and arguments."""

    scope: Scope
    keys: list[Lowered]
    arguments: list[Lowered | None]


def plan_aggregation(
    lfta: Lfta,
    number: int,
    shared: Sequence[Expression],
    literals: Literals,
    variants: Sequence[Variant],
    sampled: SampledSet,
    *,
    is_alone: bool,
    mark: int | None = None,
) -> Aggregation:
    """Decide on variants, tables and slots.

    Args:
        lfta: the LFTA.
        number: its number in the kernel.
        shared: the predicates that LFTAs share.
        literals: the bytes of STRING literals.
        variants: the variants of packets that the kernel distinguishes.
        sampled: whether the set of LFTAs samples.
        is_alone: see ``Aggregation``.
        mark: the bit that it sets in the marks of packets that pass; None to mark none.

    Raises:
        UnsupportedError: kernels do not support a key, the epoch or a partial aggregate.
    """
    _check_epoch(lfta)
    ways = []
    for variant in variants:
        scope = Scope(variant, literals, indent=3 if is_alone and variant.is_plain else 2)
        if passes(scope, lfta.predicate, shared, "continue"):
            sampled.keep(scope, lfta)
            keys = [_key(scope, lfta, key) for key in lfta.keys]
            ways.append(_Pass(scope, keys, slots.lower_arguments(scope, lfta.partials)))
    narrow = [way for way in ways if way.scope.variant.version == 4 and _has_ipv4_key(way)]
    wide = [way for way in ways if way not in narrow]
    groups = [members for members in (narrow, wide) if members]
    plans = [
        (
            plan_packing(lfta.keys, lfta.epoch, [way.keys for way in members]),
            slots.plan_partials(lfta.partials, [way.arguments for way in members]),
        )
        for members in groups
    ]
    entry_words = max(
        (ENTRY_HEAD_WORDS + keys.words + states.arguments for keys, states in plans), default=0
    )
    tables, scopes = [], []
    places = (("a", LftaState.TABLE_A), ("b", LftaState.TABLE_B))
    for (letter, address), members, (packing, states) in zip(places, groups, plans, strict=False):
        table = GroupTable(lfta, f"{number}_{letter}", address, packing, states, entry_words)
        tables.append(table)
        for way in members:
            _finish(way, table, mark)
            scopes.append((way.scope, table))
    return Aggregation(lfta, number, tuple(tables), tuple(scopes), sampled, is_alone)


def _key(scope: Scope, lfta: Lfta, key: NamedExpression) -> Lowered:
    if key.name == lfta.epoch and rising_times(key.expression) is not None:
        # Computed for the whole batch, see ``_begin_epochs``.
        return Lowered(key.expression.type, (_EPOCH,))
    return lower(scope, key.expression)


def _epoch(lfta: Lfta) -> Expression:
    return next(key.expression for key in lfta.keys if key.name == lfta.epoch)


def _check_epoch(lfta: Lfta) -> None:
    epoch = _epoch(lfta)
    ordering = lfta.schema[lfta.epoch or ""].ordering
    integers = (GsqlType.INT, GsqlType.TIMESTAMP, GsqlType.INTERVAL)
    if epoch.type not in integers or ordering.direction is not Direction.INCREASING:
        message = f"the epoch {lfta.epoch!r} of {lfta.name!r} is not an increasing integer"
        raise UnsupportedError(message)


def _has_ipv4_key(way: _Pass) -> bool:
    return any(key.is_ipv4 and not key.is_literal for key in way.keys)


def _finish(way: _Pass, table: GroupTable, mark: int | None) -> None:
    """Add the code that writes the scratch entry of a packet that passed."""
    scope, lfta = way.scope, table.lfta
    epoch = next(x for key, x in zip(lfta.keys, way.keys, strict=True) if key.name == lfta.epoch)
    if epoch.null is not None:
        scope.emit(f"if {epoch.null}:")
        scope.emit("    without_epoch += 1")
        scope.emit("    continue")
    if epoch.code == _EPOCH:
        scope.emit("if not is_one_epoch:")
        scope.emit(f"    {_EPOCH} = epoch_{table.name[:-2]}(ld64(packets.time_ns + 8 * p))")
        scope.emit(f"    low = min(low, {_EPOCH})")
        scope.emit(f"    high = max(high, {_EPOCH})")
    else:
        scope.emit(f"low = min(low, {epoch.code})")
        scope.emit(f"high = max(high, {epoch.code})")
    words = pack(scope, table.packing, way.keys)
    scope.emit(f"h = {words[0]}")
    for n, word in enumerate(words):
        before = "0" if n == 0 else "h"
        scope.emit(
            f"h = wrap_mul({before} ^ lshr({word}, 32) ^ {word}, "
            f"{_MULTIPLIERS[n % len(_MULTIPLIERS)]})"
        )
    scope.emit("h = wrap_mul(h ^ lshr(h, 29), -49064778989728563)")
    scope.emit(f"bucket = table_{table.name} + lshr(h, shift) * {2 * table.slot_bytes}")
    for line in range(table.prefetches):
        scope.emit(f"prefetch(bucket + {64 * line})")
    entries = f"entries_{table.name}"
    scope.emit(f"entry = {entries}")
    scope.emit("st64(entry, bucket)")
    scope.emit(f"st64(entry + {WORD}, {epoch.code})")
    for n, word in enumerate(words):
        scope.emit(f"st64(entry + {WORD * (ENTRY_HEAD_WORDS + n)}, {word})")
    slots.stash(scope, table.partials, way.arguments, ENTRY_HEAD_WORDS + table.packing.words)
    scope.emit(f"{entries} += {WORD * table.entry_words}")
    if mark is not None:
        # A batch that is processed again, because room ran out, sets the same bits.
        mark_packet(scope, mark)


def aggregation_source(plan: Aggregation) -> list[str]:
    """Return the functions of an aggregating LFTA; ``lfta_<number>`` processes a batch."""
    lines = [line for table in plan.tables for line in (*table_source(table), "", "")]
    if rising_times(_epoch(plan.lfta)) is not None:
        lines += [*epoch_source(plan.number, _epoch(plan.lfta)), "", ""]
    return [*lines, *tables_source(plan.number, plan.tables), "", "", *_take(plan)]


def _take(plan: Aggregation) -> Iterable[str]:
    yield "@kernel_part"
    yield f"def lfta_{plan.number}({plan.parameters}, s):"
    yield (
        f'    """Process a batch for {plan.lfta.name}; return True if room ran out (call again)."""'
    )
    if not plan.tables:
        if plan.is_alone:
            yield from _sort_and_pack(plan)
        yield "    return False"
        return
    yield f"    at = s[{LftaState.RESUME}]"
    yield f"    shift = s[{LftaState.SHIFT}]"
    yield "    without_epoch = 0"
    yield f"    low = {MAX_INT}"
    yield f"    high = {MIN_INT}"
    times = rising_times(_epoch(plan.lfta))
    if times is not None:
        yield from _begin_epochs(plan.number, times)
    for n, table in enumerate(plan.tables):
        yield f"    table_{table.name} = s[{table.address}]"
        yield f"    entries_{table.name} = memory.scratch + {n * _region_bytes(plan)}"
    if plan.is_alone:
        yield from _sort_and_pack(plan)
    for scope, _ in plan.scopes:
        if not (plan.is_alone and scope.variant.is_plain):
            yield from packet_loop(scope.variant)
            yield from scope.lines
    entries = ", ".join(f"entries_{table.name}" for table in plan.tables)
    tags = min(table.packing.tags for table in plan.tables)
    sizes = f"{WORD * plan.entry_words}, {_region_bytes(plan)}, {tags}"
    yield (
        f"    return fold_batch_{plan.number}("
        f"s, memory.scratch, {entries}, {sizes}, at, low, high, without_epoch)"
    )


def _sort_and_pack(plan: Aggregation) -> Iterable[str]:
    """Yield code that packs plain packets in one pass, and lists and decodes all others."""
    plain = {scope.variant: scope.lines for scope, _ in plan.scopes if scope.variant.is_plain}
    rest = LIST_BYTES * LIST_ALL
    yield f"    plain = count if ld64(memory.lists + {IS_USUAL}) != 0 else 0"
    yield "    rest = 0"
    yield "    for i in range(plain):"
    yield "        p = span.first + i"
    yield "        base = packets.data + ld64(packets.offset + 8 * p)"
    yield "        caplen = ld32(packets.caplen + 4 * p)"
    yield f"        prefetch(base + {PREFETCH_BYTES})"
    word = "if"
    for variant in PLAIN_VARIANTS:
        yield f"        {word} is_plain_ipv{variant.version}(base, caplen):"
        yield from plain.get(variant, ["            continue"])
        word = "elif"
    yield "        else:"
    yield f"            st64(memory.lists + {rest + 8} + 8 * rest, i)"
    yield "            rest += 1"
    yield "    for i in range(plain, count):"
    yield f"        st64(memory.lists + {rest + 8} + 8 * rest, i)"
    yield "        rest += 1"
    yield f"    st64(memory.lists + {rest}, rest)"
    yield f"    if interface[{InterfaceState.WAITING}] < 0:"
    yield f"        interface[{InterfaceState.REASONS}] += count - rest"
    yield "    stage_rest(packets, span, memory, interface)"


def _begin_epochs(number: int, times: Range) -> Iterable[str]:
    """Yield code that avoids divisions for each packet if a batch has a single epoch.

    Args:
        number: the number of the LFTA.
        times: the times between which the epoch never falls.
    """
    lowest, highest = (f"ld64(memory.lists + {end}_TIME)" for end in ("LOWEST", "HIGHEST"))
    yield f"    {_EPOCH} = epoch_{number}({lowest})"
    yield f"    is_one_epoch = {_EPOCH} == epoch_{number}({highest})"
    if times != ANY_INT:
        yield f"    if {lowest} < {times.low} or {highest} > {times.high}:"
        yield "        is_one_epoch = False"
    yield "    if is_one_epoch:"
    yield f"        low = {_EPOCH}"
    yield f"        high = {_EPOCH}"


def _region_bytes(plan: Aggregation) -> int:
    """Return the bytes of a table's part of the scratch area."""
    return WORD * plan.entry_words * PACKETS_PER_BATCH
