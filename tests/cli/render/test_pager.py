"""The pager: only for what exceeds the screen, and gone without a trace when the user leaves it."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import command

from gscope.capture.settings import InterfaceSettings
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.render.progress import NullProgress
from gscope.cli.session.request import QueryRequest
from gscope.cli.session.session import Session

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "SELECT time, srcIP, len FROM UDP"
MARKED = "sed 's/^/paged /'"


class Terminal:
    """A command whose standard output and error are a terminal of 80 columns."""

    def __init__(
        self,
        *arguments: str | Path,
        lines: int = 10,
        program: list[str] | None = None,
        **environment: str,
    ) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (lines, 80))
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PAGER", "GSCOPE_PAGER", "COLUMNS", "LINES", "LESS")
        }
        process = subprocess.Popen(
            command(*arguments) if program is None else [*program, *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**variables, "TERM": "xterm", **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.text = self._read()
        self.exit_code = process.wait()

    def _read(self) -> str:
        read = bytearray()
        try:
            while piece := os.read(self._master, 65_536):
                read += piece
        except OSError:
            pass  # the terminal has no process left
        os.close(self._master)
        return _shown(read.decode())


def _shown(text: str) -> str:
    """Return what a terminal shows in the end: erased lines are gone."""
    lines, at = [""], 0
    for token in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+", text):
        number, letter = token[1], token[2]
        if token[0] == "\n":
            at += 1
            lines += [""] * (at == len(lines))
        elif letter == "A":
            at -= int(number or 1)
        elif letter == "K":
            lines[at] = ""
        elif letter is None and token[0] != "\r":
            lines[at] += token[0]
    return "\n".join(lines)


def _is_paged(terminal: Terminal) -> bool:
    assert "top_talkers" in terminal.text
    return re.search(r"paged .*top_talkers", terminal.text) is not None


def test_a_long_text_goes_through_the_pager_and_a_short_one_does_not() -> None:
    assert _is_paged(Terminal("library", GSCOPE_PAGER=MARKED))
    assert _is_paged(Terminal("library", PAGER=MARKED))
    assert not _is_paged(Terminal("library", lines=200, GSCOPE_PAGER=MARKED))
    assert not _is_paged(Terminal("library", "--no-pager", GSCOPE_PAGER=MARKED))
    assert not _is_paged(Terminal("library", PAGER=MARKED, GSCOPE_PAGER="cat"))
    assert not _is_paged(Terminal("library", TERM="dumb"))


def test_a_pager_that_ends_early_leaves_no_traceback() -> None:
    for pager in ("head -n 2", "true"):
        terminal = Terminal("help", "replay", GSCOPE_PAGER=pager)
        assert "Traceback" not in terminal.text
        assert "bug" not in terminal.text


def test_the_text_of_a_pager_that_cannot_run_is_printed(tmp_path: Path) -> None:
    whole = Terminal("help", "replay", "--no-pager").text
    (tmp_path / "pager").write_text("")
    for pager, why in (
        ("no-such-pager-anywhere -F", "does not exist"),
        (str(tmp_path / "pager"), "cannot be executed"),
    ):
        terminal = Terminal("help", "replay", PAGER=pager)
        shell, notice, text = terminal.text.partition(
            f"gscope: the pager '{pager}' {why}; the output follows without it\n"
        )
        assert notice, shell
        assert text == whole
        assert terminal.exit_code == 0


@pytest.mark.parametrize("pieces", [1, 40, 200])
def test_no_text_is_lost_however_late_the_shell_misses_the_pager(pieces: int) -> None:
    """Up to 560,000 characters, more than the pipe to the shell holds."""
    program = [sys.executable, "-c", PIECES]
    terminal = Terminal(str(pieces), program=program)
    lines = [line for line in terminal.text.splitlines() if line.startswith("piece")]
    assert lines == [f"piece {n} {'x' * 60}" for n in range(40 * pieces)]
    assert terminal.exit_code == 0


@pytest.mark.slow
def test_answers_of_captures_are_paged_and_leaving_the_pager_ends_the_run(tmp_path: Path) -> None:
    many, few = tmp_path / "many.pcap", tmp_path / "few.pcap"
    many.write_bytes(_capture(5_000))
    few.write_bytes(_capture(3))

    def replay(capture: Path, pager: str) -> Terminal:
        return Terminal("replay", capture, "-e", QUERY, "--work-dir", tmp_path, GSCOPE_PAGER=pager)

    left = replay(many, "head -n 1 | sed 's/^/paged /'")
    assert left.exit_code == 141
    assert re.search(r"paged time +srcIP +len\n$", left.text)
    assert not list(tmp_path.glob("gscope-*"))
    read = replay(many, MARKED)
    assert read.exit_code == 0
    assert len(re.findall(r"paged .*10\.0\.0\.1", read.text)) == 5_000
    # The summary follows the pager.
    assert "paged (5,000 rows)\n" in read.text.partition("received")[0]
    whole = replay(few, MARKED)
    assert whole.exit_code == 0
    # The progress leaves nothing behind.
    assert re.fullmatch(
        r"time +srcIP +len\n(2023-.* 10\.0\.0\.1 +42\n){3}\(3 rows\)\n"
        r"gscope: 3 packets received = 3 accepted; 3 rows in [0-9.]+ s\n",
        whole.text,
    )


NOTICES = """
from gscope.cli.render.progress import Destination, ProgressLine
from gscope.cli.render.progress_text import RunPhase

line = ProgressLine(is_live=True, destination=Destination.DESTINATION)
line.on_phase(RunPhase.COMPILING, "x" * 200)
line._live.refresh()
line.on_notice("one")
line._live.refresh()
with line.aside():
    print("row")
    line.on_rows()
line._live.refresh()
line.on_pager_start()
line.on_notice("two")
print("paged")
line.close()
line.on_pager_end()
"""


@pytest.mark.parametrize("destination", ["TERMINAL", "PIPE"])
def test_the_line_leaves_nothing_among_notices_rows_and_pager(destination: str) -> None:
    text = NOTICES.replace("Destination.DESTINATION", f"Destination.{destination}")
    shown = Terminal(text, program=[sys.executable, "-c"]).text
    assert shown == "gscope: one\nrow\npaged\ngscope: two\n"


PIECES = """
import sys
from gscope.cli.render.pager import paged_output

with paged_output("no-such-pager-anywhere") as output:
    for piece in range(int(sys.argv[1])):
        output.write("".join(f"piece {40 * piece + n} {'x' * 60}\\n" for n in range(40)))
    output.finish()
"""


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "speed", "file", "is_paged"),
    [
        (None, None, "a.pcap", True),
        ("vertical", None, "a.pcap", True),
        ("csv", None, "a.pcap", False),
        (None, 1.0, "a.pcap", False),
        (None, None, "-", False),
    ],
)
def test_only_tables_of_files_at_full_speed_are_paged(
    kind: str | None,
    speed: float | None,
    file: str,
    is_paged: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pcap").touch()
    monkeypatch.setattr("sys.stdout", _Screen())
    given = {} if kind is None else {"output.format": GivenSetting(kind, "-o")}
    session = Session(
        QueryRequest([]),
        (InterfaceSettings("a", (file,)),),
        RunLimits(speed),
        None,
        None,
        load_config(given, None),
        pager="less",
    )
    with session._paged_output(NullProgress()) as output:
        assert (output is not None) is is_paged


def _capture(packets: int) -> bytes:
    """Return a capture of UDP packets without payload, a millisecond apart."""
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 1, 2, 8, 0)
    size = len(frame)
    records = (
        struct.pack("<IIII", 1_700_000_000, 1_000 * number, size, size) + frame
        for number in range(packets)
    )
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"".join(records)
