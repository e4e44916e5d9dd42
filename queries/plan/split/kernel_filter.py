"""The condition that a packet must meet to reach any LFTA: a filter before the capture.

The condition is *necessary*, never sufficient: no LFTA's tuples include a packet that it rejects.
It consists of tests of header fields that every kernel supports; any other part of a predicate is
taken to be true.

    destPort = 53 AND str_exists_substr[data, 'x']   →   destPort = 53
    protocol = 17 AND (destPort = 53 OR len > 100)   →   protocol = 17

A test of a field that is NULL is false, and a predicate that is NULL rejects: so a test also
implies that the packet has the field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.catalog.scalar.tables import table_size, table_values
from gscope.queries.expressions.expressions import Call, Literal, PacketField
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta

TESTED_FIELDS = frozenset(
    {"ethertype", "ipversion", "protocol", "srcIP", "destIP", "srcPort", "destPort", "flags"}
    | {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"}
)
"""Fields whose tests are kept."""

ADDRESSES = frozenset({"srcIP", "destIP"})

ZERO_WITHOUT_PORTS = frozenset({"srcPort", "destPort"})
"""Fields that are 0 if missing or not captured, so that a test which 0 passes implies nothing."""

ARP_FIELDS = frozenset({"op", "senderIP", "targetIP", "senderMAC", "targetMAC"})
_ETHERTYPE_ARP = 0x0806

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_HOLDS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

MOST_TESTS = 64
"""A longer condition is dropped, because it costs each packet more than it saves."""


@dataclass(frozen=True, slots=True)
class Test:
    """``field sign value``; addresses are values of type IP, and compared with ``eq`` only."""

    __test__ = False

    field: str
    sign: str
    value: int

    def holds(self, value: int) -> bool:
        """Return whether the test is true of a value of the field."""
        return bool(_HOLDS[self.sign](value, self.value))


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction; an empty one is true."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction; an empty one is false."""

    parts: tuple[Condition, ...] = ()


Condition = Test | AllOf | AnyOf

TRUE, FALSE = AllOf(), AnyOf()


def needed_packets(lftas: Iterable[Lfta], interface: str) -> Condition:
    """Return the condition on packets of ``interface`` that its LFTAs imply; TRUE for all packets.

    An interface without LFTAs is not filtered, because it is there for its counters.
    """
    return needed_by_any(lfta for lfta in lftas if interface in lfta.interfaces)


def needed_by_any(lftas: Iterable[Lfta]) -> Condition:
    """Return the condition that a packet must meet to pass one of ``lftas``.

    TRUE if they may need all packets, or if there are none.
    """
    predicates = [lfta.predicate for lfta in lftas]
    if not predicates:
        return TRUE
    condition = any_of(TRUE if each is None else _necessary(each) for each in predicates)
    return condition if count_tests(condition) <= MOST_TESTS else TRUE


def all_of(parts: Iterable[Condition]) -> Condition:
    """Return the conjunction, simplified where that needs no search."""
    kept: dict[Condition, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        kept.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    return next(iter(kept)) if len(kept) == 1 else AllOf(tuple(kept))


def any_of(parts: Iterable[Condition]) -> Condition:
    """Return the disjunction, simplified where that needs no search."""
    kept: dict[Condition, None] = {}
    for part in parts:
        if part == TRUE:
            return TRUE
        kept.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) else (part,)))
    return next(iter(kept)) if len(kept) == 1 else AnyOf(tuple(kept))


def count_tests(condition: Condition) -> int:
    """Return the number of tests in a condition."""
    return 1 if isinstance(condition, Test) else sum(map(count_tests, condition.parts))


def show_condition(condition: Condition) -> str:
    """Return the condition as text."""
    if isinstance(condition, Test):
        return f"{condition.field} {_SIGNS[condition.sign]} {_shown_value(condition)}"
    if not condition.parts:
        return "TRUE" if isinstance(condition, AllOf) else "FALSE"
    word = " AND " if isinstance(condition, AllOf) else " OR "
    return word.join(
        show_condition(part) if isinstance(part, Test) else f"({show_condition(part)})"
        for part in condition.parts
    )


def _shown_value(test: Test) -> str:
    if test.field == "ethertype":
        return f"{test.value:#06x}"
    if test.field not in ADDRESSES:
        return str(test.value)
    return format_ip(test.value)


def _necessary(predicate: Expression, *, is_negated: bool = False) -> Condition:
    """Return a condition that holds whenever ``predicate`` (or, negated, its opposite) is true."""
    if isinstance(predicate, Literal):
        return TRUE if predicate.value is (not is_negated) else FALSE
    if not isinstance(predicate, Call):
        return TRUE
    arguments = predicate.arguments
    match predicate.function:
        case "not":
            return _necessary(arguments[0], is_negated=not is_negated)
        case "is_true" if not is_negated:
            return _necessary(arguments[0])
        case "and" | "or" as function:
            join = all_of if (function == "and") is not is_negated else any_of
            return join(_necessary(part, is_negated=is_negated) for part in arguments)
        case "in" if not is_negated:
            return any_of(_test("eq", arguments[0], value) for value in arguments[1:])
        case "in_table":
            return _in_table(arguments, is_negated=is_negated)
        case "in":
            return all_of(_test("ne", arguments[0], value) for value in arguments[1:])
        case "is_null" if is_negated:
            return _presence(arguments[0])
        case sign if sign in _NEGATED:
            return _comparison(_NEGATED[sign] if is_negated else sign, arguments)
    return TRUE


def _in_table(arguments: Sequence[Expression], *, is_negated: bool) -> Condition:
    """Return what membership in a table, or its opposite, implies; TRUE if the table is long."""
    field, table = arguments
    assert isinstance(table, Literal)
    assert isinstance(table.value, bytes)
    if table_size(table.value)[1] > MOST_TESTS:
        return TRUE
    choices = [Literal(value, field.type) for value in table_values(table.value)]
    if is_negated:
        return all_of(_test("ne", field, choice) for choice in choices)
    return any_of(_test("eq", field, choice) for choice in choices)


def _comparison(sign: str, arguments: Sequence[Expression]) -> Condition:
    left, right = arguments
    if isinstance(left, Literal):
        return _test(_MIRRORED[sign], right, left)
    return _test(sign, left, right)


def _test(sign: str, field: Expression, value: Expression) -> Condition:
    if not (isinstance(field, PacketField) and isinstance(value, Literal)):
        return TRUE
    if value.value is None:
        return FALSE
    if field.name not in TESTED_FIELDS:
        return TRUE
    if field.name in ADDRESSES:
        if sign != "eq" or type(value.value) is not int:
            return TRUE
        return Test(field.name, sign, value.value)
    if type(value.value) is not int:
        return TRUE
    test = Test(field.name, sign, value.value)
    return TRUE if field.name in ZERO_WITHOUT_PORTS and test.holds(0) else test


def _presence(field: Expression) -> Condition:
    """Return what a field not being NULL implies."""
    if isinstance(field, PacketField) and field.name in ARP_FIELDS:
        return Test("ethertype", "eq", _ETHERTYPE_ARP)
    if isinstance(field, PacketField) and field.name == "ipversion":
        return any_of(Test("ipversion", "eq", version) for version in (4, 6))
    return TRUE
