"""The command with standard streams that are closed, or that cannot take every character."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import command

if TYPE_CHECKING:
    from pathlib import Path

WRONG = ("check", "-e", "SELECT x FROM TCP")
RIGHT = ("check", "-e", "SELECT time FROM TCP")


def _run(closed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command(*arguments)]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_a_closed_stream_that_is_not_needed_changes_nothing(closed: str) -> None:
    done = _run(closed, *RIGHT)
    assert (done.returncode, done.stdout) == (0, "ok  query: query (time INT increasing)\n")


def test_messages_to_a_closed_standard_error_go_nowhere() -> None:
    done = _run("2>&-", *WRONG)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize(
    ("closed", "complaint"),
    [(">&-", "bad file descriptor"), (">/dev/full", "no space left on device")],
)
def test_an_answer_that_cannot_be_written_is_an_error(closed: str, complaint: str) -> None:
    done = _run(closed, *RIGHT)
    assert (done.returncode, done.stderr) == (1, f"gscope: {complaint}\n")


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"PYTHONIOENCODING": "latin-1"}, b"ok  \xe9.gsql"),
        ({"LC_ALL": "C"}, b"ok  \\xe9.gsql"),
        ({"LC_ALL": "C.UTF-8"}, b"ok  \xc3\xa9.gsql"),
    ],
)
def test_a_character_that_the_terminal_has_not_is_escaped(
    environment: dict[str, str], shown: bytes, tmp_path: Path
) -> None:
    name = tmp_path / "é.gsql"
    name.write_text("SELECT time FROM TCP", encoding="utf-8")
    done = subprocess.run(
        command("check", "é.gsql"),
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(shown)
