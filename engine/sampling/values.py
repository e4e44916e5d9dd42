"""The tuples that a sampling operator reads, as columns: keys, and numbers for its kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.running.vectors import Vector, compute, from_arrow, to_arrow
from gscope.engine.sampling.payloads import read_column, reads_of, with_columns
from gscope.queries.expressions.expressions import Call, Column, Expression, walk
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gscope.engine.functions.base import Outcome
    from gscope.engine.sampling.payloads import Reads
    from gscope.queries.plan.sampling_operator import SampleNode

    Array = NDArray[Any]


@dataclass(slots=True)
class SampleRows:
    """The tuples of a step in order, after the condition that reads no state.

    Attributes:
        node: the operator.
        table: the input columns that it reads; what payloads are read for is a column of its own.
        outcomes: what came of reading payloads, by function, for all tuples that were tested.
    """

    node: SampleNode
    table: pa.Table
    outcomes: Mapping[str, Counter[Outcome]] = field(default_factory=dict)
    _vectors: dict[Expression, Vector] = field(default_factory=dict)
    _reads: Reads = field(init=False)

    def __post_init__(self) -> None:
        self._reads = reads_of(self.node)

    @classmethod
    def of(cls, node: SampleNode, table: pa.Table) -> SampleRows:
        """Return the tuples of ``table``, in its order, that satisfy the node's predicate."""
        rows = cls(node, table)._with_payloads_read()
        tests = [] if node.predicate is None else [rows.vector(node.predicate).is_true()]
        if node.epoch_expression.is_nullable:
            tests.append(rows.vector(node.epoch_expression).valid)
        if not tests:
            return rows
        kept: Array = np.logical_and.reduce(tests)
        return cls(node, rows.table.filter(pa.array(kept)), rows.outcomes)

    def _with_payloads_read(self) -> SampleRows:
        """Return the tuples with a column for each call that reads payloads, and without these."""
        table = self.table
        outcomes: dict[str, Counter[Outcome]] = {}
        for call, column in self._reads.items():
            assert isinstance(call, Call)
            # An argument that itself reads a payload is counted by a column of its own.
            (payloads,) = (self._computed(argument) for argument in call.arguments)
            values, found = read_column(call, payloads)
            table = table.append_column(column.name, to_arrow(values, column.type))
            outcomes.setdefault(call.function, Counter()).update(found)
        if not self._reads:
            return self
        read = {column.name for each in self._expressions() for column in _columns(each)}
        needed = [name for name in table.column_names if name in read]
        return SampleRows(self.node, table.select(needed), outcomes)

    def _expressions(self) -> Iterator[Expression]:
        """Yield the expressions over the columns of the table."""
        node = self.node
        named = (each.expression for each in (*node.keys, *node.sampling.values))
        for each in (*named, node.predicate, node.order):
            if each is not None:
                yield with_columns(each, self._reads)

    @property
    def count(self) -> int:
        """The number of tuples."""
        rows: int = self.table.num_rows
        return rows

    def vector(self, expression: Expression) -> Vector:
        """Return an expression over input columns, computed once."""
        return self._computed(with_columns(expression, self._reads))

    def _computed(self, expression: Expression) -> Vector:
        known = self._vectors.get(expression)
        if known is None:
            if isinstance(expression, Column):
                known = from_arrow(self.table[expression.name], expression.type)
            else:
                columns = {column.name: column for column in _columns(expression)}
                known = compute(expression, lambda name: self._computed(columns[name]), self.count)
            self._vectors[expression] = known
        return known

    def column(self, expression: Expression) -> pa.Array:
        """Return an expression as a column of Arrow."""
        expression = with_columns(expression, self._reads)
        if isinstance(expression, Column):
            column = self.table[expression.name]
            return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return to_arrow(self._computed(expression), expression.type)

    def keys(self, names: Sequence[str]) -> pa.Table:
        """Return group-by terms as columns of their names."""
        terms = {key.name: key.expression for key in self.node.keys}
        return pa.table({name: self.column(terms[name]) for name in names})

    def supergroup_keys(self) -> pa.Table:
        """Return the terms of SUPERGROUP as columns k0, k1 …; one constant column without any."""
        names = self.node.sampling.supergroup
        if not names:
            return pa.table({"k0": pa.repeat(pa.scalar(0), self.count)})
        return self.keys(names).rename_columns([f"k{number}" for number in range(len(names))])


def _columns(expression: Expression) -> Iterator[Column]:
    return (part for part in walk(expression) if isinstance(part, Column))


@dataclass(frozen=True, slots=True)
class Numbered:
    """Values as numbers.

    Attributes:
        vector: the numbers: of texts and addresses, their ranks.
        ranks: the value of each rank, None where the numbers are the values.
    """

    vector: Vector
    ranks: pa.Array | None = None


def numbered(rows: SampleRows, expression: Expression) -> Numbered:
    """Return the values of an expression as numbers that sort alike."""
    if expression.type not in (GsqlType.STRING, GsqlType.IP):
        return Numbered(rows.vector(expression))
    column = rows.column(expression)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    found = pc.unique(column).drop_null()
    ranks = found.take(pc.sort_indices(found))
    places = pc.index_in(column, ranks)
    valid = places.is_valid().to_numpy(zero_copy_only=False)
    return Numbered(Vector(places.fill_null(0).to_numpy().astype(np.int64), valid), ranks)
