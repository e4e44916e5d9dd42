"""The columns of rows that lost packets would have been in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.watermarks.loss_spans import spans_of_period
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.loss_reasons import KERNEL, RESTART
from gscope.queries.streams.losses import LossPeriod

if TYPE_CHECKING:
    from gscope.queries.plan.program import Lfta

SECOND = 1_000_000_000
MINUTE = 1_700_000_040 // 60


def lfta(text: str) -> Lfta:
    (made,) = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program.lftas
    return made


def period(reason: str, first_s: float, last_s: float) -> LossPeriod:
    begin = MINUTE * 60 * SECOND
    return LossPeriod(reason, begin + int(first_s * SECOND), begin + int(last_s * SECOND))


def test_columns_span_what_the_period_does() -> None:
    made = lfta("SELECT tb, count(*) AS n FROM IP GROUP BY time/10 AS tb")
    spans = spans_of_period(made, period(KERNEL, 9.9, 30))
    assert spans == {made.epoch: (6 * MINUTE, 6 * MINUTE + 3)}


def test_with_a_daemon_the_groups_of_its_open_epoch_are_lost() -> None:
    made = lfta("SELECT tm, tb, count(*) AS n FROM IP GROUP BY time/60 AS tm, time/45 AS tb")
    assert made.epoch == "tb"
    first = 1_700_000_040
    # The epoch that is open at the first second of a minute began in the minute before.
    assert first % 60 == 0
    assert first % 45
    lost = LossPeriod(KERNEL, first * SECOND, (first + 50) * SECOND)
    assert spans_of_period(made, lost)["tm"] == (first // 60, first // 60)
    died = spans_of_period(made, replace(lost, reason=RESTART))
    assert died["tm"] == (first // 60 - 1, first // 60)
    assert died["tb"] == (first // 45, (first + 50) // 45)


def test_a_column_that_does_not_follow_from_time_may_hold_anything() -> None:
    made = lfta("SELECT time, srcIP FROM IP WHERE destPort = 80")
    assert set(spans_of_period(made, period(KERNEL, 1, 2))) == {"time"}
