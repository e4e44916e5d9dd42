"""Text of an alert → ``AlertRule``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import lark

from gscope.queries.gsql.alerts.rule import AlertRule, Condition

if TYPE_CHECKING:
    from lark import Token, Tree

LONGEST = 4096
"""The most characters of one alert."""

MOST_EPOCHS = 1_000_000
"""The most epochs that an alert may wait for."""

_EXAMPLE = "talkers: raise n > 1000 for 3 epochs, clear n < 800 for 2 epochs"
_SPELLINGS = {
    "COLON": "':'",
    "COMMA": "','",
    "EQUAL": "'='",
    "OPERATOR": "<, <=, > or >=",
    "NAME": "a name",
    "WHOLE": "a whole number",
    "NUMBER": "a number",
    "$END": "the end",
}


def parse_alert(text: str) -> AlertRule:
    """Return the rule of a text such as ``talkers: raise n > 1000, clear n < 800 or silent``.

    Raises:
        ValueError: it is not an alert; the message states the place and what is expected there.
    """
    if len(text) > LONGEST:
        message = f"invalid alert: expected at most {LONGEST} characters, got {len(text)}"
        raise ValueError(message)
    try:
        tree = _parser().parse(text)
    except lark.UnexpectedInput as error:
        raise ValueError(_sentence(text, error)) from None
    return _rule(text.strip(), tree)


@cache
def _parser() -> lark.Lark:
    grammar = Path(__file__).with_name("alert.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr", start="alert", maybe_placeholders=False)


def _sentence(text: str, error: lark.UnexpectedInput) -> str:
    """Return what is wrong with ``text``, where, and what is expected there."""
    if isinstance(error, lark.UnexpectedToken):
        at_end = error.token.type == "$END"
        got = "the end" if at_end else repr(str(error.token))
        place = len(text.rstrip()) + 1 if at_end else error.column
        kinds = error.accepts or error.expected
    else:
        assert isinstance(error, lark.UnexpectedCharacters)
        place, kinds = error.column, error.allowed or set()
        got = repr(text[place - 1])
    expected = sorted({_SPELLINGS.get(kind, f"'{kind.lower()}'") for kind in kinds})
    if "a number" in expected and "a whole number" in expected:
        expected.remove("a whole number")
    listed = ", ".join(expected[:-1]) + " or " + expected[-1] if expected[1:] else expected[0]
    return (
        f"invalid alert {text!r}: expected {listed} at character {place}, got {got}; an alert is"
        f" written as {_EXAMPLE!r}"
    )


def _rule(text: str, tree: Tree[Token]) -> AlertRule:
    parts = {part.data: part for part in tree.children if isinstance(part, lark.Tree)}
    query = str(parts["query"].children[0])
    name = str(parts["name"].children[0]) if "name" in parts else query
    raises, raise_epochs = None, 1
    if "raising" in parts:
        raises = _condition(parts["raising"])
        raise_epochs = _epochs(text, parts["raising"])
    clears, clear_epochs, silence_clears = None, 1, False
    if "clearing" in parts:
        clears = _condition(parts["clearing"])
        clear_epochs = _epochs(text, parts["clearing"])
        silence_clears = any(True for _ in parts["clearing"].find_data("silent"))
    elif raises is not None:
        clears = raises.opposite
    else:
        silence_clears = True
    if clears is not None:
        _check(text, raises, clears)
    by = tuple(map(str, parts["by"].children)) if "by" in parts else ()
    return AlertRule(
        text, name, query, raises, raise_epochs, clears, clear_epochs, silence_clears, by
    )


def _condition(tree: Tree[Token]) -> Condition | None:
    for found in tree.find_data("condition"):
        column, operator, number = map(str, found.children)
        try:
            threshold: int | float = int(number)
        except ValueError:
            threshold = float(number)
        if not abs(threshold) < 1 << 63:
            message = f"invalid threshold {number}: expected a number below 2^63"
            raise ValueError(message)
        return Condition(column, operator, threshold)
    return None


def _epochs(text: str, tree: Tree[Token]) -> int:
    for found in tree.find_data("lasting"):
        count = int(str(found.children[0]))
        if not 0 < count <= MOST_EPOCHS:
            message = f"invalid alert {text!r}: expected 1 to {MOST_EPOCHS:,} epochs, got {count:,}"
            raise ValueError(message)
        return count
    return 1


def _check(text: str, raises: Condition | None, clears: Condition) -> None:
    """Check that no value of a row counts for raising and for clearing."""
    if raises is None:
        message = (
            f"invalid alert {text!r}: any row raises it, so no row can clear it; write 'clear"
            " silent'"
        )
        raise ValueError(message)
    if raises.column != clears.column:
        message = (
            f"invalid alert {text!r}: expected one column, got {raises.column} to raise and"
            f" {clears.column} to clear; write an alert for each column"
        )
        raise ValueError(message)
    if raises.overlaps(clears):
        message = (
            f"invalid alert {text!r}: a value can fulfil both {raises} and {clears}; choose a"
            f" threshold within {raises.opposite}"
        )
        raise ValueError(message)
