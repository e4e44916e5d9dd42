"""The thread that starts the log's servers, in a process of its own.

A failure of it ends the process.
"""

from __future__ import annotations

import subprocess
import sys

FAILING = """
import threading, time
from pathlib import Path
from gscope.queries.plan.program import Program
from gscope.capture.log import server
from gscope.capture.process.server_thread import ServerThread
from gscope.errors import StreamError

def fail(*_, **__):
    raise {error}

server.LogServer = fail
thread = ServerThread(
    None, None, Program((), (), (), (), ()), Path("."),
    listener=None, is_relay=False, events=None, has_begun=threading.Event(),
)
try:
    thread.ensure_listening()
    time.sleep(60)
except StreamError as error:
    print("reported:", error)
"""


def _run(error: str) -> subprocess.CompletedProcess[str]:
    code = FAILING.format(error=error)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_an_unexpected_failure_ends_the_process_with_its_traceback() -> None:
    done = _run("AttributeError('no spec')")
    assert done.returncode == 1
    assert "AttributeError: no spec" in done.stderr
    assert done.stdout == ""


def test_an_error_of_gscope_is_raised_where_listening_is_awaited() -> None:
    done = _run("StreamError('cannot listen')")
    assert (done.returncode, done.stdout) == (0, "reported: cannot listen\n"), done.stderr
