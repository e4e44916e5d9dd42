"""The systemd unit: systemd understands it, and it permits what a run on a UDP port does."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.flows.exports import v5, v5_record
from tests.capture.sources.udp.port import free_port, sender
from tests.live.test_run import network
from tests.packaging.test_deb import UNIT, unit
from tests.safety.conftest import open_folder
from tests.safety.ordinary_user import User, user
from tests.support.gscope_command import wait_for
from tests.support.requirements import needs, needs_root

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["network", "open_folder", "user"]


@needs("systemd-analyze")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    path = tmp_path / "gscope@flows.service"
    # It also looks for the program, which need not be installed here.
    path.write_text(UNIT.read_text(encoding="utf-8").replace("/usr/bin/gscope", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def permitted_calls() -> set[str]:
    """Return the system calls that the unit permits: its groups, as systemd knows them."""
    lines = re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    names, calls = " ".join(lines).split(), set()
    while names:
        name = names.pop()
        if not name.startswith("@"):
            calls.add(name)
            continue
        listed = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
        )
        inside = [line.strip() for line in listed.stdout.splitlines()[1:]]
        names += [each for each in inside if each and not each.startswith("#")]
    return calls


@pytest.mark.long
@pytest.mark.live
@pytest.mark.slow
@needs_root
@needs("strace", "systemd-analyze")
def test_all_calls_of_a_run_on_a_udp_port_are_permitted(network: None, user: User) -> None:
    port = free_port()
    trace = user.folder / "trace"
    query = "SELECT tb, exporter, count(*) AS n FROM FLOW GROUP BY time AS tb, exporter"
    device = ("-i", f"udp://127.0.0.1:{port}", "-w", "answers", "-o", "csv", "--count", "300")
    process = user.start(
        "run", "-e", query, *device, before=("/usr/bin/strace", "-f", "-qq", "-o", str(trace))
    )
    number = 0
    with sender(port) as send:

        def has_ended() -> bool:
            nonlocal number
            number += 30
            send([v5([v5_record()] * 30, number)])
            return process.poll() is not None

        wait_for(has_ended, "300 records, and the end of the run")
    _, error = process.communicate()
    assert process.returncode == 0, error
    text = trace.read_text(encoding="utf-8", errors="replace")
    assert text.count("recvmmsg(") > 1
    used = set(re.findall(r"^\d+ +(\w+)\(", text, re.MULTILINE))
    assert used - permitted_calls() == set()
    families = set(re.findall(r"\bsocket\((AF_\w+)", text))
    assert "AF_INET" in families
    assert families <= set(unit()["RestrictAddressFamilies"].split())
