"""The wait of a daemon that is started early."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from gscope.queries.run_folder.early_start import BEGIN, await_settings

WAIT = (
    "from gscope.queries.run_folder.early_start import await_settings;"
    " await_settings(0); print('on')"
)


def test_the_line_may_come_in_parts_and_what_follows_is_left() -> None:
    reader, writer = os.pipe()
    waiting = threading.Thread(target=await_settings, args=(reader,))
    waiting.start()
    for byte in f"{BEGIN}\n".encode():
        assert waiting.is_alive()
        os.write(writer, bytes([byte]))
    waiting.join(60)
    assert not waiting.is_alive()
    os.write(writer, b"rest")
    os.close(writer)
    assert os.read(reader, 100) == b"rest"
    os.close(reader)


@pytest.mark.parametrize(
    ("sent", "code", "output"),
    [
        (f"{BEGIN}\n", 0, "on\n"),
        ("", 1, ""),
        (BEGIN[:3], 1, ""),
        ("connect\n", 1, ""),
    ],
)
def test_a_daemon_goes_on_only_after_the_whole_line(sent: str, code: int, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAIT], input=sent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, output)


LOAD = """
import os
from gscope.queries.run_folder.startup import settle
settle()
from gscope.capture.daemon import load_libraries
load_libraries()
print(len(os.listdir("/proc/self/task")))
"""


def test_a_daemon_that_waits_has_no_thread_that_keeps_its_privileges() -> None:
    """Libraries start threads when they are imported; each would stay outside the sandbox."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ARROW_", "JE_", "OPENBLAS_"))
    }
    done = subprocess.check_output([sys.executable, "-c", LOAD], env=environment, text=True)
    assert done == "1\n"
