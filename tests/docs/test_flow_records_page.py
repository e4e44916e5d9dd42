"""The example of ``docs/flow_records.md`` answers what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.docs.exports import write_exports
from tests.golden.driver import COMPILED, answer

from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "flow_records.md").read_text(encoding="utf-8")


@pytest.mark.spark
def test_the_example_answers_what_the_page_shows(tmp_path: Path, spark: SparkSession) -> None:
    (query,) = re.findall(r"^```gsql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```csv\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    program = compile_queries([QueryText(query, "q")], CompileContext(("exports",), {}, {})).program
    files = {"exports": [write_exports(tmp_path)]}
    (rows,) = answer(program, files, COMPILED, spark).values()
    schema = ",".join(program.schema("q").names)
    assert [schema, *map(",".join, rows)] == shown.splitlines()


def test_the_summary_counts_what_the_page_shows(tmp_path: Path) -> None:
    (numbers,) = re.findall(r"(\d+) packets received = (\d+) accepted \+ (\d+) dropped", PAGE)
    source = FlowSource(open_source(str(write_exports(tmp_path))))
    accepted = 0
    while (block := source.next_block()) is not None:
        accepted += block.count
    stats = source.stats
    source.close()
    assert tuple(map(int, numbers)) == (stats.received_packets, accepted, stats.dropped_packets)
