"""Sums beyond 64 bits over captures: values and numbers, compared with a plain loop."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest
from tests.answers.test_arithmetic_truth import CAPTURE, tcp_packets, wrapped
from tests.support.gscope_command import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

SUMS = "sum(time_ns) AS up, sum(0 - time_ns) AS down, sum(sequence_number) AS fits"
QUERIES = f"""
DEFINE {{ query_name 'low'; visibility 'external'; }}
SELECT t, srcIP, {SUMS} FROM TCP GROUP BY time AS t, srcIP;
DEFINE {{ query_name 'packets'; visibility 'internal'; }}
SELECT time, srcIP, sequence_number, time_ns FROM TCP;
DEFINE {{ query_name 'high'; }}
SELECT t, srcIP, {SUMS} FROM packets GROUP BY time AS t, srcIP HAVING sum(time_ns) > 0;
DEFINE {{ query_name 'low_sql'; }}
SELECT t, srcIP, {SUMS}, count_distinct(srcPort) AS a, count_distinct(destPort) AS b
FROM TCP GROUP BY time AS t, srcIP HAVING sum(time_ns) > 0;
DEFINE {{ query_name 'high_sql'; }}
SELECT t, srcIP, {SUMS}, count_distinct(sequence_number) AS a, count_distinct(time_ns) AS b
FROM packets GROUP BY time AS t, srcIP;
DEFINE {{ query_name 'different'; }}
SELECT t, sum(DISTINCT time_ns) AS up FROM packets GROUP BY time AS t;
DEFINE {{ query_name 'of_sums'; }}
SELECT m, sum(up) AS up FROM low GROUP BY t/60 AS m;
DEFINE {{ query_name 'whole'; }}
SELECT sum(time_ns) AS up FROM packets
"""
CHOSEN = ("high", "low_sql")
"""Queries whose HAVING leaves sums out that were positive and have wrapped."""

NAMES = re.findall(r"query_name '(\w+)'", QUERIES)


def expected() -> tuple[dict[str, list[list[str]]], dict[str, int]]:
    """Answers of the queries over the capture on two interfaces, and their wrapped sums."""
    packets = tcp_packets() * 2
    flows: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    seconds: dict[str, set[int]] = defaultdict(set)
    for time_ns, source, sequence in packets:
        second = str(time_ns // 10**9)
        flows[second, source].append((time_ns, sequence))
        seconds[second].add(time_ns)
    count: dict[str, int] = defaultdict(int)

    def fitted(query: str, exact: int) -> int:
        count[query] += exact != wrapped(exact)
        return wrapped(exact)

    answers: dict[str, list[list[str]]] = defaultdict(list)
    minutes: dict[str, int] = defaultdict(int)
    for group, members in flows.items():
        times = sum(time_ns for time_ns, _ in members)
        minutes[str(int(group[0]) // 60)] += wrapped(times)
        for query in ("low", "high", "low_sql", "high_sql"):
            sums = (times, -times, sum(sequence for _, sequence in members))
            values = [fitted(query, each) for each in sums]
            if query not in CHOSEN or values[0] > 0:
                answers[query].append([*group, *map(str, values)])
    for second, times_ns in seconds.items():
        answers["different"].append([second, str(fitted("different", sum(times_ns)))])
    for minute, total in minutes.items():
        answers["of_sums"].append([minute, str(fitted("of_sums", total))])
    answers["whole"].append([str(fitted("whole", sum(time_ns for time_ns, *_ in packets)))])
    return {name: sorted(rows) for name, rows in answers.items()}, {
        k: n for k, n in count.items() if n
    }


def test_sums_beyond_64_bits_wrap_and_are_counted_at_every_level(tmp_path: Path) -> None:
    text = tmp_path / "q.gsql"
    text.write_text(QUERIES)
    out = tmp_path / "out"
    both = (f"a={CAPTURE}", f"b={CAPTURE}")
    done = run("replay", *both, "-q", str(text), "-o", "csv", "-w", str(out))
    assert done.returncode == 0, done.stderr
    answers, counts = expected()
    assert 0 < counts["low"] < 2 * len(answers["low"])
    assert len(answers["high"]) < len(answers["low"])
    # Four to six times fit on each interface and not together: no partial tuple of theirs wraps.
    seconds = Counter((time_ns // 10**9, source) for time_ns, source, _ in tcp_packets())
    assert {4, 5, 6} & set(seconds.values())
    for name in NAMES:
        if name != "packets":
            rows = list(csv.reader(io.StringIO((out / f"{name}.csv").read_text())))[1:]
            assert sorted(row[: len(answers[name][0])] for row in rows) == answers[name], name
    found = re.findall(r"^  ([\d,]+) sums? of (\w+) exceeds? 64 bits", done.stderr, re.MULTILINE)
    assert {name: int(count.replace(",", "")) for count, name in found} == counts
