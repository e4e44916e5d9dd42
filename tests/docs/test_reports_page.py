"""The commands of ``docs/reports.md`` make what the page says, and the survey is what loops count.

``python -m tests.docs.test_reports_page`` writes the text of the report into the page.
"""

from __future__ import annotations

import calendar
import re
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.cli.report.chromium import chromium
from tests.docs.traffic import write_links
from tests.support.gscope_command import command
from tests.support.requirements import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.report.chromium import Chromium

PAGE = Path(__file__).parents[2] / "docs" / "reports.md"
SHOWN = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROWS_SHOWN = 5

pytestmark = [pytest.mark.slow, pytest.mark.spark, needs("chromium", "capinfos")]


def run_commands(folder: Path) -> None:
    """Run the commands of the page that read ``up.pcap`` or its answers."""
    write_links(folder)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    chosen = [block for kind, block in blocks if not kind and "up.pcap" in block]
    assert len(chosen) == 2
    gscope = " ".join(command())
    for block in chosen:
        script = re.sub("^gscope", gscope, block, flags=re.MULTILINE)
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=folder, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def text_of(browser: Chromium, path: Path) -> str:
    """The head of a report and some of its tables as text."""
    browser.open(path)
    lines = browser.value(
        """[document.querySelector("h1").textContent,
          ...[...document.querySelectorAll("dl div")].map(
            (each) => `${each.children[0].textContent}: ${each.children[1].textContent}`),
          ...[...document.querySelectorAll(".losses h2, .losses li")].map((each) => each.textContent)]"""  # noqa: E501
    )
    for answer in ("protocols", "talkers", "names"):
        section = f"""[...document.querySelectorAll("section.answer")].find(
          (each) => each.querySelector("h2").textContent === {answer!r})"""
        rows = browser.value(
            f"[...{section}.querySelectorAll('tr')]"
            ".map((r) => [...r.cells].map((c) => c.textContent))"
        )
        caption = browser.value(f"{section}.querySelector('caption').textContent")
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["", f"{answer}: {caption}"]
        for row in rows[:ROWS_SHOWN]:
            padded = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append("  ".join(padded).rstrip())
        lines += ["…"] if len(rows) > ROWS_SHOWN else []
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reports")
    run_commands(place)
    return place


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def test_the_page_shows_the_report(folder: Path, browser: Chromium) -> None:
    (shown,) = SHOWN.findall(PAGE.read_text(encoding="utf-8"))
    assert text_of(browser, folder / "report.html") == shown
    assert browser.complaints == []


def tables(browser: Chromium, path: Path) -> dict[str, list[list[str]]]:
    """The rows of each answer of a report, with exact values."""
    browser.open(path)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    found: dict[str, list[list[str]]] = browser.value(
        """Object.fromEntries([...document.querySelectorAll("section.answer")].map((each) => [
          each.querySelector("h2").textContent,
          [...each.querySelectorAll("tbody tr")].map(
            (row) => [...row.cells].map((cell) => cell.dataset.v ?? cell.textContent))]))"""
    )
    return found


def capinfos(path: Path) -> list[str]:
    """The packets, bytes, first and last time of a capture, as Wireshark reads them."""
    done = subprocess.run(
        ["capinfos", "-T", "-m", "-c", "-d", "-a", "-e", "-S", path],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[1].split(",")[-4:]


class Counts:
    """What a loop over the packets of a capture counts, by answer and key: packets and bytes."""

    def __init__(self, path: Path) -> None:
        self.groups: dict[str, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.receivers: dict[str, set[str]] = defaultdict(set)
        self.questions: dict[str, list[str]] = defaultdict(list)
        with path.open("rb") as file:
            for at, data in dpkt.pcap.Reader(file):
                self._take(int(at), data)

    def _take(self, second: int, data: bytes) -> None:
        size = len(data)
        self.groups["links"][second].append(size)
        packet = dpkt.ethernet.Ethernet(data).data
        if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
            return
        number = packet.p if isinstance(packet, dpkt.ip.IP) else packet.nxt
        source, target = (dpkt.utils.inet_to_str(each) for each in (packet.src, packet.dst))
        name = {1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}[number]
        self.groups["protocols"][second, name].append(size)
        self.groups["talkers"][source].append(size)
        self.receivers[source].add(target)
        if number in (6, 17):
            ports = struct.unpack("!HH", bytes(packet.data)[:4])
            self.groups["ports"][name, str(min(ports))].append(size)
        if number == 17 and packet.data.dport == 53:
            try:
                message = dpkt.dns.DNS(packet.data.data)
            except dpkt.UnpackError:
                return
            if message.qr == 0:
                self.questions[message.qd[0].name].append(source)

    def rows(self, answer: str) -> dict[Any, tuple[int, int]]:
        return {key: (len(each), sum(each)) for key, each in self.groups[answer].items()}


def second_of(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%SZ"))


def test_the_survey_is_what_loops_over_the_packets_count(folder: Path, browser: Chromium) -> None:
    found = tables(browser, folder / "report.html")
    counts = Counts(folder / "up.pcap")
    number, data_bytes, *times = capinfos(folder / "up.pcap")
    ((_, packets, size, mean, first, last),) = found["overview"]
    assert (packets, size) == (number, data_bytes)
    assert float(mean) == pytest.approx(int(size) / int(packets))
    for text, time_s in zip((first, last), times, strict=True):
        whole, fraction = time_s.split(".")
        assert (second_of(f"{text[:19]}Z"), text[20:26]) == (int(whole), fraction[:6])
    assert {(second_of(row[0])): (int(row[2]), int(row[3]) // 8) for row in found["links"]} == (
        counts.rows("links")
    )
    assert {
        (second_of(row[0]), row[1]): (int(row[2]), int(row[3]) // 8) for row in found["protocols"]
    } == counts.rows("protocols")
    assert {row[0]: (int(row[1]), int(row[2])) for row in found["talkers"]} == counts.rows(
        "talkers"
    )
    assert {row[0]: int(row[3]) for row in found["talkers"]} == {
        source: len(targets) for source, targets in counts.receivers.items()
    }
    assert {(row[0], row[1]): (int(row[2]), int(row[3])) for row in found["ports"]} == counts.rows(
        "ports"
    )
    assert {row[0]: (int(row[1]), int(row[2])) for row in found["names"]} == {
        name: (len(clients), len(set(clients))) for name, clients in counts.questions.items()
    }
    sizes = [int(row[2]) for row in found["talkers"]]
    assert sizes == sorted(sizes, reverse=True)


def test_plots_of_the_survey_are_its_rows_and_zeros(folder: Path, browser: Chromium) -> None:
    browser.open(folder / "report.html")
    plots = browser.value(
        "[...document.querySelectorAll('#a3 figure script')].map((s) => JSON.parse(s.textContent))"
    )
    rows = Counts(folder / "up.pcap").rows("protocols")
    for place, (plot, factor) in enumerate(zip(plots, (1, 8), strict=True)):
        for line in plot["lines"]:
            drawn = {
                second_of(plot["times"][i]): value
                for i, value in zip(line["i"], line["v"], strict=True)
            }
            of_line = {
                second: each[place] * factor
                for (second, name), each in rows.items()
                if name == line["label"]
            }
            assert {second: value for second, value in drawn.items() if value} == of_line


def test_the_report_of_files_has_their_rows(folder: Path, browser: Chromium) -> None:
    found = tables(browser, folder / "answers.html")
    with (folder / "up.pcap").open("rb") as file:
        packets = list(dpkt.pcap.Reader(file))
    sizes = [len(data) for _, data in packets if dpkt.ethernet.Ethernet(data).type != 0x0806]
    assert [int(row[2]) for row in found["query"]] == sizes


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        run_commands(Path(place))
        with chromium(Path(place) / "chromium") as opened:
            new = text_of(opened, Path(place) / "report.html")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(SHOWN.sub(lambda _: f"```text\n{new}```", page), encoding="utf-8")
