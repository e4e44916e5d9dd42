"""A divider of rows, and dividers that are functions of others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.plan.program_partitioning import PartitionMember
from gscope.queries.plan.trees import map_expression
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Divider:
    """What may divide rows, for each stream.

    Attributes:
        values: the streams, each with one expression over its columns, or with two whose order does
            not count, which are sorted by their text.
    """

    values: tuple[tuple[str, tuple[Expression, ...]], ...]

    @classmethod
    def of(cls, values: Mapping[str, Iterable[Expression]]) -> Divider:
        """Return the divider with these expressions over streams."""
        return cls(tuple((s, tuple(sorted(v, key=repr))) for s, v in sorted(values.items())))

    def member(self, stream: str) -> PartitionMember:
        """Return what divides the rows of one of its streams."""
        return PartitionMember(dict(self.values)[stream])


def streams_of(dividers: Sequence[Divider]) -> frozenset[str]:
    """Return the streams that dividers are over."""
    return frozenset(stream for each in dividers for stream, _ in each.values)


PLACE = "#"
"""The name of the column that stands for a divider in a template."""


def template_of(divider: Divider, given: Sequence[Divider]) -> tuple[Expression, ...] | None:
    """Return ``divider`` as a function of others, on the streams that both have.

    None if it is none. A column numbered ``input`` stands for the divider of that number.
    """
    shared = streams_of(given) & {stream for stream, _ in divider.values}
    found: tuple[Expression, ...] | None = None
    for stream in sorted(shared):
        values = dict(divider.values)[stream]
        whole = [n for n, each in enumerate(given) if dict(each.values).get(stream) == values]
        if whole:
            made: tuple[Expression, ...] = (Column(PLACE, values[0].type, True, whole[0]),)
        else:
            plain = [dict(each.values).get(stream) for each in given]
            parts = [_lifted(value, plain) for value in values]
            if any(part is None for part in parts):
                return None
            made = tuple(sorted((p for p in parts if p is not None), key=repr))
        if found is not None and made != found:
            return None
        found = made
    return found


def _lifted(
    expression: Expression, plain: Sequence[tuple[Expression, ...] | None]
) -> Expression | None:
    for number, value in enumerate(plain):
        if value == (expression,):
            return Column(PLACE, expression.type, True, number)
    if isinstance(expression, Literal):
        return expression
    if not isinstance(expression, Call) or not FUNCTIONS[expression.function].is_pure:
        return None
    arguments = [_lifted(each, plain) for each in expression.arguments]
    if any(each is None for each in arguments):
        return None
    return replace(expression, arguments=tuple(a for a in arguments if a is not None))


def filled(
    template: Sequence[Expression], given: Sequence[Divider], streams: frozenset[str]
) -> Divider:
    """Return the function of ``given`` that a template is, over ``streams``."""
    values: dict[str, tuple[Expression, ...]] = {}
    for stream in streams:
        own = [dict(each.values).get(stream, ()) for each in given]
        if len(template) == 1 and isinstance(template[0], Column) and template[0].name == PLACE:
            values[stream] = own[template[0].input]
            continue

        def change(part: Expression, own: Sequence[tuple[Expression, ...]] = own) -> Expression:
            is_place = isinstance(part, Column) and part.name == PLACE
            return own[part.input][0] if is_place and isinstance(part, Column) else part

        values[stream] = tuple(map_expression(each, change) for each in template)
    return Divider.of(values)
