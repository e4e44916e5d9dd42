"""Privileges are given up for good, by the thread that asks and by all that it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.support.requirements import needs_root

from gscope.capture.process.confinement.privileges import capabilities

SCRIPT = """
import json, socket, threading
from pathlib import Path
from gscope.capture.process.confinement.privileges import capabilities, drop_privileges
drop_privileges()
thread = threading.Thread(target=lambda: sets.update(capabilities()))
sets = {}
thread.start()
thread.join()
lines = dict(line.split(":\\t") for line in Path("/proc/self/status").read_text().splitlines()
             if ":\\t" in line)
try:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opens = True
except PermissionError:
    opens = False
print(json.dumps([list(sets.values()), lines["NoNewPrivs"], lines["CapBnd"], opens]))
"""


def test_nothing_is_left_and_no_raw_socket_opens() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True, timeout=60
    )
    sets, no_new, bounding, opens = json.loads(done.stdout)
    assert sets == [0, 0]
    assert no_new == "1"
    assert not opens
    if os.geteuid() == 0:
        assert int(bounding, 16) == 0


@pytest.mark.live
@needs_root
def test_capabilities_are_those_of_the_process() -> None:
    assert capabilities()[os.getpid()] != 0


def test_what_runs_before_they_are_given_up_loads_no_library_with_threads() -> None:
    """A thread keeps the capabilities it was started with.

    pyarrow starts one when it is loaded.
    """
    program = (
        "import sys, gscope.capture.daemon, gscope.capture.live.resume,"
        " gscope.capture.live.devices,"
        " gscope.capture.process.thread_watchdog, gscope.capture.process.confinement.privileges;"
        "print('pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False"
