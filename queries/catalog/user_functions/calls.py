"""Calls of user code: values in, checked values out, and one sentence about a failure.

Callables here are pickled as their file's text: another process executes it at its first call.
"""

from __future__ import annotations

import numbers
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from gscope.errors import UserCodeError
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.user_functions.files import described, load_module, place_of
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.catalog.user import AggregateFacts, CallFacts, ScalarFacts
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.expressions.expressions import Value

_LONGEST_SHOWN = 40
_WIDTHS = {GsqlType.IP: 128, GsqlType.MAC: 48}
_WRONG = object()


class UserScalar:
    """The meaning of a scalar user function.

    Attributes:
        file: the file that declares it.
        attribute: the function's name in its module.
        facts: its declared facts.
    """

    def __init__(self, file: UserFile, attribute: str, facts: ScalarFacts) -> None:
        self.file = file
        self.attribute = attribute
        self.facts = facts
        self._function: Any = None

    def __getstate__(self) -> tuple[UserFile, str, ScalarFacts]:
        return self.file, self.attribute, self.facts

    def __setstate__(self, state: tuple[UserFile, str, ScalarFacts]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # the state is what the constructor takes

    @property
    def function(self) -> Any:
        """The plain function of the file."""
        if self._function is None:
            self._function = getattr(load_module(self.file), self.attribute)
        return self._function

    def __call__(self, *values: Value) -> Value:
        """Return the function's value.

        Raises:
            UserCodeError: the function raised, or returned a value that it was not declared to
                return.
        """
        try:
            result = self.function(*values)
        except Exception as error:
            raise failure(self.facts.name, values, self.file, error) from error
        return checked(result, self.facts, values, self.file)


class UserFold:
    """The meaning of a user aggregate: the values of a group → its result."""

    def __init__(self, file: UserFile, attribute: str, facts: AggregateFacts) -> None:
        self.file = file
        self.attribute = attribute
        self.facts = facts

    def __call__(self, values: Iterable[Any]) -> Value:
        """Return the aggregate of ``values``, read once; NULL if all of them are NULL.

        Raises:
            UserCodeError: a method raised, or returned a value that it was not declared to return.
        """
        present = (value for value in values if value is not None)
        first = next(present, None)
        return None if first is None else self.over_parts([chain([first], present)])

    def over_parts(self, parts: Iterable[Iterable[Any]]) -> Value:
        """Return the aggregate of several parts of a group, merging their states into the first.

        Raises:
            UserCodeError: a method raised, or returned a value that it was not declared to return.
        """
        states: list[Any] = []
        seen: tuple[Any, ...] = ()
        try:
            kind = getattr(load_module(self.file), self.attribute)
            for part in parts:
                state = kind()
                states.append(state)
                state.initialize()
                for value in part:
                    seen = (value,)
                    state.iterate(value)
            seen = ()
            for other in states[1:]:
                states[0].merge(other)
            result = states[0].output()
        except Exception as error:
            raise failure(self.facts.name, seen, self.file, error) from error
        finally:
            for state in states:
                # the earlier failure is the one to report
                with suppress(Exception):
                    getattr(state, "destroy", _nothing)()
        return checked(result, self.facts, (), self.file)


def checked(
    result: Any,
    facts: ScalarFacts | AggregateFacts | CallFacts,
    values: Sequence[Any],
    file: UserFile,
) -> Value:
    """Return ``result`` as a value of the declared type.

    Raises:
        UserCodeError: the result has another type.
    """
    if result is None and facts.is_nullable:
        return None
    value = _as(result, facts.returns)
    if value is not _WRONG:
        return value  # type: ignore[no-any-return]
    remedy = "; declare nullable=True" if result is None else ""
    message = (
        f"{_call(facts.name, values)} of {file.path} returned {_shown(result)}, expected "
        f"{facts.returns.value}{remedy}"
    )
    raise UserCodeError(message)


def failure(
    name: str, values: Sequence[Any], file: UserFile, error: BaseException
) -> UserCodeError:
    """Return the error for an exception that user code raised."""
    where = place_of(error, file.path)
    return UserCodeError(f"{_call(name, values)} failed at {where}: {described(error)}")


def _as(result: Any, kind: GsqlType) -> Any:
    """Return ``result`` as a value of ``kind``, ``_WRONG`` if it has another type."""
    match kind:
        case GsqlType.BOOL:
            return result if isinstance(result, bool) else _WRONG
        case GsqlType.STRING if isinstance(result, str):
            return result.encode()
        case GsqlType.STRING:
            return result if isinstance(result, bytes) else _WRONG
        case GsqlType.FLOAT:
            return float(result) if isinstance(result, numbers.Real) else _WRONG
        case GsqlType.IP | GsqlType.MAC:
            fits = isinstance(result, numbers.Integral) and 0 <= int(result) < 1 << _WIDTHS[kind]
            return int(result) if fits else _WRONG
        case _:
            return wrap(int(result)) if isinstance(result, numbers.Integral) else _WRONG


def _call(name: str, values: Sequence[Any]) -> str:
    return f"{name}({', '.join(_shown(value) for value in values)})"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _nothing() -> None:
    """Do nothing, in place of a missing ``destroy``."""
