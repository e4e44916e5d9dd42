"""SAMPLE BY: the terms whose hash decides which packets of a query are kept, when any are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.sampling.hints import hint_term
from gscope.queries.analysis.typing.unsupported import find_aggregates
from gscope.queries.gsql.expression_printer import print_expression

if TYPE_CHECKING:
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node
    from gscope.queries.plan.sampling import HintTerm


def terms_of_sample(body: nodes.Select, typer: Typer, node: Node) -> tuple[HintTerm, ...]:
    """Return the terms of SAMPLE BY.

    Args:
        body: the SELECT.
        typer: types expressions over the columns of ``node``.
        node: the groups of the query; its input if it has none.

    Raises:
        GsqlError: a term is wrong.
    """
    for term in body.sample_by:
        call = next(find_aggregates(term), None)
        if call is not None:
            message = f"aggregate {call.name} is not allowed in SAMPLE BY, which chooses packets"
            remedy = "sample by group-by terms and functions of them"
            raise TypeMismatchError(message, position=call.position, remedy=remedy)
    return tuple(
        hint_term(print_expression(term), typer.type(term), term.position, node)
        for term in body.sample_by
    )
