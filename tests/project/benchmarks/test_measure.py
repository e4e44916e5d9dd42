"""The race's referee."""

from __future__ import annotations

import csv
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from benchmarks.measure import (
    CommandFailedError,
    Contestant,
    Cost,
    chosen,
    median,
    race,
    run_once,
    table,
    write_csv,
)

if TYPE_CHECKING:
    from pathlib import Path


def _python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_contestants_take_turns(tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [
        Contestant(name, (_python(f"open({str(log)!r}, 'a').write({name!r})"),)) for name in "ab"
    ]
    costs = race(both, runs=2)
    assert log.read_text() == "abab"
    assert [len(runs) for runs in costs.values()] == [2, 2]


def test_cpu_time_and_memory_are_the_command_s_own() -> None:
    busy = "import time\nx = bytearray(60_000_000)\nwhile time.process_time() < 0.3: pass"
    cost = run_once(Contestant("busy", (_python(busy),)))
    assert 0.3 <= cost.cpu_s < 2
    assert cost.wall_s >= 0.3
    assert cost.peak_mb > 60


def test_what_a_command_leaves_behind_is_charged_and_other_children_are_left_alone() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    leaves = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen(_python("input()"), stdin=subprocess.PIPE) as other:
        assert run_once(Contestant("leaves", (_python(leaves),))).cpu_s >= 0.3
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0


def test_commands_of_a_contestant_are_added_and_their_output_kept(tmp_path: Path) -> None:
    output = tmp_path / "output"
    two = Contestant("two", (_python("print(1)"), _python("print(2)")), output)
    run_once(two)
    assert output.read_text() == "1\n2\n"


def test_a_failing_command_is_an_error_with_its_complaint() -> None:
    with pytest.raises(CommandFailedError, match="no such luck"):
        run_once(Contestant("bad", (_python("raise SystemExit('no such luck')"),)))


def test_medians_are_of_each_figure_by_itself() -> None:
    costs = [Cost(1, 9, 1, 5), Cost(2, 8, 1, 5), Cost(3, 7, 4, 5)]
    assert median(costs) == Cost(2, 8, 1, 5)


def test_the_table_shows_rates_when_packets_are_known() -> None:
    text = table({"x": [Cost(2.0, 1.0, 0.0, 10.0)]}, packets=10_000_000)
    assert text.splitlines()[-1].endswith("| 5.00 | 10.00 |")


def test_every_run_is_in_the_csv(tmp_path: Path) -> None:
    path = tmp_path / "out" / "runs.csv"
    write_csv({"x": [Cost(1, 2, 3, 4), Cost(5, 6, 7, 8)]}, path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["run"] for row in rows] == ["1", "2"]
    assert rows[1]["wall_s"] == "5.0000"


def test_an_unknown_contestant_is_refused_by_name() -> None:
    field = [Contestant("a", ()), Contestant("b", ())]
    assert chosen(field, ["b"]) == [field[1]]
    assert chosen(field, None) == field
    with pytest.raises(SystemExit, match="'c'; there are a, b"):
        chosen(field, ["c"])
