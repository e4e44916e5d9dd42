"""The clauses of a SELECT over a window: those it cannot have, and DISTINCT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import UnsupportedError
from gscope.queries.analysis.typing.unsupported import is_grouped
from gscope.queries.gsql import nodes
from gscope.queries.plan.windows.columns import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.analysis.names.scope import Source


def with_groups(body: nodes.Select, source: Source) -> nodes.Select:
    """Return a SELECT over a window with its groups written out.

    ``SELECT DISTINCT a, b`` is ``SELECT a, b … GROUP BY a, b``: once in each window.

    Args:
        body: the SELECT.
        source: its input, open for look-up.

    Raises:
        UnsupportedError: it does not group, or groups live across epochs.
    """
    if body.closing_when is not None:
        message = "CLOSING_WHEN ends groups that live across epochs, but a window ends its own"
        remedy = (
            "leave CLOSING_WHEN out, or write it in a query that reads this one: "
            "GROUP BY minute(window_end), … CLOSING_WHEN …"
        )
        raise UnsupportedError(message, position=body.closing_when.position, remedy=remedy)
    if is_grouped(body):
        return body
    if body.distinct:
        outputs = tuple(_without_stars(body, source))
        terms = (nodes.GroupTerm(o.expression, o.name, position=o.position) for o in outputs)
        return replace(body, outputs=outputs, distinct=False, group_by=tuple(terms))
    window = body.inputs[0].window
    assert window is not None
    message = "a window needs groups: its tuples are aggregated when it ends"
    remedy = "leave the window out, or add an aggregate or GROUP BY: SELECT srcIP, count(*) …"
    raise UnsupportedError(message, position=window.position, remedy=remedy)


def refuse_running(node: nodes.FunctionCall) -> None:
    """Refuse a running aggregate: the groups of a window end with it.

    Raises:
        UnsupportedError: always.
    """
    message = f"{node.name} runs across epochs, but the groups of a window end with it"
    remedy = (
        f"leave {node.name} to a query that reads this one: "
        "GROUP BY minute(window_end), … CLOSING_WHEN count(*) = 0"
    )
    raise UnsupportedError(message, position=node.position, remedy=remedy)


def after_the_window(text: str, where: str) -> str:
    """Return the remedy for a column of the window where single tuples are read.

    Args:
        text: an unknown name; "" is returned if it is not one of the window.
        where: what to do with it.
    """
    return f"{text} is known when the window ends: {where}" if text.lower() in WRITTEN else ""


def _without_stars(body: nodes.Select, source: Source) -> Iterator[nodes.OutputItem]:
    """Yield the columns of SELECT, those that ``*`` stands for one by one."""
    for output in body.outputs:
        if isinstance(output, nodes.OutputItem):
            yield output
            continue
        for name, _ in source.star(output):
            column = nodes.Name(tuple(name.split(".")), position=output.position)
            yield nodes.OutputItem(column, name, position=output.position)
