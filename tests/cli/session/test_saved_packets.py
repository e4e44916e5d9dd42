"""Which queries' packets can be saved, why others' cannot, and what becomes of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gscope.capture.settings import SavedQuery
from gscope.cli.config.saving import SaveRequest, save_request
from gscope.cli.session.saved_packets import opened_packet_file, saved_queries
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.layout import SAVED_PACKETS_FILE

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

HTTPS = "SELECT time, srcIP FROM TCP WHERE destPort = 443"


def compiled(*texts: str, interfaces: tuple[str, ...] = ("a", "b")) -> Program:
    named = [QueryText(text, f"q{number}") for number, text in enumerate(texts, 1)]
    return compile_queries(named, CompileContext(interfaces=interfaces)).program


@pytest.mark.parametrize(
    "text",
    [
        HTTPS,
        "SELECT srcIP FROM TCP WHERE destPort = 443",
        "SELECT * FROM PKT",
        f"{HTTPS} ORDER BY srcIP",
        f"SELECT srcIP FROM ({HTTPS})",
        "MERGE x.time : y.time FROM (SELECT time, len FROM a.TCP) x, (SELECT time, len FROM b.UDP) y",
        "SELECT time, tls_sni(TCP_data) AS name FROM TCP WHERE destPort = 443",
    ],
)
@pytest.mark.parametrize("interfaces", [("a", "b")])
def test_packets_of_selections_are_known_in_the_daemon(
    text: str, interfaces: tuple[str, ...]
) -> None:
    program = compiled(text, interfaces=interfaces)
    saved = saved_queries(program, ())
    assert {each.query for each in saved} == {"q1"}
    assert {each.lfta for each in saved} == {lfta.name for lfta in program.lftas}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb", "it groups packets"),
        ("SELECT count(*) FROM TCP", "it groups packets"),
        ("SELECT DISTINCT time, srcIP FROM TCP", "it groups packets"),
        (
            "SELECT time FROM TCP WHERE tls_sni(TCP_data) = 'example.org'",
            "a part of its WHERE is evaluated on Spark",
        ),
        (
            "SELECT x.time FROM a.TCP x JOIN b.TCP y ON x.time = y.time AND x.srcIP = y.srcIP",
            "its rows are joined",
        ),
        (f"{HTTPS} LIMIT 5", "its LIMIT chooses rows"),
        (f"{HTTPS} ORDER BY srcIP LIMIT 5", "its LIMIT chooses rows"),
        (f"SELECT srcIP FROM ({HTTPS} LIMIT 5)", "its LIMIT chooses rows"),
    ],
)
def test_others_are_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"cannot save the packets of q1: {why}"):
        saved_queries(compiled(text), ())


def test_some_of_several_queries_can_be_chosen() -> None:
    program = compiled(HTTPS, "SELECT count(*) FROM TCP", HTTPS)
    with pytest.raises(UsageError, match=r"packets of q2: .* choose other queries with"):
        saved_queries(program, ())
    # q1 and q3 select the same packets, and share an LFTA.
    selecting, _grouping = program.lftas
    assert saved_queries(program, ("q3", "q3")) == (SavedQuery(selecting.name, "q3"),)
    both = saved_queries(program, ("q1", "q3"))
    assert both == (SavedQuery(selecting.name, "q1"), SavedQuery(selecting.name, "q3"))
    with pytest.raises(
        UsageError, match="--save-packets-of q4: no result of that name; available: q1, q2"
    ):
        saved_queries(program, ("q4",))


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "hits.pcapng"
    path.write_bytes(b"precious")
    program = compiled(HTTPS)
    for is_live in (False, True):
        with (
            pytest.raises(UsageError, match="the file exists and is not overwritten"),
            opened_packet_file(SaveRequest(path), program, tmp_path, is_live=is_live),
        ):
            pass
    assert path.read_bytes() == b"precious"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "hits.pcapng"
    path.symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(UsageError, match="the file exists"),
        opened_packet_file(SaveRequest(path), compiled(HTTPS), tmp_path, is_live=False),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("is_live", "stays"), [(False, False), (True, True)])
def test_a_replay_that_fails_leaves_no_file(tmp_path: Path, is_live: bool, stays: bool) -> None:
    path = tmp_path / "hits.pcapng"

    def fail() -> None:
        with opened_packet_file(
            SaveRequest(path), compiled(HTTPS), tmp_path, is_live=is_live
        ) as saved:
            assert saved is not None
            os.write(saved.descriptor, b"blocks")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.exists() == stays


def test_a_resumed_run_continues_its_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "hits.pcapng"
    path.write_bytes(b"blocks of the run that was killed")
    checkpoint = tmp_path / SAVED_PACKETS_FILE
    checkpoint.parent.mkdir()
    checkpoint.write_text(json.dumps({"inode": path.stat().st_ino}))
    program = compiled(HTTPS)
    with opened_packet_file(SaveRequest(path), program, tmp_path, is_live=True) as saved:
        assert saved is not None
        assert os.fstat(saved.descriptor).st_ino == path.stat().st_ino
    checkpoint.write_text(json.dumps({"inode": path.stat().st_ino + 1}))
    with (
        pytest.raises(UsageError, match="the file exists"),
        opened_packet_file(SaveRequest(path), program, tmp_path, is_live=True),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"save_queries": ("q",)}, "--save-packets-of has no effect without --save-packets FILE"),
        ({"save_limit": 1 << 20}, "--save-packets-limit has no effect without"),
        ({"save_path": Path("-")}, "standard output is for answers; name a file"),
        ({"save_path": Path("a/hits.pcapng.gz")}, "not compressed; name it a/hits.pcapng and"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        save_request(**options)
    assert save_request() is None
