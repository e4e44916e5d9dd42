"""Texts that queries read from each other.

By tasks, by Spark SQL, and from one step to a later one.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dpkt
import pytest
from tests.golden.driver import COMPILED, CRASHING, Variation, answer
from tests.golden.test_before_spark import UnreadySpark

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ENDS = """
DEFINE { query_name 'ends'; visibility 'external'; }
SELECT tb, e, count(*) AS n FROM UDP GROUP BY time/10 AS tb, str_suffix(UDP_data, 2) AS e;
DEFINE { query_name 'often'; }
SELECT tb, e, n FROM ends WHERE n > 3;
DEFINE { query_name 'names'; }
SELECT tb, count(DISTINCT e) AS names, max(n) AS most FROM ends GROUP BY tb;
DEFINE { query_name 'again'; }
SELECT B.tb, A.e, A.n AS before, B.n AS now FROM ends A JOIN ends B WHERE B.tb = A.tb + 1 AND A.e = B.e;
DEFINE { query_name 'each'; visibility 'internal'; }
SELECT time, UDP_data AS e, UDP_length AS n FROM UDP WHERE UDP_length > 10;
DEFINE { query_name 'seconds'; visibility 'internal'; }
SELECT time, e, count(*) AS n FROM UDP GROUP BY time, UDP_data AS e;
DEFINE { query_name 'both'; }
MERGE each.time : seconds.time FROM each, seconds;
DEFINE { query_name 'sliding'; }
SELECT window_end, e, interface, count(*) AS n FROM UDP [RANGE 20 SLIDE 10]
GROUP BY str_suffix(UDP_data, 2) AS e, interface
"""  # noqa: E501
SQL = """;
DEFINE { query_name 'louder'; }
SELECT tb, e, concat(e, '!') AS loud FROM ends WHERE concat(e, '!') <> 'bc!'
"""
PAYLOADS = (b"abc", b"\xff\x00", b"x\xe9\x01", b"bc", b"\x00", b"", b"zz")
MANY = Variation("many", heartbeat_every_tick=True, batch_rows=20, chunks=8)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, bytes]]]:
    """A capture of datagrams in a minute, and the time and payload of each."""
    chance = random.Random(11)
    packets = [(n // 7, chance.choice(PAYLOADS[: 2 + n // 60])) for n in range(420)]
    path = tmp_path_factory.mktemp("texts") / "texts.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for second, payload in packets:
            datagram = dpkt.udp.UDP(sport=9, dport=9999, data=payload, ulen=8 + len(payload))
            packet = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", p=17, data=datagram)
            packet.len = len(packet)
            writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=packet)), ts=1_700_000_000 + second)
    return path, packets


def shown(text: bytes) -> str:
    """A text as answers show it."""
    return "".join(chr(c) if 0x20 <= c < 0x7F else f"\\x{c:02x}" for c in text)


def expected(packets: list[tuple[int, bytes]]) -> dict[str, list[tuple[str, ...]]]:
    counts = Counter(((1_700_000_000 + second) // 10, payload[-2:]) for second, payload in packets)
    epochs = {epoch for epoch, _ in counts}
    of_epoch = {e: {t: n for (tb, t), n in counts.items() if tb == e} for e in epochs}
    return {
        "ends": sorted((str(tb), shown(e), str(n)) for (tb, e), n in counts.items()),
        "often": sorted((str(tb), shown(e), str(n)) for (tb, e), n in counts.items() if n > 3),
        "names": sorted(
            (str(tb), str(len(texts)), str(max(texts.values()))) for tb, texts in of_epoch.items()
        ),
        "again": sorted(
            (str(tb), shown(e), str(counts[tb - 1, e]), str(n))
            for (tb, e), n in counts.items()
            if (tb - 1, e) in counts
        ),
        "both": sorted(
            [
                *((f"17{t:08d}", shown(p), str(8 + len(p))) for t, p in packets if len(p) > 2),
                *((f"17{t:08d}", shown(p), str(n)) for (t, p), n in Counter(packets).items()),
            ]
        ),
        "sliding": sorted(
            (
                f"{datetime.fromtimestamp(10 * end, UTC):%F %T}.000000000Z",
                shown(e),
                "main",
                str(counts[end - 1, e] + counts[end - 2, e]),
            )
            for end in range(min(epochs) + 1, max(epochs) + 3)
            for e in {text for epoch, text in counts if end - 2 <= epoch < end}
        ),
        "louder": sorted(
            (str(tb), shown(e), shown(e + b"!")) for tb, e in counts if e + b"!" != b"bc!"
        ),
    }


@pytest.mark.spark
@pytest.mark.parametrize("is_ready", [False, True], ids=["before Spark", "Spark"])
@pytest.mark.parametrize("variation", [COMPILED, MANY, CRASHING], ids=lambda each: each.name)
@pytest.mark.parametrize("further", ["", SQL], ids=["tasks", "also SQL"])
def test_texts_stay_the_same_between_queries(
    further: str,
    variation: Variation,
    is_ready: bool,
    capture: tuple[Path, list[tuple[int, bytes]]],
    spark: SparkSession,
) -> None:
    path, packets = capture
    program = compile_queries([QueryText(ENDS + further, "q")], CompileContext(("main",))).program
    unready = UnreadySpark(spark)
    found = answer(program, {"main": [path]}, variation, spark if is_ready else unready)
    wanted = expected(packets)
    for q in found:
        g, w = Counter(found[q]), Counter(wanted[q])
        assert g == w, (q, g - w, w - g)
    assert found.keys() == wanted.keys() - ({"louder"} if not further else set())
    assert further or variation is not COMPILED or not unready.asked
