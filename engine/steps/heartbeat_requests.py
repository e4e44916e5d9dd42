"""Asking for heartbeats: one question a stream at a time, however many operators wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.steps.needed_bounds import needed_promises
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gscope.engine.operators.base import Operator
    from gscope.queries.streams.messages import Message


class Asker:
    """Asks the capture daemon for what operators wait for; for one thread.

    A stream that was asked is not asked again before it has beaten: then what is wanted by now is another question.
    A daemon that was started anew beats at once.

    Args:
        operators: by query.
        punctuate: asks; see ``LogClient.punctuate``.

    Attributes:
        asked_total: questions so far, one for each stream asked.
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
        """Note answers."""
        self._unanswered -= {each.stream for each in messages if isinstance(each, Heartbeat)}

    def ask(self) -> None:
        """Ask for what is waited for now, if nobody was asked already."""
        questions = {
            stream: promises
            for stream, promises in needed_promises(self._operators).items()
            if stream not in self._unanswered
        }
        if questions:
            self._unanswered |= set(questions)
            self.asked_total += len(questions)
            self._punctuate(questions)
