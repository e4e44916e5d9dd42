"""Every running aggregate: what it reads of each epoch, and its meaning over the life of a group.

A running aggregate belongs to a group that lives across epochs (CLOSING_WHEN). At the end of each epoch it
takes a few plain aggregates of the tuples of that epoch alone, its *inputs*, and makes its value of them and
of its state. So the LFTA and Spark reduce an epoch as they always do, and only one small row a group and
epoch is left for the fold over time (``engine/running``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.catalog.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.plan.expressions import Expression, Value

DISTINCT_VALUES = "distinct_values"
"""The input that is no aggregate of queries: the set of the non-NULL values of an epoch."""

MAX_MOVING_EPOCHS = 1000
"""The longest moving window: the state of a group holds a number for each of its epochs."""

_NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT})
_ANY = frozenset(GsqlType) - {GsqlType.NULL}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that a running aggregate takes behind its argument.

    Attributes:
        objection: what is wrong with a value of that type, "" if nothing is.
    """

    name: str
    type: GsqlType
    objection: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class RunningEntry:
    """A running aggregate.

    Attributes:
        name: as in queries and in ``AggregateCall.function``.
        argument_types: what its argument may be.
        result: None for the argument's type.
        inputs: the plain aggregates of the argument over one epoch that it reads.
        evaluate: the epochs of the group's life so far, each with the argument's values in it (``True``
            for each tuple of ``running_count(*)``), then the constants → result.
        constants: what it takes behind the argument.
        takes_star: whether it may be called without an argument.
        is_never_null: otherwise the result is NULL as long as there was no value.
        moves_when_idle: whether its value can change in an epoch without tuples.
    """

    name: str
    argument_types: frozenset[GsqlType]
    result: GsqlType | None
    inputs: tuple[str, ...]
    evaluate: Callable[..., Value]
    constants: tuple[Constant, ...] = ()
    takes_star: bool = False
    is_never_null: bool = False
    moves_when_idle: bool = False

    def result_type(self, arguments: Sequence[Expression]) -> GsqlType:
        """The type of a call's result."""
        return arguments[0].type if self.result is None else self.result


def _sum(values: Sequence[Any]) -> Any:
    return AGGREGATES["sum"].evaluate(values)


def _added(epochs: Sequence[Sequence[Any]]) -> Any:
    """The sums of epochs added up, oldest first, in the arithmetic of the argument's type."""
    total: Any = None
    for values in epochs:
        part = _sum(values)
        if part is not None:
            total = part if total is None else total + part
            total = wrap(total) if isinstance(total, int) else total
    return total


def _count(epochs: Sequence[Sequence[Any]]) -> int:
    return sum(value is not None for values in epochs for value in values)


def _moving_sum(epochs: Sequence[Sequence[Any]], length: int) -> Value:
    value: Value = _added(epochs[-length:])
    return value


def _moving_average(epochs: Sequence[Sequence[Any]], length: int) -> Value:
    count = _count(epochs[-length:])
    return float(_added(epochs[-length:])) / float(count) if count else None


def _smoothed(epochs: Sequence[Sequence[Any]], alpha: float) -> Value:
    state: float | None = None
    for values in epochs:
        average: Any = AGGREGATES["avg"].evaluate(values)
        if average is not None:
            state = average if state is None else alpha * average + (1.0 - alpha) * state
    return state


def _repeats(epochs: Sequence[Sequence[Any]]) -> int:
    seen = {order_key(v) for values in epochs for v in values if v is not None}
    return _count(epochs) - len(seen)


def _window_objection(value: Any) -> str:
    if 1 <= value <= MAX_MOVING_EPOCHS:
        return ""
    return f"a moving window has from 1 to {MAX_MOVING_EPOCHS} epochs, not {value}"


def _alpha_objection(value: Any) -> str:
    return "" if 0 < value <= 1 else f"the weight of the newest epoch is in (0, 1], not {value}"


_WINDOW = (Constant("n", GsqlType.INT, _window_objection),)
_WEIGHT = (Constant("alpha", GsqlType.FLOAT, _alpha_objection),)

_ENTRIES = (
    # Repetitions over the life of the group: tuples whose value had come before. For TCP sequence
    # numbers these are the retransmissions, which count_dups misses where a flow crosses epochs.
    RunningEntry(
        "sum_of_dups",
        _ANY,
        GsqlType.INT,
        ("count", DISTINCT_VALUES),
        _repeats,
        is_never_null=True,
    ),
    # The sums of all epochs, added up oldest first.
    RunningEntry("running_sum", _NUMBERS, None, ("sum",), _added),
    # Tuples, or non-NULL values, of all epochs.
    RunningEntry(
        "running_count",
        _ANY,
        GsqlType.INT,
        ("count",),
        _count,
        takes_star=True,
        is_never_null=True,
    ),
    # The same over the last n epochs, this one among them; epochs without tuples count.
    RunningEntry(
        "moving_sum",
        _NUMBERS,
        None,
        ("sum",),
        _moving_sum,
        constants=_WINDOW,
        moves_when_idle=True,
    ),
    # The average of all values of the last n epochs.
    RunningEntry(
        "moving_avg",
        _NUMBERS,
        GsqlType.FLOAT,
        ("sum", "count"),
        _moving_average,
        constants=_WINDOW,
        moves_when_idle=True,
    ),
    # s = alpha · average of the epoch + (1 - alpha) · s, beginning with the first average there is;
    # epochs without a value leave it.
    RunningEntry("ewma", _NUMBERS, GsqlType.FLOAT, ("sum", "count"), _smoothed, constants=_WEIGHT),
)
RUNNING: dict[str, RunningEntry] = {entry.name: entry for entry in _ENTRIES}

RUNNING_FORMS: dict[str, str] = {}
"""Plain aggregates that are running ones in a query with CLOSING_WHEN, and what they are then."""
