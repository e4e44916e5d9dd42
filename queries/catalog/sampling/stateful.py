"""Stateful functions of the sampling operator: functions that share a state for each supergroup.

Johnson, Muthukrishnan and Rozenbaum: Sampling Algorithms in a Stream Operator (SIGMOD 2005). What a
function does with its state is in ``engine/sampling/samplers.py``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

_BOOL, _INT, _FLOAT = GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT


class Clause(Enum):
    """The clauses of a query with the sampling operator, under their names in messages."""

    WHERE = "WHERE"
    AGGREGATE = "the argument of an aggregate"
    CLEANING_WHEN = "CLEANING_WHEN"
    CLEANING_BY = "CLEANING_BY"
    HAVING = "HAVING"
    SELECT = "SELECT"


ANYWHERE = frozenset(Clause)


@dataclass(frozen=True, slots=True)
class StatefulEntry:
    """A stateful function.

    Attributes:
        name: the canonical name, in lower case.
        state: the name of the state, which all functions of the state share.
        parameters: the types of the parameters.
        constants: the places of parameters that must be constants of at least 1.
        returns: the type of the result; a call is NULL, and the state unchanged, if an argument is.
        doc: the sentence that defines it.
        clauses: where it may be called.
        takes_count: whether publications also pass ``count_distinct$(*)`` as a last argument; the
            operator knows that number, so the argument is typed and dropped.
        is_pure: whether it only reads the state.
        code: the class of user code whose method it is, a ``UserState``; None in the library.
    """

    name: str
    state: str
    parameters: tuple[GsqlType, ...]
    returns: GsqlType
    doc: str
    clauses: frozenset[Clause] = ANYWHERE
    constants: frozenset[int] = frozenset()
    takes_count: bool = False
    is_pure: bool = False
    code: Any = None


SUBSET_SUM, LOSSY_COUNT, RESERVOIR = "subset_sum", "lossy_count", "reservoir"

_FLOW = (_BOOL, _INT, _INT, _FLOAT)


def _entry(  # the columns of a table
    name: str,
    state: str,
    parameters: tuple[GsqlType, ...],
    returns: GsqlType,
    clause: Clause | None,
    doc: str,
    constants: tuple[int, ...] = (),
    *,
    takes_count: bool = False,
) -> StatefulEntry:
    clauses = ANYWHERE if clause is None else frozenset({clause})
    is_pure = clause is None
    return StatefulEntry(
        name, state, parameters, returns, doc, clauses, frozenset(constants), takes_count, is_pure
    )


LIBRARY: dict[str, StatefulEntry] = {
    entry.name: entry
    for entry in (
        _entry(
            "ssample",
            SUBSET_SUM,
            (_FLOAT, _INT),
            _BOOL,
            Clause.WHERE,
            "Threshold sampling of tuples of weight x: keep about n for each window.",
            (1,),
        ),
        _entry(
            "ssdo_clean",
            SUBSET_SUM,
            (),
            _BOOL,
            Clause.CLEANING_WHEN,
            "Whether more than twice n groups live; then the threshold doubles.",
            takes_count=True,
        ),
        _entry(
            "ssclean_with",
            SUBSET_SUM,
            (_FLOAT,),
            _BOOL,
            Clause.CLEANING_BY,
            "Whether a group of weight x survives the risen threshold.",
        ),
        _entry(
            "ssfinal_clean",
            SUBSET_SUM,
            (_FLOAT,),
            _BOOL,
            Clause.HAVING,
            "The same at the end of a window, where the threshold rises so that about n remain.",
            takes_count=True,
        ),
        _entry(
            "ssthreshold",
            SUBSET_SUM,
            (),
            _FLOAT,
            None,
            "The threshold z: UMAX(sum(x), ssthreshold()) estimates the weight that a group stands "
            "for.",
        ),
        _entry(
            "flow_ssample",
            SUBSET_SUM,
            (_INT,),
            _BOOL,
            Clause.WHERE,
            "Threshold sampling of whole flows: every tuple is kept, and about n ended flows are.",
            (0,),
        ),
        _entry(
            "flow_ssdo_clean",
            SUBSET_SUM,
            (_INT,),
            _BOOL,
            Clause.CLEANING_WHEN,
            "Whether to look for ended flows: its time, in seconds, has advanced, and more than "
            "twice n flows live.",
        ),
        _entry(
            "flow_ssclean_with",
            SUBSET_SUM,
            _FLOW,
            _BOOL,
            Clause.CLEANING_BY,
            "Whether a flow survives: it is not ended, nor idle for the delay in seconds since its "
            "last time, or its weight survives the threshold.",
            (1,),
        ),
        _entry(
            "flow_ssfinal_clean",
            SUBSET_SUM,
            _FLOW,
            _BOOL,
            Clause.HAVING,
            "The same at the end of a window, where every flow counts as ended.",
            (1,),
        ),
        _entry(
            "local_count",
            LOSSY_COUNT,
            (_INT,),
            _BOOL,
            Clause.CLEANING_WHEN,
            "Whether the tuple is the last of a bucket of w; then the next bucket begins.",
            (0,),
        ),
        _entry(
            "current_bucket",
            LOSSY_COUNT,
            (),
            _INT,
            None,
            "The number of the current bucket, from 1.",
        ),
        _entry(
            "rsample",
            RESERVOIR,
            (_INT,),
            _BOOL,
            Clause.WHERE,
            "Reservoir sampling: whether the tuple is among the n with the least random numbers so "
            "far.",
            (0,),
        ),
        _entry(
            "rsdo_clean",
            RESERVOIR,
            (),
            _BOOL,
            Clause.CLEANING_WHEN,
            "Whether more than twice n groups live.",
            takes_count=True,
        ),
        _entry(
            "rsclean_with",
            RESERVOIR,
            (),
            _BOOL,
            Clause.CLEANING_BY,
            "Whether a group is among the n with the least random numbers.",
        ),
        _entry(
            "rsfinal_clean",
            RESERVOIR,
            (),
            _BOOL,
            Clause.HAVING,
            "The same at the end of a window.",
            takes_count=True,
        ),
    )
}

STATEFUL: dict[str, StatefulEntry] = dict(LIBRARY)
"""The stateful functions by name: the library's, and those of user code."""
