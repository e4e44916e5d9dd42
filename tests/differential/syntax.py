"""The little language of the differential test.

Queries as plain trees that print themselves as GSQL. Nothing of gscope is used here.
``evaluate.py`` says what a tree means, ``queries.py`` grows random ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING
from zlib import crc32

from tests.differential.join_styles import JOIN_STYLES, SQL_JOIN_STYLES, SQL_STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.differential.sliding import Window

Value = bool | int | float | bytes | None


HIDDEN = "hidden"
"""How the names of queries begin that are not delivered: others read them."""


class Type(Enum):
    """Types of values; an IP is an int of 128 bits, a TIMESTAMP an int of nanoseconds."""

    BOOL = auto()
    INT = auto()
    FLOAT = auto()
    STRING = auto()
    IP = auto()
    MAC = auto()
    TIMESTAMP = auto()
    INTERVAL = auto()


@dataclass(frozen=True, slots=True)
class Expression:
    """An operator or function over arguments, or a leaf.

    A ``key`` has the group-by term as its argument, and is written out where its ``value`` is true.

    Attributes:
        op: ``column``, ``key``, ``literal``, ``aggregate``, or what is in ``PATTERNS``, or a
            function's name.
        text: of a literal, as it is written; of a column, its name; of an aggregate, its function.
        value: of a literal.
        side: of a column: which input it is of.
        is_aggregate: of a column: whether an aggregate is in it, in the query that makes it.
    """

    op: str
    type: Type
    arguments: tuple[Expression, ...] = ()
    text: str = ""
    value: Value = None
    side: int = 0
    is_aggregate: bool = False

    def render(self, aliases: tuple[str, ...] = ("",)) -> str:
        """As GSQL; ``aliases`` names the inputs, "" leaves columns unqualified."""
        parts = [argument.render(aliases) for argument in self.arguments]
        match self.op:
            case "literal":
                return self.text
            case "key":
                return parts[0] if self.value else self.text
            case "column":
                alias = aliases[self.side]
                return f"{alias}.{self.text}" if alias else self.text
            case "aggregate":
                return self.text.format(*parts)
            case "in" | "not in":
                return f"({parts[0]} {self.op.upper()} ({', '.join(parts[1:])}))"
            case "case":
                return _case(parts, "CASE")
            case "simple case":
                return _case(parts[1:], f"CASE {parts[0]}")
        pattern = PATTERNS.get(self.op)
        return pattern.format(*parts) if pattern else f"{self.op}({', '.join(parts)})"

    def walk(self) -> Iterator[Expression]:
        """This expression and all below it."""
        yield self
        for argument in self.arguments:
            yield from argument.walk()

    @property
    def has_aggregate(self) -> bool:
        """Whether it, or a column that it reads, contains an aggregate.

        Then ``/`` has a fraction.
        """
        return any(part.op == "aggregate" or part.is_aggregate for part in self.walk())

    @property
    def is_constant(self) -> bool:
        """Whether no column has a say in it."""
        return all(part.op not in ("column", "key", "aggregate") for part in self.walk())


PATTERNS: dict[str, str] = {
    **{
        op: f"({{0}} {op.upper()} {{1}})"
        for op in "+ - * / % div & | << >> || = <> < <= > >= and or like".split()  # noqa: SIM905
    },
    **{op: f"({{0}} {op.upper()} {{1}})" for op in ("is distinct from", "is not distinct from")},
    **{
        op: f"({{0}} {op.upper()})" for op in ("is true", "is not true", "is false", "is not false")
    },
    "not like": "({0} NOT LIKE {1})",
    "not": "(NOT {0})",
    "negative": "(- {0})",
    "invert": "(~ {0})",
    "is null": "({0} IS NULL)",
    "is not null": "({0} IS NOT NULL)",
    "between": "({0} BETWEEN {1} AND {2})",
    "not between": "({0} NOT BETWEEN {1} AND {2})",
    "str_match_start": "str_match_start[{0}, {1}]",
    "str_exists_substr": "str_exists_substr[{0}, {1}]",
    "in_net": "in_net[{0}, {1}]",
    "is_private": "is_private[{0}]",
    **{name: f"{name}[{{0}}, {{1}}, {{2}}]" for name in ("byte_match_offset", "str_match_offset")},
}
"""How operators are written; everything else is a function."""


def _case(parts: list[str], head: str) -> str:
    branches = " ".join(
        f"WHEN {condition} THEN {result}"
        for condition, result in zip(parts[:-1:2], parts[1::2], strict=True)
    )
    return f"({head} {branches} ELSE {parts[-1]} END)"


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a source offers.

    Attributes:
        unit_ns: of a column that increases with time: about how much time one step of it is; 0 for
            others.
        is_small: INT only: a small number of a packet, such as its length.
        is_ordered: it is made of ordered columns, so that it may be found to be ordered itself.
        is_aggregate: whether an aggregate is in it.
    """

    name: str
    type: Type
    unit_ns: int = 0
    is_small: bool = True
    is_ordered: bool = False
    is_aggregate: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """The packets of a protocol on ``interfaces``; ``text`` is how the query says so."""

    protocol: str
    interfaces: tuple[str, ...]
    text: str
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """What it is called without an alias."""
        return self.protocol


@dataclass(frozen=True, slots=True)
class Named:
    """A column with its name."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Term:
    """A term of ORDER BY: the name of a column."""

    name: str
    is_descending: bool
    has_nulls_first: bool

    @property
    def text(self) -> str:
        """As GSQL."""
        falls = " DESC" if self.is_descending else ""
        return f"{self.name}{falls}{' NULLS FIRST' if self.has_nulls_first else ''}"


def _order(terms: tuple[Term, ...], limit: int | None) -> str:
    text = f"\n  ORDER BY {', '.join(term.text for term in terms)}" if terms else ""
    return text + ("" if limit is None else f"\n  LIMIT {limit}")


@dataclass(frozen=True, slots=True)
class Query:
    """What all queries have: a name, and the columns others can read."""

    name: str
    fields: tuple[Field, ...]

    @property
    def sources(self) -> tuple[Readable, ...]:
        """What it reads."""
        return ()

    def reading(self, queries: Mapping[str, Query]) -> Query:
        """The same query, reading those of ``queries`` that are called like its sources."""
        raise AssertionError

    @property
    def body(self) -> str:
        """The text without the name."""
        raise AssertionError

    @property
    def text(self) -> str:
        """The query as it stands in a file; delivered, unless it is made for others to read."""
        visibility = "internal" if self.name.startswith(HIDDEN) else "external"
        define = f"DEFINE {{ query_name '{self.name}'; visibility '{visibility}'; }}"
        return f"{define}\n{self.body};"


@dataclass(frozen=True, slots=True)
class Select(Query):
    """A selection, of distinct rows or all."""

    source: Source
    alias: str
    where: Expression | None
    columns: tuple[Named, ...]
    is_distinct: bool = False
    order: tuple[Term, ...] = ()
    limit: int | None = None

    @property
    def sources(self) -> tuple[Readable, ...]:
        """What it reads."""
        return self.source.inputs if isinstance(self.source, Join) else (self.source,)

    def reading(self, queries: Mapping[str, Query]) -> Query:
        """The same query over other sources."""
        return replace(self, source=_reading(self.source, queries))

    @property
    def body(self) -> str:
        """The text without the name."""
        head = "SELECT DISTINCT" if self.is_distinct else "SELECT"
        text = _selection(head, self.columns, self.source, self.alias, self.where)
        return text + _order(self.order, self.limit)


@dataclass(frozen=True, slots=True)
class Group(Query):
    """An aggregation. With ``closing`` a running one, with ``window`` one of each window.

    Attributes:
        epoch: which of ``keys`` is the epoch; None if the whole input is, or each window.
        columns, having, closing: over keys and aggregates.
        step: the difference of consecutive epochs.
        is_distinct: whether the distinct keys of each window are asked for, without aggregates.
    """

    source: Source
    alias: str
    where: Expression | None
    keys: tuple[Named, ...]
    epoch: int | None
    having: Expression | None
    columns: tuple[Named, ...]
    closing: Expression | None = None
    step: int = 1
    order: tuple[Term, ...] = ()
    limit: int | None = None
    window: Window | None = None
    is_distinct: bool = False

    @property
    def sources(self) -> tuple[Readable, ...]:
        """What it reads."""
        return self.source.inputs if isinstance(self.source, Join) else (self.source,)

    def reading(self, queries: Mapping[str, Query]) -> Query:
        """The same query over other sources."""
        return replace(self, source=_reading(self.source, queries))

    @property
    def body(self) -> str:
        """The text without the name."""
        aliases = _aliases(self.source, self.alias)
        head = "SELECT DISTINCT" if self.is_distinct else "SELECT"
        has_terms = self.keys and not self.is_distinct
        return (
            _selection(head, self.columns, self.source, self.alias, self.where, self.window)
            + (f"\n  GROUP BY {_list(self.keys, aliases)}" if has_terms else "")
            + f"{_clause('HAVING', self.having, aliases)}"
            f"{_clause('CLOSING_WHEN', self.closing, aliases)}"
            f"{_order(self.order, self.limit)}"
        )


@dataclass(frozen=True, slots=True)
class Merge(Query):
    """The union of inputs of like columns, ordered on column ``position``."""

    inputs: tuple[Readable, ...]
    aliases: tuple[str, ...]
    position: int
    slack: int

    @property
    def sources(self) -> tuple[Readable, ...]:
        """What it reads."""
        return self.inputs

    def reading(self, queries: Mapping[str, Query]) -> Query:
        """The same query over other sources."""
        return replace(self, inputs=tuple(queries.get(s.name, s) for s in self.inputs))

    @property
    def body(self) -> str:
        """The text without the name; where UNION ALL means the same, half of them use it."""
        if (self.position, self.slack) == (0, 0) and crc32(self.name.encode()) % 2:
            pairs = zip(self.inputs, self.aliases, strict=True)
            return "\n  UNION ALL ".join(f"SELECT * FROM {_from(*pair)}" for pair in pairs)
        on = " : ".join(
            f"{alias}.{source.fields[self.position].name}"
            for source, alias in zip(self.inputs, self.aliases, strict=True)
        )
        slack = f" SLACK {self.slack}" if self.slack else ""
        inputs = ", ".join(
            _from(source, alias) for source, alias in zip(self.inputs, self.aliases, strict=True)
        )
        return f"MERGE {on}{slack}\n  FROM {inputs}"


@dataclass(frozen=True, slots=True)
class Join:
    """Two inputs of one SELECT; its columns keep their side.

    Attributes:
        kind: ``inner``, ``left``, ``right`` or ``full``.
        style: how it is written, see ``join_styles.py``.
        equalities: expressions of the left and of the right that are equal, the temporal one first.
        conditions: what else is asked, of either side or of both; of both sides none is an equality
            or AND.
        sides: the fields of either side, with a unit those that stay ordered in the result.
        interval: the right's time may be this much ahead of the left's, from and to; None if equal.
        where: of an outer join in SQL's spelling, what chooses from its result.
        terms: expressions over the result that increase, with their units.
    """

    kind: str
    style: int
    inputs: tuple[Scan | Query, Scan | Query]
    aliases: tuple[str, str]
    equalities: tuple[tuple[Expression, Expression], ...]
    conditions: tuple[Expression, ...]
    sides: tuple[tuple[Field, ...], tuple[Field, ...]]
    interval: tuple[int, int] | None = None
    where: Expression | None = None
    terms: tuple[tuple[Expression, int], ...] = ()

    @property
    def name(self) -> str:
        """It is read in place, and has none."""
        return ""

    @property
    def is_sql(self) -> bool:
        """Whether it is an outer join in SQL's spelling."""
        return self.style in SQL_STYLES and self.kind != "inner"

    @property
    def outer_sides(self) -> tuple[bool, bool]:
        """Whether all rows of the left, and of the right, are in the result."""
        return self.kind in ("left", "full"), self.kind in ("right", "full")

    def text(self, head: str, columns: str) -> str:
        """A SELECT of ``columns``, up to WHERE."""
        inputs = [_from(s, a) for s, a in zip(self.inputs, self.aliases, strict=True)]
        parts = [
            " = ".join(side.render(self.aliases) for side in equality)
            for equality in self.equalities
        ]
        if self.interval is not None:
            parts[0] = self._interval_text(
                *(side.render(self.aliases) for side in self.equalities[0])
            )
        parts += [c.render(self.aliases) for c in self.conditions]
        styles = SQL_JOIN_STYLES if self.is_sql else JOIN_STYLES[self.kind]
        pattern = styles[self.style % len(styles)]
        text = pattern.format(head, columns, *inputs, " AND ".join(parts), self.kind.upper())
        return text + _clause("WHERE", self.where, self.aliases)

    def _interval_text(self, left: str, right: str) -> str:
        """How far the right's time may be ahead of the left's, in one of several ways to say it."""
        assert self.interval is not None
        least, most = self.interval
        is_time = self.equalities[0][0].type is Type.TIMESTAMP

        def moved(base: str, by: int) -> str:
            length = f"INTERVAL '{abs(by) // 10**6} ms'" if is_time else str(abs(by))
            return f"{base} {'-' if by < 0 else '+'} {length}"

        ways = [
            f"{right} BETWEEN {moved(left, least)} AND {moved(left, most)}",
            f"{left} BETWEEN {moved(right, -most)} AND {moved(right, -least)}",
            f"{right} >= {moved(left, least)} AND {moved(right, -most)} <= {left}",
        ]
        if not is_time:
            ways.append(f"{right} - {left} <= {most} AND {left} - {right} <= {-least}")
            if least == -most:
                ways.append(f"abs({right} - {left}) <= {most}")
        return ways[self.style % len(ways)]


Readable = Scan | Query
Source = Scan | Query | Join


def _reading(source: Source, queries: Mapping[str, Query]) -> Source:
    if not isinstance(source, Join):
        return queries.get(source.name, source)
    left, right = source.inputs
    return replace(
        source,
        inputs=(queries.get(left.name, left), queries.get(right.name, right)),
    )


def _aliases(source: Source, alias: str) -> tuple[str, ...]:
    return source.aliases if isinstance(source, Join) else (alias,)


def _selection(
    head: str,
    columns: tuple[Named, ...],
    source: Source,
    alias: str,
    where: Expression | None,
    window: Window | None = None,
) -> str:
    aliases = _aliases(source, alias)
    shown = _list(columns, aliases)
    if isinstance(source, Join):
        return source.text(head, shown)
    input_ = _from(source, alias, window)
    return f"{head} {shown}\n  FROM {input_}{_clause('WHERE', where, aliases)}"


def _from(source: Readable, alias: str, window: Window | None = None) -> str:
    parts = [source.text if isinstance(source, Scan) else source.name, alias]
    if window is not None:
        parts.insert(1 if window.is_before_alias else 2, window.text)
    return " ".join(part for part in parts if part)


def _list(columns: tuple[Named, ...], aliases: tuple[str, ...]) -> str:
    return ", ".join(f"{c.expression.render(aliases)} AS {c.name}" for c in columns)


def _clause(word: str, condition: Expression | None, aliases: tuple[str, ...]) -> str:
    return "" if condition is None else f"\n  {word} {condition.render(aliases)}"


def closure(query: Query) -> list[Query]:
    """The query and all it reads, those who are read first."""
    found: list[Query] = []

    def visit(one: Readable) -> None:
        if isinstance(one, Scan) or any(one.name == known.name for known in found):
            return
        for source in one.sources:
            visit(source)
        found.append(one)

    visit(query)
    return found


def column(field: Field, side: int = 0) -> Expression:
    """A reference to a column of an input."""
    return Expression(
        "column", field.type, text=field.name, side=side, is_aggregate=field.is_aggregate
    )


def literal(text: str, type_: Type, value: Value) -> Expression:
    """A constant."""
    return Expression("literal", type_, text=text, value=value)
