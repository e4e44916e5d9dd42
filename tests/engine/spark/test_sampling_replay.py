"""The published sampling queries through a replay equal plain loops over tshark's packets."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.engine.sampling.references import ThresholdSampler, least_values, lossy_counts
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.spark, needs_captures]

CAPTURE = CAPTURES / "ndpi-pcap-1kxun.pcap"
QUERIES = """
DEFINE { query_name 'subset_sum'; }
SELECT uts, srcIP, destIP, UMAX(sum(len), ssthreshold()) FROM PKTS WHERE ssample(len,100)=TRUE
GROUP BY time/20 as tb, srcIP, destIP, uts HAVING ssfinal_clean(sum(len))=TRUE
CLEANING WHEN ssdo_clean()=TRUE CLEANING BY ssclean_with(sum(len))=TRUE;
DEFINE { query_name 'heavy'; }
SELECT tb, srcIP, sum(len), count(*) FROM IP GROUP BY time/60 as tb, srcIP
CLEANING WHEN local_count(100) = TRUE
CLEANING BY count(*) >= current_bucket() - first(current_bucket());
DEFINE { query_name 'min_hash'; }
SELECT tb, srcIP, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 10)
GROUP BY time/60 AS tb, srcIP, H(destIP) AS HX SUPERGROUP BY tb, srcIP
HAVING HX <= Kth_smallest_value$(HX, 10)
CLEANING WHEN count_distinct$(*) >= 10 CLEANING BY HX <= Kth_smallest_value$(HX, 10);
DEFINE { query_name 'pairs'; }
SELECT tb, srcIP, destIP, sum(len) AS bytes FROM IP GROUP BY time/20 AS tb, srcIP, destIP;
DEFINE { query_name 'large_pairs'; }
SELECT tb, srcIP, destIP, UMAX(sum(bytes), ssthreshold()) AS estimate FROM pairs
WHERE ssample(bytes, 10) = TRUE
GROUP BY tb, srcIP, destIP HAVING ssfinal_clean(sum(bytes)) = TRUE
CLEANING WHEN ssdo_clean() = TRUE CLEANING BY ssclean_with(sum(bytes)) = TRUE;
"""

Packet = tuple[int, int, str, str]


def packets() -> list[Packet]:
    """Time in nanoseconds, length, source and destination of each IP packet, in order of time."""
    fields = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst")
    options = [part for field in fields for part in ("-e", field)]
    command = ["tshark", "-n", "-r", str(CAPTURE), "-T", "fields", "-E", "occurrence=f", *options]
    done = subprocess.run(
        [*command, "-Y", "ip or ipv6"], capture_output=True, text=True, check=True, timeout=100
    )
    found = []
    for line in done.stdout.splitlines():
        at, length, src, dst, src6, dst6 = line.split("\t")
        seconds, _, rest = at.partition(".")
        time_ns = int(seconds) * 10**9 + int(rest.ljust(9, "0"))
        found.append((time_ns, int(length), src or src6, dst or dst6))
    return sorted(found, key=lambda each: each[0])


def by_epoch(rows: list[Packet], seconds: int) -> dict[int, list[Packet]]:
    epochs: dict[int, list[Packet]] = defaultdict(list)
    for each in rows:
        epochs[each[0] // 10**9 // seconds].append(each)
    return dict(sorted(epochs.items()))


def address(text: str) -> int:
    """An address as the catalog holds it."""
    parsed = ipaddress.ip_address(text)
    return int(parsed) | (0xFFFF << 32 if parsed.version == 4 else 0)


def hashed(text: str) -> int:
    value = call("hash_ip", Literal(address(text), GsqlType.IP))
    return cast("int", evaluate(value, lambda _: None))


def sampled(windows: list[list[tuple[Any, float]]], size: int) -> list[dict[Any, float]]:
    """The estimates of each window, one after the other."""
    sampler, found = ThresholdSampler(size), []
    for number, window in enumerate(windows):
        if number:
            sampler.next_window()
        found.append(sampler.window(window))
    return found


def test_published_queries(tmp_path: Path) -> None:
    (tmp_path / "q.gsql").write_text(QUERIES, encoding="utf-8")
    done = run(
        "replay", CAPTURE, "-q", tmp_path / "q.gsql", "-o", "ndjson", "--work-dir", tmp_path / "w"
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for line in done.stdout.splitlines():
        query, *values = json.loads(line).values()
        answers[query].append(tuple(values))
    seen = packets()
    windows = list(by_epoch(seen, 20).values())
    estimates = sampled([[((t, s, d), n) for t, n, s, d in window] for window in windows], 100)
    assert answers["subset_sum"] == [
        (*key, e) for one in estimates for key, e in sorted(one.items())
    ]

    heavy = set()
    minima = set()
    for tb, window in by_epoch(seen, 60).items():
        held = lossy_counts([(s,) for _, _, s, _ in window], 100)
        heavy |= {(tb, *key, count) for key, (count, _) in held.items()}
        for source in {s for _, _, s, _ in window}:
            hashes = [hashed(d) for _, _, s, d in window if s == source]
            minima |= {(tb, source, value) for value in least_values(hashes, 10)}
    assert {(tb, source, count) for tb, source, _, count in answers["heavy"]} == heavy
    assert set(answers["min_hash"]) == minima

    pairs: list[list[tuple[Any, float]]] = []
    for window in windows:
        summed: dict[tuple[str, str], int] = defaultdict(int)
        for _, length, source, dest in window:
            summed[source, dest] += length
        order = sorted(summed, key=lambda pair: (address(pair[0]), address(pair[1])))
        pairs.append([(pair, summed[pair]) for pair in order])
    epochs = list(by_epoch(seen, 20))
    expected = {
        (tb, *key, estimate)
        for tb, one in zip(epochs, sampled(pairs, 10), strict=True)
        for key, estimate in one.items()
    }
    assert set(answers["large_pairs"]) == expected
