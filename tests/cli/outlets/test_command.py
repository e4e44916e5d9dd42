"""Commands that are run for each row: hostile values, failures, limits."""

from __future__ import annotations

import json
import pwd
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.outlets.test_outlets import NullSink, counted
from tests.support.gscope_command import run, wait_for
from tests.support.requirements import needs_root

from gscope.capture.process.confinement.identity import Identity
from gscope.cli.config.row_commands import parse_row_commands
from gscope.cli.outlets import command
from gscope.cli.outlets.command import MOST_AT_ONCE, RowCommand
from gscope.cli.outlets.outlet import Batch, OutletError, RowsRefused
from gscope.cli.outlets.outlets import OpenedOutlet, OutletSink
from gscope.cli.outlets.spool import Block
from gscope.errors import UsageError

HOSTILE = ["$(touch pwned)", "`touch pwned`", "; touch pwned", "a b\n'\"\\", "${IFS}", "--help"]


def batch(*lines: bytes) -> Batch:
    return Batch("web", "t0", Block("q", 0, 5, lines))


def script(folder: Path, text: str) -> str:
    """Return a command that runs Python text with ``folder`` as its argument."""
    path = folder / "script.py"
    path.write_text(text)
    path.chmod(0o755)
    return f"{sys.executable} -S {path} {folder}"


NOTE = """
import json, os, sys
row = json.load(sys.stdin)
kept = {name: value for name, value in os.environ.items() if name.startswith("GSCOPE_")}
with open(f"{sys.argv[1]}/{kept['GSCOPE_NUMBER']}.json", "w") as file:
    json.dump([row, sys.argv[2:], kept], file)
"""


def noted(folder: Path) -> list[list[object]]:
    paths = sorted(folder.glob("*.json"), key=lambda path: int(path.stem))
    return [json.loads(path.read_text()) for path in paths]


def test_hostile_values_are_data_and_reach_no_shell(tmp_path: Path) -> None:
    rows = [{"text": value, "n": number, "none": None} for number, value in enumerate(HOSTILE)]
    outlet = RowCommand(f"{script(tmp_path, NOTE)} '$GSCOPE_ROW_text' ';' '*'")
    outlet.send(batch(*(json.dumps(row).encode() for row in rows)))
    found = noted(tmp_path)
    assert [row for row, _, _ in found] == rows
    assert {json.dumps(words) for _, words, _ in found} == {'["$GSCOPE_ROW_text", ";", "*"]'}
    for number, (_, _, kept) in enumerate(found):
        assert isinstance(kept, dict)
        environment = {name: kept[name] for name in kept if name.startswith("GSCOPE_")}
        assert environment == {
            "GSCOPE_RUN": "web",
            "GSCOPE_RUN_TOKEN": "t0",
            "GSCOPE_QUERY": "q",
            "GSCOPE_NUMBER": str(number + 5),
            "GSCOPE_ROW_text": HOSTILE[number],
            "GSCOPE_ROW_n": str(number),
        }
    assert not list(Path("/").glob("pwned")) + list(tmp_path.glob("pwned"))


def test_values_that_no_variable_can_hold_are_on_standard_input_alone(tmp_path: Path) -> None:
    rows = [{"text": "x" * 200_000, "nul": "a\0b", "n": 1}]
    RowCommand(script(tmp_path, NOTE)).send(batch(json.dumps(rows[0]).encode()))
    ((row, _, kept),) = noted(tmp_path)
    assert row == rows[0]
    assert isinstance(kept, dict)
    assert [name for name in kept if name.startswith("GSCOPE_ROW_")] == ["GSCOPE_ROW_n"]


def test_settings_with_passwords_are_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSCOPE_TO", "https://me:secret@host/")
    RowCommand(script(tmp_path, NOTE)).send(batch(b"{}"))
    assert "secret" not in json.dumps(noted(tmp_path))


@needs_root
def test_as_root_it_runs_as_another_user_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code says what the command found: the user may write nowhere."""
    monkeypatch.setenv("GSCOPE_HIDDEN", "1")
    monkeypatch.setenv("HOME", "/root")
    entry = pwd.getpwnam("nobody")
    found = 'echo $(id -u) $(id -G) $(grep CapEff /proc/self/status) "$GSCOPE_HIDDEN$HOME"'
    expected = f"{entry.pw_uid} {entry.pw_gid} CapEff: 0000000000000000 "
    text = f"""sh -c 'test "$({found})" = "{expected}"'"""
    RowCommand(text, Identity("nobody", entry.pw_uid, entry.pw_gid)).send(batch(b"{}"))
    with pytest.raises(RowsRefused):
        RowCommand(text).send(batch(b"{}"))


def test_failures_are_counted_and_not_repeated(tmp_path: Path) -> None:
    outlet = RowCommand(
        script(
            tmp_path,
            "import os, sys\nn = int(os.environ['GSCOPE_ROW_n'])\n"
            "open(f'{sys.argv[1]}/ran', 'a').write(f'{n}\\n')\n"
            "if n == 3: os.kill(os.getpid(), 9)\nsys.exit(n % 2)",
        )
    )
    with pytest.raises(RowsRefused, match=r"it ended with (exit code 1|SIGKILL)") as refused:
        outlet.send(batch(*(b'{"n": %d}' % number for number in range(6))))
    assert refused.value.rows == 3
    assert sorted((tmp_path / "ran").read_text().split()) == list("012345")


def test_what_takes_too_long_is_killed_with_its_processes(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    # Where a shell takes long to start, a longer limit lets it come so far.
    for limit_s in (0.3, 3.0, 30.0):
        outlet = RowCommand(f"sh -c 'sleep 600 & echo $! >{noted}; wait'", time_limit_s=limit_s)
        with pytest.raises(RowsRefused, match="it took longer than"):
            outlet.send(batch(b"{}"))
        if noted.exists() and noted.read_text().strip():
            break
    child = int(noted.read_text())
    wait_for(lambda: _has_ended(child), "the end of the process that it started")


def _has_ended(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return text.rpartition(")")[2].split()[0] == "Z"


def test_only_some_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST_PER_SECOND", 1000)
    most: list[int] = []
    started = RowCommand._start

    def start(self: RowCommand, ends: object, running: dict[int, object], *more: object) -> None:
        started(self, ends, running, *more)  # type: ignore[arg-type]
        most.append(len(running))

    monkeypatch.setattr(RowCommand, "_start", start)
    RowCommand("sleep 0.05").send(batch(*[b"{}"] * 10))
    assert len(most) == 10
    assert max(most) == MOST_AT_ONCE


def test_they_are_started_no_faster_than_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound from below, which a slow machine cannot break."""
    monkeypatch.setattr(command, "MOST_PER_SECOND", 20)
    began = time.monotonic()
    RowCommand("true").send(batch(*[b"{}"] * 7))
    assert time.monotonic() - began >= 6 / 20


def test_the_end_of_a_run_kills_them() -> None:
    outlet = RowCommand("sleep 600")
    threading.Timer(0.1, outlet.close).start()
    with pytest.raises(OutletError):
        outlet.send(batch(b"{}"))


def test_a_program_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="nothing-such is not an executable program"):
        RowCommand("nothing-such --now")
    with pytest.raises(ValueError, match="no closing quotation"):
        parse_row_commands("echo 'a")
    assert parse_row_commands("echo a\n\necho b") == ("echo a", "echo b")


def test_each_row_of_a_run_runs_it_once(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    text = script(tmp_path, "import os, sys\nopen(f'{sys.argv[1]}/ran', 'a').write('x')")
    sink = OutletSink(
        NullSink(),
        [OpenedOutlet("c", "c", RowCommand(text))],
        {},
        path,
        "web",
        budget=1 << 20,
        is_live=False,
        report=lambda _: None,
    )
    sink.write("q", pa.table({"n": pa.array(range(6), pa.int64())}))
    sink.settle(is_last=True)
    sink.close(is_complete=True)
    assert counted(sink.accounts()[0])["sent_rows_total"] == 6
    assert (tmp_path / "ran").stat().st_size == 6


def test_help_names_it() -> None:
    assert "--on-row COMMAND" in run("replay", "--help").stdout
