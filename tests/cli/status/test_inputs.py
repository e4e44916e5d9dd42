"""The inputs of a relay in ``gscope status``, in the JSON document and in the metrics."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from rich.console import Console, Group
from tests.cli.status.run_folder import run_folder

from gscope.capture.log.agent.client import ClockReading
from gscope.capture.relay.input_status import InputStatus
from gscope.cli.rundir.records import choose_run
from gscope.cli.status.document import status_document
from gscope.cli.status.prometheus import exposition
from gscope.cli.status.run_list import problems
from gscope.cli.status.view import status_view
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"
SECOND_NS = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def status(clock: Callable[[], int], absent_after_s: int | None = None) -> InputStatus:
    absent_ns = None if absent_after_s is None else absent_after_s * SECOND_NS
    return InputStatus("a", "sensor1:9470", 5 * SECOND_NS, absent_ns, clock)


def test_an_input_fails_is_left_out_and_returns() -> None:
    clock = Clock()
    each = status(clock, absent_after_s=20)
    assert (str(each.state), each.look()) == ("connecting", None)
    each.on_connected()
    assert each.on_received(7) is None
    assert str(each.state) == "up"
    clock.now_ns = 6 * SECOND_NS
    assert each.look() == "silent for 6 s; answers wait for it"
    assert each.look() is None
    assert (str(each.state), each.is_stuck) == ("failed", True)
    clock.now_ns = 21 * SECOND_NS
    assert "answers continue without it" in (each.look() or "")
    assert each.absences_total == 1
    assert each.on_received(None) == "answers again"
    assert (str(each.state), each.last_heartbeat_ns) == ("up", 7)


def test_an_input_that_is_refused_says_why_once() -> None:
    each = status(Clock())
    assert each.on_disconnected("wrong token", is_refused=True) == "wrong token"
    assert each.on_disconnected("wrong token", is_refused=True) is None
    assert (str(each.state), each.reason) == ("refused", "wrong token")


def document(work: Path, each: InputStatus | None = None) -> Any:
    each = each or status(Clock())
    each.on_disconnected("connection refused", is_refused=False)
    counters = dict.fromkeys(
        (
            "streams",
            "received_tuples_total",
            "received_answers_total",
            "received_bytes",
            "held_tuples",
        ),
        1200,
    )
    losses = {"late_tuples_total": 3, "shed_tuples_total": 0}
    fields = {**each.fields(), **counters, **losses, "lag_ns": None, "gaps": []}
    fields["is_awaited"] = True
    with run_folder(work) as run_dir:
        path = run_dir.path / CAPTURE_STATISTICS_FILE
        written = json.loads(path.read_text())
        other = {**fields, "name": "b", "state": "up", "reason": "", "is_awaited": False}
        path.write_text(json.dumps({**written, "interfaces": [], "inputs": [fields, other]}))
        return status_document(choose_run(work, None), time.time_ns())


def test_the_list_of_runs_says_which_inputs_are_missing_and_what_they_lost(tmp_path: Path) -> None:
    assert list(problems(document(tmp_path / "work"))) == ["a connecting", "6 tuples late"]


def test_a_killed_relay_is_resumed_as_a_relay(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir:
        run_dir.file.change(command=("relay", "flows.gsql"), is_live=True)
        run_dir.is_kept = True
        name = run_dir.name
    found = status_document(choose_run(tmp_path, name), time.time_ns())
    text = io.StringIO()
    Console(file=text, width=140).print(Group(*status_view(found)))
    assert f"`gscope relay --run {name}` with the same queries resumes it" in text.getvalue()


CLOCKS = [
    # offset, error, skew; whether it is off whatever the error
    (150_000_000, 1_000_000, 200_000_000, False),
    (201_000_000, 2_000_000, 200_000_000, False),
    (203_000_000, 2_000_000, 200_000_000, True),
    (-203_000_000, 2_000_000, 200_000_000, True),
    (10**12, 0, 0, False),
]


@pytest.mark.parametrize(("offset_ns", "error_ns", "skew_ns", "is_off"), CLOCKS)
def test_a_clock_that_is_off_by_more_than_the_skew_is_reported_once(
    offset_ns: int, error_ns: int, skew_ns: int, is_off: bool
) -> None:
    each = status(Clock())
    each.skew_ns = skew_ns
    assert each.on_clock(None) is None
    reading = ClockReading(offset_ns, error_ns)
    said = each.on_clock(reading)
    assert (said is not None) == is_off
    assert each.on_clock(reading) is None
    if is_off:
        assert ("ahead of" if offset_ns > 0 else "behind") in str(said)
        assert each.on_clock(ClockReading(0, 0)) == "its clock is right again"


def test_the_offset_of_a_clock_is_shown(tmp_path: Path) -> None:
    each = status(Clock())
    each.on_clock(ClockReading(-1_250_000, 100_000))
    assert (each.fields()["clock_offset_ns"], each.fields()["clock_error_ns"]) == (
        -1_250_000,
        100_000,
    )
    found = document(tmp_path / "work", each)
    text = io.StringIO()
    Console(file=text, width=160).print(Group(*status_view(found)))
    assert "-1.2ms ±0.1ms" in text.getvalue()
    assert 'gscope_input_clock_offset_seconds{input="a"} -0.00125' in exposition(found)


def test_inputs_take_the_place_of_interfaces(tmp_path: Path) -> None:
    found = document(tmp_path / "work")
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(
        json.loads(json.dumps(found))
    )
    text = io.StringIO()
    Console(file=text, width=140).print(Group(*status_view(found)))
    assert "INTERFACE" not in text.getvalue()
    (line,) = [x for x in text.getvalue().splitlines() if "sensor1:9470" in x and "connecting" in x]
    assert line.split()[0] == "a"
    assert "1,200" in line
    assert "a: connection refused" in text.getvalue()
    assert "rows wait for a" in text.getvalue()
    metrics = exposition(found)
    assert 'gscope_input_late_tuples_total{input="a"} 3.0' in metrics
    assert 'gscope_input_up{input="a"} 0.0' in metrics
    assert 'gscope_input_up{input="b"} 1.0' in metrics
