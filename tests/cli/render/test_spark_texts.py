"""The Spark SQL that ``explain --spark`` shows: one name for the rows of each side."""

from __future__ import annotations

import pytest

from gscope.cli.render.explain import spark_texts
from gscope.queries.compile import CompileContext, QueryText, compile_queries


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT tb, count(*) AS n FROM a.TCP GROUP BY time/60 AS tb", ["input"]),
        (
            "MERGE x.time : y.time : z.time FROM a.TCP x, b.TCP y, c.TCP z",
            ["input1", "input2", "input3"],
        ),
        ("SELECT x.time, y.len FROM a.TCP x JOIN b.TCP y ON x.time = y.time", ["left", "right"]),
    ],
)
def test_each_side_reads_rows_of_a_name_of_its_own(query: str, names: list[str]) -> None:
    compiled = compile_queries([QueryText(query, "q.gsql")], CompileContext(("a", "b", "c")))
    ((_, text),) = spark_texts(compiled.program).items()
    read = [part.split()[0].rstrip(")") for part in text.split(" FROM ")[1:]]
    assert [name for name in read if not name.startswith("(")] == names
