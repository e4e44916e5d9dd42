"""Joins with numpy inside Spark's tasks: rows are matched by a hash of what must be equal.

Most rows of a join of packets match nothing. A table of bits in which each side looks up the hashes
of the other leaves few rows (Bloom, 1970, with one hash function). These are sorted and searched by
hash, and rows with equal hashes are compared. The sides are in memory; pairs are written in
portions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.spark.sql.interval_join import numbered
from gscope.engine.spark.sql.join_sides import equated
from gscope.engine.spark.tasks.columns import (
    INTEGERS,
    TaskRows,
    columns_of,
    is_column,
    is_computable,
)
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.storage.payload_counts import payload_counts
from gscope.queries.expressions.expressions import Call, Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import first_side
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from gscope.engine.storage.counts import Counts
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import JoinNode

    Array = NDArray[Any]
    Homes = tuple[Expression | None, Expression | None]

PAIRS_AT_ONCE = 1_000_000
"""About how many pairs one portion has; the matches of one row are never split."""

_KEYS = (*INTEGERS, GsqlType.IP, GsqlType.STRING)
_OUTER_SIDES = {
    JoinKind.INNER: (),
    JoinKind.LEFT_OUTER: (0,),
    JoinKind.RIGHT_OUTER: (1,),
    JoinKind.OUTER: (0, 1),
}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_MIN_BITS, _MAX_BITS = 10, 24
_SPARSE = 3
"""The table has at least 2³ places for each row."""


@dataclass(frozen=True, slots=True)
class JoinTask:
    """The join of the rows of the files of both sides by one task.

    Attributes:
        node: the join.
        files: the paths of the files of each side.
        within: for each side, the condition that released rows satisfy; None if all are released.
        homes: of a FULL interval join, for each side, the condition that the rows to be answered
            satisfy; other rows are read as partners only. None if all rows are answered.
    """

    node: JoinNode
    files: tuple[tuple[str, ...], tuple[str, ...]]
    within: tuple[Expression | None, Expression | None] = (None, None)
    homes: Homes = (None, None)

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the pairs, then the rows of outer sides without partners; see ``Task``."""
        task = self
        if self.node.interval is not None:
            task = replace(self, node=numbered(self.node))
        return join_rows(task.node, _sides(task), self.homes, write)


def join_rows(
    node: JoinNode,
    sides: tuple[TaskRows, TaskRows],
    homes: Homes,
    write: Callable[[pa.Table], None],
) -> Counts:
    """Write the pairs of the rows of two sides that pass their predicates; return what was counted.

    Args:
        node: the join, ``numbered`` if it is an interval join.
        sides: the rows; the same object twice if both sides read the same rows.
        homes: as of ``JoinTask``.
        write: receives pairs, at least one table.
    """
    for pairs in _matches(node, *sides, homes):
        write(pa.table({e.name: pairs.column(e.expression) for e in node.columns}))
    left, right = (payload_counts(side.outcomes) for side in sides)
    return left if sides[1] is sides[0] else left + right


def columns_read(node: JoinNode) -> tuple[Column, ...]:
    """Return the columns of both sides that a join reads besides those of its predicates."""
    both = (
        *(each for side in (0, 1) for each in equated(node, side)),
        node.residual,
        *(column.expression for column in node.columns),
    )
    return tuple(columns_of(*both))


def is_plain_join(node: JoinNode) -> bool:
    """Return whether a ``JoinTask`` can evaluate ``node``.

    It computes numbers, and at most compares addresses and texts.
    """
    if node.interval is not None:
        node = numbered(node)
    equal = list(zip(equated(node, 0), equated(node, 1), strict=True))
    conditions = [each for each in (*node.predicates, node.residual) if each is not None]
    return (
        all(one.type is other.type and one.type in _KEYS for one, other in equal)
        and all(is_column(each) for pair in equal for each in pair)
        and all(map(is_computable, conditions))
        and all(is_column(column.expression) for column in node.columns)
    )


def _sides(task: JoinTask) -> tuple[TaskRows, TaskRows]:
    """Return the released rows of both sides that pass their predicates.

    Both are the same object if the sides are the same.
    """
    node = task.node
    conditions = [
        tuple(each and of_one_side(each) for each in pair)
        for pair in zip(task.within, node.predicates, strict=True)
    ]
    read = columns_read(node)

    def rows(side: int, columns: Iterable[Column]) -> TaskRows:
        within, predicate = conditions[side]
        table = read_files(task.files[side], [*columns, *columns_of(within, predicate)])
        return TaskRows.of_table(table).where(within).where(predicate)

    if task.files[0] == task.files[1] and conditions[0] == conditions[1]:
        both_sides = rows(0, read)
        return both_sides, both_sides
    return rows(0, (c for c in read if c.input == 0)), rows(1, (c for c in read if c.input == 1))


def _matches(
    node: JoinNode,
    left: TaskRows,
    right: TaskRows,
    homes: Homes = (None, None),
) -> Iterator[TaskRows]:
    """Yield the pairs in one or more portions, then the unmatched rows of outer sides."""
    sides = (left, right)
    words, valid = _words(node, left, right)
    if node.interval is not None:
        second = 1 - first_side(node.kind)
        doubled, doubled_valid = _in_two_buckets(words[second], valid[second])
        words = (words[0], doubled) if second else (doubled, words[1])
        valid = (valid[0], doubled_valid) if second else (doubled_valid, valid[1])
    outer = _OUTER_SIDES[node.kind]
    is_matched = {side: np.zeros(sides[side].count, np.bool_) for side in outer}
    for chosen in _candidates(words, valid):
        is_equal = np.ones(len(chosen[0]), np.bool_)
        for one, other in zip(*words, strict=True):
            is_equal &= one[chosen[0]] == other[chosen[1]]
        # A row in two buckets has two places.
        places = tuple(each[is_equal] % max(sides[n].count, 1) for n, each in enumerate(chosen))
        pairs = _pairs(sides, (pa.array(places[0]), pa.array(places[1])))
        if node.residual is not None:
            held = pairs.vector(node.residual).is_true()
            places = tuple(each[held] for each in places)
            pairs = pairs.where(node.residual)
        for side in outer:
            is_matched[side][places[side]] = True
        yield pairs.where(homes[first_side(node.kind)])
    for side in outer:
        is_alone = ~is_matched[side]
        home = homes[side]
        if home is not None:
            is_alone &= sides[side].vector(of_one_side(home)).is_true()
        alone = pa.array(np.flatnonzero(is_alone))
        missing = pa.nulls(len(alone), pa.int64())
        yield _pairs(sides, (alone, missing) if side == 0 else (missing, alone))


def _in_two_buckets(words: list[Array], valid: Array) -> tuple[list[Array], Array]:
    """Return all rows in their bucket, the first of their words, then all in the bucket before."""
    bucket, *others = words
    both = [np.concatenate((bucket, bucket - np.uint64(1)))]
    # Several times as fast as np.tile, which holds the interpreter's lock as well.
    doubled = [np.concatenate((word, word)) for word in others]
    return [*both, *doubled], np.concatenate((valid, valid))


def of_one_side(expression: Expression) -> Expression:
    """Return the expression with all columns on side 0, as the rows of one side have them."""
    if isinstance(expression, Column):
        return replace(expression, input=0)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(map(of_one_side, expression.arguments)))
    return expression


def _pairs(sides: tuple[TaskRows, TaskRows], places: tuple[pa.Array, pa.Array]) -> TaskRows:
    """Return rows of both sides side by side; a NULL place stands for a missing row."""

    def leaf(column: Column) -> pa.Array:
        return sides[column.input].flat(replace(column, input=0)).take(places[column.input])

    return TaskRows(len(places[0]), leaf)


def _words(
    node: JoinNode, left: TaskRows, right: TaskRows
) -> tuple[tuple[list[Array], list[Array]], tuple[Array, Array]]:
    """Return the values that must be equal as 64-bit words, and which rows have no NULL in them."""
    words: tuple[list[Array], list[Array]] = ([], [])
    valid = np.ones(left.count, np.bool_), np.ones(right.count, np.bool_)
    for pair in zip(equated(node, 0), equated(node, 1), strict=True):
        one, other = (of_one_side(each) for each in pair)
        columns = left.flat(one), right.flat(other)
        if one.type is GsqlType.STRING:
            columns = _numbered(*columns)
        for side, column in enumerate(columns):
            if column.null_count:
                valid[side][column.is_null().to_numpy(zero_copy_only=False)] = False
        words[0].extend(_words_of(columns[0], one.type))
        is_same = columns[0] is columns[1]
        words[1].extend(words[0][len(words[1]) :] if is_same else _words_of(columns[1], one.type))
    return words, valid


def _numbered(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return numbers for the texts of both sides, equal for equal texts."""
    texts = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in (one, other)
    ]
    numbers = pa.concat_arrays([text.cast(pa.binary()) for text in texts]).dictionary_encode()
    return numbers.indices[: len(one)], numbers.indices[len(one) :]


def _words_of(column: pa.Array, kind: GsqlType) -> list[Array]:
    if kind is not GsqlType.IP:
        return [pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)]
    addresses = column.cast(pa.binary(16))
    data = addresses.buffers()[1]
    halves = np.frombuffer(data, np.uint64, 2 * len(addresses), 16 * addresses.offset)
    return [halves[0::2], halves[1::2]]


def _candidates(
    words: tuple[list[Array], list[Array]], valid: tuple[Array, Array]
) -> Iterator[tuple[Array, Array]]:
    """Yield the places of rows of both sides with equal hashes, in one or more portions."""
    shared = 0
    while shared < len(words[0]) and words[0][shared] is words[1][shared]:
        shared += 1
    common = [_hashed(words[0][:shared], np.zeros(len(valid[0]), np.uint64))]
    common.append(common[0].copy() if shared else np.zeros(len(valid[1]), np.uint64))
    hashes = [_hashed(each[shared:], common[side]) for side, each in enumerate(words)]
    size = max(len(each) for each in valid) << _SPARSE
    bits = min(max(size.bit_length(), _MIN_BITS), _MAX_BITS)
    places = [each >> np.uint64(64 - bits) for each in hashes]
    chosen = [np.flatnonzero(each) for each in valid]
    # Each side in turn loses the hashes that the other side lacks.
    for side, other in ((0, 1), (1, 0)):
        is_there = np.zeros(1 << bits, np.bool_)
        is_there[places[other][chosen[other]]] = True
        chosen[side] = chosen[side][is_there[places[side][chosen[side]]]]
    left, right = chosen
    order = np.argsort(hashes[1][right], kind="stable")
    sorted_hashes, right = hashes[1][right][order], right[order]
    wanted = hashes[0][left]
    first = np.searchsorted(sorted_hashes, wanted, "left")
    counts = np.searchsorted(sorted_hashes, wanted, "right") - first
    found = counts > 0
    left, first, counts = left[found], first[found], counts[found]
    for begin, end in _portions(counts):
        number = counts[begin:end]
        ends = np.cumsum(number)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)
        yield (
            np.repeat(left[begin:end], number),
            right[np.repeat(first[begin:end], number) + within],
        )


def _hashed(words: list[Array], hashes: Array) -> Array:
    """Mix further words into ``hashes``, in place."""
    for word in words:
        hashes ^= word
        hashes *= _GOLDEN
        hashes ^= hashes >> _SHIFT
        hashes *= _GOLDEN
    return hashes


def _portions(counts: Array) -> Iterator[tuple[int, int]]:
    """Yield one or more ranges of rows with about ``PAIRS_AT_ONCE`` matches each."""
    ends = np.cumsum(counts)
    begin = 0
    while True:
        reached = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, reached + PAIRS_AT_ONCE, "right")), begin + 1)
        yield begin, min(end, len(counts))
        begin = end
        if begin >= len(counts):
            return
