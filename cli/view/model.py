"""What the view knows: the last epochs of each answer, and how the run is doing.

The thread that delivers rows writes, the thread that draws reads. The lock is held for moments
only: delivery never waits for a drawing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.cli.render.progress_text import RunPhase, RunView
from gscope.cli.view.rows.history import History
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.render.outcome import Outcome
    from gscope.cli.view.rows.columns import Answer
    from gscope.queries.streams.loss_reasons import IncompleteEpochs
    from gscope.queries.streams.process_events import CaptureProgress

_MOST_NOTICES = 100


@dataclass(frozen=True, slots=True)
class LinkState:
    """One interface or input of a run.

    Attributes:
        name: its name.
        packets_per_second: how many packets it has received in the last second; None if unknown.
        lost_packets: packets that it has lost since the run began.
        idle_s: for how many seconds it has been silent; None if it is not, or that is unknown.
        state: such as ``up`` or ``down``.
        has_packets: whether it has ever received any.
    """

    name: str
    packets_per_second: float | None
    lost_packets: int
    idle_s: float | None
    state: str
    has_packets: bool = True


@dataclass(frozen=True, slots=True)
class Account:
    """Where all packets are, and what is missing from answers.

    Attributes:
        equation: the packets received and what became of them, which adds up.
        losses: phrases for what is missing; () if nothing is.
        links: the interfaces, or the inputs of a run that reads other hosts.
    """

    equation: str = ""
    losses: tuple[str, ...] = ()
    links: tuple[LinkState, ...] = ()


@dataclass(slots=True)
class RunState:
    """How a run is doing.

    Attributes:
        view: phase, progress and rate.
        account: losses and links.
        has_ended: whether everything is answered.
    """

    view: RunView
    account: Account = field(default_factory=Account)
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class WantedPackets:
    """A row whose packets the user asks for.

    Attributes:
        query: the answer.
        row: the number of the row in the answer, from 0, in the order of delivery.
        path: the file for the packets.
    """

    query: str
    row: int
    path: Path


class ViewModel:
    """The answers and the state of one run.

    Args:
        title: what is viewed, such as the name of the run.
        is_live: whether packets come from devices.

    Attributes:
        lock: held while histories are read or written.
        title: see above.
        state: how the run is doing.
        version: changes whenever there is something new to draw.
        can_save: whether packets of rows can be saved.
        wanted_packets: rows whose packets the user asks for.
    """

    def __init__(self, title: str, *, is_live: bool) -> None:
        self.lock = threading.RLock()
        self.title = title
        self.state = RunState(RunView(is_live=is_live, phase_since_s=time.monotonic()))
        self.version = 0
        self.can_save = False
        self.wanted_packets: queue.SimpleQueue[WantedPackets] = queue.SimpleQueue()
        self._histories: dict[str, History] = {}
        self._notices: deque[str] = deque(maxlen=_MOST_NOTICES)
        self._outcome: Outcome | None = None

    @property
    def histories(self) -> Sequence[History]:
        """The answers, in the order of the program."""
        return tuple(self._histories.values())

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the user, the latest last."""
        return tuple(self._notices)

    def begin(self, answer: Answer) -> None:
        """Prepare for rows of an answer."""
        with self.lock:
            self._histories[answer.query] = History(answer)

    def add(self, query: str, table: pa.Table) -> None:
        """Take rows; ``changed`` shows them."""
        with self.lock:
            self._histories[query].add(table)

    def changed(self) -> None:
        """Note that there is something new to draw."""
        self.version += 1

    def note(self, sentence: str) -> None:
        """Take a sentence for the user."""
        self._notices.append(sentence)
        self.changed()

    def on_progress(self, progress: CaptureProgress) -> None:
        """Note how far the capture is."""
        self.state.view.take(progress, time.monotonic())
        self.changed()

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        """Note what the run does."""
        self.state.view.enter(phase, detail, time.monotonic())
        self.changed()

    def on_end(self) -> None:
        """Note that everything is answered."""
        self.state.has_ended = True
        self.changed()

    def follow(self, outcome: Outcome) -> None:
        """Take ``outcome``, which others fill, as the source of incomplete epochs."""
        self._outcome = outcome

    def incomplete(self, query: str, value: int | None) -> tuple[IncompleteEpochs, ...]:
        """Return why the epoch ``value`` of ``query`` may lack packets; () if it lacks none."""
        if self._outcome is None or value is None:
            return ()
        return tuple(
            each
            for each in list(self._outcome.incomplete)
            if each.query == query
            and (each.first is None or each.first <= value)
            and (each.last is None or value <= each.last)
        )
