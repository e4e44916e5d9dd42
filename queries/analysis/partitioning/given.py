"""A partitioning set that is given as text: what a splitter in front of the hosts divides by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.analysis.lineage.terms import is_usable, term_of
from gscope.queries.analysis.partitioning.sets import PartitionSet, Symmetric, plain
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import LogicalQuery, Project, Scan
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.analysis.lineage.terms import Term
    from gscope.queries.expressions.expressions import Expression

_PROTOCOL = "TCP"
"""The protocol whose fields a set may have: those of IP, and the ports, which UDP has too."""


def given_set(text: str, source: str) -> PartitionSet:
    """Return the set that a text describes: ``srcIP & 0xFFFFFF00, {srcPort, destPort}``.

    Args:
        text: expressions over packet fields, separated by commas; two in braces are a symmetric
            member.
        source: what the text is called in errors.

    Raises:
        GsqlError: packets cannot be divided by it.
    """
    terms: list[Term] = []
    pairs: list[Symmetric] = []
    for member in _members(text, source):
        inner = member[1:-1] if member.startswith("{") and member.endswith("}") else member
        found = [_term(each, source) for each in _expressions(inner, source)]
        if inner is member:
            terms += found
        elif len(found) == 2 and found[0].cut == found[1].cut:
            one, other = (term.bases[0][1] for term in found)
            pairs.append(Symmetric.of(one, other, found[0].cut))
        else:
            message = (
                f"invalid member {member} of the set: expected the same function of two fields"
            )
            raise GsqlError(message, source=source, remedy="Write {srcIP, destIP}, for example.")
    return PartitionSet.of(terms, pairs)


def _members(text: str, source: str) -> Iterator[str]:
    """Yield the parts of a text between the commas that are in no brackets."""
    depth, begin = 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            yield _filled(text[begin:place], source)
            begin = place + 1
    yield _filled(text[begin:], source)


def _filled(member: str, source: str) -> str:
    if not member.strip():
        message = "invalid partitioning set: a member is empty"
        remedy = "Separate expressions over packet fields by commas: srcIP, destIP."
        raise GsqlError(message, source=source, remedy=remedy)
    return member.strip()


def _expressions(text: str, source: str) -> list[Expression]:
    """Return the expressions of a list, over the fields of packets."""
    query = f"SELECT {text} FROM {_PROTOCOL}"
    plan = analyze([parse(query, source)], (), {}, {}, ())
    match plan.queries:
        case (LogicalQuery(root=Project(input=Scan(), columns=columns)),):
            return [column.expression for column in columns]
    message = f"invalid partitioning set {text}: expected expressions over packet fields"
    raise GsqlError(message, source=source, remedy="Write srcIP, destIP, for example.")


def _term(expression: Expression, source: str) -> Term:
    if not is_usable({"": expression}):
        message = f"packets cannot be divided by {show(expression)}"
        remedy = (
            "Use values of packet fields that do not change with time and are not FLOAT or STRING: "
            "srcIP, destIP & 0xFFFFFF00, srcPort."
        )
        raise GsqlError(message, source=source, remedy=remedy)
    term = term_of({"": expression})
    return plain(term.bases[0][1], term.cut)
