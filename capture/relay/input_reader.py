"""Reads one input: connects, compares LFTAs, follows the log and pulls the rows of its batches.

A connection that breaks is not an error: the reader connects again, and continues where the relay
is. What the input sends is checked here, before the relay's thread sees it.
"""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.log.description import ensure_same_lftas
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.remote.connection import CALL_S
from gscope.capture.log.stream_rows import conformed, extents_of
from gscope.capture.relay.held_rows import HeldRows
from gscope.capture.relay.input_events import (
    Connected,
    Crashed,
    Disconnected,
    Received,
    Starting,
)
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.int64 import MAX_INT, MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Shed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.log.description import LogDescription
    from gscope.capture.log.remote.address import LogAddress
    from gscope.capture.log.remote.client import Subscription
    from gscope.capture.relay.endpoints import Endpoint
    from gscope.capture.relay.held_rows import Shelf
    from gscope.capture.relay.input_events import InputEvent
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.losses import LostRows
    from gscope.queries.streams.messages import Message

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
"""Seconds between attempts to connect, which double."""

WAIT_S = 0.2
"""Seconds between checks whether to go on, where a thread waits for the relay."""

ENDED_S = 1.0
"""Seconds between checks whether an input that has ended has begun a new log."""

MOST_PROMISES = 1000

MOST_LETTERS = 1000
"""Limit of the length of a reported reason, which may quote what the input has sent."""

ADMITTED_BYTES = 256 << 20
"""Size of a batch that is received even if the shelf has less room."""


class InputReader:
    """The thread that reads one input, and the one that acknowledges to it.

    Args:
        name: name of the input.
        endpoint: where its log is served.
        consumer: name under which the relay acknowledges.
        program: what the relay runs.
        shelf: takes the rows of batches.
        put: takes events; blocks while the relay is behind, and returns False once it ends.
        is_known: whether rows of it were received before.

    Attributes:
        is_needed: whether the input is read even while the shelf is full.
        is_held_back: whether rows of the input wait there until the shelf has space.
        is_registered: whether the input has registered the relay, and was there when it last tried.
        received_bytes: bytes of rows received.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        consumer: str,
        program: Program,
        shelf: Shelf,
        put: Callable[[InputEvent], bool],
        *,
        is_known: bool = False,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.address = endpoint.address
        self._is_known = is_known
        self._located: LogAddress | None = None
        self.is_needed = True
        self.is_held_back = False
        self.is_registered = False
        self.received_bytes = 0
        self._consumer = consumer
        self._program = program
        self._shelf = shelf
        self._put = put
        self._is_stopped = threading.Event()
        self._is_given_up = False
        self._subscription: Subscription | None = None
        self._acknowledger = _Acknowledger(self.reconnect)
        self._thread = threading.Thread(target=self._run, name=f"input {name}", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()
        self.endpoint.start()

    def acknowledge(self, log: str, cursors: Mapping[str, int]) -> None:
        """Report, soon, that the relay needs no message below ``cursors``; never blocks."""
        self._acknowledger.put(log, cursors)

    @property
    def is_settled(self) -> bool:
        """Whether the input has taken everything that was to be acknowledged."""
        return self._acknowledger.is_settled

    def stop(self) -> None:
        """End reading; may be called twice."""
        self._is_stopped.set()
        if self._subscription is not None:
            self._subscription.cancel()
        self._acknowledger.stop()
        self.endpoint.stop()

    def deregister(self) -> None:
        """Let the input forget the relay, which will read no more; call ``stop`` before.

        An input that does not answer remembers it.
        """
        self._thread.join(CALL_S)
        if self._thread.is_alive():
            # It could register the relay again.
            return
        located = self._located
        if located is not None:
            with suppress(StreamError), RemoteLog(located, self._consumer) as log:
                log.describe()
                log.deregister()

    def reconnect(self) -> None:
        """Give up the current connection, over which too little has come for too long."""
        self._is_given_up = True
        if self._subscription is not None:
            self._subscription.cancel()

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:  # the relay's thread raises it
            self._put(Crashed(self.name, error))

    def _read(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_stopped.is_set():
            try:
                located = self.endpoint.locate(
                    self._is_stopped,
                    is_known=self._is_known,
                    on_starting=lambda: self._put(Starting(self.name)),
                )
                if located is None:
                    # An agent remembers that it has served everything.
                    self._put(Disconnected(self.name, f"{self.address} has ended", False))
                    return
                self._located = located
                with RemoteLog(located, self._consumer) as log:
                    if self._follow(log):
                        pause_s = FIRST_PAUSE_S
                problem = Disconnected(self.name, f"{self.address} closed its log", False)
            except StreamError as error:
                is_refused = not isinstance(error, DisconnectedError)
                problem = Disconnected(self.name, str(error)[:MOST_LETTERS], is_refused)
            if not self._put(problem):
                return
            # One that was refused behind ``describe`` is still registered.
            self.is_registered = self.is_registered and problem.is_refused
            self._is_stopped.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _follow(self, log: RemoteLog) -> bool:
        """Pass on what the input sends, until it ends; return whether there was anything.

        Raises:
            StreamError: the input refused, or sent something invalid.
            DisconnectedError: it does not answer any more.
        """
        self._is_given_up = False
        was_registered = self.is_registered
        # The input knows the relay before its reply is here, and the relay may end meanwhile.
        self.is_registered = True
        try:
            described = log.describe()
        except StreamError:
            self.is_registered = was_registered
            raise
        ensure_same_lftas(self._program, described, str(self.address))
        streams = _streams(described, self._program)
        reply: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        begun = {each.name: each.begun for each in described.streams}
        if not self._put(Connected(self.name, described.log, streams, reply, begun)):
            return False
        cursors = self._answer(reply)
        if cursors is None:
            return False
        self._is_known = True
        lfta_of = {stream: lfta for lfta, found in streams.items() for stream in found}
        open_streams = set(cursors)
        has_received = False
        with self._acknowledger.sending(log, described.log):
            self._subscription = log.subscribe(cursors)
            if self._is_stopped.is_set() or self._is_given_up:
                # The request to stop may have come before there was a subscription to cancel.
                return False
            for messages in self._subscription:
                has_received = True
                if not self._pass_on(log, described.log, messages, lfta_of):
                    return True
                open_streams -= {m.stream for m in messages if isinstance(m, EndOfStream)}
            # An input that has ended waits until all is acknowledged; then another may follow it.
            is_same = not open_streams or self._has_ended(described)
            while is_same and not self._is_stopped.wait(ENDED_S):
                is_same = log.describe().log == described.log
        return has_received

    def _has_ended(self, described: LogDescription) -> bool:
        """Return whether all streams that were to be read had ended when they were described."""
        names = {name for lfta in self._program.lftas for name in _names(described, lfta.name)}
        return all(stream.has_ended for stream in described.streams if stream.name in names)

    def _answer(self, reply: queue.SimpleQueue[dict[str, int]]) -> dict[str, int] | None:
        while not self._is_stopped.is_set():
            with suppress(queue.Empty):
                return reply.get(timeout=WAIT_S)
        return None

    def _pass_on(
        self,
        log: RemoteLog,
        identity: str,
        messages: Sequence[Message],
        lfta_of: Mapping[str, str],
    ) -> bool:
        """Pull the rows of batches, and pass the messages on; return False if the relay ends."""
        passed: list[tuple[str, Message, HeldRows | None]] = []
        for message in messages:
            lfta = lfta_of.get(message.stream)
            if lfta is None:
                problem = f"{self.address} sent an unknown stream {message.stream!r:.100}"
                raise StreamError(problem)
            self._check(message, lfta)
            if not isinstance(message, Batch):
                passed.append((lfta, message, None))
                continue
            if not self._await_space():
                return False
            passed.append((lfta, message, self._rows(log, lfta, message)))
            # A batch at a time: all rows that this thread holds for itself are those of one.
            if not self._put(Received(self.name, identity, tuple(passed))):
                return False
            passed = []
        return not passed or self._put(Received(self.name, identity, tuple(passed)))

    def _rows(self, log: RemoteLog, name: str, batch: Batch) -> HeldRows | None:
        """Return the rows of a batch; None if the input no longer has them."""
        lfta = self._program.lfta(name)
        most_bytes = max(self._shelf.limit_bytes, ADMITTED_BYTES)
        table = log.pull(batch.stream, batch.sequence, batch.size_bytes, most_bytes)
        if table is None:
            return None
        if table.num_rows != batch.rows or not table.num_rows:
            problem = (
                f"{self.address} sent {table.num_rows} rows of batch {batch.sequence} of "
                f"{batch.stream}, expected {batch.rows}"
            )
            raise StreamError(problem)
        self.received_bytes += table.nbytes
        rows = conformed(table, lfta)
        return HeldRows(self._shelf, rows, extents_of(rows, lfta))

    def _check(self, message: Message, lfta: str) -> None:
        """Refuse a message that no daemon writes: what it says is written to the relay's own log.

        Raises:
            StreamError: no daemon writes it.
        """
        lost: list[Batch | Shed | LostRows] = []
        match message:
            case Heartbeat():
                self._check_promises(message)
                lost += () if message.losses is None else message.losses.rows
            case Batch():
                lost.append(message)
                if not 0 <= message.rows <= MAX_INT:
                    problem = f"{self.address} sent a batch of {message.rows} rows"
                    raise StreamError(problem)
            case Shed():
                lost.append(message)
        columns = {column.name for column in self._program.lfta(lfta).schema.temporal}
        if any(extent.column not in columns for each in lost for extent in each.extents):
            problem = f"{self.address} sent extents of unknown columns of {message.stream!r:.100}"
            raise StreamError(problem)

    def _check_promises(self, heartbeat: Heartbeat) -> None:
        """Refuse a heartbeat whose numbers exceed 64 bits, or that promises too much.

        Raises:
            StreamError: it does.
        """
        numbers = [heartbeat.clock_ns, *(each.bound for each in heartbeat.punctuations)]
        is_within = all(MIN_TIME_NS < number <= MAX_TIME_NS for number in numbers)
        if not is_within or len(numbers) > MOST_PROMISES:
            problem = f"{self.address} sent an invalid heartbeat of {heartbeat.stream!r:.100}"
            raise StreamError(problem)

    def _await_space(self) -> bool:
        """Wait while the shelf is full, unless others wait for this input; return False to end."""
        while self._shelf.is_full and not self.is_needed:
            self.is_held_back = True
            if self._is_stopped.wait(WAIT_S):
                return False
        self.is_held_back = False
        return not self._is_stopped.is_set()


def _streams(described: LogDescription, program: Program) -> dict[str, dict[str, int]]:
    """Return the streams of each LFTA of ``program``, with the first message to read of each.

    What was acknowledged under the relay's name, perhaps by an earlier relay, is not read again.
    """
    first = {each.name: max(each.base, each.acknowledged) for each in described.streams}
    found: dict[str, dict[str, int]] = {}
    for lfta in program.lftas:
        names = _names(described, lfta.name)
        found[lfta.name] = {name: first[name] for name in names if name in first}
    return found


def _names(described: LogDescription, lfta: str) -> tuple[str, ...]:
    served = described.lfta(lfta)
    return () if served is None else served.streams


class _Acknowledger:
    """Sends the latest cursors on a thread of its own, so that no input delays the relay.

    Args:
        on_lost: called when cursors were not received, which another connection is to send again.
    """

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._changed = threading.Condition()
        self._wanted: tuple[str, dict[str, int]] | None = None
        self._sent: tuple[str, dict[str, int]] | None = None
        self._log: tuple[RemoteLog, str] | None = None
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def put(self, log: str, cursors: Mapping[str, int]) -> None:
        """Send cursors into the log with the identity ``log``."""
        with self._changed:
            before = self._wanted[1] if self._wanted and self._wanted[0] == log else {}
            self._wanted = log, {**before, **cursors}
            self._changed.notify_all()

    @property
    def is_settled(self) -> bool:
        """Whether everything was sent, and received."""
        with self._changed:
            return self._wanted == self._sent

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def sending(self, log: RemoteLog, identity: str) -> _Sending:
        """Return a context in which cursors are sent over ``log``."""
        return _Sending(self, log, identity)

    def connect(self, log: RemoteLog, identity: str) -> None:
        """Send over this connection from now on, also what may have been lost before."""
        with self._changed:
            self._log, self._sent = (log, identity), None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="acknowledge", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def disconnect(self) -> None:
        """Send nothing until ``connect``."""
        with self._changed:
            self._log = None
            self._changed.notify_all()

    def _has(self, log: RemoteLog) -> bool:
        return self._log is not None and self._log[0] is log

    def _is_due(self) -> bool:
        return (
            self._log is not None
            and self._wanted is not None
            and self._wanted[0] == self._log[1]
            and self._wanted != self._sent
        )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped or self._is_due())
                if self._is_stopped:
                    return
                assert self._log is not None
                assert self._wanted is not None
                log, wanted = self._log[0], self._wanted
            try:
                log.acknowledge(wanted[1])
                is_lost = False
            except StreamError:
                is_lost = True
            with self._changed:
                is_current = self._has(log)
                if not is_lost:
                    self._sent = wanted
                elif is_current:
                    self._log = None
                self._changed.notify_all()
            if is_lost and is_current:
                # Messages may keep arriving over a connection that has lost only acknowledgements.
                self._on_lost()


class _Sending:
    """A context in which an acknowledger has a connection."""

    def __init__(self, acknowledger: _Acknowledger, log: RemoteLog, identity: str) -> None:
        self._acknowledger = acknowledger
        self._log = log
        self._identity = identity

    def __enter__(self) -> None:
        self._acknowledger.connect(self._log, self._identity)

    def __exit__(self, *_: object) -> None:
        self._acknowledger.disconnect()
