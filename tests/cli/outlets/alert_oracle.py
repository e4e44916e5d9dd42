"""What an alert reports, by a plain loop over the rows of an answer; shares no code with gscope."""

from __future__ import annotations

import operator
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Expected:
    """An alert, and the events that it has.

    Attributes:
        name, query, raises, raise_epochs, clears, clear_epochs, silence_clears: as in its text;
            conditions are an operator and a number, or None.
        epoch, keys, value: columns.
        step: the difference between epochs; 0 if only those of the answer exist.
    """

    name: str
    query: str
    epoch: str
    keys: tuple[str, ...]
    value: str
    raises: tuple[str, float] | None
    raise_epochs: int
    clears: tuple[str, float] | None
    clear_epochs: int
    silence_clears: bool
    step: int

    @property
    def text(self) -> str:
        """The alert as a user writes it."""
        hot = f"{self.value} {self.raises[0]} {self.raises[1]}" if self.raises else "any"
        calm = [f"{self.value} {self.clears[0]} {self.clears[1]}"] if self.clears else []
        calm += ["silent"] if self.silence_clears else []
        return (
            f"{self.name} = {self.query}: raise {hot} for {self.raise_epochs} epochs, clear"
            f" {' or '.join(calm)} for {self.clear_epochs} epochs"
        )

    def events(
        self, rows: Iterable[Mapping[str, Any]], until: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the events in the order of their epochs, those of one epoch sorted.

        The last epoch is that of the last row, or the last one below ``until``, where the input
        goes on without rows.
        """
        values: dict[tuple[Any, ...], dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            key = tuple(row[name] for name in self.keys)
            values[key][row[self.epoch]].append(row.get(self.value))
        times = sorted({time for each in values.values() for time in each})
        if self.step and times:
            # Nothing can happen any more once it was silent for as long as an alert counts.
            quiet = times[-1] + self.clear_epochs * self.step + 1
            times = list(range(times[0], max(times[-1] + 1, min(until or 0, quiet)), self.step))
        found = []
        for key, each in values.items():
            for time, event, value, epochs in self._of_key([each.get(time, []) for time in times]):
                shown = {
                    "alert": self.name,
                    "event": event,
                    **dict(zip(self.keys, key, strict=True)),
                }
                found.append(shown | {"epoch": times[time], "value": value, "epochs": epochs})
        return ordered(found)

    def _of_key(self, history: list[list[Any]]) -> list[tuple[int, str, Any, int]]:
        events = []
        raised = None
        hot = calm = 0
        for time, values in enumerate(history):
            if raised is None:
                those = [value for value in values if self._is_hot(value)]
                hot = hot + 1 if those else 0
                if hot == self.raise_epochs:
                    raised, calm = time, 0
                    events.append((time, "raised", those[-1] if self.value else None, hot))
                continue
            is_calm = all(map(self._is_calm, values)) if values else self.silence_clears
            calm = calm + 1 if is_calm else 0
            if calm == self.clear_epochs:
                events.append((time, "cleared", values[-1] if values else None, time - raised + 1))
                raised, hot = None, 0
        return events

    def _is_hot(self, value: Any) -> bool:
        if self.raises is None:
            return True
        return value is not None and bool(_HOLDS[self.raises[0]](value, self.raises[1]))

    def _is_calm(self, value: Any) -> bool:
        if self.clears is None or value is None:
            return False
        return bool(_HOLDS[self.clears[0]](value, self.clears[1]))


def ordered(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events with those of one epoch, which stand together, in an order of their own."""
    return sorted(events, key=lambda event: (event["epoch"], str(sorted(event.items(), key=str))))
