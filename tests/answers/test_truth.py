"""The flow query over all captures at once, against what tshark says of each."""

from __future__ import annotations

import csv
import io
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.capture.packet.raw_captures import read_capture
from tests.golden.driver import COMPILED, CRASHING, VARIATIONS, Variation, answer
from tests.support.gscope_command import run
from tests.support.long_form import cases
from tests.support.requirements import EXPECTED, captures

from gscope.cli.config.capture_files import interfaces_of
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ALLOWED = Path(__file__).with_name("truth_allowed.txt")
KEYS = "interface, ipversion, protocol, srcIP, destIP, srcPort, destPort"
FLOW = (
    f"SELECT tb, {KEYS}, count(*) as cnt, sum(len) as bytes FROM IP GROUP BY time/10 as tb, {KEYS}"
)
REST = [variation for variation in VARIATIONS if variation not in (COMPILED, CRASHING)]
UNUSUAL = (
    *("--table-slots", "4", "--output-rows", "1", "--heartbeat-interval", "7300ms"),
    *("--block", "4K", "--batch-rows", "100"),
)

Row = tuple[str, ...]


def is_capture(path: Path) -> bool:
    """Three files are symbolic links of a repository, checked out as the text they point to."""
    return not path.read_bytes().startswith(b"../")


def expected() -> dict[str, list[Row]]:
    """The rows of every capture in sorted order, without those that the allow-list takes out."""
    allowed = {line.split(",")[0].strip() for line in ALLOWED.read_text().splitlines() if line}
    flows = {}
    for path in captures():
        if path.name not in allowed:
            with (EXPECTED / f"{path.name}.flows.csv").open(newline="") as lines:
                flows[path.name] = sorted(tuple(row) for row in list(csv.reader(lines))[1:])
    return flows


def split_by_capture(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows without their column ``interface``, by the file that it means."""
    files = {name: Path(paths[0]).name for name, paths in interfaces_of(arguments()).items()}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[files[row[1]]].append((row[0], *row[2:]))
    return {name: sorted(rows) for name, rows in found.items()}


def arguments() -> list[str]:
    assert len(captures()) == 85
    return [str(path) for path in captures()]


def differing(found: dict[str, list[Row]]) -> dict[str, tuple[set[Row], set[Row]]]:
    """For each capture with a difference the rows missing and the rows too many."""
    return {
        name: (set(rows) - set(found.get(name, [])), set(found.get(name, [])) - set(rows))
        for name, rows in expected().items()
        if found.get(name, []) != rows
    }


def test_the_allow_list_gives_a_reason_for_each_capture() -> None:
    names = {path.name for path in captures()}
    for line in ALLOWED.read_text().splitlines():
        name, reason = line.split(",", 1)
        assert name in names
        assert reason.strip()


@pytest.mark.parametrize("settings", [(), UNUSUAL], ids=["defaults", "unusual"])
def test_one_command_over_all_captures_gives_the_flows_of_tshark(settings: tuple[str, ...]) -> None:
    done = run("replay", *arguments(), "-e", FLOW, "-o", "csv", *settings)
    heading, *rows = csv.reader(io.StringIO(done.stdout))
    assert heading == ["tb", *KEYS.split(", "), "cnt", "bytes"]
    assert differing(split_by_capture(map(tuple, rows))) == {}
    # As with cat, the exit code says that some files were left out, and standard error which.
    assert done.returncode == 1
    left_out = [line for line in done.stderr.splitlines() if "skipped" in line]
    assert len(left_out) == sum(not is_capture(path) for path in captures())
    assert all("is not a capture" in line for line in left_out)


@pytest.mark.parametrize(
    "variation", cases([COMPILED, CRASHING], long=REST), ids=lambda variation: variation.name
)
def test_every_variation_gives_the_flows_of_tshark(
    variation: Variation, spark: SparkSession
) -> None:
    files = {
        name: [Path(path) for path in paths]
        for name, paths in interfaces_of(arguments()).items()
        if all(is_capture(Path(path)) for path in paths)
    }
    compiled = compile_queries([QueryText(FLOW, "flow")], CompileContext(tuple(files)))
    rows = answer(compiled.program, files, variation, spark)["flow"]
    assert differing(split_by_capture(rows)) == {}


def test_packets_dealt_over_three_interfaces_give_the_flows_of_tshark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every capture as three interfaces; their rows of one flow are added up."""
    files = {
        f"{number}_{name}": [path]
        for name, paths in interfaces_of(arguments()).items()
        if is_capture(Path(paths[0]))
        for number, path in enumerate(dealt(Path(paths[0]), tmp_path))
    }
    compiled = compile_queries([QueryText(FLOW, "flow")], CompileContext(tuple(files)))
    sums: Counter[Row] = Counter()
    sizes: Counter[Row] = Counter()
    for row in answer(compiled.program, files, COMPILED, spark)["flow"]:
        flow = (row[0], row[1].partition("_")[2], *row[2:-2])
        sums[flow] += int(row[-2])
        sizes[flow] += int(row[-1])
    rows = [(*flow, str(count), str(sizes[flow])) for flow, count in sums.items()]
    assert differing(split_by_capture(rows)) == {}


def dealt(path: Path, folder: Path) -> list[Path]:
    """The packets of a capture in turn in three files; none of a capture without flows."""
    packets = read_capture(path)
    if not packets:
        assert expected()[path.name] == []
        return []
    assert len({packet.linktype for packet in packets}) == 1
    targets = [folder / f"{number}-{path.name}.pcap" for number in range(3)]
    for number, target in enumerate(targets):
        with target.open("wb") as file:
            linktype = packets[0].linktype
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, linktype))
            for packet in packets[number::3]:
                seconds, rest = divmod(packet.time_ns, 10**9)
                lengths = struct.pack("<IIII", seconds, rest, len(packet.data), packet.wirelen)
                file.write(lengths + packet.data)
    return targets
