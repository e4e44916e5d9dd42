"""The columns ``sample_groups``, ``x_low`` and ``x_high``, which describe a sample.

They are calls of catalog functions in the projection above a grouping. At first they stand for what
they are without a sample: 1, x and x. The analysis of sampling replaces their arguments where x is
an estimate (``queries/analysis/sampling/intervals.py``), which adds hidden aggregates to the
grouping::

    SELECT tb, count(*) AS cnt, cnt_low, sample_groups …
    →  estimate_low_int(cnt, 0.0, NULL), sample_groups(1)
    →  estimate_low_int(cnt, cnt * z² * (1 - p) / p², cnt), sample_groups(cnt)

Only the estimate, the first argument of an end, is scaled by 1/p; everything else is of the packets
that were kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Call, Expression, Literal, walk
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.errors import Position

SAMPLE_GROUPS = "sample_groups"
LOW, HIGH = "_low", "_high"
"""The suffixes of the columns with the ends of an interval."""

HIDDEN_AGGREGATE = "$sample"
"""How the names of the aggregates begin that the analysis of sampling adds."""

_TYPES = (GsqlType.INT, GsqlType.FLOAT)
_LOW_ENDS = frozenset(f"estimate_low_{kind.value.lower()}" for kind in _TYPES)
_HIGH_ENDS = frozenset(f"estimate_high_{kind.value.lower()}" for kind in _TYPES)
OF_SAMPLE = frozenset({SAMPLE_GROUPS, *_LOW_ENDS, *_HIGH_ENDS})
"""The functions whose calls are such columns."""


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """A column that describes a sample, as a SELECT names it.

    Attributes:
        name: the name as written, such as ``cnt_low``.
        function: the function of the call that it stands for.
        value: of an end, the estimate; of ``sample_groups``, 1.
        position: its place in the text.
        source: the name of the text in messages.
        text: the whole text, for the marked line of an error.
        basis: what the interval or number is computed from; "" in a row that is exact.
    """

    name: str
    function: str
    value: Expression
    position: Position
    source: str = ""
    text: str = ""
    basis: str = ""

    def is_of(self, part: Call) -> bool:
        """Return whether ``part`` is the call that the column stands for."""
        is_same_value = self.function == SAMPLE_GROUPS or part.arguments[0] == self.value
        return part.function == self.function and is_same_value


def estimated_name(name: str) -> tuple[str, bool] | None:
    """Return x, and whether the end is the low one, for a name such as ``x_low``; else None."""
    for suffix, is_low in ((LOW, True), (HIGH, False)):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], is_low
    return None


def exact_end(value: Expression, *, is_low: bool) -> Call:
    """Return an end of the interval of a value that is exact."""
    return interval_end(value, Literal(0.0, GsqlType.FLOAT), None, is_low=is_low)


def interval_end(
    value: Expression, squared: Expression, least: Expression | None, *, is_low: bool
) -> Call:
    """Return an end of an interval.

    Args:
        value: the estimate, of type INT or FLOAT.
        squared: the square of the half width.
        least: what the low end is at least; None if that is unknown.
        is_low: which end.
    """
    kind = value.type.value.lower()
    if not is_low:
        return call(f"estimate_high_{kind}", value, squared)
    return call(f"estimate_low_{kind}", value, squared, least or Literal(None, value.type))


def variance_factor() -> Expression:
    """Return (1 - p)/p² of the rate p: what a sum of squares over a sample is multiplied by."""
    one, rate = Literal(1.0, GsqlType.FLOAT), call("sample_rate")
    factor = call("div_float", call("sub_float", one, rate), call("mul_float", rate, rate))
    return call("coalesce", factor, Literal(0.0, GsqlType.FLOAT))


def is_low_end(part: Call) -> bool:
    """Return whether a call is the low end of an interval."""
    return part.function in _LOW_ENDS


def sample_groups(groups: Expression) -> Call:
    """Return the column ``sample_groups``, given its value."""
    return call(SAMPLE_GROUPS, groups)


def has_interval(kind: GsqlType) -> bool:
    """Return whether values of a type have intervals."""
    return kind in _TYPES


def describes_sample(expression: Expression, functions: frozenset[str] = OF_SAMPLE) -> bool:
    """Return whether one of these columns is part of an expression."""
    return any(isinstance(part, Call) and part.function in functions for part in walk(expression))
