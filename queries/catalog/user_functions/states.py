"""States of the sampling operator that user code declares: begun, called, saved and restored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gscope.errors import UserCodeError
from gscope.queries.catalog.user_functions.calls import checked, failure
from gscope.queries.catalog.user_functions.files import load_module
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.catalog.user import StateFacts
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.expressions.expressions import Value


class UserState:
    """A class of states in a file of user code.

    Attributes:
        file: the file that declares it.
        attribute: the name of the class in its module.
        facts: its declared facts.
    """

    def __init__(self, file: UserFile, attribute: str, facts: StateFacts) -> None:
        self.file = file
        self.attribute = attribute
        self.facts = facts

    def begin(self, before: object | None) -> object:
        """Return the state of a supergroup, made from that of the window before if there is one.

        ``initialize`` gets a copy of that as ``restore`` makes it, whether it was saved or not, so
        that answers do not depend on where a step ends.

        Raises:
            UserCodeError: ``initialize`` raised, or the state before cannot be saved.
        """
        copied = None if before is None else self.restore(self.save(before))
        return self._tried("initialize", (copied,), self._new())

    def function(self, name: str) -> Callable[..., Value]:
        """Return the function that queries call ``name``: a state and values to its result.

        It raises UserCodeError if the method raises, or returns a value that it was not declared to
        return.
        """
        attribute, facts = next(each for each in self.facts.calls if each[1].name == name)
        casts = [_CASTS.get(kind, int) for kind in facts.parameters]

        def called(state: object, *values: Any) -> Value:
            plain = [cast(value) for cast, value in zip(casts, values, strict=True)]
            try:
                result = getattr(state, attribute)(*plain)
            except Exception as error:
                raise failure(name, plain, self.file, error) from error
            return checked(result, facts, plain, self.file)

        return called

    def finish(self, state: object, live: int) -> None:
        """Pass the number of groups at the end of a window to its state.

        Raises:
            UserCodeError: ``final`` raised.
        """
        if hasattr(state, "final"):
            self._tried("final", (live,), state)

    def save(self, state: object) -> str:
        """Return what a state keeps, as JSON.

        Raises:
            UserCodeError: it keeps a value that JSON does not give back as it was.
        """
        try:
            kept = vars(state)
            saved = json.dumps(kept)
            odd = _changed(kept, json.loads(saved), "self")
        except (TypeError, ValueError, RecursionError) as error:
            odd = str(error)
        if odd is None:
            return saved
        message = (
            f"the state {self.facts.name} of {self.file.path} cannot be kept: {odd}; "
            "expected numbers, texts, lists, and dictionaries whose keys are texts"
        )
        raise UserCodeError(message)

    def restore(self, saved: str) -> object:
        """Return the state that ``save`` described."""
        state = self._new()
        vars(state).update(json.loads(saved))
        return state

    def _new(self) -> Any:
        kind = getattr(load_module(self.file), self.attribute)
        return kind.__new__(kind)

    def _tried(self, method: str, values: Sequence[Any], state: object) -> object:
        try:
            getattr(state, method)(*values)
        except Exception as error:
            name = f"{self.facts.name}.{method}"
            raise failure(name, values, self.file, error) from error
        return state


def _changed(value: object, restored: object, name: str) -> str | None:
    """Return which part of a value JSON has not given back as it was; None if it has."""
    if type(value) is not type(restored):
        return f"{name} is a {type(value).__name__}"
    if isinstance(value, dict) and isinstance(restored, dict):
        key = next((key for key in value if type(key) is not str), None)
        if key is not None:
            return f"{name} has the key {key!r}"
        parts = ((value[k], restored[k], f"{name}[{k!r}]") for k in value)
    elif isinstance(value, list) and isinstance(restored, list):
        pairs = zip(value, restored, strict=True)
        parts = ((one, other, f"{name}[{n}]") for n, (one, other) in enumerate(pairs))
    else:
        return None
    return next(filter(None, (_changed(*part) for part in parts)), None)


_CASTS: dict[GsqlType, Callable[[Any], Any]] = {GsqlType.BOOL: bool, GsqlType.FLOAT: float}
