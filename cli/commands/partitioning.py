"""What ``explain --hosts`` asks for: a set that is given, and the counts of a run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.cli.rundir.records import choose_counted
from gscope.cli.status.document import status_document
from gscope.errors import GscopeError, UsageError
from gscope.queries.analysis.partitioning.explained import explain_partitioning
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.analysis.partitioning.traffic import Counts
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.queries.compile import Compiled


def explained_partitioning(
    compiled: Compiled, hosts: int, given: str | None, statistics: str | None, config: Config
) -> dict[str, Any]:
    """Return how compiled queries divide among hosts.

    Args:
        compiled: the queries.
        hosts: the number of hosts.
        given: the set that packets are divided by, as text; None for the best.
        statistics: the name of a run, or a file with its status; None to assume shares of rows.
        config: the settings.

    Raises:
        GsqlError: the set is invalid.
        UsageError: there is no such run or file, or it has no counts.
    """
    return explain_partitioning(
        compiled.stages[0][1],
        tuple(name for name, _ in compiled.program.results),
        hosts,
        None if given is None else given_set(given, "--partition-set"),
        None if statistics is None else _counts(statistics, config),
    )


def _counts(run: str, config: Config) -> Counts:
    path = Path(run)
    if path.is_file():
        document = _read(path)
    else:
        try:
            document = status_document(choose_counted(config.work_dir, run), time.time_ns())
        except GscopeError as error:
            message = f"--statistics: there is no file {run}, and {error}"
            raise UsageError(message) from error
    try:
        packets = sum(each["received_packets"] for each in document["capture"]["interfaces"])
        rows = {**_undelivered(document), **_delivered(document)}
        counts = Counts(int(packets), {name: int(number) for name, number in rows.items()})
    except (KeyError, TypeError, ValueError) as error:
        message = f"--statistics: {run} has no counts: expected those of `gscope status --json`"
        raise UsageError(message) from error
    if not counts.packets:
        message = f"--statistics: run {run} has received no packets"
        raise UsageError(message)
    return counts


def _delivered(document: dict[str, Any]) -> dict[str, int]:
    return {each["name"]: each["rows_total"] for each in document["queries"]}


def _undelivered(document: dict[str, Any]) -> dict[str, int]:
    """Return the rows of queries that only others read, as far as the run counted them."""
    operators = (document.get("job") or {}).get("operators", ())
    rows = {each["name"]: each.get("tuples_out_total") for each in operators}
    for stream in document["capture"].get("streams", ()):
        # The rows of a table are parts of groups.
        if not stream.get("table_slots") and stream["lfta"] not in rows:
            rows[stream["lfta"]] = sum(
                each["tuples_out_total"]
                for each in document["capture"]["streams"]
                if each["lfta"] == stream["lfta"]
            )
    return {name: number for name, number in rows.items() if number is not None}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        message = f"--statistics: cannot read {path}: {os_reason(error)}"
        raise UsageError(message) from error
    except ValueError as error:
        message = f"--statistics: {path} is not JSON; save it with `gscope status --json`"
        raise UsageError(message) from error
