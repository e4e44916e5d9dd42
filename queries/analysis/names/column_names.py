"""Names for columns that a query leaves unnamed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.typing.time_calls import UNIT_FUNCTIONS
from gscope.queries.expressions.schema import free_name
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.names.scope import Source

_LONGEST = 40
_NAMED_AFTER_FUNCTION = frozenset({*UNIT_FUNCTIONS, "time_bucket"})


def default_name(node: nodes.Expression, source: Source) -> str:
    """Return the name of a column that the query leaves unnamed.

    That is the column's own name, ``cnt`` for ``count(*)``, ``sum_len`` for ``sum(len)``,
    ``minute`` for ``minute(time)``, and otherwise made from the text: ``tb_60`` for ``tb*60``.
    """
    if isinstance(node, nodes.Name):
        return _own_name(node, source)
    if isinstance(node, nodes.FunctionCall) and node.filter is None:
        function = node.name.lower()
        if function == "count" and not node.args:
            return "cnt"
        if function in _NAMED_AFTER_FUNCTION:
            return function
        if len(node.args) == 1 and isinstance(node.args[0], nodes.Name):
            prefix = f"{function}_distinct" if node.distinct else function
            return f"{prefix}_{_own_name(node.args[0], source)}"
    text = re.sub(r"\W+", "_", print_expression(node)).strip("_")[:_LONGEST].strip("_")
    return text if text and not text[0].isdigit() else f"column_{text}".strip("_")


def unique_names(
    wanted: Sequence[tuple[str, bool, nodes.Node]], taken: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names, made unique by a number where the query did not choose them itself.

    Args:
        wanted: (name, whether the query chose it, the syntax that it names).
        taken: names that are in use already.

    Raises:
        ResolveError: the query chose one name twice.
    """
    chosen: set[str] = set()
    for name, is_chosen, node in wanted:
        if is_chosen and name in chosen:
            message = f"two columns are called {name}"
            remedy = "give one of them another name with AS"
            raise ResolveError(message, position=node.position, remedy=remedy)
        if is_chosen:
            chosen.add(name)
    used = chosen | set(taken)
    names = []
    for name, is_chosen, _ in wanted:
        final = name if is_chosen else free_name(name, used)
        used.add(final)
        names.append(final)
    return tuple(names)


def _own_name(node: nodes.Name, source: Source) -> str:
    parts = node.parts
    if len(parts) > 1 and parts[0] in source.qualifiers:
        parts = parts[1:]
    return "_".join(parts)
