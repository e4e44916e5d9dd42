"""The report of a run, if its command line asks for one."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.cli.sinks.open_sink import REPORTS
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.cli.config.effective import Config
    from gscope.cli.render.outcome import Outcome
    from gscope.cli.report.contents import AnsweredRows, Facts
    from gscope.cli.report.sink import ReportSink
    from gscope.cli.session.request import QueryRequest
    from gscope.cli.session.session import Session
    from gscope.queries.plan.program import Program


def is_reported(session: Session) -> bool:
    """Return whether the answers of a run go to a report; a run for other hosts has no answers."""
    serves = session.listener is not None or session.requested is not None
    return session.config.output_format in REPORTS and not serves


def ensure_reportable(session: Session) -> None:
    """Check what a report needs before anything starts.

    Raises:
        UsageError: the run is live, standard output is a terminal, a folder is not writable, or the
            library for plots is missing.
    """
    if not is_reported(session):
        return
    kind = session.config.output_format
    if session.is_live:
        message = (
            f"{kind} is written at the end of a replay; of a live run write files with -w DIR, and"
            " make a report of them with gscope report DIR"
        )
        raise UsageError(message)
    ensure_destination(session.folder is not None or session.report is not None, str(kind))
    from gscope.cli.report.plot import ensure_plots

    ensure_plots(f"-o {kind}")
    if session.folder is not None:
        try:
            session.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot write to {session.folder}: {os_reason(error)}"
            raise UsageError(message) from error


def ensure_destination(has_file: bool, kind: str) -> None:
    """Refuse to write a report to a terminal.

    Raises:
        UsageError: standard output is a terminal, and no file is named.
    """
    if not has_file and sys.stdout.isatty():
        message = (
            f"{kind} is not for a terminal: name a file with `gscope report … -w report.html`, or"
            f" redirect the output, as in `> report.{kind}`"
        )
        raise UsageError(message)


def with_overview(request: QueryRequest, config: Config) -> QueryRequest:
    """Return ``request`` with the query that a report has in any case.

    It also gets the board if it has none. A request whose own texts define a query of that name
    stays as it is.
    """
    if config.output_format != "html":
        return request
    from gscope.cli.report.board import BOARD, OVERVIEW, OVERVIEW_TEXT
    from gscope.cli.session.compile_request import gather_texts
    from gscope.queries.analysis.names.query_names import named_queries
    from gscope.queries.gsql.parser import parse

    added = ((OVERVIEW, OVERVIEW_TEXT),)
    if not request.queries and not request.expressions:
        return replace(request, added=(*added, *BOARD))
    texts, _ = gather_texts(request)
    files = [parse(each.text, each.source) for each in texts]
    names = {name for each in files for name, _ in named_queries(each)}
    return request if OVERVIEW in names else replace(request, added=added)


def report_sink(session: Session, program: Program, outcome: Outcome) -> ReportSink:
    """Return where the answers of a report go.

    Args:
        session: the run.
        program: the program whose answers they are.
        outcome: how the run ends, which is read at the end.
    """
    from gscope.cli.report.answers import report_answer
    from gscope.cli.report.facts import facts_of_captures, marks
    from gscope.cli.report.sink import ReportSink
    from gscope.cli.session.compile_request import gather_texts

    style = session.config.time_style
    texts, _ = gather_texts(session.request)

    def finish(answers: Mapping[str, AnsweredRows]) -> Facts:
        for query, rows in answers.items():
            rows.marks = marks(outcome, query)
        captures = [(each.name, ", ".join(each.files)) for each in session.interfaces]
        queries = [(each.source, each.text) for each in texts]
        return facts_of_captures(answers, outcome, captures, queries, style)

    return ReportSink(
        [report_answer(program, query, style) for query, _ in program.results],
        str(session.config.output_format),
        session.report or session.folder,
        style,
        finish,
    )
