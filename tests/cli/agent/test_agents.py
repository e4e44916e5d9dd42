"""Two agents that replay captures, and runs that read them: rows as of plain loops."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import dpkt
import pytest
from tests.capture.log.agent.requests import request
from tests.cli.agent.agents import AgentProcess
from tests.docs.traffic import write_links
from tests.support.certificates import TOKEN, make_certificate, token_file
from tests.support.gscope_command import run, wait_for
from tests.support.requirements import needs

from gscope.capture.log.agent.client import AgentClient
from gscope.capture.log.remote.address import LogAddress, TcpAddress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.capture.log.agent.messages import CaptureState

pytestmark = [pytest.mark.slow, needs("openssl")]

QUERIES = """
DEFINE { query_name everywhere; } SELECT tb, interface, count(*) AS packets FROM PKT
GROUP BY time/60 AS tb, interface;
DEFINE { query_name of_a; } SELECT tb, count(*) AS packets FROM a.up.IP GROUP BY time/60 AS tb;
DEFINE { query_name down; } SELECT tb, count(*) AS packets FROM down.IP GROUP BY time/60 AS tb;
DEFINE { query_name both; } SELECT u.tb, u.packets, d.packets AS answers
FROM of_a u JOIN down d ON u.tb = d.tb
"""


class Pair:
    """Agent a replays ``up`` and ``down``, agent b replays ``down`` over TLS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        token_file(folder)
        write_links(folder)
        tls = make_certificate(folder, "host")
        served = ("--tls-certificate", tls.certificate, "--tls-key", tls.key)
        captures = [("--allow-capture", folder / f"{name}.pcap") for name in ("up", "down")]
        self.certificate = tls.certificate
        self.agents = [
            AgentProcess(folder, "a", *served, *captures[0], *captures[1]),
            AgentProcess(folder, "b", *served, *captures[1]),
        ]

    def address(self) -> LogAddress:
        place = TcpAddress.parse(self.agents[0].address)
        return LogAddress(place, TOKEN, self.certificate.read_bytes())

    def close(self) -> None:
        for agent in self.agents:
            agent.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("agents"))
    yield made
    made.close()


def packets_of(path: Path, *, is_ip: bool) -> Counter[int]:
    """Return how many packets a capture has by minute, by dpkt."""
    found: Counter[int] = Counter()
    with path.open("rb") as file:
        for time_s, frame in dpkt.pcap.Reader(file):
            kind = dpkt.ethernet.Ethernet(frame).type
            if not is_ip or kind in (dpkt.ethernet.ETH_TYPE_IP, dpkt.ethernet.ETH_TYPE_IP6):
                found[int(time_s) // 60] += 1
    return found


def answers(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in list(csv.reader(file))[1:]]


def test_rows_are_those_of_the_captures_of_all_hosts(pair: Pair) -> None:
    out = pair.folder / "out"
    query = pair.folder / "queries.gsql"
    query.write_text(QUERIES)
    found = run(
        *("run", query, "-o", "csv", "-w", out, "--work-dir", pair.folder / "work"),
        *("--token-file", pair.folder / "token", "--tls-ca", pair.certificate),
        *(word for agent in pair.agents for word in ("--host", agent.host)),
        *("--deliver", "everywhere", "--deliver", "of_a", "--deliver", "down", "--deliver", "both"),
    )
    assert found.returncode == 0, found.stderr
    up, down = (pair.folder / f"{name}.pcap" for name in ("up", "down"))
    of = {
        name: packets_of(path, is_ip=False)
        for name, path in (("a.up", up), ("a.down", down), ("b.down", down))
    }
    assert sorted(answers(out / "everywhere.csv")) == sorted(
        (str(tb), name, str(count)) for name, each in of.items() for tb, count in each.items()
    )
    up_ip, down_ip = packets_of(up, is_ip=True), packets_of(down, is_ip=True)
    assert answers(out / "of_a.csv") == [(str(tb), str(up_ip[tb])) for tb in sorted(up_ip)]
    assert answers(out / "down.csv") == [(str(tb), str(2 * down_ip[tb])) for tb in sorted(down_ip)]
    assert answers(out / "both.csv") == [
        (str(tb), str(up_ip[tb]), str(2 * down_ip[tb])) for tb in sorted(up_ip) if tb in down_ip
    ]
    # The captures are ended and forgotten on both hosts.
    for agent in pair.agents:
        agent.await_forgotten()
        assert not list(agent.work_dir.glob("run-*"))


def state_of(pair: Pair, name: str, asked: object, *, is_known: bool = False) -> CaptureState:
    """Request a capture until it serves or fails, and dismiss it; return how it stood."""
    with AgentClient(pair.address()) as client:

        def begun() -> CaptureState | None:
            state = client.begin(name, asked, is_known=is_known)
            return None if state.state == "starting" else state

        try:
            found: CaptureState = wait_for(begun, "a capture that starts or fails")
        finally:
            client.end(name)
    return found


@pytest.mark.parametrize(
    ("asked", "is_known", "reason"),
    [
        (
            request("DEFINE { query_name q; } SELECT tb, count(*) FROM IP GROUP BY time/30 AS tb"),
            False,
            "host a compiled q",
        ),
        (request("SELECT nothing FROM IP"), False, "nothing"),
        (request("DEFINE { query_name p; } SELECT time FROM IP"), False, "only the host that asks"),
        (request(), True, "cannot be continued; start the run again"),
        (request(window_plan="other"), False, "invalid request"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_with_the_reason(
    pair: Pair, asked: object, is_known: bool, reason: str
) -> None:
    found = state_of(pair, "refused-1", asked, is_known=is_known)
    assert (found.state, found.port) == ("failed", 0)
    assert reason in found.reason


@pytest.mark.long
def test_a_run_reports_why_an_agent_refuses_it(pair: Pair) -> None:
    """The agent has no user code, so a query that calls some means nothing to it."""
    code = pair.folder / "code.py"
    code.write_text(
        "from gscope.queries.catalog.user import function\n\n\n"
        "@function('INT', returns='INT', lfta_safe=True)\ndef twice(x):\n    return 2 * x\n"
    )
    found = run(
        *("run", "-e", "SELECT time, twice(len) AS n FROM a.up.IP", "--udf", code, "-o", "csv"),
        *("--work-dir", pair.folder / "work", "--token-file", pair.folder / "token"),
        *("--tls-ca", pair.certificate, "--host", pair.agents[0].host),
    )
    assert found.returncode == 1, found.stderr
    assert "cannot capture" in found.stderr
    assert "twice" in found.stderr


def test_an_agent_that_does_not_answer_is_named(pair: Pair) -> None:
    found = run(
        *("run", "-e", "SELECT time FROM IP", "--host", "c=127.0.0.1:1"),
        *("--work-dir", pair.folder / "work", "--token-file", pair.folder / "token"),
    )
    assert found.returncode == 1
    assert "host c: 127.0.0.1:1 does not answer" in found.stderr


def test_two_agents_do_not_share_a_work_dir(pair: Pair) -> None:
    found = run(
        *("capture", "--listen", "127.0.0.1:0", "--token-file", pair.folder / "token"),
        *("--allow-capture", pair.folder / "up.pcap"),
        *("--work-dir", pair.agents[0].work_dir),
    )
    assert found.returncode == 2
    assert "another agent uses" in found.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "name devices with --allow-interface"),
        (("--allow-capture", "x=a", "--allow-interface", "x=b"), "duplicate interface"),
        (("--listen", "0.0.0.0:0", "--allow-interface", "lo"), "without TLS"),
    ],
)
def test_an_agent_refuses_settings_that_it_cannot_serve(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    token = token_file(tmp_path)
    found = run(
        *("capture", "--listen", "127.0.0.1:0", "--token-file", token, "--work-dir", tmp_path),
        *words,
        cwd=tmp_path,
    )
    assert (found.returncode, reason in found.stderr) == (2, True), found.stderr


def test_the_control_process_has_no_privileges(pair: Pair) -> None:
    """It faces the network: another user, no capabilities, no new ones."""
    children = pair.agents[0].children()
    (control,) = (pid for pid, line in children.items() if "log.agent.control" in line)
    with open(f"/proc/{control}/status", encoding="ascii") as file:  # noqa: PTH123
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        is_root = any(line.split() == ["Uid:", "0", "0", "0", "0"] for line in file)
    assert not is_root or "0" not in status["Uid"].split()


def test_an_agent_forgets_a_capture_that_is_not_wanted_and_ends_in_order(tmp_path: Path) -> None:
    token_file(tmp_path)
    write_links(tmp_path)
    capture = ("--allow-capture", tmp_path / "up.pcap")
    agent = AgentProcess(tmp_path, "c", *capture, "--forget-after", "2s")
    try:
        with AgentClient(LogAddress(TcpAddress.parse(agent.address), TOKEN)) as client:
            assert client.begin("left-1", request(), is_known=False).state == "starting"
        wait_for(lambda: "its host has not been heard for 2 s" in agent.reported, "an agent")
        agent.await_forgotten()
        assert agent.stop() == 0
        assert not agent.children()
    finally:
        agent.close()
