"""The end of a command: fast, but after everything that has to happen."""

from __future__ import annotations

import subprocess
import sys

import pytest

_ENDING = """
import atexit, sys, threading, time
from gscope.cli import main as command

class Unloaded:
    def __del__(self):
        print("unloaded")

kept = Unloaded()

def run(arguments):
    atexit.register(print, "handler")
    atexit.register(sys.stderr.write, "error without a line end")
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    print("written", end=" ")
    return 3

command.run = run
command.main()
"""


def test_threads_and_handlers_end_before_the_command_does() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _ENDING], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 3
    assert ran.stdout == "written thread\nhandler\n"
    assert ran.stderr == "error without a line end"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["library"], 0), (["nonsense"], 2)]
)
def test_the_exit_code_is_that_of_the_command(arguments: list[str], code: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gscope", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code
    assert ran.stdout or ran.stderr


def test_a_closed_pipe_is_no_error() -> None:
    ran = subprocess.run(
        f"{sys.executable} -m gscope library | head -n 1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] in ("0", "141")
    assert ran.stderr == ""
