"""The sampling operator, live, while its job is killed in the middle of windows.

Its rows are those of a replay.
"""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.engine.sampling.references import ThresholdSampler, seed_of, splitmix
from tests.faults.faulty_run import FaultyRun, Sender, frame, number_of
from tests.live.test_run import network
from tests.support.gscope_command import run, wait_for
from tests.support.long_form import cases

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["network"]

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.spark]

WINDOW_S, SIZE, DRAWN = 2, 20, 5
WEIGHT = "srcPort % 5 * 400 + len"
PACKETS = """DEFINE { query_name packets; }
SELECT time_ns, time, srcIP, srcPort, len FROM UDP WHERE destPort = 53"""
SAMPLED = f"""DEFINE {{ query_name sampled; }}
SELECT tb, uts, srcIP, UMAX(sum({WEIGHT}), ssthreshold()) AS estimate FROM UDP
WHERE destPort = 53 AND ssample({WEIGHT}, {SIZE}) GROUP BY time/{WINDOW_S} AS tb, srcIP, uts
HAVING ssfinal_clean(sum({WEIGHT}))
CLEANING_WHEN ssdo_clean() CLEANING_BY ssclean_with(sum({WEIGHT}))"""
RESERVOIR = f"""DEFINE {{ query_name drawn; }}
SELECT tb, srcPort, uts, srcIP FROM UDP WHERE destPort = 53 AND rsample({DRAWN})
GROUP BY time/{WINDOW_S} AS tb, srcPort, uts, srcIP SUPERGROUP srcPort
HAVING rsfinal_clean() CLEANING_WHEN rsdo_clean() CLEANING_BY rsclean_with()"""
QUERIES = {"sampled": SAMPLED, "drawn": RESERVOIR}

Packet = dict[str, Any]
Row = tuple[Any, ...]


@pytest.mark.parametrize("victims", cases([("job",)], long=[("java", "job")]), ids="-".join)
def test_samples_survive_the_death_of_the_job(victims: tuple[str, ...], tmp_path: Path) -> None:
    running = FaultyRun(tmp_path, queries=(PACKETS, *QUERIES.values()))
    sender = Sender()
    try:
        running.start()
        sender.start()
        for victim in victims:
            wait_for_a_window(running)
            running.kill(victim)
        wait_for_a_window(running)
        sender.stop()
        assert running.end() == 128 + signal.SIGINT
    finally:
        sender.stop()
        running.close()
    packets = sorted(running.answered("packets"), key=lambda each: number_of(each["srcIP"]))
    assert [each["time_ns"] for each in packets] == sorted(each["time_ns"] for each in packets)
    live = {name: rows_of(running.answered(name)) for name in QUERIES}
    assert live["sampled"] == expected_sample(packets)
    assert live["drawn"] == expected_draw(packets)
    assert len({row[0] for row in live["sampled"]}) > len(victims) + 1

    file = tmp_path / "packets.pcap"
    write_pcap(file, [(each["time_ns"], frame(number_of(each["srcIP"]))) for each in packets])
    for name, query in QUERIES.items():
        done = run("replay", file, "-e", query, "-o", "ndjson", "--quiet")
        assert done.returncode == 0, done.stderr
        assert rows_of([json.loads(line) for line in done.stdout.splitlines()]) == live[name]


def wait_for_a_window(running: FaultyRun) -> None:
    """Wait until a further window is answered, so that the next one has begun."""
    before = running.lines("sampled")

    def has_come() -> bool:
        running.ensure_alive()
        return running.lines("sampled") > before

    wait_for(has_come, "the answer of a window")


def rows_of(answered: list[Packet]) -> list[Row]:
    """The rows of an answer, each once, in the order of their values."""
    return sorted(
        tuple(value for name, value in row.items() if name != "query") for row in answered
    )


def windows_of(packets: list[Packet]) -> dict[int, list[Packet]]:
    windows: dict[int, list[Packet]] = defaultdict(list)
    for each in packets:
        windows[each["time"] // WINDOW_S].append(each)
    return dict(sorted(windows.items()))


def expected_sample(packets: list[Packet]) -> list[Row]:
    sampler = ThresholdSampler(SIZE)
    found: list[Row] = []
    for number, (tb, window) in enumerate(windows_of(packets).items()):
        if number:
            sampler.next_window()
        tuples = [
            ((each["time_ns"], each["srcIP"]), each["srcPort"] % 5 * 400 + each["len"])
            for each in window
        ]
        found += [(tb, *key, estimate) for key, estimate in sampler.window(tuples).items()]
    return sorted(found)


def expected_draw(packets: list[Packet]) -> list[Row]:
    found: list[Row] = []
    for tb, window in windows_of(packets).items():
        for port in {each["srcPort"] for each in window}:
            own = [each for each in window if each["srcPort"] == port]
            seed = seed_of("0|drawn|", [tb, port])
            numbers = [splitmix(seed, place) >> 1 for place in range(len(own))]
            places = sorted(range(len(own)), key=numbers.__getitem__)
            found += [(tb, port, own[n]["time_ns"], own[n]["srcIP"]) for n in places[:DRAWN]]
    return sorted(found)
