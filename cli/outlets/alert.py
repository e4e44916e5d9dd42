"""One alert: the keys that count for it, and the events of each epoch.

An epoch closes when a row of a later one comes, when a bound says that none of its own will come,
or at the end of the answer. Which of these it is makes no difference to the events. Only rows that
fulfil the condition to raise the alert, and those of keys that are kept in mind, become Python
objects.
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.text import ndjson_texts
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.cli.outlets.alert_columns import AlertColumns
    from gscope.queries.gsql.alerts.rule import AlertRule, Condition

_COMPARE = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NO_KEY = "{}\n"


@dataclass(slots=True)
class KeyState:
    """What is known of one key.

    Attributes:
        hot_epochs: the epochs in a row that counted for raising.
        raised_epochs: the epochs since the alert was raised, that one included; 0 if it is not.
        calm_epochs: the epochs in a row that counted for clearing.
        has_rows: whether the open epoch has a row of the key.
        is_hot: whether one of these rows counts for raising.
        is_calm: whether all of these rows count for clearing.
        value: the value of the row that counted last, otherwise of the last row.
    """

    hot_epochs: int = 0
    raised_epochs: int = 0
    calm_epochs: int = 0
    has_rows: bool = False
    is_hot: bool = False
    is_calm: bool = True
    value: float | None = None

    def forget_rows(self) -> None:
        """Begin the next epoch."""
        self.has_rows, self.is_hot, self.is_calm, self.value = False, False, True, None


class Alert:
    """Turns the rows of an answer into events.

    Args:
        rule: when the alert is raised and cleared.
        columns: the columns that it reads.
        most_keys: the most keys that it keeps in mind.
        before: what ``state`` last returned before the run was killed; {} for a new run.

    Attributes:
        rule: the same.
        ignored_keys: how often a key counted for raising in an epoch and was not kept in mind,
            because ``most_keys`` others were; in rows.
        late_rows: the number of rows of epochs that had closed, which were not judged.
    """

    def __init__(
        self, rule: AlertRule, columns: AlertColumns, most_keys: int, before: Mapping[str, Any]
    ) -> None:
        self.rule = rule
        self._columns = columns
        self._most_keys = most_keys
        # The latest epoch with rows, or the latest of those behind it that have passed in silence.
        self._latest: int | None = before.get("latest")
        self._is_closed: bool = before.get("is_closed", False)
        self._keys = {key: KeyState(*fields) for key, *fields in before.get("keys", ())}
        self.ignored_keys: int = before.get("ignored_keys", 0)
        self.late_rows: int = before.get("late_rows", 0)

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on, as JSON."""
        return {
            "latest": self._latest,
            "is_closed": self._is_closed,
            "keys": [[key, *astuple(state)] for key, state in self._keys.items()],
            "ignored_keys": self.ignored_keys,
            "late_rows": self.late_rows,
        }

    def account(self) -> dict[str, Any]:
        """Return what became of its keys and rows, since the run began."""
        return {
            "name": self.rule.name,
            "query": self.rule.query,
            "keys": len(self._keys),
            "raised_keys": sum(bool(state.raised_epochs) for state in self._keys.values()),
            "ignored_rows_total": self.ignored_keys,
            "late_rows_total": self.late_rows,
        }

    def take(self, table: pa.Table) -> list[bytes]:
        """Return the events of the epochs that close with ``table``.

        ``table`` has the next rows of the answer.
        """
        table = table.filter(pc.is_valid(table[self._columns.epoch]))
        if not table.num_rows:
            return []
        epochs = self._epochs(table)
        hot = self._holds(table, self.rule.raises)
        calm = self._holds(table, self.rule.clears) if self.rule.clears else np.zeros_like(hot)
        keys = self._keys_of(table) if self._keys or hot.any() else None
        begins = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), table.num_rows]
        events: list[bytes] = []
        for begin, end in pairwise(begins):
            epoch = int(epochs[begin])
            if self._has_closed(epoch):
                self.late_rows += end - begin
                continue
            if self._latest is not None and epoch > self._latest:
                events += self._close_below(epoch)
            self._latest, self._is_closed = epoch, False
            if keys is not None:
                self._judge(table, keys, hot, calm, begin, end)
        return events

    def advance(self, bound: int) -> list[bytes]:
        """Return the events of the epochs below ``bound``: no more rows of them will come.

        Args:
            bound: a bound of the epochs, as it is promised: negated if they fall.
        """
        # Without keys in mind no epoch has events, and the state on record may stay as it is.
        if self._latest is None or bound <= self._latest or not self._keys:
            return []
        return self._close_below(bound)

    def finish(self) -> list[bytes]:
        """Return the events of the last epoch with rows: the answer has ended."""
        return [] if self._latest is None else self._close()

    def _has_closed(self, epoch: int) -> bool:
        if self._latest is None or epoch > self._latest:
            return False
        return epoch < self._latest or self._is_closed

    def _epochs(self, table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the epoch of each row, as a number that increases."""
        epochs: np.ndarray[Any, np.dtype[np.int64]]
        epochs = table[self._columns.epoch].cast(pa.int64()).to_numpy()
        return -epochs if self._columns.falls else epochs

    def _holds(
        self, table: pa.Table, condition: Condition | None
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for each row whether it fulfils ``condition``; None is fulfilled by any."""
        if condition is None:
            return np.ones(table.num_rows, np.bool_)
        column = table[condition.column]
        number = condition.number
        kind = pa.int64() if isinstance(number, int) else pa.float64()
        holds = _COMPARE[condition.operator](column, pa.scalar(number, kind))
        found: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(holds, False).to_numpy()
        return found

    def _keys_of(self, table: pa.Table) -> pa.Array:
        """Return the key of each row as a JSON object."""
        if self._columns.keys:
            return ndjson_texts(table.select(list(self._columns.keys)))
        return pa.array([_NO_KEY] * table.num_rows)

    def _judge(
        self,
        table: pa.Table,
        keys: pa.Array,
        hot: np.ndarray[Any, np.dtype[np.bool_]],
        calm: np.ndarray[Any, np.dtype[np.bool_]],
        begin: int,
        end: int,
    ) -> None:
        """Note rows of the open epoch."""
        needed = hot[begin:end]
        if self._keys:
            needed = needed | self._is_known(keys.slice(begin, end - begin))
        places = np.flatnonzero(needed) + begin
        column = table[self._columns.value].take(pa.array(places)) if self._columns.value else None
        values = column.to_pylist() if column is not None else [None] * len(places)
        names = keys.take(pa.array(places)).to_pylist()
        for place, name, value in zip(places.tolist(), names, values, strict=True):
            state = self._keys.get(name)
            is_hot = bool(hot[place])
            if state is None:
                if not is_hot:
                    continue
                if len(self._keys) >= self._most_keys:
                    self.ignored_keys += 1
                    continue
                state = self._keys[name] = KeyState()
            if is_hot or not state.is_hot:
                state.value = value
            state.has_rows = True
            state.is_hot |= is_hot
            state.is_calm &= bool(calm[place])

    def _is_known(self, keys: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for each of ``keys`` whether it is kept in mind."""
        if len(keys) <= len(self._keys):
            return np.array([key in self._keys for key in keys.to_pylist()], np.bool_)
        known = pa.array(list(self._keys), pa.string())
        found: np.ndarray[Any, np.dtype[np.bool_]] = pc.is_in(keys, value_set=known).to_numpy(
            zero_copy_only=False
        )
        return found

    def _close_below(self, later: int) -> list[bytes]:
        """Return the events of the open epoch, and of those without rows before ``later``."""
        assert self._latest is not None
        events = self._close()
        step = self._columns.step
        if step:
            count = (later - self._latest - 1) // step
            events += self._silent(self._latest, count)
            self._latest += count * step
        return events

    def _close(self) -> list[bytes]:
        """Return the events of the latest epoch, unless it has closed."""
        assert self._latest is not None
        events = [] if self._is_closed else list(self._judged(self._latest))
        self._is_closed = True
        return events

    def _judged(self, epoch: int) -> Iterator[bytes]:
        """Yield the events of ``epoch``, which is complete."""
        for key, state in list(self._keys.items()):
            if not state.raised_epochs:
                if not state.is_hot:
                    del self._keys[key]
                    continue
                state.hot_epochs += 1
                if state.hot_epochs >= self.rule.raise_epochs:
                    state.raised_epochs = 1
                    yield self._event("raised", key, epoch, state.value, state.hot_epochs)
            else:
                state.raised_epochs += 1
                is_calm = state.is_calm if state.has_rows else self.rule.silence_clears
                state.calm_epochs = state.calm_epochs + 1 if is_calm else 0
                if state.calm_epochs >= self.rule.clear_epochs:
                    del self._keys[key]
                    yield self._event("cleared", key, epoch, state.value, state.raised_epochs)
                    continue
            state.forget_rows()

    def _silent(self, epoch: int, count: int) -> list[bytes]:
        """Return the events of the ``count`` epochs behind ``epoch``, which have no rows."""
        if not count:
            return []
        cleared: list[tuple[int, bytes]] = []
        for key, state in list(self._keys.items()):
            if not state.raised_epochs:
                del self._keys[key]
                continue
            wanted = self.rule.clear_epochs - state.calm_epochs
            if self.rule.silence_clears and wanted <= count:
                del self._keys[key]
                at = epoch + wanted * self._columns.step
                lasted = state.raised_epochs + wanted
                cleared.append((at, self._event("cleared", key, at, None, lasted)))
                continue
            state.raised_epochs += count
            state.calm_epochs = state.calm_epochs + count if self.rule.silence_clears else 0
        cleared.sort(key=lambda event: event[0])
        return [event for _, event in cleared]

    def _event(self, event: str, key: str, epoch: int, value: float | None, epochs: int) -> bytes:
        """Return an event as a line of NDJSON."""
        shown = value if value is None or math.isfinite(value) else None
        before = f'{{"alert": {json.dumps(self.rule.name)}, "event": "{event}"'
        inner = key[1:-2]
        parts = [before, *([inner] if inner else []), f'"epoch": {self._shown(epoch)}']
        line = ", ".join([*parts, f'"value": {json.dumps(shown)}', f'"epochs": {epochs}'])
        return line.encode() + b"}\n"

    def _shown(self, epoch: int) -> str:
        """Return an epoch as NDJSON shows it in rows."""
        position = -epoch if self._columns.falls else epoch
        kind = pa.timestamp("ns") if self._columns.is_time else pa.int64()
        (line,) = ndjson_texts(pa.table({"e": pa.array([position], kind)})).to_pylist()
        return str(line).partition(": ")[2].removesuffix("}\n")
