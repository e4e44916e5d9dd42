"""Demands for heartbeats: one at a time for each stream, however many operators wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.steps.needed_bounds import needed_promises
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gscope.engine.operators.base import Operator
    from gscope.queries.streams.messages import Message


class Asker:
    """Sends the capture daemon demands for the bounds that operators wait for; for one thread.

    A stream that was asked is not asked again before its next heartbeat; after that, the operators
    may need another bound. A restarted daemon sends heartbeats at once.

    Args:
        operators: the operators, by query.
        punctuate: sends a demand; see ``LogClient.punctuate``.

    Attributes:
        asked_total: the number of demands so far, one for each stream asked.
    """

    def __init__(
        self,
        operators: Mapping[str, Operator],
        punctuate: Callable[[Mapping[str, Mapping[str, int]]], None],
    ) -> None:
        self.asked_total = 0
        self._operators = operators
        self._punctuate = punctuate
        self._unanswered: set[str] = set()

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Note the heartbeats that answer demands."""
        self._unanswered -= {each.stream for each in messages if isinstance(each, Heartbeat)}

    def ask(self) -> None:
        """Ask for the bounds that operators wait for, except streams that have not answered."""
        demands = {
            stream: promises
            for stream, promises in needed_promises(self._operators).items()
            if stream not in self._unanswered
        }
        if demands:
            self._unanswered |= set(demands)
            self.asked_total += len(demands)
            self._punctuate(demands)
