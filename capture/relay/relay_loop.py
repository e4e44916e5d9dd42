"""The relay's own thread: takes what inputs send, merges it, and writes it to the relay's log.

One thread writes. Threads of inputs pass events to it; it replies at once or not at all, so that no
input delays another. What was released is acknowledged to an input after it is in the log.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.stream_rows import extents_of
from gscope.capture.relay.input_events import (
    Connected,
    Crashed,
    Disconnected,
    Received,
    Starting,
)
from gscope.capture.relay.input_reader import InputReader
from gscope.capture.relay.input_status import InputState, InputStatus
from gscope.capture.relay.merged_stream import MergedStream
from gscope.capture.relay.origins import Origin
from gscope.capture.relay.ports import PortKey
from gscope.capture.relay.relay_state import MergeState, StateFile
from gscope.errors import RefusedInputError
from gscope.queries.streams.losses import LostRows
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Hop, Shed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gscope.capture.log.budget import AdmitAll
    from gscope.capture.log.log import StreamLog
    from gscope.capture.relay.endpoints import Endpoint
    from gscope.capture.relay.held_rows import HeldRows, Shelf
    from gscope.capture.relay.input_events import InputEvent
    from gscope.capture.relay.merged_stream import Release
    from gscope.capture.settings import RelaySettings
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.streams.messages import Message

MAX_EVENTS = 64
"""Events that wait for the relay's thread; each has the rows of one batch at most."""

WAIT_S = 0.2
"""Seconds that the relay's thread waits for events before it looks after its inputs."""

WAIT_NS = int(WAIT_S * 1e9)

LONGEST_TURN_NS = 500_000_000
"""Nanoseconds of a turn beyond which this process was busy, or stood still, and read too little."""

LAST_WORDS_S = 5.0
"""Seconds that inputs have at the end to take acknowledgements, and then to forget the relay."""


class RelayLoop:
    """The inputs of a relay, merged into its log.

    Args:
        program: the LFTAs.
        settings: the inputs.
        endpoints: where each input is served, by name.
        log: the relay's log; it has one stream for each LFTA.
        budget: the budget of the log.
        shelf: takes rows that are held.
        folder: folder for the state; it exists.
        report: called with the name of an input and a phrase when its state changes.

    Attributes:
        statuses: what is known of each input, by name.
        outlets: the LFTAs.
        readers: the thread of each input, by name.
    """

    def __init__(
        self,
        program: Program,
        settings: RelaySettings,
        endpoints: Mapping[str, Endpoint],
        log: StreamLog,
        budget: AdmitAll,
        shelf: Shelf,
        folder: Path,
        report: Callable[[str, str], None],
    ) -> None:
        self.statuses = {
            each.name: InputStatus(
                each.name,
                each.address,
                settings.timeout_ns,
                settings.absent_after_ns,
                skew_ns=each.skew_ns,
            )
            for each in settings.inputs
        }
        self.outlets = [
            Outlet(lfta, self.statuses, log, StateFile(folder / f"{lfta.name}.json"))
            for lfta in program.lftas
            if lfta.interfaces
        ]
        self._log = log
        self._budget = budget
        self._report = report
        self._events: queue.Queue[InputEvent] = queue.Queue(MAX_EVENTS)
        self._is_over = False
        self._looked_ns = time.monotonic_ns()
        self._logs = {key.input: key.log for outlet in self.outlets for key in outlet.stream.ports}
        latest = [beat.identity for beat in log.latest.values()]
        self._identities = itertools.count(max(latest, default=0) + 1)
        self._is_named = bool(settings.consumer)
        consumer = settings.consumer or f"relay-{log.identity[:16]}"
        self.readers = {
            name: InputReader(
                name, endpoint, consumer, program, shelf, self._put, is_known=name in self._logs
            )
            for name, endpoint in endpoints.items()
        }

    def run(self, stop: threading.Event, on_turn: Callable[[], None]) -> None:
        """Relay until all inputs have ended or ``stop`` is set; end the streams of the log.

        Args:
            stop: set by another thread to end.
            on_turn: called after each turn, at least every ``WAIT_S``.

        Raises:
            StreamError: the log or the state cannot be written.
            RefusedInputError: an input refuses, or is refused, at first contact.
        """
        try:
            self._relay(stop, on_turn)
        except RefusedInputError:
            if self._log.is_empty:
                # Nothing is to be resumed, so its name will not be used again.
                self._leave(on_turn)
            raise
        self._leave(on_turn)

    def _relay(self, stop: threading.Event, on_turn: Callable[[], None]) -> None:
        for reader in self.readers.values():
            reader.start()
        try:
            while not stop.is_set() and not all(outlet.has_ended for outlet in self.outlets):
                self._take_events()
                self._look()
                for outlet in self.outlets:
                    self._emit(outlet)
                on_turn()
            for outlet in self.outlets:
                while not outlet.has_ended:
                    self._release(outlet, is_last=True)
            self._settle(on_turn)
        finally:
            self._is_over = True
            for reader in self.readers.values():
                reader.stop()

    def _settle(self, on_turn: Callable[[], None]) -> None:
        """Acknowledge all that is in the log, if the inputs take it in time.

        An earlier process may have been killed after it had ended the log, but before this.
        """
        for outlet in self.outlets:
            self._acknowledge(outlet.committed)
        until_s = time.monotonic() + LAST_WORDS_S
        while time.monotonic() < until_s and not all(r.is_settled for r in self.readers.values()):
            self._take_events()
            on_turn()

    def _leave(self, on_turn: Callable[[], None]) -> None:
        """Deregister from connected inputs, unless the user has named the relay.

        They would keep rows for a name that is not used again. Agents end their captures.
        """
        if self._is_named:
            return
        leaving = [
            threading.Thread(target=leave, name=f"leave {name}", daemon=True)
            for name, reader in self.readers.items()
            for leave in (
                *(
                    [reader.deregister]
                    if reader.is_registered and self.statuses[name].state is not InputState.ENDED
                    else []
                ),
                reader.endpoint.release,
            )
        ]
        for each in leaving:
            each.start()
        until_s = time.monotonic() + LAST_WORDS_S
        while time.monotonic() < until_s and any(each.is_alive() for each in leaving):
            for each in leaving:
                each.join(WAIT_S / len(leaving))
            on_turn()

    def _put(self, event: InputEvent) -> bool:
        while not self._is_over:
            with suppress(queue.Full):
                self._events.put(event, timeout=WAIT_S)
                return True
        return False

    def _take_events(self) -> None:
        """Handle the events there are, and wait a moment for the first."""
        with suppress(queue.Empty):
            self._on_event(self._events.get(timeout=WAIT_S))
            for _ in range(MAX_EVENTS):
                self._on_event(self._events.get_nowait())

    def _on_event(self, event: InputEvent) -> None:
        status = self.statuses[event.input]
        match event:
            case Starting():
                status.on_starting()
            case Connected():
                status.on_connected()
                self._logs[event.input] = event.log
                event.reply.put(self._connect(event))
            case Received():
                self._on_messages(event)
                clocks = [m.clock_ns for _, m, _ in event.messages if isinstance(m, Heartbeat)]
                self._notify(event.input, status.on_received(max(clocks, default=None)))
                self._note_end(status)
            case Disconnected():
                if event.is_refused and event.input not in self._logs:
                    raise RefusedInputError(event.reason)
                phrase = status.on_disconnected(event.reason, is_refused=event.is_refused)
                self._notify(event.input, phrase)
                self._note_end(status)
            case Crashed():
                raise event.error

    def _connect(self, event: Connected) -> dict[str, int]:
        """Return the next message to receive of each stream of an input."""
        cursors: dict[str, int] = {}
        for outlet in self.outlets:
            streams = event.lftas.get(outlet.lfta.name, {})
            cursors |= outlet.stream.on_described(event.input, event.log, streams, event.begun)
            self._acknowledge(outlet.committed)
        return cursors

    def _on_messages(self, event: Received) -> None:
        outlets = {outlet.lfta.name: outlet for outlet in self.outlets}
        for lfta, message, rows in event.messages:
            if lfta in outlets:
                key = PortKey(event.input, event.log, message.stream)
                outlets[lfta].on_message(key, message, rows)

    def _note_end(self, status: InputStatus) -> None:
        ports = [
            port
            for outlet in self.outlets
            for key, port in outlet.stream.ports.items()
            if key.input == status.name
        ]
        if ports and all(port.is_over for port in ports):
            status.state = InputState.ENDED

    def _notify(self, name: str, phrase: str | None) -> None:
        if phrase is not None:
            self._report(name, phrase)

    def _look(self) -> None:
        """Judge the silence of inputs, and which of them are read while the shelf is full.

        An input is not silent while this process is busy or stands still, nor while its rows wait
        for space here.
        """
        before_ns, self._looked_ns = self._looked_ns, time.monotonic_ns()
        turn_ns = self._looked_ns - before_ns
        for name, status in self.statuses.items():
            if self.readers[name].is_held_back:
                status.on_unread(turn_ns)
            elif turn_ns > LONGEST_TURN_NS:
                # A part of each turn counts, so that silence is noticed by a busy process, too.
                status.on_unread(turn_ns - WAIT_NS)
            self._notify(name, status.look())
            self._notify(name, status.on_clock(self.readers[name].endpoint.clock()))
            if status.is_stuck and status.state is not InputState.ENDED:
                status.on_retried()
                self.readers[name].reconnect()
        absent = {n for n, status in self.statuses.items() if status.state is InputState.ABSENT}
        has_room = self._budget.has_room(self._log)
        holders = {key.input for outlet in self.outlets for key in outlet.stream.holders()}
        for outlet in self.outlets:
            outlet.stream.absent = absent
        for name, reader in self.readers.items():
            reader.is_needed = has_room and (not holders or name in holders)

    def _emit(self, outlet: Outlet) -> None:
        """Release what is complete, as far as the log has room."""
        while not outlet.has_ended and self._budget.has_room(self._log):
            if not self._release(outlet):
                return

    def _release(self, outlet: Outlet, *, is_last: bool = False) -> bool:
        """Release once; return whether there was anything."""
        release = outlet.release(self._identities, is_last=is_last)
        if release is None:
            return False
        self._acknowledge(release.state)
        return True

    def _acknowledge(self, state: MergeState) -> None:
        for name, log in self._logs.items():
            if cursors := state.cursors(name, log):
                self.readers[name].acknowledge(log, cursors)


class Outlet:
    """One LFTA: its merged stream, its stream in the relay's log, and its state on disk.

    Of an LFTA on several interfaces, the streams of all but the first end at once.

    Attributes:
        lfta: the LFTA.
        name: name of the stream in the log.
        stream: the merged stream.
        committed: the state that the log has.
        has_ended: whether the stream has ended.
    """

    def __init__(
        self, lfta: Lfta, inputs: Mapping[str, object], log: StreamLog, file: StateFile
    ) -> None:
        self.lfta = lfta
        self.name, *others = lfta.streams
        self._log = log
        self._file = file
        state = file.read(log.positions[self.name].end)
        latest = log.latest.get(self.name)
        promised = dict(state.bounds)
        for each in () if latest is None else latest.punctuations:
            promised[each.column] = max(each.bound, promised.get(each.column, each.bound))
        ports = tuple(port for port in state.ports if port.input in inputs)
        self.committed = MergeState(promised, ports, state.gaps, state.losses)
        self.stream = MergedStream(lfta, inputs, self.committed)
        self.has_ended = log.has_ended(self.name)
        self._origin: Origin | None = None
        log.end(each for each in others if not log.has_ended(each))

    def on_message(self, key: PortKey, message: Message, rows: HeldRows | None) -> None:
        """Hand a message to the merged stream."""
        stream, sequence = self.stream, message.sequence
        match message:
            case Batch() if rows is not None:
                stream.on_batch(key, sequence, rows)
            case Batch():
                stream.on_shed(key, sequence, message.rows, LostRows(message.extents))
            case Shed():
                lost = LostRows(message.extents, message.packets)
                stream.on_shed(key, sequence, message.tuples, lost)
            case Heartbeat():
                if message.losses is not None:
                    stream.on_losses(key, message.losses)
                stream.on_heartbeat(key, sequence, message.punctuations, message.clock_ns)
                self._origin = Origin(key.input, message)
            case EndOfStream():
                stream.on_end(key, sequence)

    def release(self, identities: itertools.count[int], *, is_last: bool) -> Release | None:
        """Write what can be released, with its cursors; return it, or None if there is nothing."""
        began_ns, began_s = time.time_ns(), time.monotonic()
        release = self.stream.take(is_last=is_last)
        if release is None:
            return None
        worked_ns = int((time.monotonic() - began_s) * 1e9)
        identity, clock_ns = next(identities), release.clock_ns
        hop = Hop(self.name, began_ns, 0, worked_ns, self._counters(release))
        before = () if self._origin is None else self._origin.hops()
        trace = (*before, hop)
        state = release.state
        beat = StreamHeartbeat(
            self.name,
            release.punctuations,
            trace,
            gaps=state.gaps,
            losses=state.losses or None,
        )
        if release.rows is not None:
            self._file.prepare(release.state, self._log.positions[self.name].end)
            extents = extents_of(release.rows, self.lfta)
            self._log.write_rows(release.rows, extents, identity, clock_ns, beat)
        else:
            self._file.store(release.state)
            if beat.punctuations and not release.is_last:
                self._log.write_heartbeat(identity, clock_ns, [beat])
        if release.is_last:
            self._log.end([self.name], identity, clock_ns, [beat] if beat.punctuations else [])
            self.has_ended = True
        self.committed = release.state
        return release

    def _counters(self, release: Release) -> tuple[tuple[str, int], ...]:
        ports = release.state.ports
        return (
            ("tuples_in_total", sum(port.rows_total for port in ports)),
            ("tuples_out_total", self._log.totals[self.name].tuples_total),
            ("late_tuples_total", sum(port.late_tuples_total for port in ports)),
        )
