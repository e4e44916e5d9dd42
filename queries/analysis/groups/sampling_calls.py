"""Calls of superaggregates and stateful functions: their names, places and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TypeMismatchError
from gscope.queries.analysis.typing.conversions import convert
from gscope.queries.catalog.sampling.stateful import RESERVOIR, Clause, StatefulEntry
from gscope.queries.catalog.sampling.superaggregates import SUPERAGGREGATES
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes

MAX_RANK = 100_000
"""The greatest rank of a k-th smallest value, and the largest reservoir."""


def superaggregate_argument(
    node: nodes.FunctionCall, typer: Typer
) -> tuple[str, Expression | None, int]:
    """Return the function of a superaggregate, its argument (None for ``*``) and its rank.

    Args:
        node: the call.
        typer: types the argument, over single tuples.

    Raises:
        GsqlError: there is no such superaggregate, or its arguments are invalid.
    """
    function = node.name.lower()
    entry = SUPERAGGREGATES.get(function)
    if entry is None:
        message = f"unknown superaggregate {node.name}$"
        known = [f"{name}$" for name in SUPERAGGREGATES]
        remedy = did_you_mean(f"{node.name}$", known, "available")
        raise ResolveError(message, position=node.position, remedy=remedy)
    if node.distinct or node.filter is not None:
        message = f"{node.name}$ takes neither DISTINCT nor FILTER"
        raise TypeMismatchError(message, position=node.position)
    if entry.takes_star and (node.star or not node.args):
        return function, None, 0
    expected = 2 if entry.has_rank else 1
    if node.star or len(node.args) != expected:
        noun = "arguments, a value and a rank" if entry.has_rank else "argument"
        message = f"{node.name}$ takes {expected} {noun}, not {0 if node.star else len(node.args)}"
        raise TypeMismatchError(message, position=node.position)
    argument = typer.type(node.args[0])
    if argument.type is GsqlType.BOOL and entry.types:
        argument = convert(argument, GsqlType.INT, node.args[0].position)
    if entry.types and argument.type not in entry.types:
        wanted = " or ".join(sorted(kind.value for kind in entry.types))
        message = f"{node.name}$ takes {wanted}, not {argument.type.value}"
        raise TypeMismatchError(message, position=node.args[0].position)
    rank = 0
    if entry.has_rank:
        rank = _constant(typer.type(node.args[1]), node, 1, MAX_RANK)
    return function, argument, rank


def type_stateful_call(
    node: nodes.FunctionCall, entry: StatefulEntry, clause: Clause, typer: Typer
) -> tuple[Expression, ...]:
    """Return the arguments of a stateful call, with the types of its parameters.

    Args:
        node: the call.
        entry: the function.
        clause: where it is called.
        typer: types the arguments.

    Raises:
        TypeMismatchError: the call is in the wrong place, or its arguments are invalid.
    """
    if clause not in entry.clauses:
        places = " or ".join(each.value for each in Clause if each in entry.clauses)
        message = f"{node.name} belongs in {places}, not in {clause.value}"
        remedy = f"move it to {places}"
        raise TypeMismatchError(message, position=node.position, remedy=remedy)
    if node.star or node.distinct or node.filter is not None:
        message = f"{node.name} is not an aggregate: it takes neither *, DISTINCT nor FILTER"
        raise TypeMismatchError(message, position=node.position)
    expected = len(entry.parameters)
    given = len(node.args)
    if given != expected and not (entry.takes_count and given == expected + 1):
        noun = "argument" if expected == 1 else "arguments"
        message = f"{node.name} takes {expected} {noun}, not {given}"
        raise TypeMismatchError(message, position=node.position)
    arguments: list[Expression] = []
    for place, (kind, written) in enumerate(zip(entry.parameters, node.args, strict=False)):
        value = typer.type(written)
        if place in entry.constants:
            most = MAX_RANK if entry.state == RESERVOIR else None
            value = Literal(_constant(value, node, place, most), kind)
        where = f"as argument {place + 1} of {node.name}"
        arguments.append(convert(value, kind, written.position, where))
    for written in node.args[expected:]:
        typer.type(written)
    return tuple(arguments)


def _constant(value: Expression, node: nodes.FunctionCall, place: int, most: int | None) -> int:
    """Return an argument that must be a constant whole number of at least 1."""
    number = value.value if isinstance(value, Literal) else None
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if is_number and number >= 1 and (most is None or number <= most):  # type: ignore[operator]
        return int(number)  # type: ignore[arg-type]
    limit = "at least 1" if most is None else f"1 to {most}"
    message = f"argument {place + 1} of {node.name} must be a constant whole number, {limit}"
    raise TypeMismatchError(message, position=node.args[place].position)
