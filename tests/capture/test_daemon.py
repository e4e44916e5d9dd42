"""The capture daemon as a process: its events, its server, and its behaviour at ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.capture.replay.test_replay_capture import PACKET, SECOND, flow_program, write_pcap
from tests.support.gscope_command import wait_for

from gscope.capture.daemon import Daemon
from gscope.capture.interface.open_log import open_log
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.process.events import CaptureEvents
from gscope.capture.settings import CaptureSettings, ConsumerSettings, InterfaceSettings
from gscope.engine.log_client.flight_client import LogClient
from gscope.queries.plan.program_file import write_program
from gscope.queries.run_folder.layout import (
    CAPTURE_FOLDER,
    CAPTURE_SETTINGS_FILE,
    PROGRAM_FILE,
    SOCKET_FILE,
)
from gscope.queries.run_folder.lease_file import write_leases
from gscope.queries.streams.messages import EndOfStream, Extent, Message, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STREAM = "flow@main"
JOB = (ConsumerSettings("job"),)


class RunningDaemon:
    """A daemon in ``run_dir``; its standard input is the supervisor's pipe."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gscope.capture.daemon", str(run_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def event(self, name: str) -> dict[str, Any]:
        """The next event called ``name``; those before it are skipped."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            fields: dict[str, Any] = json.loads(line)
            if fields["event"] == name:
                return fields
        assert self.process.stderr is not None
        pytest.fail(f"no event {name!r}; {self.process.stderr.read()}")

    def wait(self) -> int:
        return self.process.wait(60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def messages(self) -> list[Message]:
        """All messages of the stream, read as a consumer does."""
        with LogClient(self.run_dir / SOCKET_FILE) as client:
            return [m for chunk in client.subscribe({STREAM: 0}) for m in chunk]

    def acknowledge(self, cursor: int) -> None:
        with LogClient(self.run_dir / SOCKET_FILE) as client:
            client.acknowledge("job", {STREAM: cursor})


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts a daemon on settings and packets of a pcap file; ends it when the test ends."""
    started: list[RunningDaemon] = []

    def begin(*times: int, **settings: Any) -> RunningDaemon:
        capture = tmp_path / "main.pcap"
        write_pcap(capture, [(time, PACKET) for time in times])
        files = settings.pop("files", (str(capture),))
        others = settings.pop("others", ())
        interfaces = (InterfaceSettings("main", files), *others)
        chosen = CaptureSettings(interfaces, **settings)
        (tmp_path / CAPTURE_SETTINGS_FILE).write_text(chosen.to_json())
        program = flow_program(*(each.name for each in interfaces))
        write_program(tmp_path / PROGRAM_FILE, program)
        started.append(RunningDaemon(tmp_path))
        return started[-1]

    yield begin
    for daemon in started:
        daemon.close()


def test_it_serves_until_all_is_acknowledged(start: Any, tmp_path: Path) -> None:
    daemon = start(SECOND, 30 * SECOND, consumers=JOB, heartbeat_every_tick=True)
    assert daemon.event("listening")["socket"] == str(tmp_path / SOCKET_FILE)
    messages = daemon.messages()
    assert isinstance(messages[-1], EndOfStream)
    summary = daemon.event("summary")
    (interface,) = summary["interfaces"]
    assert (interface["received"], interface["accepted"]) == (2, 2)
    assert summary["lftas"][STREAM]["tuples_out_total"] == 2
    assert {"started_s", "imports_s", "kernels_s", "capture_s"} <= summary["phases"].keys()
    assert daemon.process.poll() is None
    daemon.acknowledge(len(messages))
    assert daemon.wait() == 0
    assert list((tmp_path / "log" / "segments").iterdir()) == []


def test_without_consumers_it_ends_with_the_input(start: Any) -> None:
    daemon = start(SECOND)
    assert daemon.event("progress")["packets"] == 1
    daemon.event("summary")
    assert daemon.wait() == 0


def test_lost_packets_are_in_the_summary_and_no_failure(start: Any) -> None:
    daemon = start(100 * SECOND, SECOND)
    (interface,) = daemon.event("summary")["interfaces"]
    assert (interface["late"], interface["accepted"]) == (1, 1)
    assert daemon.wait() == 0


def test_a_signal_closes_the_windows_and_the_log_is_still_served(start: Any) -> None:
    daemon = start(SECOND, 10**6 * SECOND, consumers=JOB, speed=1.0)
    daemon.event("listening")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.event("summary")["is_stopped"]
    messages = daemon.messages()
    assert isinstance(messages[-1], EndOfStream)
    daemon.acknowledge(len(messages))
    assert daemon.wait() == 0


def test_a_second_signal_ends_it_at_once(start: Any) -> None:
    daemon = start(SECOND, consumers=JOB)
    daemon.event("summary")
    daemon.process.send_signal(signal.SIGINT)
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.wait() in {128 + signal.SIGINT, 128 + signal.SIGTERM}


def test_a_pipe_without_a_writer_does_not_keep_a_signal_waiting(start: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    daemon = start(SECOND, files=(str(tmp_path / "main.pcap"), str(pipe)), speed=1.0)
    daemon.event("listening")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.event("summary")["is_stopped"]
    assert daemon.wait() == 0


def test_a_signal_ends_the_pass_that_counts_the_packets_of_several_interfaces(
    start: Any, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first = str(tmp_path / "main.pcap")
    daemon = start(
        SECOND,
        files=(first, str(pipe)),
        others=(InterfaceSettings("other", (first,)),),
        packets=1_000,
    )
    # The pass opens the pipe after the file before it, and then waits for bytes that never come.
    writer = wait_for(lambda: _writer_of(pipe), "the reading of the pipe")
    daemon.process.send_signal(signal.SIGINT)
    summary = daemon.event("summary")
    assert summary["is_stopped"]
    assert sum(each["accepted"] for each in summary["interfaces"]) == 0
    assert daemon.wait() == 0
    os.close(writer)


def _writer_of(pipe: Path) -> int | None:
    """Return a descriptor to write to a named pipe; None while it has no reader."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_it_dies_with_its_supervisor(start: Any) -> None:
    daemon = start(SECOND, consumers=JOB)
    daemon.event("summary")
    daemon.process.stdin.close()
    assert daemon.wait() == 1


def test_an_unusable_file_is_one_sentence(start: Any, tmp_path: Path) -> None:
    daemon = start(files=(str(tmp_path / "none.pcap"),))
    error = daemon.event("error")
    assert "none.pcap" in error["message"]
    assert (error["exit_code"], daemon.wait()) == (1, 1)
    assert daemon.process.stderr.read() == ""


def test_wrong_settings_are_a_usage_error(start: Any, tmp_path: Path) -> None:
    daemon = start(SECOND, files=("-",))
    assert "standard input" in daemon.event("error")["message"]
    assert daemon.wait() == 2


def test_an_earlier_capture_is_not_mixed_with_a_new_one(start: Any, tmp_path: Path) -> None:
    assert start(SECOND).wait() == 0
    again = start(SECOND)
    assert "earlier capture" in again.event("error")["message"]
    assert again.wait() == 1


def test_a_killed_daemon_leaves_a_log_that_is_right(start: Any, tmp_path: Path) -> None:
    daemon = start(SECOND, 50 * SECOND, consumers=JOB, heartbeat_every_tick=True)
    daemon.event("summary")
    daemon.process.kill()
    daemon.wait()
    assert "earlier capture" in start(SECOND).event("error")["message"]


def test_what_readers_are_reading_is_spared_by_a_daemon_that_takes_over(tmp_path: Path) -> None:
    settings = CaptureSettings((InterfaceSettings("main", ("main.pcap",)),), consumers=JOB)
    log = open_log(tmp_path / "log", flow_program("main"), settings)
    for number in (1, 2):
        batch = pa.record_batch({"tb": pa.array([number])})
        log.append(STREAM, batch, (Extent("tb", number, number),))
        log.write_heartbeat(
            number, number, [StreamHeartbeat(STREAM, (Punctuation("tb", number + 1),))]
        )
    (tmp_path / CAPTURE_FOLDER).mkdir()
    write_leases(tmp_path / CAPTURE_FOLDER, "job", {STREAM: [0], "another@main": [0]})
    write_leases(tmp_path / CAPTURE_FOLDER, "stranger", {STREAM: [2]})
    Daemon(tmp_path, CaptureEvents(io.StringIO()), 0.0)._renew_leases(log, settings)
    assert [batch.sequence for batch in log.sheddable()] == [2]
    log.close()
