"""The flow query over all captures at once, against what tshark says of each."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.golden.driver import VARIATIONS, Variation, answer

from gscope.cli.interfaces import interfaces_of
from gscope.queries.plan.compile import QueryText, Surroundings, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SHARED = Path(__file__).parents[1] / ".." / "shared"
ALLOWED = Path(__file__).with_name("truth_allowed.txt")
KEYS = "interface, ipversion, protocol, srcIP, destIP, srcPort, destPort"
FLOW = (
    f"SELECT tb, {KEYS}, count(*) as cnt, sum(len) as bytes FROM IP GROUP BY time/10 as tb, {KEYS}"
)
CAPTURES = 85

Row = tuple[str, ...]


def captures() -> list[Path]:
    folder = SHARED / "captures"
    found = sorted(path for path in folder.glob("*") if path.suffix != ".tsv")
    assert len(found) == CAPTURES, f"{folder.resolve()} must hold {CAPTURES} captures"
    return found


def is_capture(path: Path) -> bool:
    """Three files are symbolic links of a repository, checked out as the text they point to."""
    return not path.read_bytes().startswith(b"../")


def expected() -> dict[str, list[Row]]:
    """The rows of every capture in sorted order, without those that the allow-list takes out."""
    allowed = {line.split(",")[0].strip() for line in ALLOWED.read_text().splitlines() if line}
    flows = {}
    for path in captures():
        if path.name not in allowed:
            with (SHARED / "expected" / f"{path.name}.flows.csv").open(newline="") as lines:
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


def test_one_command_over_all_captures_gives_the_flows_of_tshark() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gscope", "replay", *arguments(), "-e", FLOW, "-o", "csv"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    heading, *rows = csv.reader(io.StringIO(run.stdout))
    assert heading == ["tb", *KEYS.split(", "), "cnt", "bytes"]
    assert differing(split_by_capture(map(tuple, rows))) == {}
    for path in captures():
        assert is_capture(path) or path.name in run.stderr


@pytest.mark.parametrize("variation", VARIATIONS, ids=lambda variation: variation.name)
def test_every_variation_gives_the_flows_of_tshark(
    variation: Variation, spark: SparkSession
) -> None:
    files = {
        name: [Path(path) for path in paths]
        for name, paths in interfaces_of(arguments()).items()
        if all(is_capture(Path(path)) for path in paths)
    }
    compiled = compile_queries([QueryText(FLOW, "flow")], Surroundings(tuple(files)))
    rows = answer(compiled.program, files, variation, spark)["flow"]
    assert differing(split_by_capture(rows)) == {}
