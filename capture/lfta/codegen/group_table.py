"""The group table as code: fold a batch, evict on a collision, flush closed epochs.

A table is an array of buckets of two slots. A slot has the words of its packed key, with the
epoch's tag in the highest bits of one of them, then the state of the partial aggregates. A tag of 0
marks an empty slot. The first slot of a bucket is the one used last; a new group takes its place
and evicts the group in the second slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen import partials as slots
from gscope.capture.lfta.codegen.names import indented
from gscope.capture.lfta.codegen.packing import Packing, unpack
from gscope.capture.lfta.output_layout import output_layout, store
from gscope.capture.lfta.state import LftaState
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.capture.lfta.codegen.partials import SlotPartials
    from gscope.queries.plan.program import Lfta

WORD = 8
ENTRY_HEAD_WORDS = 2
"""Words of a scratch entry before the key: address of the bucket, and epoch."""

_LINE_WORDS = 8

_SWEPT_AHEAD = 8
"""Number of buckets by which a sweep prefetches: a slow flush reaches those with the next batch."""


@dataclass(frozen=True, slots=True)
class GroupTable:
    """One group table of an LFTA.

    Attributes:
        name: suffix of its functions' names, ``<LFTA's number>_a`` or ``_b``.
        address: word of the state with its address.
        entry_words: words of a scratch entry, the same for all tables of an LFTA.
    """

    lfta: Lfta
    name: str
    address: LftaState
    packing: Packing
    partials: SlotPartials
    entry_words: int

    @property
    def slot_words(self) -> int:
        """Words of a slot, rounded up so that small buckets fit cache lines."""
        words = self.packing.words + self.partials.words
        return next((size for size in (2, 4, 8) if words <= size < words + 2), words)

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return self.slot_words * WORD

    @property
    def prefetches(self) -> int:
        """Cache lines of a bucket."""
        return -(-2 * self.slot_words // _LINE_WORDS)


def table_source(table: GroupTable) -> list[str]:
    """Return the functions of a table: ``emit_``, ``fold_`` and ``sweep_`` with its name."""
    return [*_emit(table), "", "", *_fold(table), "", "", *_sweep(table)]


def _emit(table: GroupTable) -> Iterable[str]:
    layout = output_layout(table.lfta)
    yield "@kernel_part"
    yield f"def emit_{table.name}(slot, s):"
    yield '    """Emit the group in a slot as a row."""'
    yield f"    base = s[{LftaState.BASE}]"
    for n in range(table.packing.words):
        yield f"    w{n} = ld64(slot + {WORD * n})"
    # Rows of the newest epoch go to the back: a punctuation will separate them from older ones.
    yield f"    at_back = select(base + {table.packing.tag.take()} - 1 >= s[{LftaState.PARTING}], 1, 0)"
    yield f"    s[{LftaState.CAPACITY}] -= at_back"
    yield f"    row = select(at_back != 0, s[{LftaState.CAPACITY}], s[{LftaState.ROWS}])"
    yield f"    s[{LftaState.ROWS}] += 1 - at_back"
    values = [unpack(key, table.packing) for key in table.packing.keys]
    values += [
        slots.result(table.partials, partial, table.packing.words)
        for partial in table.partials.partials
    ]
    for n, (column, (parts, null)) in enumerate(zip(layout.columns, values, strict=True)):
        yield from indented(store(n, column, parts, null))
    yield f"    s[{LftaState.OUT}] += 1"


def _same_key(table: GroupTable, slot: str) -> str:
    """Return a test of the key that begins with the word of the tag, which differs most often."""
    words = sorted(range(table.packing.words), key=lambda n: n != table.packing.tag.word)
    return " and ".join(f"ld64({slot} + {WORD * n}) == k{n}" for n in words)


def _tag(table: GroupTable, slot: str) -> str:
    tag = table.packing.tag
    word = f"ld64({slot} + {WORD * tag.word})"
    return f"lshr({word}, {tag.shift})" if tag.shift else word


def _fold(table: GroupTable) -> Iterable[str]:
    packing, partials = table.packing, table.partials
    used = packing.words + partials.words
    yield "@kernel_part"
    yield f"def fold_{table.name}(scratch, s, begin, end):"
    yield '    """Fold entries of the scratch area into their groups; each evicts at most one group."""'
    yield f"    base = s[{LftaState.BASE}]"
    yield "    evicted = 0"
    yield "    created = 0"
    yield "    for j in range(begin, end):"
    yield f"        entry = scratch + j * {WORD * table.entry_words}"
    yield "        a = ld64(entry)"
    for n in range(packing.words):
        key = f"ld64(entry + {WORD * (ENTRY_HEAD_WORDS + n)})"
        if n == packing.tag.word:
            key += f" | ((ld64(entry + {WORD}) - base + 1) << {packing.tag.shift})"
        yield f"        k{n} = {key}"
    yield from indented(slots.load_arguments(partials, ENTRY_HEAD_WORDS + packing.words), 2)
    yield f"        if not ({_same_key(table, 'a')}):"
    yield f"            b = a + {table.slot_bytes}"
    yield f"            if {_same_key(table, 'b')}:"
    yield f"                swap_words(a, b, {used})"
    yield "            else:"
    yield f"                if {_tag(table, 'b')} != 0:"
    yield f"                    emit_{table.name}(b, s)"
    yield "                    evicted += 1"
    yield "                created += 1"
    yield f"                copy_words(b, a, {used})"
    for n in range(packing.words):
        yield f"                st64(a + {WORD * n}, k{n})"
    yield from indented(slots.begin(partials, packing.words), 4)
    yield "                continue"
    yield from indented(slots.fold(partials, packing.words), 2)
    yield f"    s[{LftaState.EVICTED}] += evicted"
    yield f"    s[{LftaState.LIVE}] += created - evicted"


def _sweep(table: GroupTable) -> Iterable[str]:
    tag = table.packing.tag
    yield "@kernel_part"
    yield f"def sweep_{table.name}(s, bucket, stop, last):"
    yield '    """Emit the groups of epochs up to ``last`` in buckets up to ``stop``.'
    yield ""
    yield "    Returns the bucket reached, which is less than ``stop`` if room ran out."
    yield '    """'
    yield f"    base = s[{LftaState.BASE}]"
    yield f"    slot = s[{table.address}] + bucket * {2 * table.slot_bytes}"
    yield "    while bucket < stop:"
    yield f"        if s[{LftaState.ROWS}] + 2 > s[{LftaState.CAPACITY}]:"
    yield "            return bucket"
    for line in range(table.prefetches):
        yield f"        prefetch(slot + {2 * table.slot_bytes * _SWEPT_AHEAD + 64 * line})"
    yield "        for way in range(2):"
    yield f"            tag = {_tag(table, 'slot')}"
    yield "            if tag != 0 and base + tag - 1 <= last:"
    yield f"                emit_{table.name}(slot, s)"
    yield f"                st64(slot + {WORD * tag.word}, 0)"
    yield f"                s[{LftaState.LIVE}] -= 1"
    yield f"            slot += {table.slot_bytes}"
    yield "        bucket += 1"
    yield "    return bucket"
