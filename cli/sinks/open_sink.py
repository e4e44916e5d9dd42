"""The sink that a command line requests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.config.effective import Config
    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
    from gscope.cli.delivery.delivery import Sink
    from gscope.cli.sinks.table import TextOutput
    from gscope.cli.sinks.table_times import TimeFormatter
    from gscope.cli.sinks.time_partitions import TimePartitions
    from gscope.queries.plan.program import Program

TIME_OPTION = "--time"
TABLES = ("table", "vertical")
"""The formats for people, which standard output alone takes."""

VIEW = "view"
"""The live view on a terminal (``cli/view/``)."""

REPORTS = ("html", "svg", "png")
"""Reports, which are written at the end of a replay (``cli/report/``)."""


def is_ndjson(kind: str | None) -> bool:
    """Return whether standard output gets NDJSON when the command line requests ``kind``."""
    return (kind or _default_kind()) == "ndjson"


def ensure_shows_times(config: Config, folder: Path | None) -> None:
    """Check that the destination is a table if the command line says how to show times.

    The configuration file and the environment say how tables show them, if there are any.

    Raises:
        UsageError: the command line says so for another format.
    """
    if config.origins["output.time"] != TIME_OPTION:
        return
    kind = config.output_format or ("csv" if folder is not None else _default_kind())
    if kind in (*TABLES, VIEW, *REPORTS):
        return
    message = (
        f"invalid {TIME_OPTION} {config.time_style}: only tables and reports take it; in {kind} a"
        " TIMESTAMP is in UTC, and an INT such as time/60 is a number; for a table add -o table"
    )
    raise UsageError(message)


def ensure_partitions(config: Config, folder: Path | None) -> None:
    """Check that the destination has partitions if the command line requests them.

    The configuration file and the environment say so for those that have.

    Raises:
        UsageError: the command line requests them of another destination.
    """
    from gscope.cli.config.partition_unit import PARTITION_OPTION, PartitionUnit

    unit = config.partition_unit
    if config.origins["output.partition_by"] != PARTITION_OPTION or unit is PartitionUnit.NONE:
        return
    if folder is None or config.output_format != "parquet":
        message = f"{PARTITION_OPTION} {unit} requires folders of Parquet; add -o parquet -w DIR"
        raise UsageError(message)


def partitions_of(
    program: Program, config: Config, folder: Path | None
) -> dict[str, TimePartitions] | None:
    """Return the partitions of each result; None if its rows are not partitioned.

    Raises:
        UsageError: a result has no column that is a time, or one with the name of a partition.
    """
    from gscope.cli.config.partition_unit import PartitionUnit

    unit = config.partition_unit
    if unit is PartitionUnit.NONE or folder is None or config.output_format != "parquet":
        return None
    from gscope.cli.sinks.time_partitions import TimePartitions
    from gscope.queries.plan.row_order import visible

    return {
        query: TimePartitions.of(query, visible(program.schema(query)), unit)
        for query, _ in program.results
    }


def _default_kind() -> str:
    """Return the format of standard output unless one is requested."""
    return "table" if sys.stdout.isatty() else "ndjson"


def is_table(kind: str | None) -> bool:
    """Return whether standard output gets a table when the command line requests ``kind``."""
    return (kind or _default_kind()) in TABLES


def sink_for(
    program: Program,
    config: Config,
    folder: Path | None,
    delivered: DeliveryCheckpoint | None,
    output: TextOutput | None = None,
) -> Sink:
    """Return the sink that a command line requests.

    Args:
        program: the program with the results.
        config: the format, None for the default of the destination, and how tables show times.
        folder: the folder for files; None for standard output.
        delivered: the checkpoint of a live run; None for a replay, whose files appear when they
            are complete.
        output: where a table goes; None for standard output.

    Raises:
        UsageError: the destination does not support the format, or is not writable.
    """
    queries = [query for query, _ in program.results]
    if folder is not None:
        return _files(program, config, folder, delivered)
    is_terminal = sys.stdout.isatty()
    kind = config.output_format or _default_kind()
    if kind in TABLES:
        from gscope.cli.sinks.table import TableSink, TableStyle, terminal_style

        is_vertical = kind == "vertical"
        style = (
            terminal_style(is_vertical=is_vertical)
            if is_terminal
            else TableStyle(None, is_vertical)
        )
        times = _time_formatters(program, config.time_style)
        return TableSink(output or sys.stdout, queries, style, times)
    from gscope.cli.sinks.replay_files import StreamSink
    from gscope.cli.sinks.whole_writes import with_whole_writes

    return StreamSink(with_whole_writes(sys.stdout.buffer), kind, queries)


def _time_formatters(program: Program, style: TimeStyle) -> dict[str, dict[str, TimeFormatter]]:
    """Return what formats the columns of each result that are times."""
    from gscope.cli.sinks.table_times import time_formatter

    formatters = {
        query: {
            column.name: time_formatter(column, style) for column in program.schema(query).columns
        }
        for query, _ in program.results
    }
    return {
        query: {name: each for name, each in of_query.items() if each is not None}
        for query, of_query in formatters.items()
    }


def _files(
    program: Program, config: Config, folder: Path, delivered: DeliveryCheckpoint | None
) -> Sink:
    kind = config.output_format or "csv"
    queries = [query for query, _ in program.results]
    partitions = partitions_of(program, config, folder)
    if delivered is None:
        from gscope.cli.sinks.replay_files import FolderSink

        return FolderSink(folder, kind, queries, partitions)
    from gscope.cli.sinks.growing_files import LiveFolder
    from gscope.engine.sinks.columns import readable_schema
    from gscope.queries.plan.row_order import visible

    schemas = {query: readable_schema(visible(program.schema(query))) for query in queries}
    return LiveFolder(folder, kind, schemas, delivered.position.sink, partitions=partitions)
