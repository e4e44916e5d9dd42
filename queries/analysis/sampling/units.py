"""What a sample keeps or drops as one, as far as the rows of a grouping show it.

The variance of an estimate is that of independent units: packets, or groups of packets with one
hash. Where a unit has at most one row in a group of the answer, rows are units. Elsewhere rows fall
into 32 buckets by a hash of the terms of the sample: a unit is in one bucket, so sums over buckets
vary independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.lineage.terms import is_determined, term_of
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.scalar.hashes import HASH_OF
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WindowGroupBy,
)
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.show_expressions import show
from gscope.queries.plan.trees import by_name, substitute
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Term
    from gscope.queries.analysis.sampling.standings import Judge

BUCKETS = 32

_FACTOR = Literal(0x2545F4914F6CDD1D, GsqlType.INT)
"""An odd factor, which makes a hash of several terms depend on their order."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a sample in the rows that a grouping reads.

    Attributes:
        basis: what they are, for explain.
        hash: an INT over the rows that is the same in all rows of a unit; None if each row is a
            unit of its own.
    """

    basis: str
    hash: Expression | None = None


@dataclass(frozen=True, slots=True)
class NoUnits:
    """Why the rows that a grouping reads do not show the units of the sample.

    Attributes:
        message: the reason.
        remedy: what the user can do.
    """

    message: str
    remedy: str


def units_of(tree: TreeNode, judge: Judge) -> Units | NoUnits:
    """Return the units in the rows that a grouping reads.

    Args:
        tree: the grouping, over a sample of rows.
        judge: what the scheme of the result makes of its nodes.
    """
    methods = {judge.scheme.methods[stream] for stream in tree.streams}
    (below,) = tree.inputs
    if methods == {SamplingMethod.TUPLES}:
        if _are_packets(below):
            return Units("the packets of a row")
        return NoUnits(
            "its rows are not single packets, and one packet can be in several",
            "aggregate the packets in one query and read its result in another",
        )
    if _has_one_row_each(tree, judge):
        return Units("the groups of a row")
    found = [_shown_term(term, below, judge) for term in judge.scheme.terms(tree.streams)]
    shown = [each for each in found if each is not None]
    if not found or len(shown) < len(found):
        terms = ", ".join(show(t.over(t.streams[0])) for t in judge.scheme.terms(tree.streams))
        return NoUnits(
            (
                f"the rows that it reads do not show {terms or 'the terms'} by which groups are "
                "sampled"
            ),
            f"select {terms or 'the terms of the sample'} in the query that it reads",
        )
    names = ", ".join(map(show, shown))
    return Units(f"{BUCKETS} buckets of groups by {names}", _hash(shown))


def bucket_of(units: Units) -> Expression:
    """Return the bucket of a row, from 0 to 31."""
    assert units.hash is not None
    return call("bit_and", units.hash, Literal(BUCKETS - 1, GsqlType.INT))


def _are_packets(tree: TreeNode) -> bool:
    """Return whether each row of a node is one packet."""
    match tree.node:
        case Scan():
            return True
        case Filter() | Project() | QueryScan() | Merge():
            return all(map(_are_packets, tree.inputs))
    return False


def _has_one_row_each(tree: TreeNode, judge: Judge) -> bool:
    """Return whether a group of ``tree`` has at most one row for each value of the terms.

    So it is if the rows are those of a grouping each of whose keys is a key of ``tree`` as well, or
    a function of the terms.
    """
    group = tree.node
    assert isinstance(group, GroupBy | WindowGroupBy)
    keys = [key.expression for key in group.keys]
    (below,) = tree.inputs
    while isinstance(below.node, Filter | Project | QueryScan):
        if isinstance(below.node, Project):
            columns = by_name(below.node.columns)
            keys = [substitute(key, columns) for key in keys]
        (below,) = below.inputs
    if not isinstance(below.node, GroupBy | RunningGroupBy | WindowGroupBy):
        return False
    wanted = [key.name for key in below.node.keys]
    if isinstance(below.node, WindowGroupBy) and not _names(keys) & {WINDOW_START, WINDOW_END}:
        return False
    terms = judge.scheme.terms(tree.streams)
    values = judge.sets.traces.columns(below)
    return all(
        name in _names(keys)
        or (set(values[name]) == set(tree.streams) and is_determined(term_of(values[name]), terms))
        for name in wanted
    )


def _names(keys: list[Expression]) -> set[str]:
    """Return the columns that are keys as they are."""
    return {key.name for key in keys if isinstance(key, Column)}


def _shown_term(term: Term, below: TreeNode, judge: Judge) -> Expression | None:
    """Return a term of the sample over the columns of a node; None if they do not show it."""
    if isinstance(_source(below).node, Scan):
        return term.over(below.streams[0])
    for column in below.node.schema.columns:
        values = judge.sets.traces.columns(below).get(column.name, {})
        if set(values) != set(term.streams):
            continue
        leaf = Column(column.name, column.type, column.is_nullable)
        if dict(values) == dict(term.bases):
            return term.cut.applied(leaf)
        if term_of(values) == term:
            return leaf
    return None


def _source(tree: TreeNode) -> TreeNode:
    """Return what the conditions of a node filter."""
    while isinstance(tree.node, Filter):
        (tree,) = tree.inputs
    return tree


def _hash(terms: list[Expression]) -> Expression:
    """Return a hash of the values of all terms; that of NULL is 0."""
    found: Expression | None = None
    for term in terms:
        value: Expression = call(HASH_OF[_hashable(term).type], _hashable(term))
        if value.is_nullable:
            value = call("coalesce", value, Literal(0, GsqlType.INT))
        if found is not None:
            mixed = call("bit_xor", call("mul_int", found, _FACTOR), value)
            value = call(HASH_OF[GsqlType.INT], mixed)
        found = value
    assert found is not None
    return found


def _hashable(term: Expression) -> Expression:
    return call("bool_to_int", term) if term.type is GsqlType.BOOL else term
