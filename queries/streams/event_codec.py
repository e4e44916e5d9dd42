"""Events of processes as lines: one JSON object each; dataclasses as plain values of JSON.

The kind of the event is in ``event``; fields that have their default are left out.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import IO, TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from gscope.errors import StreamError

if TYPE_CHECKING:
    from gscope.queries.streams.process_events import ProcessEvent


class EventWriter:
    """Writes events as lines; may be used from several threads.

    Args:
        file: the standard output of the process.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._lock = threading.Lock()

    def send(self, event: ProcessEvent) -> None:
        """Write one event; a supervisor that is gone is noticed when its pipe closes, not here."""
        line = encode(event)
        with self._lock, suppress(BrokenPipeError, ValueError):
            self._file.write(line + "\n")
            self._file.flush()


def encode(event: ProcessEvent) -> str:
    """Return the line of an event, without its end."""
    return json.dumps({"event": event.kind, **to_plain(event)})


def decode(line: bytes, events: tuple[type[ProcessEvent], ...]) -> ProcessEvent | None:
    """Return the event in a line; None for another line, such as a library may print.

    Args:
        line: with or without its end.
        events: the classes to choose from: ``CAPTURE_EVENTS`` or ``JOB_EVENTS``.

    Raises:
        StreamError: the line has the kind of an event, but not its fields.
    """
    try:
        value = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    kind = value.pop("event", None)
    for event in events:
        if event.kind == kind:
            try:
                return from_plain(event, value)  # type: ignore[no-any-return]
            except TypeError as error:
                message = f"invalid event {kind!r}: {error}"
                raise StreamError(message) from error
    return None


def to_plain(value: Any) -> Any:
    """Return a dataclass as a mapping without default values, other values as they are."""
    if isinstance(value, tuple):
        return [to_plain(each) for each in value]
    if not is_dataclass(value):
        return value
    values = {each: getattr(value, each.name) for each in fields(value)}
    return {
        each.name: to_plain(found) for each, found in values.items() if found != _default_of(each)
    }


def _default_of(each: Any) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def from_plain(kind: type, value: Any) -> Any:
    """Return a dataclass made of a mapping, as ``to_plain`` returns one.

    Raises:
        TypeError: the mapping lacks a field, or has one that is unknown or of another type.
    """
    hints = _hints(kind)
    if unknown := value.keys() - hints.keys():
        message = f"unknown field {min(unknown)!r}"
        raise TypeError(message)
    required = (each.name for each in fields(kind) if _default_of(each) is MISSING)
    for name in required:
        if name not in value:
            message = f"missing field {name!r}"
            raise TypeError(message)
    return kind(**{name: _checked(name, hints[name], each) for name, each in value.items()})


def _checked(name: str, hint: Any, value: Any) -> Any:
    """Return a value of JSON as one of the type ``hint``.

    Raises:
        TypeError: it is none.
    """
    if hint is Any:
        return value
    if isinstance(hint, UnionType):
        options = get_args(hint)
        return None if value is None else _checked(name, options[0], value)
    arguments = get_args(hint)
    if get_origin(hint) is dict and isinstance(value, dict):
        return {key: _checked(name, arguments[1], each) for key, each in value.items()}
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_checked(name, arguments[0], each) for each in value)
    if is_dataclass(hint) and isinstance(value, dict):
        return from_plain(hint, value)  # type: ignore[arg-type]
    accepted: Any = (int, float) if hint is float else hint
    is_plain = isinstance(hint, type) and get_origin(hint) is None
    if is_plain and isinstance(value, accepted) and isinstance(value, bool) == (hint is bool):
        return value
    message = f"invalid field {name!r}: expected {getattr(hint, '__name__', hint)}, got {value!r}"
    raise TypeError(message)
