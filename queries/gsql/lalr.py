"""The LALR(1) parser: it moves through the tables, and calls the builder at the end of each rule.

lark makes the tables (``build_tables.py``). It could also run them, but its import and its tables
of objects take 40 ms in each process that compiles a query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.gsql.unexpected_token import END
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.gsql.token import Token


class NotAllowedError(Exception):
    """The grammar does not allow the token in this place."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens at the end of a rule.

    Attributes:
        origin: the nonterminal that the rule defines.
        size: how many parts it has.
        action: the builder's method; "" if the parts become those of the rule around this one.
        parts: the places of the parts that the method receives; None stands for an optional part
            that is missing, and is passed as None.
        lists: the places of parts that are lists of parts.
        passes_single: whether a single part is the rule's value, without a call of the method.
    """

    origin: str
    size: int
    action: str
    parts: tuple[int | None, ...]
    lists: tuple[int, ...]
    passes_single: bool


@dataclass(frozen=True, slots=True)
class ParseTables:
    """The states of the parser.

    Attributes:
        states: for each state, what follows each symbol: the next state, or ``~n`` at the end of
            the rule of number n.
        rules: all rules.
        starts: for each rule with which a parse can begin, the first state.
        ends: for each of them, the last state.
    """

    states: Sequence[Mapping[str, int]]
    rules: Sequence[Rule]
    starts: Mapping[str, int]
    ends: Mapping[str, int]


class Parse:
    """A parse of one text, token by token.

    Args:
        tables: the states.
        builder: has a method for each rule that builds a value; it gets the values of the parts.
        start: the rule that the text has to match.
    """

    def __init__(self, tables: ParseTables, builder: object, start: str) -> None:
        self._tables = tables
        self._builder = builder
        self._end = tables.ends[start]
        self._states = [tables.starts[start]]
        self._values: list[Any] = []

    def choices(self) -> Mapping[str, int]:
        """Return the symbols that the state allows next, as keys; a few of them lead nowhere."""
        return self._tables.states[self._states[-1]]

    def feed(self, token: Token) -> None:
        """Take the next token.

        Raises:
            NotAllowedError: the grammar does not allow it here.
        """
        while (action := self.choices().get(token.type)) is not None:
            if action >= 0:
                self._states.append(action)
                self._values.append(token)
                return
            self._reduce(self._tables.rules[~action])
        raise NotAllowedError

    def finish(self) -> Any:
        """Return the value of the whole text.

        Raises:
            NotAllowedError: the text ends too early.
        """
        while self._states[-1] != self._end:
            action = self.choices().get(END)
            if action is None:
                raise NotAllowedError
            self._reduce(self._tables.rules[~action])
        return self._values[-1]

    def accepted(self) -> frozenset[str]:
        """Return the terminals that the grammar allows next."""
        return frozenset(each for each in self.choices() if each.isupper() and self._accepts(each))

    def _accepts(self, terminal: str) -> bool:
        """Return whether ``terminal`` may be next, without building anything."""
        states = [*self._states]
        while (action := self._tables.states[states[-1]].get(terminal)) is not None:
            if action >= 0:
                return True
            rule = self._tables.rules[~action]
            del states[len(states) - rule.size :]
            states.append(self._tables.states[states[-1]][rule.origin])
            if terminal == END and states[-1] == self._end:
                return True
        return False

    def _reduce(self, rule: Rule) -> None:
        first = len(self._states) - rule.size
        values = self._values[first - 1 :]
        del self._states[first:]
        del self._values[first - 1 :]
        self._states.append(self.choices()[rule.origin])
        self._values.append(self._value(rule, values))

    def _value(self, rule: Rule, values: list[Any]) -> Any:
        parts: list[Any] = []
        for place in rule.parts:
            if place is None:
                parts.append(None)
            elif place not in rule.lists:
                parts.append(values[place])
            elif parts:
                parts += values[place]
            else:
                # Nothing else refers to that list, so that repetitions take linear time.
                parts = values[place]
        if not rule.action:
            return parts
        if rule.passes_single and len(parts) == 1:
            return parts[0]
        return getattr(self._builder, rule.action)(*parts)
