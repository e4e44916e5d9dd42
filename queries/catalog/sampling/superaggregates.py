"""Superaggregates: aggregates over the tuples and groups of a supergroup, written with a ``$``."""

from __future__ import annotations

from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT, GsqlType.TIMESTAMP, GsqlType.INTERVAL})
_SUMMED = frozenset({GsqlType.INT, GsqlType.FLOAT, GsqlType.INTERVAL})


@dataclass(frozen=True, slots=True)
class SuperaggregateEntry:
    """A superaggregate; a group that is removed takes its tuples out of it.

    Attributes:
        types: the types of its argument; () for any type.
        takes_star: whether ``*`` may stand in place of the argument.
        is_of_groups: whether its argument is an expression over the group-by terms, which counts
            once for each live group.
        has_rank: whether a constant number follows the argument.
        is_nullable: whether it is NULL while no group lives.
        returns: the type of the result; None for that of the argument.
        doc: the sentence that defines it.
    """

    types: frozenset[GsqlType]
    doc: str
    takes_star: bool = False
    is_of_groups: bool = False
    has_rank: bool = False
    is_nullable: bool = True
    returns: GsqlType | None = None


COUNT, SUM, MIN, MAX, FIRST = "count", "sum", "min", "max", "first"
COUNT_DISTINCT, KTH_SMALLEST = "count_distinct", "kth_smallest_value"

SUPERAGGREGATES: dict[str, SuperaggregateEntry] = {
    SUM: SuperaggregateEntry(_SUMMED, "The sum of x over the tuples of live groups."),
    COUNT: SuperaggregateEntry(
        frozenset(),
        "The number of tuples of live groups, or of values that are not NULL.",
        takes_star=True,
        is_nullable=False,
        returns=GsqlType.INT,
    ),
    MAX: SuperaggregateEntry(NUMBERS, "The greatest x of the tuples of live groups."),
    MIN: SuperaggregateEntry(NUMBERS, "The least x of the tuples of live groups."),
    COUNT_DISTINCT: SuperaggregateEntry(
        frozenset(),
        "The number of live groups, or of different values of x among them.",
        takes_star=True,
        is_of_groups=True,
        is_nullable=False,
        returns=GsqlType.INT,
    ),
    KTH_SMALLEST: SuperaggregateEntry(
        NUMBERS,
        "The k-th smallest of the different values of x among live groups; the greatest value of "
        "its type while there are fewer.",
        is_of_groups=True,
        has_rank=True,
        is_nullable=False,
    ),
    FIRST: SuperaggregateEntry(NUMBERS, "x of the first tuple of the oldest live group."),
}
"""The superaggregates by name, in lower case."""
