"""The inputs of a join side by side: their columns, and what a name means among them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
from gscope.queries.expressions.free_name import free_name
from gscope.queries.expressions.schema import Schema
from gscope.queries.gsql import nodes
from gscope.queries.gsql.walk import walk
from gscope.queries.plan.logical import Node, Project, QueryScan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.analysis.names.scope import Source

_INNER = "inner"


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join.

    Attributes:
        number: its place behind FROM; ``Column.input`` of its columns.
        node: a stream with these columns; packets are projected to the fields of their protocol.
        meanings: the column that holds what a name of the source stands for.
    """

    number: int
    source: Source
    node: Node
    meanings: Mapping[Expression, Column]

    @property
    def label(self) -> str:
        """What the query calls it."""
        return self.source.qualifiers[0]

    def find(self, text: str) -> Column | None:
        """The column that a bare name stands for, None if there is none."""
        meaning = self.source.find(text)
        return None if meaning is None else self.meanings[meaning]

    def star(self) -> list[tuple[str, Column]]:
        """What ``*`` stands for: names and columns."""
        return [(name, self.meanings[self.source.fields[name]]) for name in self.source.stars]


def open_side(number: int, source: Source) -> Side:
    """An input of a query as a side of a join."""
    if isinstance(source.node, QueryScan):
        columns: dict[Expression, Column] = {e: replace(e, input=number) for e in _columns(source)}
        return Side(number, source, source.node, columns)
    named: dict[Expression, str] = {}
    for name in (*source.stars, *source.fields):
        if source.fields[name] not in named:
            named[source.fields[name]] = free_name(name.replace(".", "_"), set(named.values()))
    projected = tuple(NamedExpression(name, e) for e, name in named.items())
    schema = Schema(tuple(column_schema(c, source.ordering) for c in projected))
    columns_of = {
        c.expression: Column(c.name, c.expression.type, c.expression.is_nullable, number)
        for c in projected
    }
    return Side(number, source, Project(source.node, projected, schema), columns_of)


@dataclass(slots=True)
class Names:
    """What the names in the clauses of a join stand for.

    Attributes:
        equated: sets of columns that the join makes equal; any of them may go without a qualifier.
    """

    sides: tuple[Side, ...]
    equated: list[set[Column]] = field(default_factory=list)

    def equate(self, one: Column, other: Column) -> None:
        """The join makes two columns equal."""
        touched = [each for each in self.equated if one in each or other in each]
        self.equated = [each for each in self.equated if each not in touched]
        self.equated.append({one, other}.union(*touched))

    def resolve(self, name: nodes.Name, prefer: int | None = None) -> Column:
        """What ``name`` stands for.

        Args:
            name: with or without the name of an input before it.
            prefer: the input to choose when several columns that are equal are called so; None for
                the first.

        Raises:
            ResolveError: nothing is called so, or several columns that need not be equal.
        """
        found = self.candidates(name)
        first = found[0]
        if len(found) > 1 and not any(set(found) <= each for each in self.equated):
            raise self._ambiguous(name, found)
        return next((column for column in found if column.input == prefer), first)

    def is_ambiguous(self, node: nodes.Node) -> bool:
        """Whether a name in a piece of syntax stands for columns of several inputs."""
        return any(
            len(self.candidates(part)) > 1 for part in walk(node) if isinstance(part, nodes.Name)
        )

    def candidates(self, name: nodes.Name) -> list[Column]:
        """All columns that ``name`` may stand for, in the order of the inputs; at least one.

        Raises:
            ResolveError: there is none, or its qualifier fits several inputs.
        """
        sides, text = self._split(name)
        found = [column for side in sides if (column := side.find(text)) is not None]
        if found:
            return found
        what = " and ".join(side.source.what for side in sides)
        verb = "has" if len(sides) == 1 else "have"
        message = f"{what} {verb} no column {text}"
        known = [known for side in sides for known in side.source.stars]
        remedy = did_you_mean(text, known, "columns are")
        raise ResolveError(message, position=name.position, remedy=remedy)

    def of_qualifier(self, qualifier: str, position: nodes.Node) -> Side:
        """The input called ``qualifier``: by its alias, else by what it reads.

        Raises:
            ResolveError: none is called so, or several.
        """
        found = [side for side in self.sides if side.source.qualifiers[0] == qualifier]
        found = found or [side for side in self.sides if qualifier in side.source.qualifiers]
        if len(found) == 1:
            return found[0]
        labels = [side.label for side in self.sides]
        if found:
            message = f"several inputs are called {qualifier}"
            remedy = f"give them names: {qualifier} AS {qualifier}1, {qualifier} AS {qualifier}2"
        else:
            message = f"no input is called {qualifier}"
            remedy = did_you_mean(qualifier, labels, "inputs are")
        raise ResolveError(message, position=position.position, remedy=remedy)

    def _split(self, name: nodes.Name) -> tuple[Sequence[Side], str]:
        parts = name.parts
        if len(parts) == 1 or (parts[0] == _INNER and not self._is_qualifier(_INNER)):
            return self.sides, ".".join(parts)
        return (self.of_qualifier(parts[0], name),), ".".join(parts[1:])

    def _is_qualifier(self, text: str) -> bool:
        return any(text in side.source.qualifiers for side in self.sides)

    def _ambiguous(self, name: nodes.Name, found: Sequence[Column]) -> ResolveError:
        text = ".".join(name.parts)
        labels = [self.sides[column.input].label for column in found]
        message = f"{text} is a column of {' and '.join(labels)}, which need not be equal"
        if len(set(labels)) == 1:
            remedy = (
                f"give the inputs names: {labels[0]} AS {labels[0]}1, {labels[0]} AS {labels[0]}2"
            )
        else:
            remedy = f"write {' or '.join(f'{label}.{text}' for label in labels)}"
        return ResolveError(message, position=name.position, remedy=remedy)


def _columns(source: Source) -> Iterator[Column]:
    return (e for e in source.fields.values() if isinstance(e, Column))
