"""The job's counters, as other processes read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.engine.operators.windowed import windowed
from tests.engine.steps.watched_steps import SECOND, batch, heartbeat, steps, stream_of

from gscope.engine.monitoring.observer import JobObserver
from gscope.engine.monitoring.step_progress import CurrentStep, StepWatch
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.engine.storage.commits import Commit, Output
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import State
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.queries.run_folder.layout import JOB_STATISTICS_FILE
from gscope.queries.run_folder.snapshot import read_snapshot
from gscope.queries.streams.messages import Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.queries.streams.messages import Message


def observed(run_dir: Path, watched: Steps, commits: Sequence[Commit] = ()) -> JobObserver:
    return JobObserver(run_dir, watched, commits, lambda: None)


def seen(run_dir: Path) -> dict[str, Any]:
    snapshot = read_snapshot(run_dir / JOB_STATISTICS_FILE)
    assert snapshot is not None
    return snapshot


def answer(observer: JobObserver, watched: Steps, rows: int) -> None:
    observer.advancing()
    step = watched.next()
    assert step is not None
    outputs = (Output("tens", f"tens/{step.number}", rows),)
    observer.evaluated(step, Evaluation(outputs), 0, 1)
    commit = Commit(
        step.number, watched.snapshot(), outputs, (), Counts({"dns_name": 2}, {"tens": 1})
    )
    observer.committed(step, commit, 1, 0.25)


def test_it_says_what_waits_and_for_whom(tmp_path: Path) -> None:
    watched = steps("eth0", "eth1")
    observer = observed(tmp_path, watched)
    messages: list[Message] = [
        batch(watched, "eth0", 0, 40),
        heartbeat(watched, "eth0", 1, 50, 1),
        heartbeat(watched, "eth1", 0, 40, 2),
    ]
    observer.on_messages(messages, 0)
    watched.on_messages(messages)
    watched.next()
    observer.on_asked(3)
    observer.close()
    snapshot = seen(tmp_path)
    tens = snapshot["operators"][0]
    assert (tens["name"], tens["kind"]) == ("tens", "aggregation")
    assert tens["waiting_tuples"] == 5
    assert tens["watermark_ns"] == 400 * SECOND
    assert tens["waits_for"] == [stream_of(watched, "eth1")]
    assert [port["waiting_tuples"] for port in tens["sides"][0]] == [5, 0]
    assert [port["punctuation"] for port in tens["sides"][0]] == [{"tb": 50}, {"tb": 40}]
    assert [stream["heartbeats_total"] for stream in snapshot["streams"]] == [1, 1]
    assert snapshot["clock_ns"] == 500 * SECOND
    assert snapshot["heartbeats"]["heartbeats_total"] == 2
    assert snapshot["heartbeats"]["asked_total"] == 3


def test_it_says_which_window_is_open_and_what_it_keeps(tmp_path: Path) -> None:
    watched = Steps(windowed(SlidingWindow(18, 15)))
    observer = observed(tmp_path, watched)
    (operator,) = watched.operators.values()
    observer.close()
    assert seen(tmp_path)["operators"][0]["open_window_end"] is None
    for name in watched.streams:
        watched.on_messages([Heartbeat(name, 0, 0, 0, (Punctuation(SLICE, 5),))])
    watched.next()
    operator.state = State("w", 1, "1", 7, 70, (Extent(SLICE, 3, 3),), files=("live",))
    observer = observed(tmp_path, watched)
    observer.close()
    (shown,) = seen(tmp_path)["operators"]
    assert (shown["kind"], shown["open_window_end"]) == ("window", 45)
    assert (shown["state_tuples"], shown["state_bytes"]) == (7, 70)
    assert shown["watermark_ns"] == 30 * SECOND
    assert shown["waits_for"] == ["low@a", "low@b"]


def test_answers_are_counted_by_query(tmp_path: Path) -> None:
    watched = steps("eth0")
    observer = observed(tmp_path, watched)
    watched.on_messages([batch(watched, "eth0", 0, 40), heartbeat(watched, "eth0", 1, 50, 1)])
    answer(observer, watched, 3)
    observer.close()
    snapshot = seen(tmp_path)
    rows = {query["name"]: query["rows_total"] for query in snapshot["queries"]}
    assert rows == {"tens": 3, "minutes": 0}
    assert snapshot["steps"]["evaluated_total"] == 1
    assert snapshot["steps"]["tuples_total"] == 5
    assert snapshot["steps"]["tuples_per_second"] == 20
    assert snapshot["undecodable"] == {"dns_name": 2}
    assert snapshot["wrapped_sums"] == {"tens": 1}


def test_a_job_that_is_started_again_goes_on_counting(tmp_path: Path) -> None:
    watched = steps("eth0")
    observer = observed(tmp_path, watched)
    watched.on_messages([batch(watched, "eth0", 0, 40), heartbeat(watched, "eth0", 1, 50, 1)])
    answer(observer, watched, 3)
    observer.close()
    written = Commit(1, watched.snapshot(), (Output("tens", "tens/1", 3),))
    unwritten = Commit(2, watched.snapshot(), (Output("tens", "tens/2", 4),))
    again = steps("eth0")
    again.restore(2, unwritten.operators)
    observed(tmp_path, again, (written, unwritten)).close()
    snapshot = seen(tmp_path)
    assert snapshot["queries"][0]["rows_total"] == 7
    assert snapshot["steps"]["evaluated_total"] == 2


def test_it_is_plain_json_of_finite_numbers(tmp_path: Path) -> None:
    observed(tmp_path, steps("eth0")).close()
    text = (tmp_path / JOB_STATISTICS_FILE).read_text()
    json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert seen(tmp_path)["operators"][0]["watermark"] is None


def test_a_step_that_lasts_is_told_of_meanwhile(tmp_path: Path) -> None:
    watched = steps("eth0")
    now_s = [100.0]
    watch = StepWatch(lambda: now_s[0])
    observer = JobObserver(tmp_path, watched, (), lambda: None, watch)
    watched.on_messages([batch(watched, "eth0", 0, 40), heartbeat(watched, "eth0", 1, 50, 1)])
    step = watched.next()
    assert step is not None
    observer.evaluating(step)
    current = seen(tmp_path)["current_step"]
    assert current == {"number": 1, "seconds": 0.0, "still_seconds": 0.0}
    file = tmp_path / JOB_STATISTICS_FILE
    file.unlink()
    watch.look(3)
    assert not file.exists()  # too early for another write
    while not file.exists():
        now_s[0] += 2
        watch.look(3)
    after = seen(tmp_path)
    assert after["current_step"]["seconds"] >= after["current_step"]["still_seconds"] >= 2
    assert after["state"] == "step 1"
    observer.committed(step, Commit(1, watched.snapshot(), (), ()), 1, 0.25)
    assert seen(tmp_path)["current_step"] is None
    late = CurrentStep(1, 9.0, 9.0)
    observer.close()
    watch.on_look(late)  # reported while the step was committed
    assert seen(tmp_path)["current_step"] is None


def test_counts_of_operators_are_never_below_those_of_a_killed_job(tmp_path: Path) -> None:
    watched = steps("eth0")
    observer = observed(tmp_path, watched)
    first = batch(watched, "eth0", 0, 40)
    watched.on_messages([first])
    observer.on_messages([first], 0)
    observer.close()
    assert operator(tmp_path, "tens")["tuples_in_total"] == first.rows
    again = steps("eth0")
    restarted = observed(tmp_path, again)
    restarted.close()
    assert operator(tmp_path, "tens")["tuples_in_total"] == first.rows
    again.on_messages([first, batch(again, "eth0", 1, 41)])
    observed(tmp_path, again).close()
    counted = operator(tmp_path, "tens")
    assert (counted["tuples_in_total"], counted["tuples_read_total"]) == (2 * first.rows, 0)


def operator(run_dir: Path, name: str) -> dict[str, Any]:
    (found,) = (each for each in seen(run_dir)["operators"] if each["name"] == name)
    return dict(found)
