"""``gscope replay`` from end to end where no Spark is needed; golden cases cover the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.requirements import CAPTURES, needs_captures

DNS = CAPTURES / "ndpi-dns.pcap"
QUERY = "SELECT time, srcIP, len FROM UDP"

pytestmark = [pytest.mark.slow, needs_captures]


def _replay(
    *arguments: str | Path, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gscope", "replay", *map(str, arguments)]
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[1],
    )


def test_an_answer_is_on_standard_output_and_all_else_on_standard_error(tmp_path: Path) -> None:
    done = _replay(DNS, "-e", QUERY, "-o", "csv", "--timings", "--work-dir", tmp_path)
    assert done.returncode == 0
    heading, *rows = done.stdout.decode().splitlines()
    assert heading == "time,srcIP,len"
    assert len(rows) == 5
    assert rows == sorted(rows, key=lambda row: int(row.split(",")[0]))
    assert b"5 packets received = 5 accepted; 5 rows" in done.stderr
    assert b"kernel loaded or compiled" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_standard_input_can_be_the_capture() -> None:
    done = _replay("-", "-e", QUERY, "--quiet", stdin=DNS.read_bytes())
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 5
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("options", "rows", "summary"),
    [
        (["-f", "udp port 53"], 3, "5 packets received = 3 accepted + 2 filtered; 3 rows"),
        (["-f", "udp", "-c", "2", "-nn"], 2, "2 packets received = 2 accepted; 2 rows"),
        (["-c", "4", "-r", f"again={DNS}"], 4, "4 packets received = 4 accepted; 4 rows"),
    ],
)
def test_the_options_of_tcpdump_select_packets(options: list[str], rows: int, summary: str) -> None:
    done = _replay("-r", DNS, *options, "-e", QUERY, "-o", "csv")
    assert done.returncode == 0
    assert summary.encode() in done.stderr
    assert done.stdout.count(b"\n") == 1 + rows


def test_a_query_can_say_itself_where_its_packets_go(tmp_path: Path) -> None:
    file = tmp_path / "hits.pcapng"
    done = _replay(DNS, "-e", f"DEFINE {{ save_packets '{file}'; }} {QUERY}")
    assert done.returncode == 0
    assert f"5 packets saved in {file}".encode() in done.stderr
    again = _replay(file, "-e", QUERY, "--quiet")
    assert again.stdout == done.stdout


def test_a_truncated_capture_is_answered_as_far_as_it_goes(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(DNS.read_bytes()[:-10])
    done = _replay(cut, "-e", QUERY, "--strict")
    assert done.returncode == 3
    assert done.stdout.count(b"\n") == 4
    assert done.stderr.count(b"\n") > 1


@pytest.mark.parametrize("content", [None, b"", b"no capture at all, but long enough for a header"])
def test_what_is_no_capture_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.pcap"
    if content is not None:
        path.write_bytes(content)
    done = _replay(path, "-e", QUERY, "-o", "csv", "--work-dir", tmp_path / "work")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


def test_files_appear_when_they_are_complete(tmp_path: Path) -> None:
    done = _replay(DNS, "-e", QUERY, "-w", tmp_path / "answers")
    assert (done.returncode, done.stdout) == (0, b"")
    assert [path.name for path in (tmp_path / "answers").iterdir()] == ["query.csv"]


def test_an_interface_that_is_not_there_gives_an_empty_answer() -> None:
    query = "SELECT tb, count(*) FROM UDP WHERE interface = 'nix' GROUP BY time/60 as tb"
    done = _replay(DNS, "-e", query, "-o", "csv")
    assert (done.returncode, done.stdout) == (0, b"tb,cnt\n")


def test_a_watchlist_that_is_not_there_is_reported_before_anything_is_read(tmp_path: Path) -> None:
    query = tmp_path / "seen.gsql"
    query.write_text(
        "DEFINE { query_name 'hosts'; filename 'hosts.csv'; } WATCHLIST FIELDS { IP address };"
        "DEFINE { query_name 'seen'; } SELECT time, srcIP FROM IP, hosts WHERE srcIP = address"
    )
    done = _replay(DNS, "-q", query)
    assert (done.returncode, done.stdout) == (1, b"")
    where = f"from {tmp_path / 'hosts.csv'}: no such file or directory"
    assert done.stderr.decode() == f"gscope: cannot read watchlist hosts {where}\n"
