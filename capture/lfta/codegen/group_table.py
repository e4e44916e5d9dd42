"""Group tables as code: fold a batch, evict on a collision, flush closed epochs.

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
from gscope.queries.int64 import MAX_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def tables_source(number: int, tables: Sequence[GroupTable]) -> list[str]:
    """Return the functions of all tables of an LFTA.

    They are ``flush_`` and ``fold_batch_`` with its number.
    """
    lines = list(_flush(number, tables))
    return [*lines, "", "", *_fold_batch(number, tables)] if tables else lines


def _emit(table: GroupTable) -> Iterable[str]:
    layout = output_layout(table.lfta)
    yield "@kernel_part"
    yield f"def emit_{table.name}(slot, s):"
    yield '    """Emit the group in a slot as a row."""'
    yield f"    base = s[{LftaState.BASE}]"
    for n in range(table.packing.words):
        yield f"    w{n} = ld64(slot + {WORD * n})"
    # Rows of the newest epoch go to the back: a punctuation will separate them from older ones.
    yield (
        f"    at_back = select("
        f"base + {table.packing.tag.take()} - 1 >= s[{LftaState.PARTING}], 1, 0)"
    )
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
    yield (
        '    """Fold entries of the scratch area into their groups;'
        ' each evicts at most one group."""'
    )
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


def _flush(number: int, tables: Sequence[GroupTable]) -> Iterable[str]:
    yield "@kernel_part"
    yield f"def flush_{number}(s, last):"
    yield (
        '    """Emit all groups of epochs up to ``last``;'
        ' return False if room ran out (call again)."""'
    )
    yield f"    buckets = s[{LftaState.BUCKETS}]"
    for n, table in enumerate(tables):
        begin = f" - {n} * buckets" if n else ""
        yield f"    if s[{LftaState.SWEEP}] < {n + 1} * buckets:"
        yield f"        at = sweep_{table.name}(s, s[{LftaState.SWEEP}]{begin}, buckets, last)"
        yield f"        s[{LftaState.SWEEP}] = at + {n} * buckets"
        yield "        if at < buckets:"
        yield "            return False"
    yield f"    s[{LftaState.SWEEP}] = 0"
    yield (
        f"    s[{LftaState.OLDEST}] = max("
        f"s[{LftaState.OLDEST}], last if last == {MAX_INT} else last + 1)"
    )
    yield "    return True"


def _slow_flush(tables: Sequence[GroupTable]) -> Iterable[str]:
    """Yield code that flushes a few buckets of older epochs.

    So an epoch's end causes no burst. The packets of this batch are not folded yet: groups of their
    epochs stay. When room runs out for a batch, it is processed again, and ``NEWEST`` is its last
    epoch already.
    """
    end = f"{len(tables)} * s[{LftaState.BUCKETS}]"
    yield f"    cursor = s[{LftaState.CURSOR}]"
    yield f"    if cursor < {end}:"
    yield f"        buckets = s[{LftaState.BUCKETS}]"
    yield (
        f"        last = (min(s[{LftaState.NEWEST}], low) if m != 0 else s[{LftaState.NEWEST}]) - 1"
    )
    for n, table in enumerate(tables):
        word = "if" if n == 0 else "elif"
        begin = f" - {n} * buckets" if n else ""
        yield f"        {word} cursor < {n + 1} * buckets:"
        yield f"            bucket = cursor{begin}"
        yield f"            stop = min(bucket + s[{LftaState.SLOW}], buckets)"
        yield f"            reached = sweep_{table.name}(s, bucket, stop, last)"
        yield f"            cursor = reached + {n} * buckets"
        yield "            if reached < stop:"
        yield f"                s[{LftaState.CURSOR}] = cursor"
        yield "                return True"
    yield f"        s[{LftaState.CURSOR}] = cursor"
    yield f"        if cursor == {end}:"
    yield f"            s[{LftaState.OLDEST}] = s[{LftaState.PENDING}]"


def _fold_batch(number: int, tables: Sequence[GroupTable]) -> Iterable[str]:
    """Yield the function that folds a packed batch: the same for all LFTAs with as many tables.

    Sizes are arguments, so that it is translated once (``native/translations.py``).
    """
    letters = [table.name[-1] for table in tables]
    entries = ", ".join(f"entries_{letter}" for letter in letters)
    yield "@kernel_part"
    yield (
        f"def fold_batch_{number}(s, scratch, {entries}, entry_bytes, region_bytes, tags, "
        "at, low, high, without_epoch):"
    )
    yield '    """Fold the entries of a batch; return True if room ran out (call again).'
    yield ""
    yield "    ``tags``: how many epochs the tags of the tables distinguish."
    yield '    """'
    yield "    m = 0"
    for n, letter in enumerate(letters):
        yield f"    begin_{letter} = scratch + {n} * region_bytes"
        yield f"    m += sdiv(entries_{letter} - begin_{letter}, entry_bytes)"
        yield f"    end_{letter} = m"
    yield "    if at == 0:"
    yield from (f"    {line}" for line in _slow_flush(tables))
    yield "    if m == 0:"
    yield f"        s[{LftaState.MATCHED}] += without_epoch"
    yield f"        s[{LftaState.WITHOUT_EPOCH}] += without_epoch"
    yield "        return False"
    yield f"    if high > s[{LftaState.NEWEST}]:"
    yield f"        s[{LftaState.NEWEST}] = high"
    yield f"        s[{LftaState.PENDING}] = high"
    yield f"        s[{LftaState.CURSOR}] = 0"
    yield f"        if s[{LftaState.CAPACITY}] - s[{LftaState.ROWS}] < s[{LftaState.CROWDED}]:"
    yield "            # The next buffer separates its rows at this epoch."
    yield "            return True"
    yield "    while True:"
    yield f"        if s[{LftaState.ROWS}] + m - at > s[{LftaState.CAPACITY}]:"
    yield f"            s[{LftaState.RESUME}] = at"
    yield "            return True"
    yield f"        base = s[{LftaState.BASE}]"
    yield "        end = m"
    yield "        if low < base or not ult(wrap_sub(high, base), tags):"
    yield "            end = at"
    yield "            while end < m:"
    yield f"                epoch = {_epoch_at(letters, 'end')}"
    yield "                if epoch < base or not ult(wrap_sub(epoch, base), tags):"
    yield "                    break"
    yield "                end += 1"
    begin = "0"
    for letter in letters:
        # As if the entries of all tables were adjacent.
        origin = f"begin_{letter} - {begin} * entry_bytes"
        span = f"max(at, {begin}), min(end, end_{letter})"
        yield f"        fold_{number}_{letter}({origin}, s, {span})"
        begin = f"end_{letter}"
    yield "        at = end"
    yield "        if end == m:"
    yield "            break"
    yield "        # Tags have no room for this epoch beside those in the tables: flush them."
    yield f"        if not flush_{number}(s, {MAX_INT}):"
    yield f"            s[{LftaState.RESUME}] = at"
    yield "            return True"
    yield f"        s[{LftaState.BASE}] = first_epoch({_epoch_at(letters, 'at')}, tags)"
    yield f"    s[{LftaState.RESUME}] = 0"
    yield f"    s[{LftaState.MATCHED}] += m + without_epoch"
    yield f"    s[{LftaState.WITHOUT_EPOCH}] += without_epoch"
    yield f"    s[{LftaState.OLDEST}] = min(s[{LftaState.OLDEST}], low)"
    yield f"    s[{LftaState.PENDING}] = min(s[{LftaState.PENDING}], low)"
    yield "    return False"


def _epoch_at(letters: Sequence[str], entry: str) -> str:
    at = f"{entry} * entry_bytes + {WORD}"
    if len(letters) > 1:
        end = f"end_{letters[0]}"
        at += f" + select({entry} < {end}, 0, region_bytes - {end} * entry_bytes)"
    return f"ld64(scratch + {at})"
