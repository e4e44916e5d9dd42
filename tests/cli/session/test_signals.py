"""Signals of a run, in a process of its own on a terminal of its own."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

RUN = """
import os, signal, sys, time
from gscope.cli.session.signals import signal_handlers

class Outcome:
    signal = 0

class Supervisor:
    outcome = Outcome()
    came = []

    def on_signal(self, number):
        self.came.append(number)
        self.outcome.signal = number

    def ask_counters(self):
        self.came.append("counters")

report = int(sys.argv[1])
supervisor = Supervisor()
with signal_handlers(supervisor):
    os.write(report, b"up\\n")
    while signal.SIGTERM not in supervisor.came:
        time.sleep(0.01)  # pause() would miss a signal that comes before it
    print("to a terminal that may be gone", flush=True)
os.write(report, " ".join(map(str, supervisor.came)).encode())
"""


class Session:
    """The run as the leader of a session on a terminal."""

    def __init__(self, before: str = "") -> None:
        self.master, slave = pty.openpty()
        reader, writer = os.pipe()
        self.report = os.fdopen(reader)
        self.process = subprocess.Popen(
            [sys.executable, "-c", before + RUN, str(writer)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(slave)
        os.close(writer)
        assert self.report.readline() == "up\n"

    def end(self) -> str:
        """Ask it to end; what came before."""
        self.process.send_signal(signal.SIGTERM)
        with self.report:
            came = self.report.read()
        assert self.process.wait(60) == 0
        return came


def test_a_closed_terminal_ends_the_run_once_and_what_it_writes_then_is_lost() -> None:
    session = Session()
    os.close(session.master)
    session.process.send_signal(signal.SIGHUP)
    session.process.send_signal(signal.SIGHUP)
    assert session.end() == "1 15"


def test_nohup_keeps_it_going() -> None:
    session = Session("import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n")
    session.process.send_signal(signal.SIGHUP)
    assert session.end() == "15"
    os.close(session.master)


def test_usr1_asks_for_counters() -> None:
    session = Session()
    session.process.send_signal(signal.SIGUSR1)
    assert session.end() == "counters 15"
    os.close(session.master)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_afterwards_signals_mean_what_they_meant(number: signal.Signals) -> None:
    from gscope.cli.session.signals import signal_handlers

    before = signal.getsignal(number)
    with signal_handlers(None):  # type: ignore[arg-type]  # no signal comes
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before
