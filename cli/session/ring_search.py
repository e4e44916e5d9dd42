"""Packets of groups of a live run: searched in the ring of recent packets, row by row delivered.

A thread collects the keys of delivered rows. When the ring has the packets of these groups, it
links the segments into a folder of its own, where the capture daemon cannot delete them, and starts
a process that reads them and appends the packets to the file: the second pass of a replay, over
recent packets. The process runs at a low priority, and rests as long as it ran.

Rows whose delivery is not recorded yet are not searched for: a resumed run delivers them again.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.session.group_rows import GroupRows
from gscope.cli.session.second_pass import read_again
from gscope.errors import GscopeError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import (
    PACKET_RING_FOLDER,
    PACKET_SEARCH_FOLDER,
    SAVED_GROUPS_FILE,
)
from gscope.queries.run_folder.packet_ring import AT_END, NEVER, read_state, ring_segments
from gscope.queries.run_folder.whole_file import replace_file
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.settings import InterfaceSettings
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.session.saved_packets import SavePlan
    from gscope.cli.session.session import Session
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.queries.plan.program import Program

    Start = Callable[[RunFile, RunObserver | None], Supervisor]

LOOK_S = 0.1
"""Time between two looks at the state of the ring, in seconds."""

ATTEMPTS = 2
"""Searches for the same groups, if one fails."""

NICE = 10
"""By how much a search is nicer to other processes than the capture."""

SKEW_NS = 10**17
"""Skew of segments: what the capture accepted is never late."""

_SEGMENTS = "segments"
_EMPTY_FILE = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
"""A section of a pcapng file without packets."""


@dataclass(slots=True)
class FoundPackets:
    """What became of the packets of groups.

    Attributes:
        packets: packets in the file.
        bytes: size of the file.
        over_limit: packets left out because the file has reached its limit.
        unwritten: packets left out because the disk refused them.
        gone_groups: groups of which packets may have left the ring before they were searched.
        unsearched_groups: groups whose packets were not searched because searches failed.
        failure: why packets were not written or not searched; "" if all were.
    """

    packets: int = 0
    bytes: int = 0
    over_limit: int = 0
    unwritten: int = 0
    gone_groups: int = 0
    unsearched_groups: int = 0
    failure: str = ""


class RingSearch:
    """Appends the packets of delivered groups to a file.

    Args:
        session: the run.
        plan: how packets are saved.
        run_dir: the folder of the run.
        descriptor: of the open file.
        programs: the program of the run, and that of searches.
        start: returns a supervisor for a search.
    """

    def __init__(
        self,
        session: Session,
        plan: SavePlan,
        run_dir: Path,
        descriptor: int,
        programs: tuple[Program, Program],
        start: Start,
    ) -> None:
        self._session = session
        self._plan = plan
        self._run_dir = run_dir
        self._descriptor = descriptor
        self._program, self._second = programs
        self._start = start
        self._record_file = run_dir / SAVED_GROUPS_FILE
        self._found = self._resumed()
        os.ftruncate(descriptor, self._found.bytes)
        # A resumed run continues the file, although nothing has been found.
        self._record()
        self._changed = threading.Condition()
        self._unsettled = GroupRows(plan)
        self._settled = GroupRows(plan)
        self._settled_ns = 0
        self._is_ended = False
        self._is_given_up = False
        self._error: BaseException | None = None
        self._searching: Supervisor | None = None
        self._thread = threading.Thread(target=self._run, name="search packets", daemon=True)
        self._thread.start()

    def take(self, query: str, table: pa.Table) -> None:
        """See ``Watch``."""
        self._unsettled.take(query, table)

    def settle(self) -> None:
        """See ``Watch``."""
        if len(self._unsettled):
            with self._changed:
                self._settled.add(self._unsettled)
                self._settled_ns = time.monotonic_ns()
                self._changed.notify_all()
            self._unsettled = GroupRows(self._plan)

    def finish(self, capture: Mapping[str, Any]) -> dict[str, int | str]:
        """Search for what is left, and return what became of packets, for the summary.

        Args:
            capture: the account of the ring: all packets are in it.
        """
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        self._thread.join()
        if self._error is not None:
            raise self._error
        if not self._found.bytes:
            with suppress(OSError):
                os.pwrite(self._descriptor, _EMPTY_FILE, 0)
        found = asdict(self._found)
        found["unwritten"] += int(capture["unwritten"])
        found["failure"] = found["failure"] or capture["failure"]
        return {"path": str(self._plan.path), **found, "outrun": int(capture["outrun"])}

    def close(self) -> None:
        """End a search that goes on; harmless after ``finish``."""
        with self._changed:
            self._is_ended = self._is_given_up = True
            self._changed.notify_all()
            if self._searching is not None:
                self._searching.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._search_until_end()
        except BaseException as error:
            self._error = error

    def _search_until_end(self) -> None:
        # The priority of a thread, which the processes that it starts inherit.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while (rows := self._next_rows()) is not None:
            began_s = time.monotonic()
            self._search_for(rows)
            with self._changed:
                rest_s = time.monotonic() - began_s
                self._changed.wait_for(lambda: self._is_ended, rest_s)

    def _next_rows(self) -> GroupRows | None:
        """Wait for groups whose packets are in the ring; None if there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ended or len(self._settled) > 0)
            rows, self._settled = self._settled, GroupRows(self._plan)
            settled_ns = self._settled_ns
            while not (self._is_ended or self._has_written(settled_ns)):
                self._changed.wait(LOOK_S)
            return None if self._is_given_up or not len(rows) else rows

    def _has_written(self, time_ns: int) -> bool:
        state = read_state(self._run_dir / PACKET_RING_FOLDER)
        return state is not None and state.written_ns >= time_ns

    def _search_for(self, rows: GroupRows) -> None:
        """Append the packets of groups to the file, and record how far it is whole."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                account, gone_ns = self._search(rows)
            except (GscopeError, OSError) as error:
                os.ftruncate(self._descriptor, self._found.bytes)
                if self._is_given_up:
                    return
                if attempt == ATTEMPTS:
                    self._found.unsearched_groups += len(rows)
                    self._found.failure = (
                        os_reason(error) if isinstance(error, OSError) else str(error)
                    )
                continue
            self._note(rows, account, gone_ns)
            break
        self._record()

    def _note(self, rows: GroupRows, account: Mapping[str, Any], gone_ns: int) -> None:
        found = self._found
        if gone_ns != NEVER:
            found.gone_groups += rows.begun_until(gone_ns)
        for name in ("packets", "over_limit", "unwritten"):
            setattr(found, name, getattr(found, name) + int(account[name]))
        found.failure = str(account["failure"]) or found.failure
        if account["packets"] or not found.bytes:
            found.bytes = int(account["bytes"])
        # Without packets the section that a search begins is not needed.
        os.ftruncate(self._descriptor, found.bytes)

    def _search(self, rows: GroupRows) -> tuple[Mapping[str, Any], int]:
        """Read the ring; return the account of the file, and until when packets were gone."""
        from gscope.cli.render.progress import NullProgress
        from gscope.cli.rundir.record_file import RunFile
        from gscope.cli.rundir.records import RunRecord

        folder = self._run_dir / PACKET_SEARCH_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            record = RunFile(RunRecord(folder, True, self._run_dir.name, os.getpid()))
            self._session.prepared(folder, _SEGMENTS)
            interfaces, gone_ns = self._linked_segments(folder / _SEGMENTS)
            if not interfaces:
                return _NOTHING, gone_ns
            settings = replace(
                capture_settings(
                    self._program, interfaces, self._session.config, self._session.limits
                ),
                consumers=(),
                speed=None,
                packets=None,
                duration_ns=None,
                saved=self._plan.saved(
                    self._descriptor, rows.write(folder), start_bytes=self._found.bytes
                ),
            )
            supervisor = self._start(record, NullProgress(is_quiet=True))
            with self._changed:
                self._searching = supervisor
            try:
                if not self._is_given_up:
                    read_again(supervisor, self._second, settings, folder)
            finally:
                with self._changed:
                    self._searching = None
                supervisor.stop()
            capture = supervisor.outcome.capture
            return _NOTHING if capture is None else capture.saved, gone_ns
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _linked_segments(self, folder: Path) -> tuple[tuple[InterfaceSettings, ...], int]:
        """Link the segments into ``folder``, by interface; return until when packets were gone."""
        ring = self._run_dir / PACKET_RING_FOLDER
        files: dict[str, list[str]] = {}
        for segment in ring_segments(ring):
            # It may have been deleted meanwhile; the state says so.
            with suppress(FileNotFoundError):
                (folder / segment.name).hardlink_to(ring / segment.name)
                files.setdefault(segment.interface, []).append(str(folder / segment.name))
        # It can be read while it is written.
        state = next(filter(None, (read_state(ring) for _ in range(100))), None)
        interfaces = tuple(
            replace(each, files=tuple(files[each.name]), device=None, skew_ns=SKEW_NS)
            for each in self._session.interfaces
            if each.name in files
        )
        return interfaces, AT_END if state is None else state.gone_ns

    def _record(self) -> None:
        inode = os.fstat(self._descriptor).st_ino
        with suppress(OSError):
            replace_file(self._record_file, json.dumps({"inode": inode, **asdict(self._found)}))

    def _resumed(self) -> FoundPackets:
        """Return what an earlier process of the run recorded of the same file."""
        status = os.fstat(self._descriptor)
        with suppress(OSError, ValueError, TypeError, KeyError):
            value = json.loads(self._record_file.read_bytes())
            if value.pop("inode") == status.st_ino:
                found = FoundPackets(**value)
                found.bytes = min(found.bytes, status.st_size)
                return found
        return FoundPackets()


_NOTHING: Mapping[str, Any] = {
    "packets": 0,
    "bytes": 0,
    "over_limit": 0,
    "unwritten": 0,
    "failure": "",
}
