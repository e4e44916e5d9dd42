"""What a service manager hears of a run."""

from __future__ import annotations

import configparser
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from gscope.cli.main import cli
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.session import sd_notify

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = Path(__file__).parents[3] / "packaging" / "gscope@.service"


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that a manager would listen on, named in the environment."""
    name = str(tmp_path / "s") if request.param == "path" else f"@gscope-test-{os.getpid()}"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening,
        pytest.MonkeyPatch().context() as patch,
    ):
        listening.bind(name.replace("@", "\0"))
        listening.settimeout(10)
        patch.setenv(sd_notify.VARIABLE, name)
        yield listening


def test_it_hears_when_a_run_captures_and_when_it_stops(
    manager: socket.socket, tmp_path: Path
) -> None:
    with RunDir(tmp_path / "work", "flows") as run_dir:
        run_dir.file.listen(sd_notify.on_change)
        run_dir.file.change(queries=("flows",))
        run_dir.file.enter("running")
        run_dir.file.on_restart("job", "code 1")
        run_dir.file.enter("stopping")
        run_dir.file.enter("ended")
    heard = [manager.recv(1000).decode().splitlines()[0] for _ in range(2)]
    assert heard == ["READY=1", "STOPPING=1"]
    manager.settimeout(0)
    with pytest.raises(BlockingIOError):
        manager.recv(1000)


@pytest.mark.parametrize("address", ["", "/nowhere/at/all"])
def test_without_one_nothing_happens(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv(sd_notify.VARIABLE, address)
    sd_notify.notify("READY=1")


def test_the_unit_s_command_can_be_typed() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    unit.read_string(UNIT.read_text(encoding="utf-8"))
    program, name, *arguments = unit["Service"]["ExecStart"].split()
    assert Path(program).name == "gscope"
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_parser(click.Context(command, **cli.context_settings)).parse_args(arguments)
    assert unit["Service"]["KillMode"] == "mixed"
