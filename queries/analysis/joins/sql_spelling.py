"""Outer joins in SQL's spelling: the rows that conditions behind ON and in WHERE leave out.

In ``a LEFT JOIN b ON p WHERE q``, p decides which rows of b match a row of a, and no row of a is
lost by it; q filters the result, in which the columns of a missing b are NULL. In Gigascope's own
spelling, ``LEFT_OUTER_JOIN``, ON and WHERE mean the same, and a condition on one input alone
filters its tuples before the join.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gscope.errors import ResolveError, UnsupportedError
from gscope.queries.gsql.nodes import JoinKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from gscope.queries.gsql import nodes

_OUTER = {JoinKind.OUTER, JoinKind.LEFT_OUTER, JoinKind.RIGHT_OUTER}


class ConjunctPlace(Enum):
    """Where a conjunct behind ON is tested: on its input, on the join before that, or on pairs."""

    OWN = "own"
    BEFORE = "before"
    PAIRS = "pairs"


def is_sql(body: nodes.Select) -> bool:
    """Return whether the outer joins of a SELECT are in SQL's spelling."""
    return any(join.is_sql for join in body.joins)


def check_spelling(body: nodes.Select) -> None:
    """Refuse joins that have no meaning in SQL.

    Raises:
        UnsupportedError: an outer join has no ON, or is in Gigascope's spelling.
    """
    for join in body.joins:
        word = join.kind.value
        if join.kind in _OUTER and not join.is_sql:
            message = (
                f"{word} cannot be combined with an outer join in SQL's spelling, which treats "
                "WHERE differently"
            )
            remedy = (
                f"write both in one spelling: {word.replace('_OUTER_', ' ').replace('_', ' ')} … ON"
            )
            raise UnsupportedError(message, position=join.position, remedy=remedy)
        if join.is_sql and join.on is None:
            message = "an outer join in SQL's spelling needs ON, which says which rows match"
            remedy = f"add ON, or write {word}, whose conditions may stand in WHERE"
            raise UnsupportedError(message, position=join.position, remedy=remedy)


def place_of(
    kind: JoinKind, number: int, inputs: AbstractSet[int], condition: nodes.Expression
) -> ConjunctPlace:
    """Return where a conjunct behind the ON of input ``number``, over ``inputs``, is tested.

    A condition on the side that may be missing filters its rows before the join. One on the side
    that is kept must not, because its rows would be lost.

    Raises:
        ResolveError: the condition reads an input that is joined later.
    """
    if inputs and max(inputs) > number:
        message = "this condition reads an input that is joined later"
        remedy = "move it to the ON of that input"
        raise ResolveError(message, position=condition.position, remedy=remedy)
    is_own, is_before = inputs <= {number}, number not in inputs
    if is_own and kind in (JoinKind.INNER, JoinKind.LEFT_OUTER, JoinKind.WATCHLIST):
        return ConjunctPlace.OWN
    if is_before and kind in (JoinKind.INNER, JoinKind.RIGHT_OUTER):
        return ConjunctPlace.BEFORE
    return ConjunctPlace.PAIRS


def never_missing(joins: Sequence[nodes.JoinClause]) -> frozenset[int]:
    """Return the inputs that are present in every row of the result, whatever the outer joins."""
    kept = {0}
    for number, join in enumerate(joins, start=1):
        if join.kind in (JoinKind.RIGHT_OUTER, JoinKind.OUTER):
            kept.clear()
        if join.kind not in (JoinKind.LEFT_OUTER, JoinKind.OUTER):
            kept.add(number)
    return frozenset(kept)
