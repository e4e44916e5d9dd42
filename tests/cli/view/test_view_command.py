"""``-o view`` on a terminal of its own: what it shows, how it ends, and what it refuses."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest
from tests.capture.saving.pcapng_reader import read_pcapng
from tests.cli.view.emulator import Emulator, written
from tests.support.gscope_command import PATIENCE_S, command, run
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

QUERY = "SELECT time, srcIP, len FROM UDP"
CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal on standard input the one that controls the process."""


class Terminal:
    """A command on a terminal that controls it."""

    def __init__(self, *arguments: str | Path, size: tuple[int, int], **environment: str) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self._slave)
        variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLED, *command(*arguments)],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**variables, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment},
            start_new_session=True,
        )
        self.all_text = ""

    def resize(self, columns: int, lines: int) -> None:
        termios.tcsetwinsize(self._slave, (lines, columns))
        self.screen = Emulator(columns, lines)

    def wait_for(self, condition: Callable[[Emulator], bool]) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not condition(self.screen):
            assert time.monotonic() < end_s, self.screen.text
            readable, _, _ = select.select([self._master], [], [], 1)
            if readable:
                self._take(os.read(self._master, 65_536))
            else:
                assert self.process.poll() is None, self.screen.text

    def _take(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        self.all_text += text
        if "\x1b[?1049h" in self.all_text:
            # What comes before the view is the progress line, which is not ours.
            self.screen.feed(text[text.find("\x1b[?1049h") :] if "\x1b[?1049h" in text else text)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was printed after the view."""
        end_s = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < end_s, self.screen.text
            # A terminal that is not read stops those that write to it.
            if select.select([self._master], [], [], 0.1)[0]:
                self.all_text += os.read(self._master, 65_536).decode(errors="replace")
        code = self.process.returncode
        self.all_text += written(self._master, self._slave).decode(errors="replace")
        # The progress line may be removed after the view.
        return code, self.all_text.rpartition("\x1b[?1049l")[2]

    @property
    def modes(self) -> object:
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def start() -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def begin(*arguments: str | Path, size: tuple[int, int] = (80, 24), **more: str) -> Terminal:
        terminals.append(Terminal(*arguments, size=size, **more))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        terminal.close()


def capture(path: Path, packets: int, step_s: float = 0.1) -> Path:
    """Write packets of UDP, each from another port, ``step_s`` apart."""
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
    for number in range(packets):
        udp = struct.pack("!HHHH", 1000 + number, 53, 8, 0)
        ip = struct.pack("!BBHHHBBH4s4s", 69, 0, 28, 0, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
        packet = bytes(12) + b"\x08\x00" + ip + udp
        second, part = divmod(number * step_s, 1)
        file += struct.pack("<IIII", 1_700_000_000 + int(second), int(part * 1e6), 42, 42) + packet
    path.write_bytes(file)
    return path


@pytest.mark.slow
def test_a_replay_is_viewed_until_the_user_leaves(
    tmp_path: Path, start: Callable[..., Terminal]
) -> None:
    trace = capture(tmp_path / "t.pcap", 100)
    shown = start("replay", trace, "-e", QUERY, "-o", "view", "--work-dir", tmp_path)
    shown.wait_for(lambda screen: "ended; q quits" in screen.lines[0])
    shown.wait_for(lambda screen: "100 packets received = 100 accepted" in screen.text)
    assert "22:13:29Z  10 rows" in shown.screen.text
    assert {"1049", "1000", "1006"} <= shown.screen.modes
    assert shown.modes != shown.before
    shown.press("[[/!len>99\r")
    shown.wait_for(lambda screen: "22:13:27Z FROZEN, 2 behind  10 of 10 rows" in screen.text)
    # Another size: everything is drawn again.
    shown.resize(160, 50)
    shown.wait_for(lambda screen: "10 of 10 rows" in screen.text and "? help" in screen.lines[49])
    shown.press("?")
    shown.wait_for(lambda screen: "Epochs and queries" in screen.text)
    shown.press("q")
    code, after = shown.end()
    assert code == 0
    assert "gscope: 100 packets received = 100 accepted; 100 rows in" in after
    assert not {"1049", "1000", "1006"} & _modes(shown.all_text)
    assert shown.modes == shown.before
    assert not list(tmp_path.glob("gscope-*"))


def _modes(text: str) -> set[str]:
    modes: set[str] = set()
    for number, letter in re.findall(r"\x1b\[\?(\d+)([hl])", text):
        (modes.add if letter == "h" else modes.discard)(number)
    return modes


@pytest.mark.slow
@pytest.mark.parametrize("way", cases(["q"], ["\x03", "SIGTERM"]))
def test_leaving_ends_a_run_as_ctrl_c_does(
    tmp_path: Path, start: Callable[..., Terminal], way: str
) -> None:
    trace = capture(tmp_path / "t.pcap", 1000, step_s=1)
    arguments = ["replay", trace, "-e", QUERY, "--speed", "10", "--work-dir", tmp_path]
    shown = start(*arguments, "-o", "view", NO_COLOR="1")
    shown.wait_for(lambda screen: re.search(r"time 2023-.*1 row", screen.text) is not None)
    if way == "SIGTERM":
        shown.process.send_signal(signal.SIGTERM)
    else:
        shown.press(way)
    code, after = shown.end()
    assert code == 128 + (signal.SIGTERM if way == "SIGTERM" else signal.SIGINT)
    assert "(interrupted)" in after
    assert shown.modes == shown.before
    assert shown.screen.codes <= {"1", "2", "7"}


def test_a_pipe_and_a_terminal_that_moves_no_cursor_are_refused(
    tmp_path: Path, start: Callable[..., Terminal]
) -> None:
    trace = capture(tmp_path / "t.pcap", 1)
    arguments: list[str | Path] = ["replay", trace, "-e", QUERY, "-o", "view"]
    arguments += ["--work-dir", tmp_path]
    piped = run(*arguments)
    assert piped.returncode == 2
    assert "the view needs a terminal, but standard output is a pipe or a file" in piped.stderr
    dumb = start(*arguments, TERM="dumb")
    code, text = dumb.end()
    assert code == 2
    assert "TERM is dumb" in text
    files = run(*arguments, "-w", tmp_path / "answers")
    assert files.returncode == 2
    assert "a view is not written to files" in files.stderr
    assert not (tmp_path / "answers").exists()
    assert not list(tmp_path.glob("gscope-*"))


@pytest.mark.long
def test_packets_of_a_row_are_saved_when_the_replay_has_ended(
    tmp_path: Path, start: Callable[..., Terminal]
) -> None:
    trace = capture(tmp_path / "t.pcap", 30)
    query = "SELECT tb, srcPort, count(*) AS n FROM UDP GROUP BY time AS tb, srcPort"
    shown = start("replay", trace, "-e", query, "-o", "view", "--work-dir", tmp_path)
    shown.wait_for(lambda screen: "ended; q quits" in screen.lines[0])
    # The second packet of the second of three seconds.
    shown.press("[\x1b[Bp")
    shown.wait_for(lambda screen: "save packets of the row in" in screen.text)
    shown.press(f"\x15{tmp_path}/row.pcapng\r")
    shown.wait_for(lambda screen: "1 packet of the row saved" in screen.text)
    shown.press("q")
    assert shown.end()[0] == 0
    (packet,) = read_pcapng((tmp_path / "row.pcapng").read_bytes())
    assert struct.unpack_from("!H", packet.data, 34) == (1011,)


LOADED = """
import sys
from gscope.cli.supervision.supervisor import Supervisor

class Reached(BaseException):
    pass

def reached(*arguments, **options):
    raise Reached

Supervisor.start_job = lambda *arguments: None
Supervisor.start_capture = reached
from gscope.cli.main import run
try:
    run(sys.argv[1:])
except Reached:
    print("compiled", [name for name in sys.modules if name.startswith("gscope.cli.view")])
"""


def test_a_run_without_a_view_loads_nothing_of_it(tmp_path: Path) -> None:
    trace = capture(tmp_path / "t.pcap", 1)
    arguments = ["replay", trace, "-e", QUERY, "-o", "csv", "--work-dir", tmp_path]
    program = [sys.executable, "-c", LOADED, *map(str, arguments)]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "compiled []\n"
