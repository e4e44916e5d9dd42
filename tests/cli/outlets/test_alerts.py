"""Alerts compared with a plain loop, also across kills, bounds and portions of any size."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.outlets.alert_oracle import Expected, ordered
from tests.cli.outlets.servers import HookServer
from tests.cli.outlets.test_outlets import Run, account, counted, url

from gscope.cli.outlets.alert import Alert
from gscope.cli.outlets.alert_columns import AlertColumns, alert_columns
from gscope.cli.outlets.alerts import Alerts
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.gsql.alerts.parser import parse_alert

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = AlertColumns("tb", falls=False, step=1, is_time=False, keys=("host", "port"), value="n")
HOSTS = ["a", 'b "\\', "ü", None]

Rows = list[dict[str, Any]]


def table(rows: Rows) -> pa.Table:
    schema = pa.schema(
        [("tb", pa.int64()), ("host", pa.string()), ("port", pa.int64()), ("n", pa.int64())]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def row(epoch: int, value: int | None, host: str | None = "a", port: int = 1) -> dict[str, Any]:
    return {"tb": epoch, "host": host, "port": port, "n": value}


@st.composite
def answers(draw: st.DrawFn) -> Rows:
    """Rows in the order of their epochs, some of which have none."""
    rows, epoch = [], draw(st.integers(-5, 5))
    for _ in range(draw(st.integers(0, 12))):
        for _ in range(draw(st.integers(1, 5))):
            value = draw(st.none() | st.integers(0, 9))
            rows.append(row(epoch, value, draw(st.sampled_from(HOSTS)), draw(st.integers(1, 2))))
        epoch += draw(st.sampled_from([1, 1, 1, 2, 4, 1000]))
    return rows


@st.composite
def alerts(draw: st.DrawFn, step: int = 1) -> Expected:
    has_threshold = draw(st.booleans())
    silence_clears = draw(st.booleans()) or not has_threshold
    raises = clears = None
    if has_threshold:
        rises = draw(st.booleans())
        high, gap = draw(st.integers(0, 9)), draw(st.integers(0, 4))
        raises = (">" if rises else "<=", high)
        if draw(st.booleans()) or not silence_clears:
            clears = ("<=", high - gap) if rises else (">", high + gap)
    return Expected(
        "up",
        "q",
        "tb",
        ("host", "port"),
        "n" if has_threshold else "",
        raises,
        draw(st.integers(1, 3)),
        clears,
        draw(st.integers(1, 3)),
        silence_clears,
        step,
    )


def columns_of(expected: Expected) -> AlertColumns:
    return AlertColumns(
        "tb",
        falls=False,
        step=expected.step,
        is_time=False,
        keys=("host", "port"),
        value=expected.value,
    )


def decoded(events: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(event) for event in events]


def judged(
    expected: Expected, rows: Rows, cuts: list[int], kills: list[bool]
) -> list[dict[str, Any]]:
    """Return the events of rows that come in portions; the alert is killed behind some of them."""
    rule, columns = parse_alert(expected.text), columns_of(expected)
    alert = Alert(rule, columns, 1000, {})
    events = []
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (begin, end) in enumerate(pairwise(places)):
        events += alert.take(table(rows[begin:end]))
        if kills[number % len(kills)]:
            alert = Alert(rule, columns, 1000, json.loads(json.dumps(alert.state())))
    return decoded(events + alert.finish())


@given(
    st.one_of(alerts(step=1), alerts(step=0)),
    answers(),
    st.lists(st.integers(0, 40), max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_events_are_those_of_a_plain_loop(
    expected: Expected, rows: Rows, cuts: list[int], kills: list[bool]
) -> None:
    found = judged(expected, rows, cuts, kills)
    epochs = [event["epoch"] for event in found]
    assert epochs == sorted(epochs)
    assert ordered(found) == expected.events(rows)


def events_of(text: str, rows: Rows, columns: AlertColumns = COLUMNS) -> list[tuple[Any, ...]]:
    alert = Alert(parse_alert(text), columns, 10, {})
    found = decoded(alert.take(table(rows)) + alert.finish())
    return [(each["event"], each["epoch"], each["value"], each["epochs"]) for each in found]


def test_a_value_between_the_thresholds_neither_raises_nor_clears() -> None:
    rows = [row(epoch, value) for epoch, value in enumerate([12, 9, 12, 12, 9, 7, 9, 7, 7, 12])]
    assert events_of("q: raise n > 10 for 2 epochs, clear n < 8 for 2 epochs", rows) == [
        ("raised", 3, 12, 2),
        ("cleared", 8, 7, 6),
    ]


def test_an_epoch_without_a_row_interrupts_counting_and_clears_only_if_that_is_stated() -> None:
    rows = [row(0, 12), row(2, 12), row(3, 12), row(4, 5), row(6, 5), row(9, 1, "b"), row(10, 5)]
    text = "q: raise n > 10 for 2 epochs, clear n < 8{} for 2 epochs"
    assert events_of(text.format(""), rows) == [("raised", 3, 12, 2)]
    assert events_of(text.format(" or silent"), rows) == [
        ("raised", 3, 12, 2),
        ("cleared", 5, None, 3),
    ]


def test_a_column_that_is_no_time_has_the_epochs_of_the_answer_alone() -> None:
    columns = AlertColumns("tb", falls=False, step=0, is_time=False, keys=("host",), value="")
    rows = [row(0, 1), row(500, 1), row(600, 1, "b")]
    assert events_of("q", rows, columns) == [
        ("raised", 0, None, 1),
        ("cleared", 600, None, 3),
        ("raised", 600, None, 1),
    ]


def test_epochs_may_fall_and_may_be_times() -> None:
    falling = AlertColumns("tb", falls=True, step=1, is_time=False, keys=("host",), value="")
    assert events_of("q", [row(-1, 1), row(-2, 1), row(-5, 1, "b")], falling) == [
        ("raised", -1, None, 1),
        ("cleared", -3, None, 3),
        ("raised", -5, None, 1),
    ]
    second = 1_000_000_000
    timed = AlertColumns("at", falls=False, step=second, is_time=True, keys=(), value="")
    alert = Alert(parse_alert("q"), timed, 10, {})
    times = pa.table({"at": pa.array([0, 5 * second], pa.timestamp("ns"))})
    found = decoded(alert.take(times) + alert.finish())
    assert [(event["event"], event["epoch"][:19].replace(" ", "T")) for event in found] == [
        ("raised", "1970-01-01T00:00:00"),
        ("cleared", "1970-01-01T00:00:01"),
        ("raised", "1970-01-01T00:00:05"),
    ]


def test_rows_without_an_epoch_or_of_a_closed_one_are_not_judged() -> None:
    alert = Alert(parse_alert("q: raise n > 10"), COLUMNS, 10, {})
    rows = [row(0, 5) | {"tb": None, "n": 99}, row(3, 1), row(2, 99), row(2, 99), row(4, 1)]
    assert alert.take(table(rows)) + alert.finish() == []
    assert alert.late_rows == 2


def test_keys_are_bounded_and_those_that_do_not_fit_are_counted() -> None:
    notices: list[str] = []
    rule = parse_alert("q: raise n > 10, clear n < 8")
    alerts = Alerts([(rule, COLUMNS)], 2, notices.append)
    alerts.restore({})
    rows = [row(0, 12, port=port) for port in range(5)] + [row(0, 1, port=9)]
    assert alerts.take("q", table(rows)) == []
    assert "keeps 2 keys in mind and ignores others" in notices[0]
    raised = decoded(alerts.take("q", table([row(1, 1, port=0), row(1, 12, port=1)])))
    assert [event["port"] for event in raised] == [0, 1]
    # The first has been cleared, so that there is room for another.
    cleared = decoded(alerts.take("q", table([row(2, 12, port=4)])))
    assert [(event["event"], event["port"]) for event in cleared] == [("cleared", 0)]
    ((_, last),) = alerts.finish()
    assert [event["port"] for event in decoded(last)] == [4]
    assert "3 rows that count for raising were not judged" in notices[1]
    assert len(alerts.state()[rule.text]["keys"]) == 2


class AlertRun(Run):
    """A run with an alert, whose rows are given as they are."""

    def __init__(self, folder: Path, alert: Expected, *urls: str, **how: Any) -> None:
        rules = [(parse_alert(alert.text), columns_of(alert))]
        super().__init__(folder, *urls, alerts=Alerts(rules, 1000, lambda _: None), **how)

    def give(self, rows: Rows) -> None:
        self.sink.write("q", table(rows))

    def record_and_send(self) -> None:
        """Record what was written, and wait until its events are settled.

        A batch that a kill interrupts may reach the server twice, with the same key.
        """
        self.record()
        self.await_record(self.recorded["outlets"]["spool"]["end"])


@pytest.fixture
def server() -> Iterator[HookServer]:
    made = HookServer()
    yield made
    made.kill()


HOT = Expected("up", "q", "tb", ("host", "port"), "n", (">", 10), 2, ("<", 8), 2, True, 1)
FLAPPING = [
    row(epoch, 12 if epoch % 6 < 3 else 5, host)
    for epoch in range(30)
    for host in ("a", "b")
    if host == "a" or epoch % 7
]


def test_events_go_to_servers_instead_of_rows(tmp_path: Path, server: HookServer) -> None:
    run = AlertRun(tmp_path, HOT, url(server))
    run.give(FLAPPING)
    run.record()
    other = pa.table({"n": pa.array([1, 2])})
    run.sink.write("other", other)
    expected = HOT.events(FLAPPING)
    assert counted(run.close()) == account(len(expected) + 2)
    events = [found for query, _, found in server.rows if query == "q"]
    assert ordered(events) == expected
    assert [found for query, _, found in server.rows if query == "other"] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("recorded", [7, 20, 40])
def test_a_killed_run_neither_repeats_nor_forgets_an_event(
    tmp_path: Path, server: HookServer, recorded: int
) -> None:
    run = AlertRun(tmp_path, HOT, url(server))
    run.give(FLAPPING[:recorded])
    run.record_and_send()
    # These rows are written and not on record: they come again.
    run.give(FLAPPING[recorded : recorded + 11])
    run.kill()
    run.resume()
    run.give(FLAPPING[recorded : recorded + 3])
    run.record_and_send()
    run.kill()
    run.resume()
    run.give(FLAPPING[recorded + 3 :])
    expected = HOT.events(FLAPPING)
    run.close()
    assert ordered(found for _, _, found in server.rows) == expected
    assert [number for _, number, _ in server.rows] == list(range(1, len(expected) + 1))
    assert len(server.keys) == len(set(server.keys))


TALKERS = (
    "DEFINE { query_name 'talkers'; } SELECT tb, srcIP, count(*) AS n FROM IPV4 GROUP BY time/60 AS"
    " tb, srcIP"
)


def bound(alert: str, query: str = TALKERS) -> AlertColumns:
    program = compile_queries([QueryText(query, "q")], CompileContext(("a",))).program
    return alert_columns(parse_alert(alert), program)


def test_the_key_is_what_the_query_groups_by() -> None:
    assert bound("talkers: raise n > 5") == AlertColumns(
        "tb", falls=False, step=1, is_time=False, keys=("srcIP",), value="n"
    )


def test_the_key_is_known_of_what_reads_a_grouping() -> None:
    program = compile_queries(
        [QueryText(TALKERS, "q"), QueryText("SELECT tb, n, srcIP AS who FROM talkers", "few")],
        CompileContext(("a",)),
    ).program
    (query,) = (name for name, _ in program.results)
    assert alert_columns(parse_alert(f"{query}: raise n > 5"), program).keys == ("who",)


def test_without_a_grouping_the_key_is_to_be_named() -> None:
    plain = "DEFINE { query_name plain; } SELECT time, len, srcIP FROM IP"
    with pytest.raises(UsageError, match=r"its key is not known; .* as in 'by srcIP'"):
        bound("plain: raise len > 5", plain)
    assert bound("plain: raise len > 5 by srcIP", plain).keys == ("srcIP",)


@pytest.mark.parametrize(
    ("alert", "reason"),
    [
        ("talker: raise n > 5", "there is no result talker; did you mean talkers?"),
        ("talkers: raise m > 5", "talkers has no column m"),
        ("talkers: raise srcIP > 5", "expected srcIP as INT or FLOAT, got IP"),
        ("talkers: raise n > 5 by scrIP", "talkers has no column scrIP; did you mean srcIP?"),
    ],
)
def test_an_alert_that_does_not_fit_its_query_is_refused(alert: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        bound(alert)
    assert reason in str(caught.value)
