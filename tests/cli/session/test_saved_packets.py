"""Which queries' packets can be saved, why others' cannot, and what becomes of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gscope.capture.settings import SavedQuery
from gscope.cli.config.saving import SaveRequest, request_of_queries, save_request
from gscope.cli.session.group_rows import GroupRows
from gscope.cli.session.saved_packets import SavePlan, opened_packet_file, save_plan
from gscope.errors import GsqlError, UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.layout import SAVED_PACKETS_FILE

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

HTTPS = "SELECT time, srcIP FROM TCP WHERE destPort = 443"


def compiled(*texts: str, interfaces: tuple[str, ...] = ("a", "b")) -> Program:
    named = [QueryText(text, f"q{number}") for number, text in enumerate(texts, 1)]
    return compile_queries(named, CompileContext(interfaces=interfaces)).program


def planned(program: Program, *names: str) -> tuple[SavedQuery, ...]:
    request = SaveRequest(Path("hits.pcapng"), names)
    return save_plan(program, request, is_repeatable=False).queries


def plan_of(path: Path) -> SavePlan:
    return save_plan(compiled(HTTPS), SaveRequest(path), is_repeatable=False)


def saving(name: str, file: str, more: str = "") -> str:
    return f"DEFINE {{ query_name '{name}'; save_packets '{file}'; {more} }} {HTTPS}"


def asked(*texts: str) -> SaveRequest | None:
    program = compiled(*texts)
    return request_of_queries(program.saved_packets, dict(program.results))


def test_queries_can_ask_for_their_packets_themselves() -> None:
    assert asked(HTTPS) is None
    assert asked(saving("one", "a b.pcapng"), HTTPS) == SaveRequest(Path("a b.pcapng"), ("one",))
    both = asked(saving("one", "hits.pcapng"), saving("two", "hits.pcapng"))
    assert both == SaveRequest(Path("hits.pcapng"), ("one", "two"))
    program = compiled(saving("one", "hits.pcapng"), HTTPS)
    assert both is not None
    plan = save_plan(program, SaveRequest(both.path, ("one",)), is_repeatable=False)
    assert [each.query for each in plan.queries] == ["one"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([saving("one", "a.pcapng"), saving("two", "b.pcapng")], "several files"),
        ([saving("one", "-")], "standard output is for answers"),
        ([saving("one", "a.pcapng.gz")], "name it a.pcapng and compress"),
        ([saving("one", "a.pcapng"), "SELECT srcIP FROM one"], "add visibility 'external'"),
    ],
)
def test_what_queries_cannot_ask_for_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        asked(*texts)


@pytest.mark.parametrize("value", ["''", "7"])
def test_a_file_for_packets_is_a_name(value: str) -> None:
    with pytest.raises(GsqlError, match="expected the name of a file"):
        compiled(f"DEFINE {{ save_packets {value}; }} {HTTPS}")


@pytest.mark.parametrize(
    "text",
    [
        HTTPS,
        "SELECT srcIP FROM TCP WHERE destPort = 443",
        "SELECT * FROM PKT",
        f"{HTTPS} ORDER BY srcIP",
        f"SELECT srcIP FROM ({HTTPS})",
        "MERGE x.time : y.time"
        " FROM (SELECT time, len FROM a.TCP) x, (SELECT time, len FROM b.UDP) y",
        "SELECT time, tls_sni(TCP_data) AS name FROM TCP WHERE destPort = 443",
    ],
)
@pytest.mark.parametrize("interfaces", [("a", "b")])
def test_packets_of_selections_are_known_in_the_daemon(
    text: str, interfaces: tuple[str, ...]
) -> None:
    program = compiled(text, interfaces=interfaces)
    saved = planned(program)
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
        planned(compiled(text))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            "SELECT tb AS t, srcIP, count(*) FROM TCP GROUP BY time/60 AS tb, srcIP",
            {"tb": "t", "srcIP": "srcIP"},
        ),
        ("SELECT DISTINCT interface, len FROM a.TCP", {"interface": "interface", "len": "len"}),
        ("SELECT count(*) FROM TCP WHERE SYN = 1", {}),
        (
            "SELECT minute AS m, srcIP, count(*) FROM TCP GROUP BY minute(time), srcIP",
            {"minute": "m", "srcIP": "srcIP"},
        ),
        ("SELECT srcIP, count_distinct(destPort) AS p FROM TCP GROUP BY srcIP", {"srcIP": "srcIP"}),
        (
            "SELECT tb, count(*) AS c FROM TCP GROUP BY time/60 AS tb ORDER BY c DESC LIMIT 3",
            {"tb": "tb"},
        ),
    ],
)
def test_groups_of_captures_are_found_by_keys_of_the_answer(
    text: str, keys: dict[str, str]
) -> None:
    plan = save_plan(compiled(text), SaveRequest(Path("x")), is_repeatable=True)
    (found,) = plan.groups.values()
    assert dict(found.keys) == keys
    assert not found.lfta.is_aggregation
    assert {c.name for c in found.lfta.columns} == set(keys) - {"interface"}
    assert plan.second is not None
    assert plan.second.lftas == (found.lfta,)
    assert plan.second.results == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb, srcIP",
            "its answer lacks the key srcIP of its groups; add it to SELECT",
        ),
        (
            # Two groups may have the same value of it.
            "SELECT tb % 2 AS odd, count(*) FROM TCP GROUP BY time/60 AS tb",
            "its answer lacks the key tb of its groups; add it to SELECT",
        ),
        (
            "SELECT t, count(*) FROM (SELECT time/60 AS t, count(*) AS c FROM TCP GROUP BY time/60)"
            " GROUP BY t",
            "its groups are of rows of another query",
        ),
        (
            "SELECT n, count(*) FROM TCP WHERE destPort = 443 GROUP BY tls_sni(TCP_data) AS n",
            "its term n in GROUP BY is evaluated on Spark",
        ),
    ],
)
def test_other_groups_are_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        save_plan(compiled(text), SaveRequest(Path("x")), is_repeatable=True)


def test_groups_of_a_live_run_are_kept_in_a_ring() -> None:
    grouped = "SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb"
    program = compiled(HTTPS, grouped)
    request = SaveRequest(Path("x"), ("q2",), limit_bytes=7, ring_bytes=1 << 20)
    plan = save_plan(program, request, is_repeatable=False, is_live=True)
    (grouping,) = (lfta for lfta in program.lftas if lfta.is_aggregation)
    assert plan.ring.queries == (SavedQuery(grouping.name, "q2"),)
    assert (plan.ring.ring_bytes, plan.ring.limit_bytes) == (1 << 20, None)
    assert plan.saved(3, plan.queries, 50).limit_bytes == 7
    with pytest.raises(UsageError, match="packets of selections and of groups in one live run"):
        save_plan(program, SaveRequest(Path("x")), is_repeatable=False, is_live=True)
    alone = SaveRequest(Path("x"), ("q1",))
    assert save_plan(program, alone, is_repeatable=False, is_live=True).ring_bytes is None


def test_groups_that_may_have_lost_packets_are_counted() -> None:
    texts = (
        "SELECT tb, srcIP, count(*) FROM TCP GROUP BY time/60 AS tb, srcIP",
        "SELECT minute, count(*) FROM TCP GROUP BY minute(time)",
        "SELECT srcIP, count(*) FROM TCP GROUP BY srcIP",
    )
    plan = save_plan(compiled(*texts), SaveRequest(Path("x")), is_repeatable=False, is_live=True)
    minute_ns = 60 * 10**9
    rows = GroupRows(plan)
    rows.take("q1", pa.table({"tb": [9, 10, 10, 11], "srcIP": [1, 1, 2, 1]}))
    rows.take(
        "q2", pa.table({"minute": pa.array([9 * minute_ns, 11 * minute_ns], pa.timestamp("ns"))})
    )
    more = GroupRows(plan)
    more.take("q3", pa.table({"srcIP": [1]}))
    rows.add(more)
    assert len(rows) == 7
    # Groups without an epoch may have packets of any time.
    assert rows.begun_until(11 * minute_ns - 1) == 3 + 1 + 1
    assert rows.begun_until(11 * minute_ns) == 4 + 2 + 1
    assert rows.begun_until(9 * minute_ns - 1) == 1


def test_some_of_several_queries_can_be_chosen() -> None:
    program = compiled(HTTPS, "SELECT count(*) FROM TCP", HTTPS)
    with pytest.raises(UsageError, match=r"packets of q2: .* choose other queries with"):
        planned(program)
    # q1 and q3 select the same packets, and share an LFTA.
    selecting, _grouping = program.lftas
    assert planned(program, *("q3", "q3")) == (SavedQuery(selecting.name, "q3"),)
    both = planned(program, *("q1", "q3"))
    assert both == (SavedQuery(selecting.name, "q1"), SavedQuery(selecting.name, "q3"))
    with pytest.raises(
        UsageError, match="--save-packets-of q4: no result of that name; available: q1, q2"
    ):
        planned(program, *("q4",))


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "hits.pcapng"
    path.write_bytes(b"precious")
    for is_live in (False, True):
        with (
            pytest.raises(UsageError, match="the file exists and is not overwritten"),
            opened_packet_file(plan_of(path), tmp_path, is_live=is_live),
        ):
            pass
    assert path.read_bytes() == b"precious"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "hits.pcapng"
    path.symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(UsageError, match="the file exists"),
        opened_packet_file(plan_of(path), tmp_path, is_live=False),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("is_live", "stays"), [(False, False), (True, True)])
def test_a_replay_that_fails_leaves_no_file(tmp_path: Path, is_live: bool, stays: bool) -> None:
    path = tmp_path / "hits.pcapng"

    def fail() -> None:
        with opened_packet_file(plan_of(path), tmp_path, is_live=is_live) as saved:
            os.write(saved, b"blocks")
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
    with opened_packet_file(plan_of(path), tmp_path, is_live=True) as saved:
        assert os.fstat(saved).st_ino == path.stat().st_ino
    checkpoint.write_text(json.dumps({"inode": path.stat().st_ino + 1}))
    with (
        pytest.raises(UsageError, match="the file exists"),
        opened_packet_file(plan_of(path), tmp_path, is_live=True),
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


@pytest.mark.parametrize(
    "query",
    [
        "SELECT time, srcIP FROM a.FLOW",
        "SELECT tb, srcIP, count(*) FROM a.FLOW GROUP BY time/60 AS tb, srcIP",
    ],
)
def test_flow_records_are_no_packets_to_save(query: str) -> None:
    program = compiled(query, "SELECT time FROM b.TCP")
    request = SaveRequest(Path("hits.pcapng"), ("q1",))
    with pytest.raises(UsageError, match="cannot save what q1 reads: FLOW has records"):
        save_plan(program, request, is_repeatable=True)
    assert [each.query for each in planned(program, "q2")] == ["q2"]
