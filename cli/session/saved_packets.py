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
from gscope.queries.plan.group_packets import NoGroupPacketsError, group_packets
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    Program,
    QueryInput,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.run_folder.layout import SAVED_GROUPS_FILE, SAVED_PACKETS_FILE
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gscope.cli.config.saving import SaveRequest
    from gscope.queries.plan.group_packets import GroupPackets
    from gscope.queries.plan.program import Input

MAX_SAVED = 63
"""Bits of a packet's mark: LFTAs whose packets are saved."""

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Refusal(Exception):
    """Why the capture daemon does not know the packets of a query, a phrase."""


@dataclass(frozen=True, slots=True)
class SavePlan:
    """How the packets of a run are saved.

    Attributes:
        path: the file for them.
        limit_bytes: size that the file does not exceed; None for no limit.
        queries: the LFTAs that select them, and their queries.
        groups: for queries that group packets, by their LFTA in ``queries``, how to find these.
        second: the program that reads packets again when groups are known; None if there are no
            groups: then packets are saved as they are selected.
        ring_bytes: size of the ring from which a live run reads them again; None to read captures.
    """

    path: Path
    limit_bytes: int | None
    queries: tuple[SavedQuery, ...]
    groups: Mapping[str, GroupPackets]
    second: Program | None
    ring_bytes: int | None = None

    @property
    def ring(self) -> SavedPackets:
        """The settings of a daemon that keeps recent packets of groups."""
        queries = tuple(SavedQuery(self.groups[q.lfta].source, q.query) for q in self.queries)
        return SavedPackets(-1, queries, str(self.path), ring_bytes=self.ring_bytes)

    def saved(
        self, descriptor: int, queries: tuple[SavedQuery, ...], start_bytes: int = 0
    ) -> SavedPackets:
        """Return the settings of a daemon that saves packets of ``queries``."""
        return SavedPackets(
            descriptor,
            queries,
            str(self.path),
            self.limit_bytes,
            is_second_pass=self.second is not None,
            start_bytes=start_bytes,
        )


def save_plan(
    program: Program, request: SaveRequest, *, is_repeatable: bool, is_live: bool = False
) -> SavePlan:
    """Return how to save the packets of queries.

    Args:
        program: the program with the queries.
        request: the queries and the file.
        is_repeatable: whether the input can be read a second time.
        is_live: whether packets of groups can be kept in a ring.

    Raises:
        UsageError: a name is unknown, or the packets of a query cannot be saved.
    """
    results = dict(program.results)
    for name in request.queries:
        if name not in results:
            hint = suggestion(name, results, f"available: {', '.join(results)}", is_quoted=True)
            message = f"--save-packets-of {name}: no result of that name; {hint}"
            raise UsageError(message)
    saved: list[SavedQuery] = []
    groups: dict[str, GroupPackets] = {}
    for name in dict.fromkeys(request.queries) or results:
        try:
            if _is_grouping(program, results[name]):
                found = _groups(
                    program, name, f"groups_{len(groups) + 1}", is_repeatable or is_live
                )
                groups[found.lfta.name] = found
                saved.append(SavedQuery(found.lfta.name, name))
            else:
                saved += [SavedQuery(lfta, name) for lfta in _selected(program, name)]
        except (_Refusal, NoGroupPacketsError) as refusal:
            message = f"--save-packets cannot save the packets of {name}: {refusal}"
            if len(results) > 1 and not request.queries:
                message += "; choose other queries with --save-packets-of NAME"
            raise UsageError(message) from refusal
    for each in saved:
        lfta = groups[each.lfta].lfta if each.lfta in groups else program.lfta(each.lfta)
        if lfta.reads_flows:
            message = (
                f"--save-packets cannot save what {each.query} reads: FLOW has records, not"
                " packets; choose other queries with --save-packets-of NAME, or omit it"
            )
            raise UsageError(message)
    if is_live and groups and len(groups) < len(saved):
        message = (
            "--save-packets cannot save packets of selections and of groups in one live run; choose"
            " queries of one kind with --save-packets-of NAME"
        )
        raise UsageError(message)
    names = dict.fromkeys(each.lfta for each in saved)
    if len(names) > MAX_SAVED:
        message = (
            f"--save-packets supports at most {MAX_SAVED} selections at once; choose queries with"
            " --save-packets-of NAME"
        )
        raise UsageError(message)
    second = None
    if groups:
        lftas = tuple(groups[n].lfta if n in groups else program.lfta(n) for n in names)
        second = Program(program.interfaces, lftas, (), (), (), program.user_files)
    ring_bytes = request.ring_bytes if is_live and groups else None
    return SavePlan(request.path, request.limit_bytes, tuple(saved), groups, second, ring_bytes)


def _is_grouping(program: Program, source: Input) -> bool:
    return isinstance(source, QueryInput) and isinstance(
        program.node(source.query), AggregationNode
    )


def _groups(program: Program, query: str, name: str, can_search: bool) -> GroupPackets:
    if not can_search:
        raise _Refusal(_GROUPED_PIPE)
    return group_packets(program, query, name)


def _selected(program: Program, name: str) -> list[str]:
    order = dict(program.orders).get(name)
    if order is not None and order.limit is not None:
        raise _Refusal(_LIMITED)
    return list(_selections(program, dict(program.results)[name]))


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
        case AggregationNode() | RunningNode() | WindowNode() | SampleNode():
            raise _Refusal(_GROUPED)
        case JoinNode() | WatchlistJoinNode():
            raise _Refusal(_JOINED)
        case TopNode():
            raise _Refusal(_LIMITED)
        case node:
            assert_never(node)


_GROUPED = "it groups rows of another query, or in windows, or keeps groups over several epochs"
_GROUPED_PIPE = (
    "it groups packets, and packets of groups are found by reading captures a second time, which"
    " pipes cannot be; save those of a selection with the same WHERE, such as"
    " `SELECT time, srcIP, destIP FROM … WHERE …`"
)
_FILTERED_LATER = (
    "a part of its WHERE is evaluated on Spark, when the packets are gone; use conditions that"
    " `gscope explain` lists in the LFTA"
)
_LIMITED = (
    "its LIMIT chooses rows after the packets are gone; leave the LIMIT out, or end the capture"
    " after a number of packets with -c"
)
_JOINED = "its rows are joined from several inputs; save those of a selection of one input"


@contextmanager
def opened_packet_file(plan: SavePlan, run_dir: Path, *, is_live: bool) -> Iterator[int]:
    """Open the file for saved packets, which the capture daemon inherits; yield its descriptor.

    A file that a live run of this folder began is continued. The file of a replay that fails is
    removed.

    Raises:
        UsageError: the file exists or cannot be created.
    """
    descriptor = _open(plan.path, run_dir if is_live else None)
    is_complete = False
    try:
        yield descriptor
        is_complete = True
    finally:
        is_empty = os.fstat(descriptor).st_size == 0
        os.close(descriptor)
        if is_empty or not (is_complete or is_live):
            with suppress(OSError):
                plan.path.unlink()


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
    """Return whether ``path`` is the file that the run began."""
    for record in (SAVED_PACKETS_FILE, SAVED_GROUPS_FILE):
        with suppress(OSError, ValueError, TypeError, KeyError):
            value = json.loads((run_dir / record).read_bytes())
            if value["inode"] == path.lstat().st_ino:
                return True
    return False
