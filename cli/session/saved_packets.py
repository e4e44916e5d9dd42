"""The packets that a run saves: which queries they belong to, and the file for them."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, assert_never

from gscope.capture.settings import SavedPackets, SavedQuery
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.os_errors import os_reason
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.run_folder.layout import SAVED_PACKETS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gscope.cli.config.saving import SaveRequest
    from gscope.queries.plan.program import Input, Program

MAX_SAVED = 63
"""Bits of a packet's mark: LFTAs whose packets are saved."""

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Refusal(Exception):
    """Why the capture daemon does not know the packets of a query, a phrase."""


def saved_queries(program: Program, chosen: Sequence[str]) -> tuple[SavedQuery, ...]:
    """Return the LFTAs that select the packets of queries.

    Args:
        program: the program with the queries.
        chosen: names of results; () for all.

    Raises:
        UsageError: a name is unknown, or the packets of a query are not known in the daemon.
    """
    results = dict(program.results)
    for name in chosen:
        if name not in results:
            hint = suggestion(name, results, f"available: {', '.join(results)}", is_quoted=True)
            message = f"--save-packets-of {name}: no result of that name; {hint}"
            raise UsageError(message)
    saved: list[SavedQuery] = []
    limited = {name for name, order in program.orders if order.limit is not None}
    for name in dict.fromkeys(chosen) or results:
        try:
            if name in limited:
                raise _Refusal(_LIMITED)
            saved += [SavedQuery(lfta, name) for lfta in _selections(program, results[name])]
        except _Refusal as refusal:
            message = f"--save-packets cannot save the packets of {name}: {refusal}"
            if len(results) > 1 and not chosen:
                message += "; choose other queries with --save-packets-of NAME"
            raise UsageError(message) from refusal
    if len({each.lfta for each in saved}) > MAX_SAVED:
        message = (
            f"--save-packets supports at most {MAX_SAVED} selections at once; choose queries with"
            " --save-packets-of NAME"
        )
        raise UsageError(message)
    return tuple(saved)


def _selections(program: Program, source: Input) -> Iterator[str]:
    """Yield the LFTAs whose rows are those of ``source``, one row a packet.

    Raises:
        _Refusal: there are none.
    """
    if isinstance(source, StreamInput):
        if not program.lfta(source.lfta).is_aggregation:
            yield source.lfta
            return
        raise _Refusal(_GROUPED)
    match program.node(source.query):
        case MergeNode(inputs=inputs):
            for each in inputs:
                yield from _selections(program, each)
        case SelectionNode(input=below, predicate=None):
            yield from _selections(program, below)
        case SelectionNode():
            raise _Refusal(_FILTERED_LATER)
        case AggregationNode() | RunningNode():
            raise _Refusal(_GROUPED)
        case JoinNode() | WatchlistJoinNode():
            raise _Refusal(_JOINED)
        case TopNode():
            raise _Refusal(_LIMITED)
        case node:
            assert_never(node)


_GROUPED = (
    "it groups packets; save those of a selection with the same WHERE, such as"
    " `SELECT time, srcIP, destIP FROM … WHERE …`"
)
_FILTERED_LATER = (
    "a part of its WHERE is evaluated on Spark, when the packets are gone; use conditions that"
    " `gscope explain` lists in the LFTA"
)
_LIMITED = (
    "its LIMIT chooses rows after the packets are gone; leave the LIMIT out, or end the capture after"
    " a number of packets with -c"
)
_JOINED = "its rows are joined from several inputs; save those of a selection of one input"


@contextmanager
def opened_packet_file(
    request: SaveRequest | None, program: Program, run_dir: Path, *, is_live: bool
) -> Iterator[SavedPackets | None]:
    """Open the file for saved packets, which the capture daemon inherits; None if none are saved.

    A file that a live run of this folder began is continued. The file of a replay that fails is
    removed.

    Raises:
        UsageError: packets of a query cannot be saved, or the file exists or cannot be created.
    """
    if request is None:
        yield None
        return
    queries = saved_queries(program, request.queries)
    descriptor = _open(request.path, run_dir if is_live else None)
    is_complete = False
    try:
        yield SavedPackets(descriptor, queries, str(request.path), request.limit_bytes)
        is_complete = True
    finally:
        is_empty = os.fstat(descriptor).st_size == 0
        os.close(descriptor)
        if is_empty or not (is_complete or is_live):
            with suppress(OSError):
                request.path.unlink()


def _open(path: Path, resumed: Path | None) -> int:
    try:
        if resumed is not None and _is_begun(path, resumed):
            return os.open(path, _FLAGS)
        return os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError as error:
        message = (
            f"--save-packets {path}: the file exists and is not overwritten; remove it, or name"
            " another file"
        )
        raise UsageError(message) from error
    except (OSError, ValueError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        message = f"--save-packets {path}: cannot create the file: {reason}"
        raise UsageError(message) from error


def _is_begun(path: Path, run_dir: Path) -> bool:
    """Return whether ``path`` is the file that a daemon of the run began."""
    try:
        value = json.loads((run_dir / SAVED_PACKETS_FILE).read_bytes())
        return bool(value["inode"] == path.lstat().st_ino)
    except (OSError, ValueError, TypeError, KeyError):
        return False
