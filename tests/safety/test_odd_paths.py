"""Folders whose names mean something to Spark, to Java, to addresses or to a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.live.test_run import udp
from tests.support.gscope_command import command

from gscope.cli.rundir.plain_path import forget, is_plain, plain_path
from gscope.queries.run_folder.socket_address import SocketAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

ODD = [
    "a b",
    "a,b",
    "it's",
    '"',
    "[x]",
    "{y}",
    "100%",
    "%41",
    "ü",
    "a:b",
    "#?*",
    "back\\\\slash",
    "a\nb",
]
EVERYTHING = "".join(ODD)
FLOWS = "SELECT tb, srcPort, count(*) AS n FROM UDP GROUP BY time/60 AS tb, srcPort"


@pytest.mark.parametrize("name", ODD)
def test_a_plain_path_leads_there(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name / "run-x"
    folder.mkdir(parents=True)
    path = plain_path(folder)
    assert is_plain(path)
    assert path.samefile(folder)
    assert plain_path(folder) == path
    forget(path)
    assert not os.path.lexists(path)
    assert folder.is_dir()


def test_a_path_that_is_plain_stays(tmp_path: Path) -> None:
    assert plain_path(tmp_path) == tmp_path
    forget(tmp_path)
    assert tmp_path.is_dir()


def test_links_of_runs_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / "a b"
    gone.mkdir()
    link = plain_path(gone)
    gone.rmdir()
    (tmp_path / "c d").mkdir()
    forget(plain_path(tmp_path / "c d"))
    assert not os.path.lexists(link)


@pytest.mark.parametrize("name", ODD)
def test_an_address_of_a_socket_is_plain(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    address = SocketAddress(tmp_path / name / "capture.sock")
    try:
        assert is_plain(Path(address.location.removeprefix("grpc+unix://")))
    finally:
        address.close()


def answered(tmp_path: Path, work_dir: list[str], environment: Mapping[str, str]) -> str:
    write_pcap(tmp_path / "main.pcap", [(10**9 * n, udp(n)) for n in range(3)])
    done = subprocess.run(
        command("replay", tmp_path / "main.pcap", "-e", FLOWS, "-o", "csv", *work_dir),
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [True, False])
def test_a_replay_answers_in_any_folder(tmp_path: Path, is_named: bool) -> None:
    odd = tmp_path / EVERYTHING
    odd.mkdir()
    named = ["--work-dir", str(odd / "wd")] if is_named else []
    rows = answered(tmp_path, named, {} if is_named else {"TMPDIR": str(odd)})
    assert sorted(rows.splitlines()) == ["0,1000,1", "0,1001,1", "0,1002,1", "tb,srcPort,n"]
    assert {path.name for path in tmp_path.iterdir()} == {EVERYTHING, "main.pcap"}
    (work_dir,) = odd.iterdir()
    assert list(work_dir.iterdir()) == []


@pytest.mark.slow
def test_a_link_to_a_capture_in_another_folder_is_read(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write_pcap(there / "main.pcap", [(10**9, udp(0))])
    (here / "linked.pcap").symlink_to(there / "main.pcap")
    (here / "circle.pcap").symlink_to("circle.pcap")

    def replayed(name: str) -> subprocess.CompletedProcess[str]:
        arguments = ("replay", here / name, "-e", FLOWS, "-o", "csv", "--work-dir", tmp_path / "wd")
        return subprocess.run(
            command(*arguments), capture_output=True, text=True, check=False, timeout=300
        )

    found = replayed("linked.pcap")
    assert (found.returncode, found.stdout) == (0, "tb,srcPort,n\n0,1000,1\n"), found.stderr
    circle = replayed("circle.pcap")
    assert circle.returncode == 1
    assert "circle.pcap" in circle.stderr
    assert len(circle.stderr.splitlines()) == 1
