"""SIGTERM ends the process of the HFTA job, whatever its main thread is doing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from gscope.engine.termination import EXIT_CODE

if TYPE_CHECKING:
    from pathlib import Path

# A line is one write: print makes two, and two threads speak here.
HEAD = """
import os, sys, threading, time, weakref
from gscope.engine.termination import Termination
def say(line):
    os.write(1, line.encode() + b"\\n")
termination = Termination()
with termination.opening():
    termination.close_first(lambda: say("closed"))
"""
BUSY = {
    "waiting": """
        say("ready")
        threading.Event().wait()
        """,
    "in the callback of a weak reference": """
        class Thing: pass
        def callback(_reference):
            say("ready")
            while True:
                time.sleep(0.01)
        reference = weakref.ref(Thing(), callback)
        """,
    "catching all": """
        say("ready")
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass
        """,
    "failing for what was closed": """
        pipe = threading.Event()
        with termination.opening():
            termination.close_first(lambda: time.sleep(0.1))
            termination.close_first(pipe.set)
        say("ready")
        pipe.wait()
        termination.wait_if_terminating()
        sys.exit(1)
        """,
    "with a lock held": """
        lock = threading.Lock()
        with lock:
            say("ready")
            lock.acquire()
        """,
}


@pytest.mark.parametrize("text", BUSY.values(), ids=BUSY)
def test_it_ends_in_order(text: str, tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(HEAD + textwrap.dedent(text))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, cwd=tmp_path, text=True
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == EXIT_CODE
        assert process.stdout.read() == "closed\n"


def test_what_is_being_opened_is_closed_too(tmp_path: Path) -> None:
    opens = """
    with termination.opening():
        say("opening")
        sys.stdin.readline()
        termination.close_first(lambda: say("closed what was opened"))
    threading.Event().wait()
    """
    script = tmp_path / "opens.py"
    script.write_text(HEAD + textwrap.dedent(opens))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "opening\n"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate("go on\n", timeout=30)
        assert output == "closed what was opened\nclosed\n"
        assert process.returncode == EXIT_CODE
