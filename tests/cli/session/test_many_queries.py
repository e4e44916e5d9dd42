"""Many queries at once: the HFTA job is started when they are compiled, if it is needed at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import ipv4, udp
from tests.capture.replay.test_replay_capture import write_pcap
from tests.support.gscope_command import run

from gscope.cli.session.job_settings import MANY_QUERIES

if TYPE_CHECKING:
    from pathlib import Path

PACKETS = 40
SELECTED = "DEFINE {{ query_name 's{0}'; }} SELECT time, srcPort FROM UDP WHERE srcPort = {0}"
COUNTED = "DEFINE {{ query_name 'c{0}'; }} SELECT tb, count(*) FROM UDP WHERE srcPort > {0} GROUP BY time/10 AS tb"


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
