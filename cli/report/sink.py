"""Where the answers of a report go: they are kept until the end, and written as one file then."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.cli.report.contents import AnsweredRows, Report
from gscope.cli.report.page import page_html
from gscope.cli.report.plot import png_alone, svg_alone
from gscope.cli.report.series import plots_of
from gscope.cli.sinks.replay_files import in_sentences
from gscope.cli.sinks.whole_writes import with_whole_writes
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.report.contents import Facts, ReportAnswer

FILE_NAME = "report.html"
"""The name of a report in a folder for answers."""


class ReportSink:
    """Takes the answers of a run, and writes a report or pictures when all are there.

    Args:
        answers: what is known of them, in order.
        kind: html, svg or png.
        path: a file for a page or a picture, or a folder for all of them; None for standard output.
        style: how to show times.
        finish: returns the head of the report at its end, and may mark answers.

    Raises:
        UsageError: an answer has no picture.
    """

    def __init__(
        self,
        answers: Sequence[ReportAnswer],
        kind: str,
        path: Path | None,
        style: TimeStyle,
        finish: Callable[[Mapping[str, AnsweredRows]], Facts],
    ) -> None:
        self._answers = {each.query: AnsweredRows(each) for each in answers}
        self._kind = kind
        self._path = path
        self._style = style
        self._finish = finish
        if kind != "html":
            _ensure_pictures(answers, kind, path)

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Do nothing: the answers are known."""

    def write(self, query: str, table: pa.Table) -> None:
        """Take rows."""
        self._answers[query].add(table)

    def settle(self, *, is_last: bool) -> None:
        """Return None: no rows are safe before all are."""

    def publish(self) -> None:
        """Do nothing: nothing is visible before the end."""

    def close(self, *, is_complete: bool) -> None:
        """Write the report, or nothing if the run failed.

        Raises:
            GscopeError: it cannot be written, or there is nothing to draw.
        """
        if not is_complete:
            return
        if self._kind == "html":
            write_page(
                Report(self._finish(self._answers), tuple(self._answers.values())), self._path
            )
            return
        for query, rows in self._answers.items():
            write_whole(_file(self._path, f"{query}.{self._kind}"), [self._picture(rows)])

    def _picture(self, rows: AnsweredRows) -> bytes:
        plots = plots_of(rows)
        if not plots:
            message = f"{rows.answer.query} has no rows to plot"
            raise GscopeError(message)
        if self._kind == "png":
            return png_alone(plots, self._style)
        return svg_alone(plots, self._style).encode()


def write_page(report: Report, path: Path | None) -> None:
    """Write a report to a file, into a folder, or to standard output.

    Raises:
        GscopeError: it cannot be written.
    """
    lines = (f"{line}\n".encode() for line in page_html(report))
    write_whole(_file(path, FILE_NAME), lines)


def write_whole(path: Path | None, parts: Iterable[bytes]) -> None:
    """Write a file, which appears when it is complete, or standard output.

    Raises:
        GscopeError: it cannot be written.
    """
    if path is None:
        file = with_whole_writes(sys.stdout.buffer)
        with in_sentences("the report"):
            for part in parts:
                file.write(part)
            file.flush()
        return
    partial = path.with_name(f".{path.name}.partial")
    with in_sentences(str(path)):
        try:
            with partial.open("wb") as staged:
                staged.writelines(parts)
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def _file(path: Path | None, name: str) -> Path | None:
    return path / name if path is not None and path.is_dir() else path


def _ensure_pictures(answers: Sequence[ReportAnswer], kind: str, path: Path | None) -> None:
    for each in answers:
        if each.axis is None or not each.measures:
            what = "has no time" if each.axis is None else "has no number to plot"
            message = (
                f"{each.query} {what}, so there is no {kind} of it: group it by a time such as"
                " minute(time), or choose another format; -o html shows lists as tables"
            )
            raise UsageError(message)
    if len(answers) > 1 and (path is None or not path.is_dir()):
        names = ", ".join(each.query for each in answers)
        message = (
            f"{kind} shows one result, but there are {len(answers)} ({names}); choose one with"
            " --deliver NAME or write files with -w DIR"
        )
        raise UsageError(message)
