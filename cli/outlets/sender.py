"""The thread that sends rows of the spool to one outlet, again until they are accepted.

It is recorded that a batch was accepted. If the run is killed before that, the resumed run sends
the same batch with the same key again, so that a receiver can recognize it: where a batch ends
depends only on where it begins, because no batch contains rows of two blocks of the spool. Like the
delivery checkpoint, the records survive the end of the process but not a loss of power.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from dataclasses import asdict, field
from typing import TYPE_CHECKING

from gscope.cli.outlets.outlet import Batch, OutletError, RowsRefused
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.whole_file import replace_file
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.outlets.outlet import Outlet
    from gscope.cli.outlets.spool import Block, Cursor, Spool

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 15.0
"""The pauses between attempts, which double from the first to the longest."""

REPORT_S = 10.0
"""The least time between two reports of refused rows, in seconds."""


@dataclass(slots=True)
class Counters:
    """What became of the rows of one outlet, since the run began.

    Attributes:
        acknowledged: the sequence number below which rows are accepted, refused or dropped.
        sent: the number of rows that the server has accepted.
        refused: the number of rows that it will never accept.
        dropped: the number of rows below ``acknowledged`` that were deleted because the spool was
            full.
        failures: the number of attempts that failed.
        outages: how often the server stopped accepting rows.
    """

    acknowledged: int = 0
    sent: int = 0
    refused: int = 0
    dropped: int = 0
    failures: int = 0
    outages: int = 0


@dataclass(slots=True)
class Sender:
    """Sends rows to one outlet in a thread of its own.

    Args:
        name: how reports call the outlet.
        identity: what distinguishes the destination from others, such as its URL.
        outlet: the connection.
        spool: where rows wait.
        run: the name of the run.
        token: a random text that no other run has.
        first_pause_s: the pause after the first failure, in seconds.

    Attributes:
        counters: what became of the rows.
        notices: sentences for the user; the reader removes them.
        failure: why the server does not accept rows; None while it does.
        accepted_s: the ``time.monotonic()`` at which rows were last accepted.

    Raises:
        OSError: the records of an earlier run cannot be read.
    """

    name: str
    identity: str
    outlet: Outlet
    spool: Spool
    run: str
    token: str
    first_pause_s: float = FIRST_PAUSE_S
    counters: Counters = field(default_factory=Counters)
    notices: deque[str] = field(default_factory=deque)
    failure: str | None = None
    accepted_s: float = field(default_factory=time.monotonic)
    _path: Path = field(init=False)
    _cursor: Cursor = field(init=False)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)
    _failed_s: float = 0.0
    _in_hand: int = 0
    _unreported: int = 0
    _next_report_s: float = 0.0

    def __post_init__(self) -> None:
        """Continue where an earlier process of this run has ended."""
        digest = hashlib.sha256(self.identity.encode()).hexdigest()[:16]
        self._path = self.spool.folder / f"{digest}.json"
        try:
            self.counters = Counters(**json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            self.counters.acknowledged = self.spool.end
            self._record()
        except (ValueError, TypeError) as error:
            message = f"invalid record {self._path}"
            raise OSError(message) from error
        counters = self.counters
        self._cursor = self.spool.add_reader(counters.acknowledged, counters.dropped)
        self._thread = threading.Thread(target=self._run, name=f"outlet {self.name}", daemon=True)

    @property
    def waiting(self) -> int:
        """Return the number of rows that are neither accepted nor refused nor dropped."""
        return self._in_hand + self.spool.end - self._cursor.next

    @property
    def dropped(self) -> int:
        """Return the number of rows that were deleted because the spool was full."""
        return self._cursor.dropped

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, also in the middle of an attempt; rows that wait stay in the spool."""
        self._stopped.set()
        with self.spool.changed:
            self.spool.changed.notify_all()
        self.outlet.close()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self.outlet.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            block = self.spool.read(self._cursor, self.outlet.MOST_ROWS, self.outlet.MOST_BYTES)
            if block is None:
                with self.spool.changed:
                    self.spool.changed.wait_for(self._has_work)
                continue
            self._settle(block)

    def _has_work(self) -> bool:
        return self._stopped.is_set() or self._cursor.next < self.spool.published

    def _settle(self, block: Block) -> None:
        """Send rows until they are accepted or refused, or the thread is to end."""
        self._in_hand = len(block.lines)
        batch, pause_s = Batch(self.run, self.token, block), self.first_pause_s
        while not self._stopped.is_set():
            try:
                self.outlet.send(batch)
            except OutletError as error:
                if self._stopped.is_set():
                    return
                self._on_failure(str(error))
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            except RowsRefused as error:
                self.counters.refused += error.rows
                self.counters.sent += self._in_hand - error.rows
                self._on_refusal(error.rows, f"of {block.query}: {error}")
            else:
                self.counters.sent += self._in_hand
            self._on_settled()
            return

    def _on_refusal(self, rows: int, what: str) -> None:
        """Note rows that are not sent; the user need not hear of each batch."""
        self._unreported += rows
        now_s = time.monotonic()
        if now_s >= self._next_report_s:
            self._next_report_s = now_s + REPORT_S
            count = f"{self._unreported:,} {'row' if self._unreported == 1 else 'rows'}"
            self.notices.append(f"{self.name}: refused {count} {what}")
            self._unreported = 0

    def _on_settled(self) -> None:
        """Record that the rows in hand are settled, and let the spool delete them."""
        self.accepted_s = time.monotonic()
        if self.failure is not None:
            self.failure = None
            seconds = self.accepted_s - self._failed_s
            self.notices.append(f"{self.name}: accepts rows again after {seconds:.1f} s")
        with self.spool.changed:
            # Rows that were dropped meanwhile are behind those in hand.
            self._in_hand = 0
            self.counters.acknowledged = self._cursor.next
            self.counters.dropped = self._cursor.dropped
        self._record()
        self.spool.acknowledge(self._cursor, self.counters.acknowledged)

    def _on_failure(self, reason: str) -> None:
        self.counters.failures += 1
        if self.failure is None:
            self.counters.outages += 1
            self._failed_s = time.monotonic()
            self.notices.append(f"{self.name}: {reason}; rows wait until it accepts them")
        self.failure = reason

    def _record(self) -> None:
        """Record how far the outlet is; on a full disk the record is out of date."""
        try:
            replace_file(self._path, json.dumps(asdict(self.counters)))
        except OSError as error:
            self.notices.append(f"{self.name}: cannot record how far it is: {os_reason(error)}")
