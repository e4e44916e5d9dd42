"""The rows of a live run as metrics: scrapes against its CSV, a silent link, and a kill."""

from __future__ import annotations

import csv
import socket
import subprocess
import time
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.live.test_lives import kill
from tests.live.test_run import udp
from tests.support.gscope_command import run, status, wait_for
from tests.support.requirements import needs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERY = """DEFINE { query_name flows; }
SELECT tb, srcPort, count(*) AS packets, sum(len) AS bytes FROM UDP GROUP BY time/2 AS tb, srcPort"""  # noqa: E501

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    """Devices of our own; without the right to make them the test is skipped."""
    with own_network():
        run_ip("link", "set", "lo", "up")
        yield


@pytest.fixture
def port(network: None) -> int:  # it is free there
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def begin(work: Path, out: Path, port: int) -> None:
    begun = run(
        *("run", "-e", QUERY, "-i", DEVICE, "--work-dir", work, "-d", "--run", "flows", "-w", out),
        *("--metrics", str(port), "--metrics-of", "flows", "--metrics-series", "100"),
    )
    assert begun.returncode == 0, begun.stderr


def text_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())


def scraped(port: int) -> tuple[int | None, dict[tuple[str, ...], float]]:
    """The epoch, and the values of its rows by column and port."""
    epoch: int | None = None
    rows: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text_of(port)):
        for sample in family.samples:
            if sample.name == "gscope_rows_epoch_timestamp_seconds":
                epoch = int(sample.value) // 2
            if sample.name.startswith("gscope_row_flows_"):
                column = sample.name.removeprefix("gscope_row_flows_")
                rows[column, sample.labels["srcPort"]] = sample.value
    return epoch, rows


def written(out: Path) -> dict[int, dict[tuple[str, ...], float]]:
    """The same of the file, by epoch."""
    found: dict[int, dict[tuple[str, ...], float]] = {}
    with (out / "flows.csv").open() as file:
        for row in csv.DictReader(file):
            epoch = found.setdefault(int(row["tb"]), {})
            for column in ("packets", "bytes"):
                epoch[column, row["srcPort"]] = float(row[column])
    return found


def test_scrapes_have_the_rows_of_the_file_also_after_a_kill(
    work: Path, tmp_path: Path, port: int
) -> None:
    out = tmp_path / "out"
    seen: list[tuple[int | None, dict[tuple[str, ...], float]]] = []

    def sends_until(found: Any) -> None:
        until = time.monotonic() + 60
        while not found():
            assert time.monotonic() < until, seen[-3:]
            send(udp(n) for n in range(5))
            seen.append(scraped(port))

    begin(work, out, port)
    sends_until(lambda: len({epoch for epoch, rows in seen if rows}) == 3)
    wait_for(lambda: status(work)["row_metrics"][0]["series"], "the series in the status")
    # The link is silent: its epochs end, and their series.
    wait_for(lambda: scraped(port)[0] is not None and not scraped(port)[1], "an empty epoch")
    kill(work)
    before = len(seen)
    begin(work, out, port)
    sends_until(lambda: any(rows for _, rows in seen[before:]))
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr
    epochs = written(out)
    assert [(epoch, rows) for epoch, rows in seen if rows] == [
        (epoch, epochs[epoch]) for epoch, rows in seen if rows and epoch is not None
    ]
    assert all(epoch not in epochs for epoch, rows in seen if not rows)


@needs("promtool", "prometheus")
def test_prometheus_stores_the_rows(work: Path, tmp_path: Path, port: int) -> None:
    begin(work, tmp_path / "out", port)
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n"
        f"  - job_name: gscope\n    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        web = f"127.0.0.1:{probe.getsockname()[1]}"
    with subprocess.Popen(
        [
            *("prometheus", f"--config.file={config}", f"--web.listen-address={web}"),
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            wait_for(
                partial(answers, web, "gscope_row_flows_packets", lambda: send(map(udp, range(9)))),
                "rows in Prometheus",
            )
            checked = subprocess.run(
                ["promtool", "check", "metrics"],
                input=text_of(port),
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            server.terminate()
    # What it dislikes are the names of columns, such as srcPort.
    disliked = {line.partition(" ")[2] for line in checked.stderr.splitlines()}
    assert disliked <= {"label names should be written in 'snake_case' not 'camelCase'"}
    assert checked.returncode in (0, 3), "parsed; 3 if it dislikes something"
    done = run("stop", "--work-dir", work)
    assert done.returncode == 0, done.stderr


def answers(web: str, query: str, provoke: Any) -> bool:
    """Whether the server at ``web`` has samples of ``query``.

    Packets are sent before it is asked.
    """
    provoke()
    try:
        with urllib.request.urlopen(f"http://{web}/api/v1/query?query={query}") as answer:
            return b"srcPort" in answer.read()
    except OSError:
        return False
