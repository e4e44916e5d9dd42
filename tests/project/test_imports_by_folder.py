"""Imports by folder: a table of which folder may import which.

A folder stands for the modules directly in it. A few modules that bring others together stand for
themselves. ``docs/architecture.md`` shows the same table.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = ("queries", "capture", "engine", "cli")

_ROWS = """
queries:
queries/gsql/alerts:
queries/gsql: queries
queries/expressions:
queries/streams: queries queries/expressions
queries/run_folder: queries
queries/catalog/scalar: queries queries/expressions
queries/catalog: queries/expressions queries/catalog/scalar
queries/catalog/aggregate: queries/expressions queries/catalog/scalar queries/catalog
queries/catalog/aggregates.py: queries/expressions queries/catalog/aggregate
queries/catalog/running.py: queries/expressions queries/catalog/scalar queries/catalog/aggregate
    queries/catalog/aggregates.py
queries/catalog/sampling: queries/expressions
queries/catalog/user_functions: queries queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/aggregates.py queries/catalog/running.py queries/catalog/sampling
queries/catalog/ordering: queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/user_functions
queries/library: queries queries/gsql
queries/plan/windows: queries queries/expressions queries/catalog
queries/plan: queries queries/gsql queries/expressions queries/run_folder queries/catalog/scalar
    queries/catalog queries/catalog/aggregate queries/catalog/aggregates.py
    queries/catalog/running.py queries/catalog/user_functions queries/plan/windows
queries/plan/sampling: queries/gsql queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/aggregate queries/catalog/ordering queries/plan queries/plan/windows
queries/plan/partitioning: queries/gsql queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/aggregate queries/plan queries/plan/sampling
queries/plan/explain: queries/gsql queries/expressions queries/catalog/scalar
    queries/catalog/aggregates.py queries/catalog/running.py queries/plan queries/plan/windows
    queries/catalog/sampling queries/plan/sampling
queries/plan/rules: queries/gsql queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/ordering queries/plan
queries/plan/split: queries/gsql queries/expressions queries/catalog/scalar queries/catalog
    queries/catalog/aggregate queries/catalog/aggregates.py queries/catalog/running.py
    queries/catalog/ordering queries/catalog/sampling queries/plan queries/plan/windows
queries/analysis/typing: queries queries/gsql queries/expressions queries/catalog/scalar
    queries/catalog queries/catalog/aggregates.py queries/catalog/running.py
    queries/catalog/user_functions queries/catalog/ordering queries/plan queries/plan/windows
    queries/catalog/sampling
queries/analysis/names: queries queries/gsql queries/expressions queries/catalog
    queries/catalog/ordering queries/library queries/plan queries/plan/windows
    queries/analysis/typing
queries/analysis/windows: queries/gsql queries/expressions queries/catalog/scalar queries/plan
    queries/plan/windows queries/analysis/typing queries/analysis/names
queries/analysis/groups: queries queries/gsql queries/expressions queries/catalog/scalar
    queries/catalog queries/catalog/aggregate queries/catalog/aggregates.py
    queries/catalog/running.py queries/catalog/ordering queries/plan queries/plan/windows
    queries/analysis/typing queries/analysis/names queries/analysis/windows queries/catalog/sampling
queries/analysis/joins: queries queries/gsql queries/expressions queries/catalog
    queries/catalog/ordering queries/plan queries/analysis/typing queries/analysis/names
    queries/analysis/groups
queries/analysis/lineage: queries/gsql queries/expressions queries/catalog queries/catalog/ordering
    queries/plan queries/plan/split
queries/analysis/sampling: queries queries/gsql queries/expressions queries/catalog/scalar
    queries/catalog queries/catalog/aggregates.py queries/plan queries/plan/windows
    queries/plan/sampling queries/analysis/lineage
queries/analysis: queries queries/gsql queries/expressions queries/catalog/scalar queries/catalog
    queries/plan queries/plan/rules queries/plan/windows queries/analysis/typing
    queries/analysis/names queries/analysis/windows queries/analysis/groups queries/analysis/joins
    queries/analysis/sampling
queries/analysis/partitioning: queries/gsql queries/expressions queries/catalog/scalar
    queries/catalog queries/catalog/aggregates.py queries/catalog/running.py queries/plan
    queries/plan/split queries/analysis queries/analysis/lineage
queries/compile.py: queries/gsql queries/plan/windows queries/plan queries/plan/rules
    queries/plan/split queries/analysis/sampling queries/analysis queries/plan/sampling
    queries/plan/partitioning queries/analysis/partitioning
capture/heartbeats:
capture/shedding:
capture/sources/udp/address.py:
capture: capture/heartbeats capture/shedding capture/sources/udp/address.py
capture/kernels/language:
capture/kernels/native: capture/kernels/language
capture/kernels: capture/kernels/language capture/kernels/native
capture/packet/flow:
capture/packet: capture/kernels/language capture/kernels capture/packet/flow
capture/packet/dissector: capture/packet capture/packet/flow
capture/process/confinement:
capture/sources: capture/kernels/language capture/kernels
capture/sources/flows: capture/kernels/language capture/kernels capture/packet capture/packet/flow
    capture/sources
capture/sources/nfcapd: capture/kernels/language capture/kernels capture/packet capture/packet/flow
    capture/sources capture/sources/flows
capture/sources/files: capture/kernels/language capture/kernels capture/packet
    capture/process/confinement capture/sources capture/sources/nfcapd
capture/sources/udp: capture/kernels/language capture/kernels capture/sources
    capture/sources/udp/address.py
capture/sources/af_packet: capture/kernels/language capture/kernels capture/sources
capture/sources/scapy_source.py: capture/sources capture/sources/af_packet
capture/sources/synthetic:
capture/lfta: capture/kernels/language capture/kernels capture/kernels/native capture/packet/flow
    capture/packet capture/packet/dissector capture/sources capture/shedding
capture/lfta/codegen: capture/packet capture/lfta
capture/lfta/cache.py: capture/kernels capture/lfta capture/lfta/codegen
capture/lfta/runtime.py: capture/packet capture/sources capture/shedding capture/lfta
    capture/lfta/cache.py
capture/log: capture/heartbeats capture/kernels
capture/log/remote: capture/heartbeats capture capture/log
capture/log/agent: capture capture/log capture/log/remote capture/process/confinement
capture/log/thinning: capture/log
capture/answers: capture/log
capture/saving: capture capture/kernels/language capture/kernels capture/sources capture/lfta
capture/interface: capture/heartbeats capture capture/kernels capture/sources capture/sources/files
    capture/lfta capture/lfta/cache.py capture/lfta/runtime.py capture/log capture/log/thinning
    capture/saving capture/shedding
capture/process: capture/heartbeats capture capture/process/confinement capture/lfta capture/log
    capture/log/remote capture/saving capture/interface capture/shedding capture/answers
capture/replay: capture/heartbeats capture capture/kernels/language capture/kernels capture/sources
    capture/sources/files capture/sources/flows capture/lfta capture/lfta/runtime.py capture/log
    capture/interface capture/process
capture/live: capture/heartbeats capture capture/sources capture/sources/flows
    capture/sources/udp/address.py capture/sources/udp capture/sources/af_packet
    capture/sources/scapy_source.py capture/lfta capture/lfta/runtime.py capture/log
    capture/interface capture/process capture/shedding
capture/relay: capture capture/log capture/log/remote capture/log/agent capture/interface
    capture/process capture/live
capture/daemon.py: capture/heartbeats capture capture/process/confinement capture/sources/files
    capture/log capture/log/remote capture/saving capture/interface capture/process capture/replay
    capture/live capture/relay
engine:
engine/log_client:
engine/watermarks:
engine/functions:
engine/lookups:
engine/storage/transfer:
engine/spark/spark.py:
engine/spark/cluster: engine/storage/transfer
engine/sinks:
engine/storage: engine/functions engine/sinks engine/storage/transfer
engine/running: engine/watermarks engine/functions engine/storage
engine/windows: engine/watermarks engine/running
engine/sampling: engine/watermarks engine/functions engine/sinks engine/storage/transfer
    engine/running
engine/operators: engine/watermarks engine/storage
engine/steps: engine/watermarks engine/storage engine/operators
engine/monitoring: engine/watermarks engine/storage engine/operators engine/steps
engine/spark/sql: engine/watermarks engine/functions engine/lookups engine/storage/transfer
    engine/spark/cluster engine/spark/spark.py engine/storage engine/running engine/operators
    engine/sampling
engine/spark/staging: engine/watermarks engine/storage/transfer engine/storage engine/running
    engine/operators engine/steps engine/spark/sql
engine/spark/tasks: engine/watermarks engine/functions engine/sinks engine/storage/transfer
    engine/spark/cluster engine/spark/spark.py engine/storage engine/running engine/windows
    engine/operators engine/spark/sql engine/spark/staging engine/sampling
engine/spark/partitions: engine/watermarks engine/storage/transfer engine/storage engine/operators
    engine/steps engine/spark/sql engine/spark/staging engine/spark/tasks
engine/spark/jvm: engine/monitoring engine/spark/cluster engine/spark/tasks
engine/spark: engine/watermarks engine/spark/cluster engine/storage engine/operators engine/steps
    engine/spark/sql engine/spark/staging engine/spark/tasks engine/spark/partitions
    engine/spark/jvm engine/spark/spark.py
engine/spark/spark_start.py: engine engine/storage/transfer engine/monitoring engine/spark/cluster
    engine/spark/jvm engine/spark/tasks
engine/job.py: engine engine/log_client engine/storage engine/steps engine/monitoring
    engine/spark/cluster engine/spark/sql engine/spark/jvm engine/spark engine/spark/spark_start.py
    engine/spark/tasks
cli:
cli/rundir:
cli/config: cli/rundir
cli/completion: cli/rundir cli/config
cli/manual: cli/rundir
cli/render: cli/config
cli/delivery: cli cli/config
cli/sinks: cli/config cli/delivery
cli/outlets: cli/config cli/delivery
cli/supervision: cli cli/rundir cli/config cli/render cli/delivery
cli/view/rows: cli/config cli/sinks
cli/view/terminal: cli/sinks
cli/view: cli/rundir cli/config cli/render cli/delivery cli/sinks cli/view/rows cli/view/terminal
cli/report: cli/config cli/render cli/sinks cli/view/rows
cli/session: cli/rundir cli/config cli/render cli/delivery cli/sinks cli/outlets cli/supervision
    cli/view cli/view/terminal cli/report
cli/agent: cli cli/rundir cli/config cli/render cli/supervision cli/session
cli/status: cli/rundir cli/render
cli/serve:
cli/commands: cli/rundir cli/config cli/completion cli/manual cli/render cli/session cli/agent
    cli/status cli/view cli/view/terminal cli/report cli/sinks cli/serve
cli/main.py: cli/render
"""

_DOORS = """
capture queries: queries queries/expressions queries/streams queries/run_folder
    queries/catalog/scalar queries/catalog queries/catalog/aggregate queries/catalog/user_functions
    queries/plan queries/plan/split queries/plan/sampling queries/plan/partitioning
engine queries: queries queries/gsql queries/expressions queries/streams queries/run_folder
    queries/catalog/scalar queries/catalog queries/catalog/aggregate queries/catalog/aggregates.py
    queries/catalog/running.py queries/catalog/user_functions queries/plan queries/plan/windows
    queries/analysis/typing queries/catalog/sampling queries/plan/sampling
    queries/plan/partitioning
cli queries: queries queries/gsql queries/gsql/alerts queries/expressions queries/streams queries/run_folder
    queries/catalog/scalar queries/catalog queries/catalog/aggregate queries/catalog/aggregates.py
    queries/catalog/running.py queries/catalog/user_functions queries/library queries/plan/windows
    queries/plan queries/plan/explain queries/plan/split queries/analysis/typing
    queries/analysis/names queries/compile.py queries/catalog/sampling
    queries/analysis/partitioning queries/plan/sampling queries/plan/partitioning
cli capture: capture/heartbeats capture capture/log capture/log/remote capture/log/agent
    capture/packet capture/process/confinement capture/sources/udp/address.py
    capture/sources/af_packet capture/shedding capture/lfta capture/lfta/codegen
cli engine: engine engine/log_client engine/watermarks engine/sinks engine/storage engine/steps
    engine/monitoring engine/spark/cluster engine/spark/sql engine/spark engine/lookups
    engine/spark/partitions
"""  # noqa: E501


def rows(text: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a table: what stands before the colon, and the names behind it."""
    lines = re.sub(r"\n +", " ", text).strip().splitlines()
    split = (line.partition(":") for line in lines)
    return {before: tuple(names.split()) for before, _, names in split}


MAY_IMPORT = rows(_ROWS)
"""What each folder may import of its own room, lowest first: no folder imports one further down."""

DOORS = {(key.split()[0], key.split()[1]): names for key, names in rows(_DOORS).items()}
"""Which folders of another room a room may import."""


def part_of(path: Path) -> str:
    """Return the entry of the table that ``path`` belongs to: itself, or its folder."""
    name = path.relative_to(ROOT).as_posix()
    return name if name in MAY_IMPORT else path.relative_to(ROOT).parent.as_posix()


def imported(path: Path) -> Iterator[Path]:
    """Yield the modules of gscope that ``path`` imports, wherever in it, one for each statement."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = {module_at(node.module)}
            if None in modules:
                modules = {module_at(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            modules = {module_at(alias.name) for alias in node.names}
        else:
            continue
        yield from (module for module in modules if module is not None)


def module_at(name: str) -> Path | None:
    """Return the file of a dotted name in one of the rooms, or None if it is none."""
    parts = name.split(".")
    if parts[0] != "gscope" or len(parts) < 3 or parts[1] not in ROOMS:
        return None
    path = ROOT.joinpath(*parts[1:]).with_suffix(".py")
    return path if path.is_file() else None


def imports() -> Iterator[tuple[str, str, str]]:
    """Yield importing part, imported part, and the statement as ``module imports module``."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for module in imported(path):
                names = (each.relative_to(ROOT).as_posix() for each in (path, module))
                yield part_of(path), part_of(module), " imports ".join(names)


@cache
def imports_of_others() -> list[tuple[str, str, str]]:
    return [each for each in imports() if each[0] != each[1]]


def is_allowed(importer: str, target: str) -> bool:
    rooms = importer.partition("/")[0], target.partition("/")[0]
    if rooms[0] == rooms[1]:
        return target in MAY_IMPORT.get(importer, ())
    return target in DOORS.get(rooms, ())


def test_every_folder_is_in_the_table() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    modules = [path for path in files if path.name != "__init__.py"]
    assert {part_of(path) for path in modules} == set(MAY_IMPORT) - without_modules()


def without_modules() -> set[str]:
    """Return the folders of the table that hold folders only."""
    folders = [ROOT / name for name in MAY_IMPORT if not name.endswith(".py")]
    return {
        folder.relative_to(ROOT).as_posix()
        for folder in folders
        if folder.is_dir() and {path.name for path in folder.glob("*.py")} == {"__init__.py"}
    }


def test_the_table_has_no_circle() -> None:
    assert set(TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)


def test_imports_follow_the_table() -> None:
    assert [
        text for importer, target, text in imports_of_others() if not is_allowed(importer, target)
    ] == []


def test_every_permission_is_used() -> None:
    used = {(importer, target) for importer, target, _ in imports_of_others()}
    doors = {(importer.partition("/")[0], target) for importer, target in used}
    unused = [(a, b) for a, targets in MAY_IMPORT.items() for b in targets if (a, b) not in used]
    unused += [(a, b) for (a, _), targets in DOORS.items() for b in targets if (a, b) not in doors]
    assert unused == []


@pytest.mark.parametrize("name", ["MAY_IMPORT", "DOORS"])
def test_the_page_shows_the_table(name: str) -> None:
    """The rows of the page are made of the same names, in the same order."""
    section = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->")[2].partition("<!--")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    cells = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows]
    assert (
        cells
        == {
            "MAY_IMPORT": [[[part], list(targets)] for part, targets in MAY_IMPORT.items()],
            "DOORS": [[[a], [b], list(targets)] for (a, b), targets in DOORS.items()],
        }[name]
    )
