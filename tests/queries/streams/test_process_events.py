"""Events between processes: every class survives its line, damaged lines do not pass."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import math
from pathlib import Path

import pytest

from gscope.errors import StreamError
from gscope.queries.streams.event_codec import EventWriter, decode, encode
from gscope.queries.streams.loss_reasons import IncompleteEpochs
from gscope.queries.streams.process_events import (
    CAPTURE_EVENTS,
    CONTROL_EVENTS,
    JOB_EVENTS,
    REQUESTED_CAPTURE_EVENTS,
    BoundsPromised,
    CaptureComplete,
    CaptureDismissed,
    CaptureFinished,
    CaptureProgress,
    CaptureRequested,
    CaptureServing,
    CaptureWanted,
    CommittedOutput,
    InputReport,
    InterfaceFailed,
    JavaFailed,
    JavaStarted,
    JobAlive,
    JobFinished,
    JobReady,
    KernelCompiling,
    Listening,
    ProcessError,
    ProcessEvent,
    SparkReady,
    StepCommitted,
    ThreadsAlive,
)

ROOT = Path(__file__).parents[3]
BOUNDS: dict[str, dict[str, float]] = {"q": {"time": 2**60 + 1, "other": -math.inf}}
COMMIT = StepCommitted(
    step=3,
    outputs=(
        CommittedOutput("q", "q/3.arrow", 5),
        CommittedOutput("p", "p/3", 7, ("a.parquet", "b.parquet")),
    ),
    bounds=BOUNDS,
    watermarks={"q": 1.5, "p": -math.inf},
    step_s=0.25,
    late_tuples={"q": 1},
    shed_tuples={},
    trimmed_tuples={},
    incomplete=(
        IncompleteEpochs("flows", "kernel", 28, 30, 12),
        IncompleteEpochs("q", "log", None, 5),
    ),
    incomplete_epochs={"flows": {"kernel": 3}, "q": {"log": 1}},
    undecodable={"tls_sni": 2},
    foreign={"http_host": 4},
    wrapped_sums={"p": 9},
    crowded_out={"r": 2},
    transferred_bytes={"segments": 4096, "exchanged": 0},
)
SAMPLES: tuple[ProcessEvent, ...] = (
    Listening("/run/a b/capture.sock"),
    KernelCompiling(("flows", "q"), 3),
    CaptureProgress(1, 2, None, 4),
    CaptureProgress(1, 2, 3, 4, 5),
    ThreadsAlive(0.5),
    InterfaceFailed("up", "eth1 was gone"),
    InputReport("sensor1", "answers again"),
    CaptureFinished(
        interfaces=({"name": "up", "received": 3, "damage": ["cut"], "malformed": {"ip": 1}},),
        lftas={"q@up": {"tuples_out_total": 2}},
        log={"shed_tuples_total": 0},
        phases={"capture_s": 0.1},
        is_stopped=True,
        refused={"b": "no capture"},
        failed={"c": "gone"},
        logged={"q@up": {"tuples_total": 2}},
    ),
    ProcessError("two\nlines \u2028"),
    ProcessError("final", is_final=True, exit_code=3),
    ProcessError("refused", is_final=True, leaves_data=False),
    JavaStarted(42),
    SparkReady(1.5),
    JobReady(),
    JobAlive(),
    JobAlive(7, 301.0, 300.0),
    JobAlive(7, 1.0, 1.0, awaits_spark=True),
    JavaFailed("gone"),
    JavaFailed("no heap", out_of_memory=True),
    COMMIT,
    BoundsPromised(BOUNDS),
    JobFinished(4, {"session": 2.0}, BOUNDS),
    CaptureRequested("flows-1", {"host": "a", "texts": [{"text": "q", "source": "-e"}]}, True),
    CaptureWanted("flows-1"),
    CaptureDismissed("flows-1"),
    CaptureServing(9481),
    CaptureComplete(),
)
TABLES = (CAPTURE_EVENTS, JOB_EVENTS, CONTROL_EVENTS, REQUESTED_CAPTURE_EVENTS)


def readers_of(event: ProcessEvent) -> list[tuple[type[ProcessEvent], ...]]:
    """Return the tables that know the class of an event."""
    return [table for table in TABLES if type(event) in table]


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_the_samples_are_of_every_class() -> None:
    known = {kind for table in TABLES for kind in table}
    assert {type(each) for each in SAMPLES} == known
    assert set(ProcessEvent.__subclasses__()) >= known


@pytest.mark.parametrize("table", TABLES, ids=["capture", "job", "control", "requested"])
def test_kinds_are_unique_for_each_process(table: tuple[type[ProcessEvent], ...]) -> None:
    assert len({each.kind for each in table}) == len(table)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_survives_its_line(event: ProcessEvent) -> None:
    out = io.StringIO()
    EventWriter(out).send(event)
    (written,) = out.getvalue().splitlines()
    assert readers_of(event)
    for table in readers_of(event):
        assert decode(written.encode() + b"\n", table) == event


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_without_a_required_field_is_an_error(event: ProcessEvent) -> None:
    for each in dataclasses.fields(event):  # type: ignore[arg-type]
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            fields = json.loads(encode(event))
            del fields[each.name]
            expected = f"^invalid event '{event.kind}': missing field '{each.name}'$"
            with pytest.raises(StreamError, match=expected):
                decode(line(**fields), readers_of(event)[0])


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (line(event="java", pid="7"), "invalid field 'pid': expected int, got '7'"),
        (line(event="java", pid=True), "invalid field 'pid': expected int, got True"),
        (line(event="java", pid=7, more=1), "unknown field 'more'"),
        (line(event="failed", message="m", out_of_memory=1), "expected bool, got 1"),
        (line(event="promised", bounds=[]), "invalid field 'bounds': expected dict, got \\[\\]"),
        (line(event="promised", bounds={"q": {"t": "x"}}), "'bounds': expected float, got 'x'"),
        (
            line(**{**json.loads(encode(COMMIT)), "outputs": [{"query": "q"}]}),
            "missing field 'path'",
        ),
    ],
)
def test_a_damaged_event_is_an_error(damaged: bytes, reason: str) -> None:
    with pytest.raises(StreamError, match=reason):
        decode(damaged, JOB_EVENTS)


@pytest.mark.parametrize(
    "other",
    [b"", b"warning\n", b"[1]", b"7", b"{}", b'{"event": "news"}', b'{"event": ["java"]}', b"\xff"],
)
def test_lines_of_libraries_are_passed_over(other: bytes) -> None:
    assert decode(other, JOB_EVENTS) is None


def test_a_process_does_not_report_what_only_the_other_may() -> None:
    assert decode(encode(JobFinished(1, {})).encode(), CAPTURE_EVENTS) is None


def constructed(*folders: str) -> set[str]:
    """Return the names of all classes of events that modules in ``folders`` construct."""
    names = {each.__name__ for each in ProcessEvent.__subclasses__()}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    calls = (
        node
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} & names


def test_what_a_process_sends_is_what_its_table_lists() -> None:
    daemon_and_control = {*CAPTURE_EVENTS, *CONTROL_EVENTS}
    assert constructed("capture") == {each.__name__ for each in daemon_and_control}
    assert constructed("capture/log/agent") == {each.__name__ for each in CONTROL_EVENTS}
    assert constructed("cli/agent") == {each.__name__ for each in REQUESTED_CAPTURE_EVENTS}
    assert constructed("engine") == {each.__name__ for each in JOB_EVENTS}


def test_the_supervisor_handles_every_event() -> None:
    modules = ("supervisor.py", "recovery.py")
    text = "".join((ROOT / "cli" / "supervision" / each).read_text() for each in modules)
    patterns = {
        node.cls.id
        for node in ast.walk(ast.parse(text.replace("from __future__ import annotations", "")))
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)
    }
    # Counted as a sign of life only.
    assert {each.__name__ for each in (*CAPTURE_EVENTS, *JOB_EVENTS)} - patterns == {"ThreadsAlive"}
