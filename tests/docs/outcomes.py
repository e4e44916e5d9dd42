"""What really comes of the examples of the language reference."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.docs.examples import values_query, write_files
from tests.docs.traffic import write_links
from tests.golden.driver import INTERPRETED, answer

from gscope.cli.render.explain import as_text as explained
from gscope.cli.render.explain import explain_compiled
from gscope.engine.sinks.columns import as_text
from gscope.errors import GsqlError
from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.docs.examples import Example, ValueTable
    from tests.golden.driver import Row

    from gscope.queries.expressions.schema import Schema

_LINKS = ("up", "down")
_SETS = {"both": _LINKS}
_VALUES = "values_of_tables"


def compile_example(example: Example) -> Compiled:
    """The example compiled on its own, as ``gscope replay up.pcap down.pcap`` would.

    Raises:
        GsqlError: it is refused.
    """
    return compile_queries(
        [QueryText(example.query, example.name)],
        CompileContext(_LINKS, _SETS, example.parameters),
    )


def refusal(example: Example) -> str:
    """The message and the remedy of the error; "" if the example compiles."""
    try:
        compile_example(example)
    except GsqlError as error:
        return f"{error.message}\n{error.remedy}".strip() + "\n"
    return ""


def explanation(example: Example) -> list[str]:
    """The lines of ``gscope explain``, without what stands around them."""
    return [line.strip() for line in explained(explain_compiled(compile_example(example)))]


def answers(
    examples: Sequence[Example], tables: Sequence[ValueTable], folder: Path, spark: SparkSession
) -> dict[str, str]:
    """The answers of a page by place, computed together: CSV, of a table one value a line.

    The names of the queries of a page must differ, therefore.
    """
    asked = {example.place: _only_result(example) for example in examples}
    texts = [QueryText(example.query, str(folder / example.name)) for example in examples]
    if tables:
        texts.append(QueryText(values_query(tables), _VALUES))
    if not texts:
        return {}
    parameters = {name: value for e in examples for name, value in e.parameters.items()}
    only = (*asked.values(), *([_VALUES] if tables else []))
    context = CompileContext(_LINKS, _SETS, parameters, only)
    program = compile_queries(texts, context).program
    write_files(folder)
    rows = answer(program, write_links(folder), INTERPRETED, spark)
    schemas = {query: visible(program.schema(query)) for query in only}
    shown = {query: _shown(rows[query], schemas[query]) for query in only}
    found = {p: _as_csv(schemas[query], shown[query]) for p, query in asked.items()}
    if tables:
        (values,) = shown[_VALUES]
        left = iter(values[1:])
        for table in tables:
            found[table.place] = "\n".join(next(left) or "NULL" for _ in table.expressions)
    return found


def sorted_csv(text: str) -> list[str]:
    """The heading and the rows in an order of their own: no order is promised within an epoch."""
    heading, *rows = text.splitlines()
    return [heading, *sorted(rows)]


def _only_result(example: Example) -> str:
    results: Mapping[str, object] = dict(compile_example(example).program.results)
    assert len(results) == 1, f"{example.place} has several results: {', '.join(results)}"
    return next(iter(results))


def _shown(rows: Sequence[Row], schema: Schema) -> list[Row]:
    """Rows as the command shows them: ``20`` for the FLOAT 20.0."""
    is_float = [column.type is GsqlType.FLOAT for column in schema.columns]
    return [
        tuple(
            as_text(pa.array([float(value)]))[0].as_py() if kind and value else value
            for value, kind in zip(row, is_float, strict=True)
        )
        for row in rows
    ]


def _as_csv(schema: Schema, rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(schema.names)
    writer.writerows(rows)
    return text.getvalue()
