"""The traffic of D5 to D8: divided as stated, counted as by a plain loop."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import TYPE_CHECKING

import dpkt
import numpy as np
import pytest
from benchmarks.partitioning.plans import CURVES, MERGED, Work
from benchmarks.partitioning.simulate import fitted, lfta_rows
from benchmarks.partitioning.traffic import SETS, parts, traffic, write_shares
from benchmarks.sampling.connections import BEGIN_S

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

PACKETS = traffic(3_000)
KEYS = list(
    zip(
        *(getattr(PACKETS, name).tolist() for name in SETS["flow"]),
        strict=True,
    )
)


def keys_of(name: str) -> list[tuple[int, ...]]:
    """Return what a set divides each packet by."""
    return {
        "flow": KEYS,
        "pair": [key[:2] for key in KEYS],
        "subnet": [(key[0] // 16, key[1]) for key in KEYS],
        "source": [key[:1] for key in KEYS],
        "prefix": [(key[0] // 16,) for key in KEYS],
    }[name]


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name]])
def test_packets_that_agree_in_a_set_are_in_one_part(name: str) -> None:
    found = parts(PACKETS, name, 8).tolist()
    assert set(found) == set(range(8))
    part_of: dict[tuple[int, ...], int] = {}
    for key, part in zip(keys_of(name), found, strict=True):
        assert part_of.setdefault(key, part) == part


def test_shares_have_every_packet_once(tmp_path: Path) -> None:
    found: Counter[tuple[int, str, str, int]] = Counter()
    for share in write_shares(PACKETS, "none", 3, tmp_path):
        assert len(share) == 2
        for path in share:
            with path.open("rb") as file:
                for _, data in dpkt.pcap.Reader(file):
                    ip = dpkt.ethernet.Ethernet(data).data
                    ends = (str(ipaddress.ip_address(each)) for each in (ip.src, ip.dst))
                    found[ip.data.seq, *ends, ip.data.flags] += 1
    columns = (PACKETS.sequence, PACKETS.source, PACKETS.target, PACKETS.flags)
    assert found == Counter(
        (seq, str(ipaddress.ip_address(source)), str(ipaddress.ip_address(target)), flags)
        for seq, source, target, flags in zip(*(c.tolist() for c in columns), strict=True)
    )


@pytest.mark.parametrize(
    ("result", "keys", "unit"),
    [("suspicious", "flow", 1), ("subnet_stats", "subnet", 60), ("flow_pairs", "pair", 60)],
)
@pytest.mark.parametrize("by", ["none", "source"])
def test_rows_of_lftas_are_counted_as_by_a_loop(result: str, keys: str, unit: int, by: str) -> None:
    """A relay merges what its host has; the first host has none."""
    work = Work((result,), MERGED, by, (result,))
    rows = set()
    times = [(int(at) + BEGIN_S) // unit for at in PACKETS.at.tolist()]
    for time, key, part in zip(times, keys_of(keys), parts(PACKETS, by, 6).tolist(), strict=True):
        place = part // 2
        rows.add((place, part if place == 0 else None, time, key))
    remote = sum(place > 0 for place, *_ in rows)
    assert lfta_rows(PACKETS, work, 3) == (len(rows), remote)


def test_weights_are_fitted_and_never_negative() -> None:
    features = [[1 / n, 1000.0 * n, 5.0 * (1 - 1 / n)] for n in (2, 3, 4)]
    values = [3 * a + 0.002 * b for a, b, _ in features]
    assert fitted(features, values) == pytest.approx([3, 0.002, 0], abs=1e-9)
    assert min(fitted(features, [-1.0, 2.0, -1.0])) >= 0
    assert np.isfinite(fitted([[1.0, 0.0]] * 3, [1.0, 1.0, 1.0])).all()


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: f"{curve.experiment} {curve.name}")
def test_the_queries_of_each_curve_compile(curve: object) -> None:
    for work in curve.work:  # type: ignore[attr-defined]
        texts = [QueryText(work.text, work.name)]
        program = compile_queries(texts, CompileContext(interfaces=("p0", "p1"))).program
        assert tuple(name for name, _ in program.results) == work.results
