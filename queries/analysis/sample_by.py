"""SAMPLE BY: the terms whose hash decides which packets of a query are kept.

That matters when any are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import ResolveError, TypeMismatchError
from gscope.queries.analysis.names.scope import open_query
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.analysis.typing.unsupported import find_aggregates, refuse_aggregate
from gscope.queries.gsql.expression_printer import print_expression

if TYPE_CHECKING:
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Merge, Node
    from gscope.queries.plan.program_sampling import HintTerm


def terms_of_sample(
    body: nodes.Select | nodes.MergeQuery, typer: Typer, node: Node
) -> tuple[HintTerm, ...]:
    """Return the terms of SAMPLE BY.

    Args:
        body: the SELECT, MERGE or UNION ALL.
        typer: types expressions over the columns of ``node``.
        node: the groups of the query; its input if it has none, the union if it is one.

    Raises:
        GsqlError: a term is wrong.
    """
    if not body.sample_by:
        return ()
    from gscope.queries.analysis.sampling.hints import hint_term

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


def terms_of_union(
    body: nodes.MergeQuery, substitutes: Substitutes, node: Merge
) -> tuple[HintTerm, ...]:
    """Return the terms of SAMPLE BY of a MERGE or UNION ALL, over its columns.

    Args:
        body: the MERGE or UNION ALL.
        substitutes: the values of ``$x`` and ``#X``.
        node: its plan.

    Raises:
        GsqlError: a term is wrong.
    """
    columns = open_query("MERGE" if body.columns else "UNION ALL", node.schema, ())

    def column(name: nodes.Name) -> Expression:
        if len(name.parts) > 1:
            message = f"SAMPLE BY of {columns.what} reads its columns, not those of {name.parts[0]}"
            remedy = f"write {name.parts[-1]}: columns have the names of the first input"
            raise ResolveError(message, position=name.position, remedy=remedy)
        return columns.resolve(name)

    typer = Typer.over(columns, substitutes, refuse_aggregate, name=column)
    return terms_of_sample(body, typer, node)
