"""``gscope report``: a page with plots and tables, of captures or of files of answers."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import with_config, with_queries, with_quiet
from gscope.cli.commands.options import HeadedCommand, option
from gscope.cli.commands.replay import chosen_captures, with_captures
from gscope.cli.completion import candidates
from gscope.cli.config.setting_groups import OF_METRICS
from gscope.cli.config.settings import OUTPUT_FORMAT
from gscope.errors import UsageError
from gscope.queries.library.files import library_files

if TYPE_CHECKING:
    from gscope.cli.commands.option_groups import OutputRequest
    from gscope.cli.commands.replay import CaptureRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest

_FORMAT = replace(
    OUTPUT_FORMAT,
    kind=replace(OUTPUT_FORMAT.kind, metavar="html|svg|png"),
    meaning="format of the report. Default: by the name of FILE, otherwise html",
)
_PAGE = "html"
_ENDINGS = {".svg": "svg", ".png": "png"}


@click.command(cls=HeadedCommand, short_help="Make a page with plots and tables.")
@click.argument(
    "captures", nargs=-1, metavar="CAPTURE|QUERY|DIR...", shell_complete=candidates.report_inputs
)
@with_queries
@with_captures
@option(
    "-w",
    "--write",
    "path",
    heading="Output",
    metavar="FILE",
    shell_complete=candidates.files,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report to FILE, which appears when it is complete. Names that end in .svg or"
    " .png get a picture of one result. Default: standard output.",
)
@with_quiet
@with_config(without=("output.partition_by", *OF_METRICS), instead=(_FORMAT,))
def report(
    request: QueryRequest,
    inputs: CaptureRequest,
    path: Path | None,
    output: OutputRequest,
    config: Config,
) -> int:
    """Make one HTML file with a plot for each time series and a table for each list.

    Of captures it shows the answers of the given queries, and without queries the rates of links
    and protocols, the addresses and ports with most bytes, the names most asked for, losses and
    damage. Arguments that are .gsql files or names of library queries are queries. A DIR with
    answers (-w DIR of `gscope replay` or `gscope run`: CSV, NDJSON, Parquet or Arrow) is shown as
    it is. The page needs no network.

    \b
      gscope report trace.pcap -w report.html
      gscope report trace.pcap top_talkers flows.gsql -w report.html
      gscope report answers -w report.html

    Plots need gscope[report]. Exit codes: 0 success, 1 a capture or process failed, 2 usage or
    query error, 3 success but packets or input were lost (--strict), 128+n terminated by signal n.
    """  # noqa: D301 # \b is click's mark for text that is not to be wrapped
    began = time.monotonic()
    keep_only(OF_SUPERVISORS)
    from gscope.cli.session.reporting import ensure_destination

    config = replace(config, output_format=_kind(config, path))
    request, inputs, folders = _sorted_out(request, inputs)
    if path is not None and not path.absolute().parent.is_dir():
        message = f"cannot write to {path}: {path.absolute().parent} is not a folder"
        raise UsageError(message)
    ensure_destination(path is not None, str(config.output_format))
    if folders:
        return _of_folder(folders, request, inputs, path, config)
    return _of_captures(request, inputs, path, output, config, began)


def _kind(config: Config, path: Path | None) -> str:
    """Return the format: that of ``-o``, otherwise that of the file's name, otherwise a page."""
    from gscope.cli.sinks.open_sink import REPORTS

    by_name = _ENDINGS.get(path.suffix.lower(), _PAGE) if path is not None else _PAGE
    given = config.output_format
    if given is None or (given not in REPORTS and config.origins["output.format"] != "--output"):
        return by_name
    if given not in REPORTS:
        message = (
            f"a report is {', '.join(REPORTS[:-1])} or {REPORTS[-1]}; for {given} use gscope replay"
        )
        raise UsageError(message)
    return given


def _sorted_out(
    request: QueryRequest, inputs: CaptureRequest
) -> tuple[QueryRequest, CaptureRequest, list[Path]]:
    """Return the request with the arguments that are queries, the captures, and the folders."""
    from gscope.cli.session.compile_request import ENDING

    captures: list[str] = []
    queries: list[str] = []
    folders: list[Path] = []
    for argument in inputs.captures:
        if Path(argument).is_dir():
            folders.append(Path(argument))
        elif argument.endswith(ENDING) or (
            argument in library_files() and not Path(argument).exists()
        ):
            queries.append(argument)
        else:
            captures.append(argument)
    refuse_misplaced(inputs.read, "a capture", filter_option="-f", takes_names=False)
    refuse_misplaced(captures, "a capture", filter_option="-f", takes_names=False)
    refuse_misplaced(request.queries, "a query file", filter_option=None, takes_names=True)
    return (
        replace(request, queries=(*queries, *request.queries)),
        replace(inputs, captures=tuple(captures)),
        folders,
    )


def _of_captures(
    request: QueryRequest,
    inputs: CaptureRequest,
    path: Path | None,
    output: OutputRequest,
    config: Config,
    began: float,
) -> int:
    from gscope.cli.config.run_limits import RunLimits
    from gscope.cli.config.shedding import config_of_replay
    from gscope.cli.render.progress import run_observer
    from gscope.cli.session.end_report import EndReport
    from gscope.cli.session.reporting import with_overview
    from gscope.cli.session.request import expected_bytes
    from gscope.cli.session.session import Session

    request = with_overview(request, config)
    request.ensure_some()
    chosen = chosen_captures(inputs, config)
    session = Session(
        request,
        chosen,
        RunLimits(inputs.speed, inputs.packets),
        expected_bytes(chosen),
        None,
        config_of_replay(config),
        report=path,
    )
    observer = run_observer(is_quiet=output.is_quiet, has_progress=not output.hides_progress)
    return session.answer(observer, EndReport(output.is_quiet, False, config.is_strict), began)


def _of_folder(
    folders: list[Path],
    request: QueryRequest,
    inputs: CaptureRequest,
    path: Path | None,
    config: Config,
) -> int:
    if len(folders) > 1 or inputs.all_captures or request.queries or request.expressions:
        message = (
            f"{folders[0]} is a folder of answers, of which a report is made as they are; leave out"
            " captures, queries and further folders"
        )
        raise UsageError(message)
    if config.output_format != _PAGE:
        message = f"{config.output_format} is drawn of captures; a report of {folders[0]} is html"
        raise UsageError(message)
    from gscope.cli.report.answer_folder import report_of_folder
    from gscope.cli.report.plot import ensure_plots
    from gscope.cli.report.sink import write_page

    ensure_plots("gscope report")
    write_page(report_of_folder(folders[0], config.time_style), path)
    return 0
