"""The inputs of a join: their columns, and what a name stands for among them."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.typing.schemas import column_schema
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
from gscope.queries.expressions.schema import Schema, free_name
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk
from gscope.queries.plan.logical import Node, Project, QueryScan
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.analysis.names.scope import Source

_INNER = "inner"


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One input of a join.

    For the packets of ``FROM flows f, TCP``:

    Attributes:
        number: 1, the place behind FROM; ``Column.input`` of its columns.
        source: TCP, open for look-up.
        node: a stream: of packets, their projection to the fields of TCP.
        meanings: the column of ``node`` for each expression that a name stands for.
    """

    number: int
    source: Source
    node: Node
    meanings: Mapping[Expression, Column]

    @property
    def label(self) -> str:
        """The name that the query gives the input: its alias, else what it reads."""
        return self.source.qualifiers[0]

    def find(self, text: str) -> Column | None:
        """Return the column that a name without qualifier stands for, None if it is unknown."""
        meaning = self.source.find(text)
        return None if meaning is None else self.meanings[meaning]

    def find_foreign(self, text: str) -> Column | None:
        """Return the column that other tools call ``text``, None if they call none so."""
        meaning = self.source.find_foreign(text)
        return None if meaning is None else self.meanings.get(meaning)

    def star(self) -> list[tuple[str, Column]]:
        """Return the names and columns that ``*`` stands for."""
        return [(name, self.meanings[self.source.fields[name]]) for name in self.source.stars]


def open_join_input(number: int, source: Source) -> JoinInput:
    """Return a source as input ``number`` of a join."""
    if isinstance(source.node, QueryScan):
        columns: dict[Expression, Column] = {e: replace(e, input=number) for e in _columns(source)}
        return JoinInput(number, source, source.node, columns)
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
    return JoinInput(number, source, Project(source.node, projected, schema), columns_of)


@dataclass(slots=True)
class JoinNames:
    """What the names in the clauses of a join stand for.

    In ``SELECT tb FROM a, b WHERE a.tb = b.tb``, tb needs no qualifier, as a.tb and b.tb are equal:

    Attributes:
        inputs: a and b, in the order of FROM.
        equated: ``[{a.tb, b.tb}]``: sets of columns that the join makes equal.
    """

    inputs: tuple[JoinInput, ...]
    equated: list[set[Column]] = field(default_factory=list)

    def equate(self, one: Column, other: Column) -> None:
        """Note that the join makes two columns equal."""
        touched = [each for each in self.equated if one in each or other in each]
        self.equated = [each for each in self.equated if each not in touched]
        self.equated.append({one, other}.union(*touched))

    def resolve(self, name: nodes.Name, prefer: int | None = None) -> Column:
        """Return the column that ``name`` stands for.

        Args:
            name: with or without a qualifier.
            prefer: the number of the input to choose among several columns of this name that are
                equal; None for the first.

        Raises:
            ResolveError: no column has this name, or several that need not be equal.
        """
        found = self.candidates(name)
        first = found[0]
        if len(found) > 1 and not any(set(found) <= each for each in self.equated):
            raise self._ambiguous(name, found)
        return next((column for column in found if column.input == prefer), first)

    def is_ambiguous(self, node: nodes.Node) -> bool:
        """Return whether a name in a piece of syntax stands for columns of several inputs."""
        return any(
            len(self.candidates(part)) > 1 for part in walk(node) if isinstance(part, nodes.Name)
        )

    def candidates(self, name: nodes.Name) -> list[Column]:
        """Return all columns that ``name`` may stand for, in the order of the inputs; at least one.

        Raises:
            ResolveError: no column has this name, or the qualifier names several inputs.
        """
        inputs, text = self._split(name)
        for find in (JoinInput.find, JoinInput.find_foreign):
            found = [column for each in inputs if (column := find(each, text)) is not None]
            if found:
                return found
        what = " and ".join(each.source.what for each in inputs)
        verb = "has" if len(inputs) == 1 else "have"
        message = f"{what} {verb} no column {text}"
        known = [known for each in inputs for known in each.source.stars]
        remedy = did_you_mean(text, known, "available columns")
        raise ResolveError(message, position=name.position, remedy=remedy)

    def of_qualifier(self, qualifier: str, position: nodes.Node) -> JoinInput:
        """Return the input called ``qualifier``: by its alias, else by what it reads.

        Raises:
            ResolveError: no input has this name, or several.
        """
        found = [each for each in self.inputs if each.source.qualifiers[0] == qualifier]
        found = found or [each for each in self.inputs if qualifier in each.source.qualifiers]
        if len(found) == 1:
            return found[0]
        labels = [each.label for each in self.inputs]
        if found:
            message = f"several inputs are called {qualifier}"
            remedy = f"give them names: {qualifier} AS {qualifier}1, {qualifier} AS {qualifier}2"
        else:
            message = f"no input is called {qualifier}"
            remedy = did_you_mean(qualifier, labels, "available inputs")
        raise ResolveError(message, position=position.position, remedy=remedy)

    def _split(self, name: nodes.Name) -> tuple[Sequence[JoinInput], str]:
        """Return the inputs that the qualifier of a name allows, and the name without it."""
        parts = name.parts
        if len(parts) == 1 or (parts[0] == _INNER and not self._is_qualifier(_INNER)):
            return self.inputs, ".".join(parts)
        return (self.of_qualifier(parts[0], name),), ".".join(parts[1:])

    def _is_qualifier(self, text: str) -> bool:
        return any(text in each.source.qualifiers for each in self.inputs)

    def _ambiguous(self, name: nodes.Name, found: Sequence[Column]) -> ResolveError:
        text = ".".join(name.parts)
        labels = [self.inputs[column.input].label for column in found]
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
