"""The example of ``docs/lookups.md`` answers what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.golden.driver import COMPILED, answer
from tests.support.requirements import CAPTURES, needs_captures

from gscope.cli.config.lookups import parse_lookups
from gscope.queries.analysis.typing import lookups
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.lookup_files import files_of
from gscope.queries.plan.lookups import with_lookups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
CAPTURE = CAPTURES / "ndpi-netflix.pcap"
PAGE = (ROOT / "docs" / "lookups.md").read_text(encoding="utf-8")
SERVICES = "domain 53/udp\nhttp 80/tcp\nhttps 443/tcp\n"
"""The part of ``/etc/services`` that the example needs."""

pytestmark = [pytest.mark.spark, needs_captures]


def test_the_example_answers_what_the_page_shows(tmp_path: Path, spark: SparkSession) -> None:
    (command,) = re.findall(r"^```\n(gscope replay .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```csv answer\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (table,) = re.findall(r"^```csv\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    words = shlex.split(re.sub(r"\n\s+", " ", command))
    given = parse_lookups(words[words.index("--lookup") + 1])
    (tmp_path / given["networks"]).write_text(table, encoding="utf-8")
    (tmp_path / "services").write_text(SERVICES, encoding="utf-8")
    files = {"networks": str(tmp_path / given["networks"]), "services": str(tmp_path / "services")}
    lookups.offer(files_of(files))
    try:
        texts = [QueryText(words[words.index("-e") + 1], "query")]
        program = compile_queries(texts, CompileContext(("trace",), {}, {})).program
    finally:
        lookups.offer(())
    program = with_lookups(program, files)
    (rows,) = answer(program, {"trace": [CAPTURE]}, COMPILED, spark).values()
    schema = ",".join(program.schema("query").names)
    assert [schema, *map(",".join, rows)] == shown.splitlines()
