"""The filter that a user types: terms that a row must all satisfy.

A bare word is searched in the cells as they are shown, ``column=value`` and its kin compare
values. ``!`` before a term turns it round.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.view.rows.ordering import address_numbers
from gscope.engine.sinks.columns import flat
from gscope.errors import UsageError
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gscope.cli.view.rows.columns import Answer, ViewColumn

    Mask = NDArray[np.bool_]

_TERM = re.compile(r'!?(?:[^\s"]|"[^"]*"?)+')
_COMPARISON = re.compile(r"(\w+)(<=|>=|!=|==|=|<|>|~)(.*)", re.DOTALL)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([kKMGT]?)")
_UNITS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 10**9, "T": 10**12}
_COMPARE: dict[str, Callable[[pa.Array, object], pa.Array]] = {
    "=": pc.equal,
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class InvalidFilterError(UsageError):
    """A filter that cannot be evaluated, with the reason as its text."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition.

    Attributes:
        column: the column that it reads; None for any of those that are shown.
        comparison: how it compares; ``~`` for a text that occurs in the cell.
        value: what it compares with.
        is_negated: whether rows must not satisfy it.
    """

    column: str | None
    comparison: str
    value: str
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Terms that a row must all satisfy; no terms accept every row.

    Attributes:
        text: what the user typed.
        terms: the terms.
    """

    text: str = ""
    terms: tuple[Term, ...] = ()

    def mask(self, answer: Answer, table: pa.Table) -> Mask:
        """Return which rows satisfy all terms."""
        found = np.ones(table.num_rows, np.bool_)
        for term in self.terms:
            found &= _satisfy(term, answer, table) != term.is_negated
        return found


def parse_filter(text: str, answer: Answer) -> Filter:
    """Return the filter that ``text`` asks for.

    Raises:
        InvalidFilterError: a term names no column, or its value does not fit the column.
    """
    return Filter(text, tuple(_term(word, answer) for word in _TERM.findall(text)))


def valid_part(text: str, answer: Answer) -> Filter:
    """Return the filter of those words of ``text`` that are valid terms."""
    words, terms = [], []
    for word in _TERM.findall(text):
        with suppress(InvalidFilterError):
            terms.append(_term(word, answer))
            words.append(word)
    return Filter(" ".join(words), tuple(terms))


def _term(word: str, answer: Answer) -> Term:
    is_negated = word.startswith("!")
    word = word[is_negated:]
    if (found := _COMPARISON.fullmatch(word)) is None:
        return Term(None, "~", word.replace('"', ""), is_negated)
    column = _column(found[1], answer)
    value = found[3].replace('"', "")
    if not value and found[2] not in ("=", "==", "!="):
        message = f"{word}: a value is missing after {found[2]}"
        raise InvalidFilterError(message)
    _ensure_comparable(column, found[2], value)
    return Term(column.name, found[2], value, is_negated)


def _column(name: str, answer: Answer) -> ViewColumn:
    """Return the column that a name, or the beginning of one, means in upper or lower case."""
    exact = [c for c in answer.columns if c.name.lower() == name.lower()]
    begin = [c for c in answer.columns if c.name.lower().startswith(name.lower())]
    found = exact or begin
    if len(found) == 1:
        return found[0]
    known = ", ".join(c.name for c in (found or answer.columns))
    reason = "no column of that name" if not found else "several columns"
    message = f"{name}: {reason}: {known}"
    raise InvalidFilterError(message)


def _ensure_comparable(column: ViewColumn, comparison: str, value: str) -> None:
    if comparison == "~" or column.times is not None:
        return
    if column.is_number and value.upper() != "NULL":
        _number(value)
    elif column.type is GsqlType.IP and value.upper() != "NULL":
        _network(value)


def _satisfy(term: Term, answer: Answer, table: pa.Table) -> Mask:
    if term.column is None:
        found = np.zeros(table.num_rows, np.bool_)
        for column in answer.shown:
            found |= _contains(column, table, term.value)
        return found
    column = answer[term.column]
    if term.comparison == "~":
        return _contains(column, table, term.value)
    values = flat(table[term.column])
    if term.value.upper() == "NULL" and term.comparison in ("=", "==", "!="):
        is_null = _known(pc.is_null(values))
        return ~is_null if term.comparison == "!=" else is_null
    if column.type is GsqlType.IP:
        return _in_network(values, term)
    compare = _COMPARE[term.comparison]
    if column.is_number:
        return _known(compare(values, _number(term.value)))
    return _known(compare(column.text(values), term.value)) & _known(pc.is_valid(values))


def _contains(column: ViewColumn, table: pa.Table, text: str) -> Mask:
    shown = column.text(flat(table[column.name]))
    return _known(pc.match_substring(shown, text, ignore_case=True))


def _known(mask: pa.Array) -> Mask:
    """Return which values are true; NULL is not."""
    known: Mask = np.asarray(pc.fill_null(mask, False))
    return known


def _number(text: str) -> int | float:
    found = _NUMBER.fullmatch(text)
    if found is None:
        message = f"{text or 'nothing'}: expected a number such as 1500, 64k or 2.5M"
        raise InvalidFilterError(message)
    number = float(found[1]) * _UNITS[found[2]]
    if re.fullmatch(r"[+-]?\d+", found[1]):
        whole = int(found[1]) * _UNITS[found[2]]
        return whole if abs(whole) < 1 << 63 else number
    return number


def _network(text: str) -> tuple[int, int]:
    """Return the first and the last address of a network or of one address, as numbers."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        message = f"{text or 'nothing'}: expected an address or a network such as 10.0.0.0/8"
        raise InvalidFilterError(message) from None
    mapped = 0xFFFF << 32 if network.version == 4 else 0
    return mapped + int(network[0]), mapped + int(network[-1])


def _in_network(values: pa.Array, term: Term) -> Mask:
    """Return which addresses are in a network, or before or behind it."""
    first, last = _network(term.value)
    high, low = address_numbers(values)
    below = _is_less(high, low, first)
    above = ~_is_less(high, low, last + 1) if last + 1 < 1 << 128 else np.zeros_like(below)
    is_known = _known(pc.is_valid(values))
    found = {
        "<": below,
        "<=": ~above,
        ">": above,
        ">=": ~below,
        "!=": below | above,
    }.get(term.comparison, ~(below | above))
    return found & is_known


def _is_less(high: NDArray[np.uint64], low: NDArray[np.uint64], number: int) -> NDArray[np.bool_]:
    upper, lower = np.uint64(number >> 64), np.uint64(number & (1 << 64) - 1)
    result: NDArray[np.bool_] = (high < upper) | ((high == upper) & (low < lower))
    return result
