"""``gscope explain --run`` beside a live run.

What was sent is counted, and kills take nothing back.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.faults.faulty_run import FLOWS, PORTS, FaultyRun
from tests.support.gscope_command import command, wait_for

from gscope.cli.rundir.records import choose_run
from gscope.cli.status.plan_figures import plan_figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.faulty_run import Sender

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.usefixtures("network"),
]

SCHEMA = Path(__file__).parents[2] / "docs" / "explain_run.schema.json"
COUNTERS = ("packets", "tuples_in", "tuples_out", "tuples_read", "evicted_groups", "cpu_ns")
SENT_PER_SECOND = 200
"""What a ``Sender`` sends at most."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[FaultyRun]:
    made = FaultyRun(
        tmp_path, queries=(FLOWS, "QUERY names: SELECT time FROM UDP WHERE len > 9000")
    )
    yield made
    made.close()


def explained(live: FaultyRun) -> dict[str, Any]:
    """What the command prints."""
    words = command(*("explain", "--run", "faulty", "--json"), "--work-dir", live.folder / "work")
    return dict(json.loads(subprocess.check_output(words)))


def counters(live: FaultyRun) -> dict[tuple[str, str], int]:
    """All counters of all nodes, read in this process."""
    figures = plan_figures(choose_run(live.folder / "work", "faulty"), time.time_ns())
    return {
        (each["name"], name): each[name]
        for each in (*figures["interfaces"], *figures["nodes"])
        for name in COUNTERS
        if each.get(name) is not None
    }


def wait_for_counter(live: FaultyRun, node: str, name: str, count: int) -> None:
    """Wait until a counter is at least ``count``; nothing falls meanwhile."""
    before = counters(live)

    def has_come() -> bool:
        nonlocal before
        live.ensure_alive()
        now = counters(live)
        fallen = {key: (was, now.get(key)) for key, was in before.items() if now.get(key, 0) < was}
        assert not fallen
        before = now
        return now.get((node, name), 0) >= count

    wait_for(has_come, f"{count} {name} of {node}")


def test_what_is_sent_is_counted_at_each_node(live: FaultyRun, sender: Sender) -> None:
    live.start()
    sender.start()
    wait_for_counter(live, "flows", "tuples_out", 3 * PORTS)
    running = explained(live)
    sender.stop()
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(running)
    nodes = {node["name"]: node for node in running["nodes"]}
    for rate in (
        nodes["LFTA flows"]["tuples_in_per_second"],
        running["interfaces"][0]["packets_per_second"],
    ):
        assert 0 < rate < 1.5 * SENT_PER_SECOND
    assert 0 < nodes["flows"]["tuples_out_per_second"] <= 3 * PORTS
    assert nodes["flows"]["lag_ns"] > 0
    wait_for_counter(live, "LFTA flows", "tuples_in", sender.sent)
    found = counters(live)
    assert found["main", "packets"] == found["LFTA flows", "tuples_in"] == sender.sent
    assert found["LFTA names", "tuples_in"] == found["LFTA names", "tuples_out"] == 0
    # An epoch of each second in which packets were sent, with a group of each port.
    seconds = len({row["tb"] for row in live.answered("flows")})
    wait_for_counter(live, "flows", "tuples_out", PORTS * seconds)
    assert live.end() == 130


def test_kills_take_nothing_back(live: FaultyRun, sender: Sender) -> None:
    live.start()
    sender.start()
    wait_for_counter(live, "flows", "tuples_out", 2 * PORTS)
    for victim in ("job", "daemon"):
        before = counters(live)
        live.kill(victim)
        after = counters(live)
        fallen = {key for key, count in before.items() if after.get(key, 0) < count}
        # Rows that a daemon emitted after its last heartbeat are not in the log.
        assert fallen <= ({("LFTA flows", "tuples_out")} if victim == "daemon" else set())
        wait_for_counter(live, "flows", "tuples_out", before["flows", "tuples_out"] + 2 * PORTS)
    sender.stop()
    assert live.end() == 130
