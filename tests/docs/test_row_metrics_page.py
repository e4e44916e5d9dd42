"""The rows of ``docs/sinks.md`` become the metrics that the page shows."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest

from gscope.cli.outlets.gauge_columns import gauge_columns
from gscope.cli.outlets.row_gauges import RowGauges
from gscope.cli.status.endpoint import Metrics
from gscope.engine.sinks.columns import readable_schema
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.snapshot import SnapshotFile

PAGE = Path(__file__).parents[2] / "docs" / "sinks.md"


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_rows_of_the_page_are_its_metrics(tmp_path: Path) -> None:
    words = shlex.split(block("console").replace("\\\n", ""))
    name, query = words[words.index("--metrics-of") + 1], words[words.index("-e") + 1]
    program = compile_queries([QueryText(query, "q.gsql")], CompileContext(("eth0",))).program
    rows: list[dict[str, Any]] = [
        {"tb": int(row["tb"]), "srcIP": row["srcIP"], "packets": int(row["packets"])}
        for row in csv.DictReader(block("csv").splitlines())
    ]
    gauges = RowGauges(gauge_columns(program, (name,)), 10_000, SnapshotFile(tmp_path / "row.json"))
    gauges.take(name, pa.Table.from_pylist(rows, readable_schema(program.schema(name))))
    gauges.close_epochs({name: {"tb": rows[0]["tb"] + 1}})
    metrics, registry = Metrics(), CollectorRegistry()
    metrics.show_rows(gauges.collect)
    registry.register(metrics)
    assert generate_latest(registry).decode() == block("prometheus")
