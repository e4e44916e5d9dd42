"""The recipes of ``docs/cookbook.md``: questions, queries, answers.

``python -m tests.docs.cookbook`` rewrites the answers and the list of contents; review the diff.

A recipe is a section ``### N. Question``. Its first block is a command ``gscope replay office.pcap
…`` or a text of GSQL, the ``text`` block behind it is the answer, as a table in a pipe.
"""

from __future__ import annotations

import io
import itertools
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from tests.docs.office import write_office
from tests.golden.driver import Variation, answer
from tests.support.shared_spark import SharedSpark

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.sinks.table import TableSink, TableStyle
from gscope.cli.sinks.table_times import time_formatter
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.library.files import library_files
from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from tests.golden.driver import Row

    from gscope.queries.expressions.schema import ColumnSchema, Schema
    from gscope.queries.plan.program import Program

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
README = PAGE.parents[1] / "README.md"
CAPTURE = "office"

_INTERPRETED = Variation("cookbook", is_interpreted=True, interprets_plans=True)
_SECTION = re.compile(r"^### (\d+)\. ([^\n]*)\n(.*?)(?=^###? |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SQL = re.compile(r"^(```sql\n(.*?)^```\n```text\n).*?^```$", re.MULTILINE | re.DOTALL)
_PARQUET = "'answers/connections.parquet'"
_CHAPTER = re.compile(r"^## (.*)$|^### (\d+\. .*)$", re.MULTILINE)
_CONTENTS = re.compile(r"(<!-- contents -->\n).*?(<!-- end -->)", re.DOTALL)
_ASKED = re.compile(
    rf"^\$ (?P<command>gscope replay {CAPTURE}\.pcap .*)\n(?:(?!\$ |```).*\n)*(?=(?P<next>\$|`))",
    re.MULTILINE,
)
"""A command in README, and its answer up to the next command or the end of the block."""

_FILE = re.compile(r"^```text\n(# (\w+\.csv)\n.*?)^```$", re.MULTILINE | re.DOTALL)


_FOR_DUCKDB = QueryText(library_files()["connections"].read_text("utf-8"), "connections.gsql")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A question with its query and its answer.

    Attributes:
        number: of the section.
        asked: the command, or the text of GSQL.
        is_command: which of the two.
        answer: the text that the page shows.
        span: where that text is in the page.
    """

    number: int
    asked: str
    is_command: bool
    answer: str
    span: tuple[int, int]

    @property
    def texts(self) -> list[QueryText]:
        """The query texts: those of the library first, as the command names them."""
        if not self.is_command:
            return [QueryText(self.asked, f"q{self.number}")]
        words = shlex.split(self.asked)
        options = list(zip(words[3::2], words[4::2], strict=True))
        assert words[:3] == ["gscope", "replay", f"{CAPTURE}.pcap"], self.asked
        assert {option for option, _ in options} <= {"-q", "-e"}, self.asked
        library = library_files()
        texts = [
            QueryText(library[name].read_text("utf-8"), f"{name}.gsql")
            for option, name in options
            if option == "-q"
        ]
        expressions = [text for option, text in options if option == "-e"]
        assert len(expressions) <= 1
        return texts + [QueryText(text, f"q{self.number}") for text in expressions]

    @property
    def is_ordered(self) -> bool:
        """Whether the query says in which order the rows come."""
        return "ORDER BY" in self.asked

    @property
    def results(self) -> list[str]:
        """The names of the results that are shown."""
        program = compile_queries(self.texts, CompileContext((CAPTURE,))).program
        return [name for name, _ in program.results]


def recipes(page: str | None = None) -> list[Recipe]:
    """The recipes of the page, in order."""
    text = page or PAGE.read_text(encoding="utf-8")
    found = []
    for section in _SECTION.finditer(text):
        blocks = list(_BLOCK.finditer(text, section.start(3), section.end(3)))
        pairs = [
            (query, after)
            for query, after in itertools.pairwise(blocks)
            if query[1] in ("", "gsql") and after[1] == "text"
        ]
        assert pairs, f"question {section[1]} has no query with an answer"
        query, after = pairs[0]
        found.append(
            Recipe(int(section[1]), query[2].strip(), query[1] == "", after[2], after.span(2))
        )
    return found


def contents(page: str) -> str:
    """The list of contents of the page: chapters, and their questions."""
    lines = []
    for chapter, question in _CHAPTER.findall(page):
        title = chapter or question
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        if chapter:
            lines.append(f"\n**[{title}](#{anchor})**\n")
        else:
            lines.append(f"- [{title}](#{anchor})")
    return "\n".join(lines).strip() + "\n"


def with_contents(page: str) -> str:
    """The page with its list of contents."""
    return _CONTENTS.sub(lambda found: found[1] + contents(page) + found[2], page)


def with_table_of_duckdb(page: str, program: Program, rows: dict[str, list[Row]]) -> str:
    """The page with the answer of its SQL as DuckDB prints it.

    The SQL is over the answer of ``connections``.
    """
    table = as_table(rows["connections"], visible(program.schema("connections")))
    with duckdb.connect() as database:
        database.register("connections", table)
        return _SQL.sub(
            lambda found: (
                f"{found[1]}"
                f"{str(database.sql(found[2].replace(_PARQUET, 'connections'))).rstrip()}\n```"
            ),
            page,
        )


def with_answers(readme: str, asked: Sequence[Recipe]) -> str:
    """README with the answers of the commands that it takes from the page."""
    known = {recipe.asked: recipe.answer for recipe in asked}

    def answered(found: re.Match[str]) -> str:
        command = found["command"].partition("  #")[0].strip()
        gap = "\n" if found["next"] == "$" else ""
        return f"$ {found['command']}\n{known[command]}{gap}"

    return _ASKED.sub(answered, readme)


def answers(
    asked: Sequence[Recipe], folder: Path, spark: SparkSession
) -> tuple[Program, dict[str, list[Row]]]:
    """The rows of all results of all recipes, computed together in one replay."""
    for text, name in _FILE.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    texts = {_FOR_DUCKDB.source: _FOR_DUCKDB}
    texts |= {text.source: text for recipe in asked for text in recipe.texts}
    placed = [
        QueryText(t.text, t.source if t.source.endswith(".gsql") else str(folder / t.source))
        for t in texts.values()
    ]
    only = tuple(dict.fromkeys(["connections", *(n for recipe in asked for n in recipe.results)]))
    program = compile_queries(placed, CompileContext((CAPTURE,), only=only)).program
    return program, answer(program, {CAPTURE: [write_office(folder)]}, _INTERPRETED, spark)


def shown(results: Sequence[str], program: Program, rows: dict[str, list[Row]]) -> str:
    """The answer as the command prints it, without the line that counts rows."""
    text = io.StringIO()
    schemas = {name: visible(program.schema(name)) for name in results}
    times = {
        name: {
            column.name: formatter
            for column in schema.columns
            if (formatter := time_formatter(column, TimeStyle.UTC)) is not None
        }
        for name, schema in schemas.items()
    }
    sink = TableSink(text, list(results), TableStyle(), times)
    for name, schema in schemas.items():
        table = as_table(rows[name], schema)
        sink.begin(name, table.schema)
        sink.write(name, table)
    return text.getvalue()


def as_table(rows: Sequence[Row], schema: Schema) -> pa.Table:
    """Rows of texts as the typed columns that a sink receives."""
    columns = [
        pa.array([_value(row[place], column) for row in rows], _TYPES.get(column.type, pa.string()))
        for place, column in enumerate(schema.columns)
    ]
    return pa.table(columns, names=list(schema.names))


_TYPES = {
    GsqlType.INT: pa.int64(),
    GsqlType.INTERVAL: pa.int64(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.BOOL: pa.bool_(),
    GsqlType.TIMESTAMP: pa.timestamp("ns"),
}


def _value(text: str, column: ColumnSchema) -> Any:
    if text == "":
        return None
    match column.type:
        case GsqlType.INT | GsqlType.INTERVAL:
            return int(text)
        case GsqlType.FLOAT:
            return float(text)
        case GsqlType.BOOL:
            return text == "true"
        case GsqlType.TIMESTAMP:
            return np.datetime64(text.removesuffix("Z"), "ns")
        case _:
            return text


def rewrite(folder: Path, spark: SparkSession) -> None:
    """Put what really comes of the recipes into the page."""
    page = PAGE.read_text(encoding="utf-8")
    asked = recipes(page)
    program, rows = answers(asked, folder, spark)
    for recipe in reversed(asked):
        start, end = recipe.span
        page = page[:start] + shown(recipe.results, program, rows) + page[end:]
    page = with_contents(with_table_of_duckdb(page, program, rows))
    PAGE.write_text(page, encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    README.write_text(with_answers(readme, recipes(page)), encoding="utf-8")


def main() -> None:
    """Rewrite the page."""
    with tempfile.TemporaryDirectory(prefix="gscope-cookbook-") as folder:
        shared = SharedSpark(Path(folder))
        try:
            rewrite(Path(folder), shared.session())
        finally:
            shared.release()


if __name__ == "__main__":
    main()
