"""The supervisor with children that follow a script instead of capturing and answering."""

from __future__ import annotations

import json
import re
import signal
import textwrap
import time
from dataclasses import replace

import pytest
from tests.cli.supervision.stage import (
    ANSWERS,
    CAPTURES,
    COMMITS,
    FINISHES,
    IMPATIENT,
    LIVE,
    READY,
    SUMMARY,
    Stage,
    stage,
)
from tests.support.gscope_command import is_alive

from gscope.capture.settings import RelayInput, RelaySettings
from gscope.cli.events import CAPTURE, JOB, Event, ProcessExit
from gscope.cli.supervision import recovery
from gscope.cli.supervision.liveness import SilenceLimits
from gscope.cli.supervision.supervisor import Interrupted
from gscope.errors import CaptureError, EngineError, GscopeError
from gscope.queries.run_folder.layout import LOG_FOLDER
from gscope.queries.streams.process_events import JobFinished, Listening, ProcessError, SparkReady

__all__ = ["stage"]


def test_a_run_ends_when_capture_and_job_are_done(stage: Stage) -> None:
    stage.start(CAPTURES, ANSWERS)
    stage.run()
    assert stage.answers.has_begun
    assert stage.answers.steps == [1]
    assert stage.answers.is_answered
    outcome = stage.supervisor.outcome
    assert (outcome.late_tuples, outcome.undecodable) == ({"q": 2}, {"tls_sni": 3})
    assert outcome.wrapped_sums == {"p": 4}
    phases = outcome.phases
    assert list(phases.values()) == sorted(phases.values())
    assert {"capture listening", "capture finished", "answered"} <= set(phases)


def test_a_run_that_reads_other_hosts_shows_their_names(stage: Stage) -> None:
    inputs = tuple(RelayInput(name, f"{name}:9470") for name in ("north", "south"))
    stage.start(CAPTURES, ANSWERS, replace(LIVE, relay=RelaySettings(inputs)))
    stage.run()
    assert "reading the rows of north, south" in stage.observer.phases


def test_a_summary_before_the_server_listens_is_fine(stage: Stage) -> None:
    stage.start(SUMMARY + 'emit("listening")\n', ANSWERS)
    stage.run()
    assert stage.answers.steps == [1]


def test_lines_that_are_no_events_are_passed_over(stage: Stage) -> None:
    stage.start("print('warning')\nprint('[1]')\n" + CAPTURES)
    stage.run()


def test_an_error_of_the_daemon_is_the_run_s(stage: Stage) -> None:
    stage.start('emit("error", message="no such file", exit_code=2); sys.exit(2)\n')
    with pytest.raises(CaptureError, match=r"^no such file$") as caught:
        stage.run()
    assert caught.value.exit_code == 2
    assert not stage.answers.has_begun


def test_a_killed_daemon_is_named_with_its_signal(stage: Stage) -> None:
    stage.start('emit("listening"); os.kill(os.getpid(), signal.SIGKILL)\n')
    with pytest.raises(CaptureError, match="ended with signal SIGKILL"):
        stage.run()


def test_the_last_words_of_a_daemon_are_reported(stage: Stage) -> None:
    stage.start("raise RuntimeError('bad day')\n")
    with pytest.raises(CaptureError, match="ended with code 1: RuntimeError: bad day"):
        stage.run()


def test_a_reader_s_complaint_gives_way_to_the_daemon_s_own_end(stage: Stage) -> None:
    stage.start(
        'emit("listening")\n'
        "while not (run_dir / 'complained').exists(): time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
        'sys.stdin.readline(); emit("error", message="the daemon is gone")\n'
        "(run_dir / 'complained').touch(); sys.exit(1)\n",
    )
    with pytest.raises(CaptureError, match="SIGKILL"):
        stage.run()


def test_a_job_that_dies_is_started_again_and_goes_on(stage: Stage) -> None:
    dies_twice = "if started() < 3:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    stage.start(CAPTURES, dies_twice + ANSWERS)
    stage.run()
    assert stage.answers.steps == [1]
    assert stage.supervisor.outcome.restarts == {JOB: 2}
    job = stage.file.record.processes[JOB]
    assert (job.state, [restart.reason for restart in job.restarts]) == (
        "ended",
        ["ended with signal SIGKILL"] * 2,
    )
    assert stage.observer.notices == ["the HFTA job ended with signal SIGKILL; restarting it"] * 2


SHORT_OF_MEMORY = 'emit("failed", message="no heap", out_of_memory=True); sys.exit(1)\n'


def test_a_job_that_runs_out_of_memory_in_the_same_step_again_ends_the_run(stage: Stage) -> None:
    # As after a restart, it reports what it had committed first.
    stage.start(CAPTURES, COMMITS.replace("STEP", "1") + "started()\n" + SHORT_OF_MEMORY)
    with pytest.raises(EngineError) as caught:
        stage.run()
    assert str(caught.value) == (
        "the HFTA job failed: no heap twice in the same step; raise --spark-memory, or replace long"
        " keys by short ones, such as string_hash(data) or substr(data, 1, 64)"
    )
    assert stage.supervisor.outcome.restarts == {JOB: 1}


def test_a_job_that_runs_out_of_memory_in_several_steps_goes_on(stage: Stage) -> None:
    job = "count = started()\nif count < 4:\n"
    job += textwrap.indent(COMMITS.replace("STEP", "count") + SHORT_OF_MEMORY, "    ")
    stage.start(CAPTURES, job + COMMITS.replace("STEP", "4") + 'emit("finished", phases={})\n')
    stage.run()
    assert stage.answers.steps == [1, 2, 3, 4]
    assert stage.supervisor.outcome.restarts == {JOB: 3}


def test_a_job_that_keeps_dying_ends_the_run(stage: Stage) -> None:
    stage.start(CAPTURES, "sys.exit(9)\n")
    with pytest.raises(EngineError, match="code 9; it failed 4 times in 10 minutes, giving up"):
        stage.run()


def test_a_job_s_own_error_is_not_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "CAUSE_WAIT_S", 0.1)
    stage.start(CAPTURES, 'emit("error", message="there is no Java"); sys.exit(1)\n')
    with pytest.raises(EngineError, match="there is no Java"):
        stage.run()


def test_a_dropped_job_s_complaints_do_not_matter(stage: Stage) -> None:
    stage.start(CAPTURES, 'emit("error", message="there is no Java"); sys.exit(1)\n')
    time.sleep(0.2)
    stage.supervisor.drop_job()
    stage.run()


def test_the_first_signal_ends_the_input_and_answers_are_completed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start(
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        'emit("listening")\nsignal.sigwait({signal.SIGTERM})\n' + SUMMARY,
        ANSWERS,
    )
    monkeypatch.setattr(stage.answers, "begin", lambda: stage.supervisor.on_signal(signal.SIGINT))
    stage.run()
    assert stage.supervisor.outcome.signal == signal.SIGINT
    assert stage.answers.steps == [1]
    assert stage.file.record.state == "stopping"
    assert "closing windows" in stage.observer.phases
    assert stage.observer.phases[0] == "starting the capture"


def test_answers_that_lack_no_row_end_the_input_without_a_signal(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start(
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        'emit("listening")\nsignal.sigwait({signal.SIGTERM})\n' + SUMMARY,
        ANSWERS,
    )
    answers = stage.answers
    monkeypatch.setattr(answers, "begin", lambda: setattr(answers, "is_complete", True))
    stage.run()
    assert stage.supervisor.outcome.signal == 0
    assert stage.supervisor.outcome.is_complete
    assert stage.file.record.state == "stopping"


def test_each_phase_is_what_the_processes_report(stage: Stage) -> None:
    capture = """
emit("compiling", queries=["flows"], number=1)
emit("listening")
"""
    stage.start(capture + SUMMARY, "import time\n" + ANSWERS)
    stage.run()
    phases = stage.observer.phases
    assert phases[:2] == ["starting the capture", "compiling flows (first use of this query)"]
    assert phases[-1] in ("waiting for Java to start", "input read, answering")


def test_the_second_signal_leaves_at_once(stage: Stage) -> None:
    stage.start('emit("listening")\nsignal.pause()\n')
    stage.supervisor.on_signal(signal.SIGTERM)
    with pytest.raises(Interrupted) as caught:
        stage.supervisor.on_signal(signal.SIGTERM)
    assert caught.value.exit_code == 143


def test_a_signal_before_the_capture_leaves_at_once(stage: Stage) -> None:
    with pytest.raises(GscopeError):
        stage.supervisor.on_signal(signal.SIGINT)


def test_stopping_leaves_no_process(stage: Stage) -> None:
    stage.start("while True: time.sleep(1)\n", "while True: time.sleep(1)\n")
    stage.supervisor.stop()
    stage.supervisor.stop()


def test_the_children_end_with_their_supervisor(stage: Stage) -> None:
    stage.start(
        'emit("listening"); sys.stdin.read(); (run_dir / "ended").touch()\n' + SUMMARY,
    )
    child = stage.supervisor._processes[CAPTURE].process
    child._pipe.close()
    stage.run()
    assert (stage.supervisor.run_dir / "ended").exists()


def test_the_daemon_finds_its_settings(stage: Stage) -> None:
    stage.start('json.loads((run_dir / "capture.json").read_text())\n' + CAPTURES)
    stage.run()
    written = json.loads((stage.supervisor.run_dir / "capture.json").read_text())
    assert written["interfaces"][0]["name"] == "a"


DIES_ONCE = """
if started() < 2:
    emit("listening")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_live_daemon_that_dies_is_started_again(stage: Stage) -> None:
    connects_twice = "sys.stdin.readline()\n" + ANSWERS
    stage.start(DIES_ONCE + CAPTURES, connects_twice, LIVE)
    stage.run()
    assert stage.answers.steps == [1]
    assert stage.supervisor.outcome.restarts == {CAPTURE: 1}
    (notice,) = stage.observer.notices
    assert notice == "the capture daemon ended with signal SIGKILL; restarting it"
    record = stage.file.record.processes[CAPTURE]
    assert (record.state, record.restarts_total) == ("ended", 1)


def test_a_live_daemon_that_cannot_start_is_not_tried_again(stage: Stage) -> None:
    stage.start('emit("error", message="no such device"); sys.exit(1)\n', settings=LIVE)
    with pytest.raises(CaptureError, match=r"^no such device$"):
        stage.run()


KILLED_AT_ONCE = "if started() < 2: os.kill(os.getpid(), signal.SIGKILL)\n"


def test_a_daemon_that_is_killed_while_a_resumed_run_starts_is_started_again(stage: Stage) -> None:
    (stage.supervisor.run_dir / LOG_FOLDER).mkdir()
    stage.resume()
    stage.start(KILLED_AT_ONCE + CAPTURES, settings=LIVE)
    stage.run()
    assert stage.supervisor.outcome.restarts == {CAPTURE: 1}


def test_a_daemon_that_is_killed_while_a_new_run_starts_ends_the_run(stage: Stage) -> None:
    stage.start(KILLED_AT_ONCE + CAPTURES, settings=LIVE)
    with pytest.raises(CaptureError, match="ended with signal SIGKILL"):
        stage.run()


def test_what_a_live_daemon_complains_of_later_may_pass(stage: Stage) -> None:
    complains = 'if started() < 2: emit("listening"); emit("error", message="gone"); sys.exit(1)\n'
    stage.start(complains + CAPTURES, settings=LIVE)
    stage.run()
    assert stage.observer.notices == ["the capture daemon failed: gone; restarting it"]


def test_a_live_daemon_that_hangs_is_killed_and_started_again(stage: Stage) -> None:
    hangs = 'if started() < 2: emit("listening"); os.kill(os.getpid(), signal.SIGSTOP)\n'
    stage.resume(IMPATIENT)
    stage.start(hangs + CAPTURES, settings=LIVE)
    stage.run()
    (notice,) = stage.observer.notices
    assert re.fullmatch(r"the capture daemon did not respond for \d+ s; .*", notice)


def test_an_interface_that_is_silent_while_its_daemon_lives_has_failed(stage: Stage) -> None:
    hangs = """
    if started() < 2:
        emit("listening")
        for second in range(1, 60):
            time.sleep(0.2)
            emit("progress")
            emit("alive", silent_s=second)
            emit("progress")
    """
    stage.resume(IMPATIENT)
    stage.start(textwrap.dedent(hangs) + CAPTURES, settings=LIVE)
    stage.run()
    assert stage.supervisor.outcome.restarts == {CAPTURE: 1}


def test_a_daemon_that_waits_for_acknowledgements_of_its_predecessor_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "END_GRACE_S", 0.1)
    waits = "while True:\n    emit('alive', silent_s=0.0)\n    time.sleep(0.1)\n"
    stage.start(CAPTURES + waits, ANSWERS, LIVE)
    stage.run()
    assert stage.answers.steps == [1]


def test_a_daemon_that_has_ended_is_not_restarted_while_the_job_ends(stage: Stage) -> None:
    stage.resume(SilenceLimits(stream_s=0.5, start_s=60.0))
    answers_late = ANSWERS.replace('emit("finished"', 'time.sleep(3)\nemit("finished"')
    stage.start(CAPTURES, answers_late, LIVE)
    stage.run()
    assert stage.observer.notices == []
    assert stage.supervisor.outcome.restarts == {}


def test_a_signal_reaches_a_daemon_that_is_started_again(stage: Stage) -> None:
    waits = 'signal.pthread_sigmask(signal.SIG_BLOCK, [15])\nemit("listening")\n'
    waits += "signal.sigwait([15])\nif started() < 2: os.kill(os.getpid(), signal.SIGKILL)\n"
    stage.start(waits + SUMMARY, settings=LIVE)
    stage.supervisor.on_signal(signal.SIGINT)
    stage.run()
    assert stage.supervisor.outcome.restarts == {CAPTURE: 1}


def test_events_of_a_process_that_was_replaced_do_not_count_for_the_new_one(stage: Stage) -> None:
    error = ProcessError("no such device", is_final=True)
    reports = (SparkReady(0.0), JobFinished(1, {}), error, ProcessExit(1))
    left = [Event(JOB, report, pid=1) for report in reports]
    left += [Event(CAPTURE, report, pid=1) for report in (Listening("a"), error, ProcessExit(1))]
    for event in left:
        stage.supervisor._events.put(event)
    stage.start(CAPTURES, ANSWERS, LIVE)
    stage.run()
    assert (stage.answers.steps, stage.supervisor.outcome.restarts) == ([1], {})


def test_a_child_of_the_job_does_not_outlive_it(stage: Stage) -> None:
    has_java = """
    import subprocess
    if started() < 2:
        java = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
        java.send_signal(signal.SIGSTOP)
        (run_dir / "java").write_text(str(java.pid))
        emit("java", pid=java.pid)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    stage.start(CAPTURES, textwrap.dedent(has_java) + ANSWERS)
    stage.run()
    assert not is_alive(int((stage.supervisor.run_dir / "java").read_text()))


STANDS_STILL = """
if started() < 2:
    for still_s in (299.0, 301.0, 302.0):
        emit("alive", step=7, step_s=still_s, still_s=still_s)
"""


def test_a_step_that_stands_still_is_reported_once_and_waited_for(stage: Stage) -> None:
    stage.start(CAPTURES, READY + STANDS_STILL + FINISHES)
    stage.run()
    (notice,) = stage.observer.notices
    assert notice.startswith("no task of step 7 has finished for 301 s; still waiting")
    assert stage.supervisor.outcome.restarts == {}


def test_a_step_that_stands_still_for_too_long_is_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.supervisor, "_limits", SilenceLimits(step_s=300.0))
    hangs = STANDS_STILL + "    time.sleep(600)\n"
    stage.start(CAPTURES, READY + hangs + FINISHES)
    stage.run()
    (notice,) = stage.observer.notices
    assert notice == "the HFTA job finished no task of step 7 for 301 s; restarting it"
    assert stage.answers.steps == [1]


def test_an_interface_that_fails_alone_is_reported(stage: Stage) -> None:
    fails = 'emit("failed", interface="up", message="eth1 was gone")\n'
    stage.start('emit("listening")\n' + fails + SUMMARY, settings=LIVE)
    stage.run()
    assert stage.observer.notices == ["interface up: eth1 was gone; no longer captured"]


def test_a_daemon_that_takes_over_makes_do_with_the_devices_that_are_there(stage: Stage) -> None:
    keeps = (
        'Path(run_dir / f"{started()}.json").write_text((run_dir / "capture.json").read_text())\n'
    )
    stage.start(keeps + DIES_ONCE.replace("< 2", "< 3") + CAPTURES, settings=LIVE)
    stage.run()
    reported = [
        json.loads(path.read_text()) for path in sorted(stage.supervisor.run_dir.glob("?.json"))
    ]
    assert [each["allow_missing_devices"] for each in reported] == [False, True]


def test_a_duration_goes_on_where_the_daemon_that_died_began(stage: Stage) -> None:
    lasts = replace(LIVE, duration_ns=10**12)
    stage.start(DIES_ONCE + CAPTURES, settings=lasts)
    stage.run()
    left = json.loads((stage.supervisor.run_dir / "capture.json").read_text())["duration_ns"]
    assert 0 < left < 10**12
