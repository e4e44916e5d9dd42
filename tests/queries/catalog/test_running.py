"""What running aggregates mean, and what plain ones are in an epoch without tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.running import RUNNING, RUNNING_FORMS, value_of_nothing
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value

SAMPLES: dict[GsqlType, Value] = {GsqlType.INT: 2, GsqlType.FLOAT: 0.5, GsqlType.STRING: b"INT"}


@pytest.mark.parametrize(
    ("name", "epochs", "constants", "value"),
    [
        ("sum_of_dups", [[1, 2, 1], [], [2, None, 3]], [], 2),
        ("running_sum", [[None], [1, 2], [(1 << 63) - 1]], [], -(1 << 63) + 2),
        ("running_sum", [[None]], [], None),
        ("running_count", [[1, None], [], [5]], [], 2),
        ("moving_sum", [[9], [1], [], [2]], [3], 3),
        ("moving_sum", [[9], [], []], [2], None),
        ("moving_avg", [[9], [1, 2], [6]], [2], 3.0),
        ("ewma", [[4], [], [2, 2]], [0.25], 3.5),
        ("running_first", [[(None, 1)], [(7, 3), (8, 2)], [(9, 4)]], [], 8),
        ("running_last", [[(7, 3), (8, 2)], [(None, 4)]], [], 7),
    ],
)
def test_a_running_aggregate_is_over_all_epochs(
    name: str, epochs: list[list[object]], constants: list[object], value: object
) -> None:
    assert RUNNING[name].evaluate(epochs, *constants) == value


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_epoch_without_tuples_has_a_count_of_zero_and_else_nothing(name: str) -> None:
    entry = AGGREGATES[name]
    constants = [Literal(SAMPLES[constant.type], constant.type) for constant in entry.constants]
    if entry.knows_type:
        constants.append(Literal(b"INT", GsqlType.STRING))
    value = value_of_nothing(name, (Literal(None, GsqlType.INT), *constants))
    assert value == (0 if entry.is_never_null else None)


def test_every_form_that_runs_is_a_running_aggregate_of_its_plain_one() -> None:
    for plain, running in RUNNING_FORMS.items():
        assert RUNNING[running].inputs == (plain,)
