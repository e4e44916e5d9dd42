"""The page for newcomers.

Its filters select the same packets in tcpdump or tshark and in gscope.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from scapy.layers.inet import ICMP
from tests.golden.driver import COMPILED, INTERPRETED, answer
from tests.library import tshark
from tests.library.traffic import write
from tests.newcomer.one_liners import CONTEXT
from tests.newcomer.traffic import packets
from tests.support.requirements import ROOT, needs

from gscope.queries.compile import QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.driver import Row, Variation

PAGE = ROOT / "docs" / "gsql" / "coming_from.md"

pytestmark = needs("tshark", "tcpdump")


def rows(tool: str) -> list[tuple[str, str]]:
    """Return the rows of the table of a tool: its filter, and FROM and WHERE of a query."""
    table = PAGE.read_text(encoding="utf-8").partition(f"| {tool} | GSQL |")[2].partition("\n\n")[0]
    found = re.findall(r"^\| `(.+)` \| `(.+)` \|$", table, re.MULTILINE)
    return [(one.replace("\\|", "|"), other.replace("\\|", "|")) for one, other in found]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # tshark also filters by the header inside an ICMP error.
    sent = [(at, frame) for at, frame in packets() if ICMP not in frame or frame[ICMP].type != 3]
    return write(tmp_path_factory.mktemp("equivalents") / "net.pcap", sent)


@pytest.fixture(scope="module")
def selected(capture: Path) -> dict[str, list[Row]]:
    """The times of the packets that gscope selects, by the text of the query; in one replay."""
    return selections(capture, INTERPRETED)


def selections(capture: Path, variation: Variation) -> dict[str, list[Row]]:
    """Return the times of the packets that each query of the tables selects."""
    texts = [text for tool in ("tcpdump", "display filter") for _, text in rows(tool)]
    queries = [
        QueryText(f"SELECT time_ns {text}", f"row_{number}.gsql")
        for number, text in enumerate(texts)
    ]
    found = answer(compile_queries(queries, CONTEXT).program, {"net": [capture]}, variation, None)
    return {text: found[f"row_{number}"] for number, text in enumerate(texts)}


def times(capture: Path, display_filter: str = "") -> list[Row]:
    """Return the times of packets in nanoseconds, as tshark reads them."""
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-e"]
    command.append("frame.time_epoch")
    for setting in tshark.SETTINGS:
        command += ["-o", setting]
    command += ["-Y", display_filter] if display_filter else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(str(int(line.replace(".", ""))),) for line in done.stdout.split()]


@pytest.mark.parametrize(("expression", "text"), rows("tcpdump"))
def test_a_filter_of_tcpdump_selects_the_same_packets(
    expression: str, text: str, capture: Path, selected: dict[str, list[Row]], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.pcap"
    command = ["tcpdump", "-r", str(capture), "--time-stamp-precision=nano", "-w", str(kept)]
    behind_tags = f"({expression}) or (vlan and ({expression}))"
    subprocess.run([*command, behind_tags], capture_output=True, check=True)
    wanted = times(kept)
    assert wanted
    assert sorted(selected[text]) == sorted(wanted)


@pytest.mark.parametrize(("expression", "text"), rows("display filter"))
def test_a_display_filter_selects_the_same_packets(
    expression: str, text: str, capture: Path, selected: dict[str, list[Row]]
) -> None:
    wanted = times(capture, expression)
    assert wanted
    assert sorted(selected[text]) == sorted(wanted)


@pytest.mark.long
def test_compiled_kernels_select_the_same(capture: Path, selected: dict[str, list[Row]]) -> None:
    assert selections(capture, COMPILED) == selected


def test_the_tables_have_rows() -> None:
    assert len(rows("tcpdump")) >= 15
    assert len(rows("display filter")) >= 15
