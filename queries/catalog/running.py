"""Every running aggregate: its inputs of each epoch, and its meaning over the life of a group.

A running aggregate belongs to a group that lives across epochs (CLOSING_WHEN). At the end of each
epoch it takes a few plain aggregates of the tuples of that epoch alone, its *inputs*, and computes
its value from them and from its state. So the LFTA and Spark reduce an epoch as they always do, and
only one small row for each group and epoch is left for the fold over time (``engine/running``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import Constant, constants_of
from gscope.queries.catalog.aggregate.halves import high_half, is_narrow, low_half
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression, Value

DISTINCT_VALUES = "distinct_values"
"""The input that no query can call: the set of the non-NULL values of an epoch."""

MAX_MOVING_EPOCHS = 1000
"""The longest moving window: the state of a group holds a number for each of its epochs."""

_SUMMED = ("sum",)
_AVERAGED = ("sum", "count")
"""The inputs of a sum or an average over epochs."""

_NUMBERS = frozenset({GsqlType.INT, GsqlType.FLOAT})
_ANY = frozenset(GsqlType) - {GsqlType.NULL}


@dataclass(frozen=True, slots=True)
class RunningEntry:
    """A running aggregate.

    Attributes:
        name: the name in queries and in ``AggregateCall.function``.
        argument_types: the types that its argument may have.
        result: the type of the result; None for the argument's type.
        inputs: the plain aggregates of the argument over one epoch that it reads.
        evaluate: computes the result from the epochs of the group's life so far, each with the
            argument's values in it (``True`` for each tuple of ``running_count(*)``), and the
            constants.
        doc: one sentence that defines it.
        constants: the constants behind the argument.
        takes_star: whether it may be called without an argument.
        is_never_null: whether the result is never NULL; otherwise it is NULL until there is a
            value.
        moves_when_idle: whether its value can change in an epoch without tuples.
        is_ordered: whether a call's arguments end in the order of the input's tuples; values are
            then rows (value, *order).
        sees_end: whether its value depends on the end of the input rather than on tuples;
            ``evaluate`` returns its value before the end.
    """

    name: str
    argument_types: frozenset[GsqlType]
    result: GsqlType | None
    inputs: tuple[str, ...]
    evaluate: Callable[..., Value]
    doc: str
    constants: tuple[Constant, ...] = ()
    takes_star: bool = False
    is_never_null: bool = False
    moves_when_idle: bool = False
    is_ordered: bool = False
    sees_end: bool = False

    def inputs_of(
        self, arguments: tuple[Expression, ...]
    ) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
        """Return the plain aggregates of a call with their arguments.

        A sum or an average over epochs needs exact sums of each epoch; of integers that may be
        large it reads the sums of both halves.
        """
        plain = tuple((name, arguments) for name in self.inputs)
        is_exact = arguments[:1] and (
            arguments[0].type is GsqlType.FLOAT or is_narrow(arguments[0])
        )
        if self.inputs not in (_SUMMED, _AVERAGED) or is_exact:
            return plain
        halves = (("sum", (low_half(arguments),)), ("sum", (high_half(arguments),)))
        return (*halves, *plain[1:])

    def result_type(self, arguments: Sequence[Expression]) -> GsqlType:
        """Return the type of a call's result."""
        return arguments[0].type if self.result is None else self.result


def _sum(values: Sequence[Any]) -> Any:
    return AGGREGATES["sum"].evaluate(values)


def _added(epochs: Sequence[Sequence[Any]]) -> Any:
    """Return the total of the sums of epochs, oldest first, in the argument's arithmetic."""
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
    window = epochs[-length:]
    values = [value for epoch in window for value in epoch if value is not None]
    if not values:
        return None
    total = _added(window) if isinstance(values[0], float) else sum(values)
    return float(total) / float(len(values))


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


def _earliest(epochs: Sequence[Sequence[Any]]) -> Value:
    values = (AGGREGATES["first"].evaluate(rows) for rows in epochs)
    return next((value for value in values if value is not None), None)


def _latest(epochs: Sequence[Sequence[Any]]) -> Value:
    values = (AGGREGATES["last"].evaluate(rows) for rows in reversed(epochs))
    return next((value for value in values if value is not None), None)


def _window_objection(value: Any) -> str:
    if 1 <= value <= MAX_MOVING_EPOCHS:
        return ""
    return f"invalid moving window: expected 1 to {MAX_MOVING_EPOCHS} epochs, got {value}"


def _alpha_objection(value: Any) -> str:
    if 0 < value <= 1:
        return ""
    return f"invalid weight of the newest epoch: expected above 0 to 1, got {value}"


_WINDOW = (Constant("n", GsqlType.INT, _window_objection),)
_WEIGHT = (Constant("alpha", GsqlType.FLOAT, _alpha_objection),)

_ENTRIES = (
    RunningEntry(
        "sum_of_dups",
        _ANY,
        GsqlType.INT,
        ("count", DISTINCT_VALUES),
        _repeats,
        "The number of tuples whose value occurred before in the life of the group: of TCP "
        "sequence numbers the retransmissions, including those that count_dups misses because they "
        "are in another epoch.",
        is_never_null=True,
    ),
    RunningEntry(
        "running_sum",
        _NUMBERS,
        None,
        _SUMMED,
        _added,
        "The sum over all epochs in the life of the group, added oldest first.",
    ),
    RunningEntry(
        "running_count",
        _ANY,
        GsqlType.INT,
        ("count",),
        _count,
        "The number of tuples, or of values that are not NULL, in the life of the group.",
        takes_star=True,
        is_never_null=True,
    ),
    RunningEntry(
        "moving_sum",
        _NUMBERS,
        None,
        _SUMMED,
        _moving_sum,
        "The sum over the last n epochs, including this one; epochs without tuples count.",
        constants=_WINDOW,
        moves_when_idle=True,
    ),
    RunningEntry(
        "moving_avg",
        _NUMBERS,
        GsqlType.FLOAT,
        _AVERAGED,
        _moving_average,
        "The average of all values of the last n epochs.",
        constants=_WINDOW,
        moves_when_idle=True,
    ),
    RunningEntry(
        "ewma",
        _NUMBERS,
        GsqlType.FLOAT,
        _AVERAGED,
        _smoothed,
        "alpha · average of the epoch + (1 - alpha) · previous value; it begins with the first "
        "average, and an epoch without a value does not change it.",
        constants=_WEIGHT,
    ),
    RunningEntry(
        "running_first",
        _ANY,
        None,
        ("first",),
        _earliest,
        "The earliest value in the life of the group; first(x) in a query with CLOSING_WHEN.",
        is_ordered=True,
    ),
    RunningEntry(
        "running_last",
        _ANY,
        None,
        ("last",),
        _latest,
        "The latest value in the life of the group; last(x) in a query with CLOSING_WHEN.",
        is_ordered=True,
    ),
    RunningEntry(
        "at_end",
        frozenset(),
        GsqlType.BOOL,
        (),
        lambda _: False,
        "Whether this is the last epoch because the input ends, so that HAVING can report groups "
        "that are still alive.",
        takes_star=True,
        is_never_null=True,
        sees_end=True,
    ),
)
RUNNING: dict[str, RunningEntry] = {entry.name: entry for entry in _ENTRIES}


def value_of_nothing(function: str, arguments: Sequence[Expression]) -> Value:
    """Return the plain aggregate ``function`` of an epoch without tuples."""
    constants = (constant.value for constant in constants_of(arguments))
    return AGGREGATES[function].evaluate((), *constants)


RUNNING_FORMS: dict[str, str] = {"first": "running_first", "last": "running_last"}
"""Plain aggregates that become running ones in a query with CLOSING_WHEN, and which."""
