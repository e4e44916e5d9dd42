"""Many queries at once: the HFTA job is started when they are compiled, if it is needed at all."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.capture.lfta.lfta_builders import ipv4, udp
from tests.capture.replay.test_replay_capture import write_pcap
from tests.support.gscope_command import run

from gscope.cli.session import job_settings as settings_of_jobs
from gscope.cli.session.job_settings import MANY_QUERIES, loads_early
from gscope.cli.session.request import QueryRequest
from gscope.engine.settings import JobSettings

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.session.session import Session

PACKETS = 40
SELECTED = "DEFINE {{ query_name 's{0}'; }} SELECT time, srcPort FROM UDP WHERE srcPort = {0}"
COUNTED = (
    "DEFINE {{ query_name 'c{0}'; }} SELECT tb, count(*) FROM UDP WHERE srcPort > {0}"
    " GROUP BY time/10 AS tb"
)


@pytest.mark.parametrize(
    ("count", "is_live", "needs_spark_at_once", "is_early"),
    [
        (MANY_QUERIES - 1, False, False, True),
        (MANY_QUERIES, False, False, False),
        (MANY_QUERIES, False, True, True),
        (1, True, True, False),
    ],
)
def test_the_job_of_many_queries_loads_when_they_are_compiled(
    count: int,
    is_live: bool,
    needs_spark_at_once: bool,
    is_early: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = JobSettings(expected_bytes=1 << (36 if needs_spark_at_once else 20))
    assert made.starts_spark_when_needed is not needs_spark_at_once
    monkeypatch.setattr(settings_of_jobs, "job_settings", lambda _: made)
    request = QueryRequest(queries=["q"] * (count // 2), expressions=["e"] * (count - count // 2))
    session = cast("Session", SimpleNamespace(is_live=is_live, request=request))
    assert loads_early(session) is is_early


@pytest.mark.parametrize("texts", [[SELECTED], [SELECTED, COUNTED]], ids=["streams", "both"])
@pytest.mark.parametrize("count", [MANY_QUERIES - 2, MANY_QUERIES + 2])
def test_answers_do_not_depend_on_when_the_job_starts(
    tmp_path: Path, texts: list[str], count: int
) -> None:
    capture = tmp_path / "trace.pcap"
    write_pcap(capture, [(n * 10**9, ipv4(1, 2, udp(n % 20, 53, b"x"))) for n in range(PACKETS)])
    asked = [texts[n % len(texts)].format(n) for n in range(count)]
    options = [option for text in asked for option in ("-e", text)]
    done = run("replay", capture, *options, "-o", "ndjson", "--quiet")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for n in range(count):
        found = [row for row in rows if row["query"] in (f"s{n}", f"c{n}")]
        if n % len(texts):
            counts = [sum(second % 20 > n for second in range(t, t + 10)) for t in range(0, 40, 10)]
            assert [list(row.values())[-1] for row in found] == [each for each in counts if each]
        else:
            assert [row["time"] for row in found] == [n, n + 20]
