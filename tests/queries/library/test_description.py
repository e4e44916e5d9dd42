"""What library queries say of themselves is complete, and true to their answers.

It fits a terminal.
"""

from __future__ import annotations

import shlex

import click
import pytest

from gscope.cli.main import cli
from gscope.queries.catalog.protocols import PROTOCOLS
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.library.description import GROUPS, describe
from gscope.queries.library.search import LibraryQuery, library_queries
from gscope.queries.plan.row_order import visible

QUERIES = library_queries()
INTERFACES = ("main0", "main1", "control", "interface1", "interface2", "b", "c")
COLUMNS_OF_A_TERMINAL = 80

HEADER = """\
-- Hosts that knock, by minute
-- They knock at closed
-- doors.
--
-- group: security
-- columns:
--   srcIP   the host
--           that knocks
--   knocks  attempts
-- assumes: both directions,
--   and an open ear
-- example: gscope run knocks -i eth0
-- more of the example
SELECT 1
-- columns:
--   x  not in the leading comment
"""


def named(query: LibraryQuery) -> str:
    return query.name


def test_entries_are_read_across_lines() -> None:
    about = describe(HEADER)
    assert about.summary == "Hosts that knock, by minute"
    assert about.remarks == "They knock at closed doors."
    assert about.group == "security"
    assert about.columns == {"srcIP": "the host that knocks", "knocks": "attempts"}
    assert about.assumes == "both directions, and an open ear"
    assert about.example == "gscope run knocks -i eth0 more of the example"


def test_a_query_without_a_comment_says_nothing() -> None:
    about = describe("SELECT time FROM TCP\n-- group: security\n")
    assert (about.summary, about.group, about.columns) == ("", "", {})


@pytest.mark.parametrize("query", QUERIES, ids=named)
def test_every_column_of_the_answer_is_described_and_none_more(query: LibraryQuery) -> None:
    context = CompileContext(INTERFACES, {"main0_and_control": ("main0", "control")})
    program = compile_queries([QueryText(query.text, f"{query.name}.gsql")], context).program
    (result,) = [name for name, _ in program.results if name == query.name.rpartition("/")[2]]
    described = query.description.columns
    columns = list(visible(program.schema(result)).names)
    if "*" in described:
        assert set(columns) <= {field.name for field in PROTOCOLS["TCP"].fields}
        assert list(described) == ["*"]
    else:
        assert list(described) == columns


@pytest.mark.parametrize("query", QUERIES, ids=named)
def test_a_line_of_the_list_fits_a_terminal(query: LibraryQuery) -> None:
    group = [q for q in QUERIES if q.description.group == query.description.group]
    width = max(len(q.name) for q in group)
    assert len(f"  {' ' * width}  {query.description.summary}") <= COLUMNS_OF_A_TERMINAL
    assert len(query.description.summary) > 15
    assert not query.description.summary.endswith(".")


@pytest.mark.parametrize("query", QUERIES, ids=named)
def test_each_query_is_in_a_group_and_has_an_example_that_can_be_typed(query: LibraryQuery) -> None:
    about = query.description
    assert about.group in GROUPS
    assert (about.group == "published") == query.name.startswith("published/")
    words = shlex.split(about.example)
    context = click.Context(cli, info_name="gscope", **cli.context_settings)
    command = cli.get_command(context, words[1])
    assert words[0] == "gscope"
    assert command is not None
    command.make_parser(context).parse_args(words[2:])
    assert query.name in words


@pytest.mark.parametrize("query", QUERIES, ids=named)
def test_columns_that_measure_name_their_unit(query: LibraryQuery) -> None:
    units = {
        "_ms": "in milliseconds",
        "bytes": "bytes",
        "percent": "in percent",
        "seconds": "seconds",
        "bits": "bits",
        "mean_length": "in bytes",
    }
    for column, meaning in query.description.columns.items():
        for ending, unit in units.items():
            if column.endswith(ending):
                assert unit in meaning, column
