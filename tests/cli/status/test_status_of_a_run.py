"""``gscope status`` beside a real run, from its first packet to its answers."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest
from tests.capture.replay.test_replay_capture import PACKET, SECOND, write_pcap
from tests.support.gscope_command import command, run, wait_for
from tests.support.gscope_command import status as current_status

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"
PATIENCE_S = 120.0
SECONDS = 120
QUERY = "SELECT tb, srcIP, count(*) AS packets FROM IP GROUP BY time/2 AS tb, srcIP"
STAGES = ["lfta", "log", "flight", "inbox", "operator", "step", "commit"]


def status(work: Path, *arguments: str) -> str:
    done = run("status", "--work-dir", str(work), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_shows_a_run_and_the_way_of_its_heartbeats(tmp_path: Path) -> None:
    start = 1_700_000_000 * SECOND
    write_pcap(
        tmp_path / "t.pcap", [(start + n * SECOND // 10, PACKET) for n in range(10 * SECONDS)]
    )
    work = tmp_path / "work"
    # With Java, whose memory is shown.
    words = (
        "replay",
        "t.pcap",
        "-e",
        QUERY,
        "--speed",
        "2",
        "--skew",
        "0s",
        "--master",
        "local[1]",
    )
    running = subprocess.Popen(
        [*command(), *words, "--work-dir", str(work), "-o", "ndjson"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(lambda: has_traces(work), "a heartbeat that is followed to a commit")
        document = json.loads(status(work, "--json"))
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
        assert [each["difference"] for each in document["loss"]["interfaces"]] == [0]
        assert document["queries"][0]["rows_total"] > 0
        assert document["queries"][0]["watermark_ns"] >= start
        assert document["job"]["java_memory_bytes"] > 0
        trace = [each for each in document["traces"] if "hops" in each][-1]
        assert list(dict.fromkeys(hop["kind"] for hop in trace["hops"])) == STAGES
        assert all(hop["queued_ns"] >= 0 and hop["worked_ns"] >= 0 for hop in trace["hops"])
        took_ns = trace["ended_ns"] - trace["began_ns"]
        step = next(hop for hop in trace["hops"] if hop["kind"] == "step")
        assert 0 < step["worked_ns"] <= took_ns
        assert "step" in status(work, "--trace", str(trace["id"]))
        assert 'gscope_up{run="query"} 1.0' in status(work, "--prometheus")
        assert "WAITS FOR" in status(work)
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE_S)
    assert run("status", "--work-dir", str(work)).returncode == 1


def has_traces(work: Path) -> bool:
    """Return whether a heartbeat was followed to its commit."""
    return any("hops" in trace for trace in current_status(work).get("traces", ()))
