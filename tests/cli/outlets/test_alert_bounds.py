"""Alerts whose epochs close by punctuation, compared with a plain loop; also across kills."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.outlets.alert_oracle import Expected, ordered
from tests.cli.outlets.test_alerts import (
    COLUMNS,
    FLAPPING,
    HOT,
    AlertRun,
    Rows,
    alerts,
    answers,
    columns_of,
    decoded,
    row,
    server,
    table,
)
from tests.cli.outlets.test_outlets import url

from gscope.cli.outlets.alert import Alert
from gscope.cli.outlets.alert_columns import AlertColumns
from gscope.queries.gsql.alerts.parser import parse_alert

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.outlets.servers import HookServer

__all__ = ["server"]


@dataclass(frozen=True)
class Portion:
    """Rows, the bounds that follow them, and whether the run is killed behind these."""

    rows: Rows
    bounds: tuple[int, ...]
    is_killed: bool


@st.composite
def histories(draw: st.DrawFn) -> list[Portion]:
    """Rows in portions. Bounds behind a portion may fall, and permit all the rows to come."""
    rows = draw(answers())
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    portions = []
    for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        last = rows[end - 1]["tb"] if end else -6
        most = rows[end]["tb"] if end < len(rows) else last + draw(st.sampled_from([1, 3, 2000]))
        bounds = draw(st.lists(st.integers(min(last, most) - 2, most), max_size=3))
        portions.append(Portion(rows[begin:end], tuple(bounds), draw(st.booleans())))
    return portions


@given(st.one_of(alerts(step=1), alerts(step=0)), histories())
def test_an_event_comes_as_soon_as_its_epoch_is_complete(
    expected: Expected, history: list[Portion]
) -> None:
    rule, columns = parse_alert(expected.text), columns_of(expected)
    alert = Alert(rule, columns, 1000, {})
    found: list[dict[str, Any]] = []
    rows: Rows = []
    reached = -100
    for portion in history:
        found += decoded(alert.take(table(portion.rows)))
        rows += portion.rows
        for bound in portion.bounds:
            found += decoded(alert.advance(bound))
            reached = max(reached, bound)
        complete = max([reached, *(each["tb"] for each in rows[-1:])])
        assert ordered(found) == [
            event for event in expected.events(rows, reached) if event["epoch"] < complete
        ]
        if portion.is_killed:
            alert = Alert(rule, columns, 1000, json.loads(json.dumps(alert.state())))
    found += decoded(alert.finish())
    epochs = [event["epoch"] for event in found]
    assert epochs == sorted(epochs)
    assert ordered(found) == expected.events(rows, reached)
    assert alert.late_rows == 0


@given(alerts(), histories())
def test_silence_makes_the_events_that_later_rows_would(
    expected: Expected, history: list[Portion]
) -> None:
    rule, columns = parse_alert(expected.text), columns_of(expected)
    by_bounds, by_rows = Alert(rule, columns, 1000, {}), Alert(rule, columns, 1000, {})
    events: tuple[list[bytes], list[bytes]] = ([], [])
    for portion in history:
        for alert, found in zip((by_bounds, by_rows), events, strict=True):
            found += alert.take(table(portion.rows))
        for bound in portion.bounds:
            events[0].extend(by_bounds.advance(bound))
    # A row of a key that counts for nothing, far behind: neither alert has seen an end.
    far = table([row(10_000, None, "none", 9)])
    assert [*events[0], *by_bounds.take(far)] == [*events[1], *by_rows.take(far)]


def test_bounds_of_falling_epochs_and_of_times() -> None:
    falling = AlertColumns("tb", falls=True, step=1, is_time=False, keys=("host",), value="")
    alert = Alert(parse_alert("q"), falling, 10, {})
    found = decoded(alert.take(table([row(-1, 1)])) + alert.advance(2) + alert.advance(3))
    assert [(each["event"], each["epoch"]) for each in found] == [("raised", -1), ("cleared", -2)]
    minute = 60_000_000_000
    timed = AlertColumns("tb", falls=False, step=minute, is_time=False, keys=("host",), value="")
    alert = Alert(parse_alert("q"), timed, 10, {})
    assert alert.take(table([row(3 * minute, 1)])) == []
    assert [each["event"] for each in decoded(alert.advance(4 * minute))] == ["raised"]
    assert alert.advance(4 * minute) == []
    (cleared,) = decoded(alert.advance(4 * minute + 1))
    assert (cleared["event"], cleared["epoch"]) == ("cleared", 4 * minute)


def test_a_row_of_an_epoch_that_a_bound_has_closed_is_late() -> None:
    alert = Alert(parse_alert("q: raise n > 10"), COLUMNS, 10, {})
    assert alert.take(table([row(1, 12)])) == []
    assert len(alert.advance(4)) == 1
    assert alert.take(table([row(1, 12), row(3, 12)])) == []
    assert alert.late_rows == 2


def test_the_state_on_record_stays_as_it_is_while_nothing_is_in_mind() -> None:
    alert = Alert(parse_alert("q: raise n > 10"), COLUMNS, 10, {})
    alert.take(table([row(1, 5)]))
    before = alert.state()
    assert alert.advance(100) == []
    assert alert.state() == before


# At the end both keys are raised.
RAISED = [each for each in FLAPPING if each["tb"] <= 26]


@pytest.mark.parametrize("recorded", [7, 40])
def test_a_killed_run_sends_the_events_of_a_silence_once(
    tmp_path: Path, server: HookServer, recorded: int
) -> None:
    run = AlertRun(tmp_path, HOT, url(server))
    run.give(RAISED[:recorded])
    run.sink.advance("q", RAISED[recorded]["tb"])
    run.record_and_send()
    # What follows is not on record: it comes again, the last bound a little later.
    run.give(RAISED[recorded:])
    run.sink.advance("q", RAISED[-1]["tb"] + 2)
    run.kill()
    run.resume()
    run.give(RAISED[recorded:])
    run.sink.advance("q", RAISED[-1]["tb"] + 20)
    run.record_and_send()
    run.kill()
    run.resume()
    run.sink.advance("q", RAISED[-1]["tb"] + 30)
    run.close()
    expected = HOT.events(RAISED, RAISED[-1]["tb"] + 30)
    assert len(expected) > len(HOT.events(RAISED))
    assert ordered(found for _, _, found in server.rows) == expected
    assert [number for _, number, _ in server.rows] == list(range(1, len(expected) + 1))
    assert len(server.keys) == len(set(server.keys))
