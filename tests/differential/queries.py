"""Random well-typed queries: selections, aggregations, merges, over packets and over each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.differential.calls import OF_PACKETS, PLAIN, RUNNING, calls
from tests.differential.epochs import in_steps, in_units, moves_in_steps, temporal
from tests.differential.fields import PROTOCOLS
from tests.differential.growth import Grower
from tests.differential.orders import in_order
from tests.differential.pairing import random_join
from tests.differential.sliding import can_slide, other_window, random_window
from tests.differential.syntax import (
    HIDDEN,
    Expression,
    Field,
    Group,
    Join,
    Merge,
    Named,
    Query,
    Scan,
    Select,
    Type,
    closure,
    column,
    literal,
)
from tests.differential.traffic import Known

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from tests.differential.evaluate import Reference
    from tests.differential.syntax import Readable, Source

MAX_DEPTH = 3
MAX_ROWS = 2000
"""Joins of joins explode: what has more rows is left out."""

TRIES = 4
"""So often another query is made where one has no rows or too many."""

INTERFACE_SETS = {"pair": ("alpha", "beta")}
"""Sets of interfaces that queries may name, if all their members are there."""

_KEY_TYPES = (Type.INT, Type.INT, Type.IP, Type.IP, Type.BOOL, Type.STRING, Type.MAC, Type.FLOAT)
_COLUMN_TYPES = (*_KEY_TYPES, Type.FLOAT, Type.TIMESTAMP)
_MERGED_TYPES = tuple(kind for kind in _COLUMN_TYPES if kind is not Type.MAC)


@dataclass(slots=True)
class QueryMaker:
    """Makes the queries of one set; each may read those before it.

    Attributes:
        reference: of the traffic they are meant for: most of them should have rows in it, but not
            many.
        has_windows: whether many of them are windows; without, a seed makes what it always made.
    """

    random: Random
    interfaces: tuple[str, ...]
    reference: Reference
    values: Known = field(default_factory=Known)
    has_windows: bool = False
    queries: list[Query] = field(default_factory=list)
    _depths: dict[str, int] = field(default_factory=dict)
    _number: int = 0

    def make(self, count: int) -> list[Query]:
        """``count`` random queries and what they read."""
        kinds = (
            *(self._select, self._group, self._group, self._group, self._merge),
            *(self._join_select, self._join_group, self._join_group),
            *(self._running, self._running),
            *(self._whole, self._whole),
            *((self._window,) * 20 if self.has_windows else ()),
        )
        for _ in range(count):
            for _ in range(TRIES):
                query = self.random.choice(kinds)()
                if self.random.random() < 0.1 or 0 < len(self.reference.rows(query)) <= MAX_ROWS:
                    break
            self._add(query)
        return self.queries

    def _add(self, query: Query) -> Query:
        query = in_order(query)
        self.queries.append(query)
        below = (self._depth(source) for source in query.sources)
        self._depths[query.name] = 1 + max(below)
        return query

    def _depth(self, source: Readable) -> int:
        return 0 if isinstance(source, Scan) else self._depths[source.name]

    def _name(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"

    def _source(self) -> Readable:
        """A protocol, or a query that can still be read."""
        readable = [
            query
            for query in self.queries
            if self._depths[query.name] < MAX_DEPTH and any(f.unit_ns for f in query.fields)
        ]
        if readable and self.random.random() < 0.45:
            return self.random.choice(readable)
        return self._scan()

    def _scan(self, protocol: str = "") -> Scan:
        chosen = protocol or self.random.choice((*PROTOCOLS, "TCP", "TCP", "IP"))
        fields = PROTOCOLS[chosen]
        kind = self.random.random()
        if kind < 0.6:
            return Scan(chosen, self.interfaces, chosen, fields)
        if kind < 0.75 and set(INTERFACE_SETS["pair"]) <= set(self.interfaces):
            return Scan(chosen, INTERFACE_SETS["pair"], f"[pair].{chosen}", fields)
        one = self.random.choice(self.interfaces)
        return Scan(chosen, (one,), f"{one}.{chosen}", fields)

    def _alias(self) -> str:
        return self._name("s") if self.random.random() < 0.3 else ""

    def _where(self, grower: Grower) -> Expression | None:
        return grower.condition() if self.random.random() < 0.6 else None

    def _temporal(self, source: Source) -> tuple[Expression, int]:
        if isinstance(source, Join) and source.terms:
            return self.random.choice(source.terms)
        known = [(f, n) for n, side in enumerate(_sides(source)) for f in side if f.unit_ns]
        return temporal(self.random, *self.random.choice(known))

    def _select(self) -> Select:
        return self._select_of(self._source())

    def _join_select(self) -> Query:
        join = self._join()
        return self._select_of(join) if join else self._select()

    def _join_group(self) -> Query:
        join = self._join()
        if join is None:
            return self._join_select()
        is_ordered = bool(join.terms) or any(f.unit_ns for side in join.sides for f in side)
        if not is_ordered or self.random.random() < 0.15:
            return self._whole_of(join)
        return self._group_of(join)

    def _join(self) -> Join | None:
        left, right = self._source(), self._source()
        if self.random.random() < 0.2:
            right = left
        aliases = self._name("j"), self._name("j")
        return random_join(self.random, self.values, left, right, aliases)

    def _select_of(self, source: Source) -> Select:
        sides = _sides(source)
        grower = Grower.over(self.random, self.values, *sides)
        is_distinct = self.random.random() < 0.25
        columns: list[tuple[Expression, int]] = []
        plain = [(f, side) for side, fields in enumerate(sides) for f in fields if f.unit_ns]
        is_distinct = is_distinct and bool(plain)
        if plain and (is_distinct or self.random.random() < 0.9):
            if self.random.random() < 0.6:
                chosen, side = self.random.choice(plain)
                columns.append((column(chosen, side), chosen.unit_ns))
            else:
                columns.append(self._temporal(source))
        for _ in range(self.random.randrange(1, 5)):
            kind = self.random.choice(_COLUMN_TYPES)
            columns.append((self._column(grower, kind), 0))
        ordered = _ordered(source)
        if not (is_distinct and _touch(ordered, [e for e, unit in columns if not unit])):
            self.random.shuffle(columns)
        named, fields = self._named(columns, grower, ordered)
        if is_distinct:
            first = next(expression for expression, unit in columns if unit)
            others = [expression for expression, _ in columns if expression is not first]
            is_sure = not _has_other_clock(source, first, others)
            fields = _only_first_temporal(fields, is_sure=is_sure)
        where = None if isinstance(source, Join) else self._where(grower)
        return Select(self._name("q"), fields, source, self._alias(), where, named, is_distinct)

    def _column(self, grower: Grower, kind: Type) -> Expression:
        known = grower.known(kind)
        if known is None and kind is Type.MAC:
            kind = Type.INT
        if known is not None and self.random.random() < 0.5:
            return known
        made = grower.grow(kind)
        if made.op == "literal":
            return (
                Expression("+", Type.INT, (made, made))
                if kind is Type.INT
                else grower.grow(kind, 3)
            )
        return made

    def _named(
        self,
        columns: list[tuple[Expression, int]],
        grower: Grower,
        ordered: Collection[Expression],
    ) -> tuple[tuple[Named, ...], tuple[Field, ...]]:
        named, fields = [], []
        for expression, unit in columns:
            name = self._name("c")
            named.append(Named(name, expression))
            is_small = expression in grower.small
            is_ordered = any(part in ordered for part in expression.walk())
            is_aggregate = expression.has_aggregate
            fields.append(Field(name, expression.type, unit, is_small, is_ordered, is_aggregate))
        return tuple(named), tuple(fields)

    def _group(self) -> Group:
        return self._group_of(self._source())

    def _whole(self) -> Query:
        """A grouping of a whole input, or its distinct rows; mostly of what has no time."""
        readable = [query for query in self.queries if self._depths[query.name] < MAX_DEPTH]
        is_query = readable and self.random.random() < 0.6
        return self._whole_of(self.random.choice(readable) if is_query else self._scan())

    def _whole_of(self, source: Source) -> Query:
        grower = Grower.over(self.random, self.values, *_sides(source))
        wanted = [
            self.random.choice(_KEY_TYPES) for _ in range(self.random.choice((0, 0, 1, 1, 2)))
        ]
        made = [column for kind in wanted if not (column := self._column(grower, kind)).is_constant]
        where = None if isinstance(source, Join) else self._where(grower)
        alias = self._alias()
        if made and self.random.random() < 0.3:
            named, fields = self._named([(each, 0) for each in made], grower, _ordered(source))
            return Select(self._name("q"), fields, source, alias, where, named, is_distinct=True)
        keys = [Named(self._name("k"), each) for each in made]
        known = OF_PACKETS if isinstance(source, Scan) else PLAIN
        above = self._above(keys, calls(grower, known))
        columns = [(self._shown(key), 0) for key in keys]
        for _ in range(self.random.randrange(1, 4)):
            called = above.aggregate(self.random.choice((*PLAIN, Type.INT, Type.INT)))
            columns.append((called or above.small[0], 0))
        moving = [key for key in keys if _touch(_ordered(source), [key.expression])]
        known_by = [name for key in moving for name in self._both(key)]
        named, fields = self._named(columns, above, known_by)
        having = above.condition() if self.random.random() < 0.35 else None
        return Group(
            self._name("q"), fields, source, alias, where, tuple(keys), None, having, named
        )

    def _group_of(self, source: Source) -> Group:
        grower = Grower.over(self.random, self.values, *_sides(source))
        epoch, unit = self._temporal(source)
        if self.random.random() < 0.05 and epoch.type is Type.INT:
            epoch, unit = Expression("negative", Type.INT, (epoch,)), 0
        keys = [Named(self._name("k"), epoch)]
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            kind = self.random.choice(_KEY_TYPES)
            made = self._column(grower, kind)
            if not made.is_constant:
                keys.append(Named(self._name("k"), made))
        ordered = _ordered(source)
        if not _touch(ordered, [key.expression for key in keys[1:]]):
            self.random.shuffle(keys)
        at = next(i for i, key in enumerate(keys) if key.expression is epoch)
        if self.random.random() < 0.1:
            second, _ = self._temporal(source)
            keys.append(Named(self._name("k"), second))
        if _has_other_clock(source, epoch, [key.expression for key in keys if key is not keys[at]]):
            unit = 0
        known = OF_PACKETS if isinstance(source, Scan) else PLAIN
        above = self._above(keys, calls(grower, known))
        columns: list[tuple[Expression, int]] = [
            (self._shown(key), unit if number == at else 0)
            for number, key in enumerate(keys)
            if self.random.random() < 0.9
        ]
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.choice((*PLAIN, Type.INT, Type.INT))
            called = above.aggregate(kind)
            if called is None or self.random.random() < 0.3:
                called = self._column(above, self.random.choice(_KEY_TYPES))
            columns.append((called, 0))
        moving = [key for key in keys if key is keys[at] or _touch(ordered, [key.expression])]
        known_by = [name for key in moving for name in self._both(key)]
        named, fields = self._named(columns, above, known_by)
        having = above.condition() if self.random.random() < 0.35 else None
        where = None if isinstance(source, Join) else self._where(grower)
        return Group(
            self._name("q"), fields, source, self._alias(), where, tuple(keys), at, having, named
        )

    def _window(self) -> Group:
        """Groups of each window, or the distinct values in it."""
        slid = [q for q in self.queries if isinstance(q, Group) and q.window is not None]
        if slid and self.random.random() < 0.4:
            return other_window(self.random, self.random.choice(slid), self._name("q"))
        source = found if can_slide(found := self._source()) else self._scan()
        window = random_window(self.random, source)
        grower = Grower.over(self.random, self.values, source.fields)
        wanted = self.random.choices(_KEY_TYPES, k=self.random.choice((0, 1, 1, 2)))
        made = (self._column(grower, kind) for kind in wanted)
        keys = tuple(Named(self._name("k"), each) for each in made if not each.is_constant)
        is_distinct = bool(keys) and self.random.random() < 0.1
        known = OF_PACKETS if isinstance(source, Scan) else PLAIN
        edges = [each for each, _ in window.columns]
        above = self._above(keys, calls(grower, known), edges)
        columns = [each for each in window.columns if self.random.random() < 0.6]
        if is_distinct:
            columns += [(replace(self._key(key), value=True), 0) for key in keys]
        else:
            columns += [(self._shown(key), 0) for key in keys if self.random.random() < 0.9]
            for _ in range(self.random.randrange(1, 4)):
                called = above.aggregate(self.random.choice((*PLAIN, Type.INT, Type.INT)))
                columns.append((called or above.small[0], 0))
        self.random.shuffle(columns)
        named, fields = self._named(columns, above, edges)
        has_having = not is_distinct and self.random.random() < 0.3
        having = above.condition() if has_having else None
        return Group(
            *(self._name("q"), fields, source, self._alias(), self._where(grower), keys, None),
            *(having, named),
            window=window,
            is_distinct=is_distinct,
        )

    def _running(self) -> Group:
        """Groups that live across epochs."""
        source = self._source()
        if not isinstance(source, Scan) and any(map(_has_uneven_clock, closure(source))):
            # A column that moves in steps cannot be the epoch of groups that live on.
            source = self._scan()
        units = [f for f in source.fields if f.unit_ns]
        timed = self.random.choice(units)
        grower = Grower.over(self.random, self.values, source.fields)
        length = max(timed.unit_ns, self.random.choice((1, 2, 5, 10, 30)) * 10**9)
        epoch, step = in_steps(self.random, in_units(timed, length))
        keys = [Named(self._name("k"), epoch)]
        ordered = _ordered(source)
        for _ in range(self.random.choice((0, 1, 1, 2))):
            made = self._column(grower, self.random.choice(_KEY_TYPES))
            if not made.is_constant and not _touch(ordered, [made]):
                keys.append(Named(self._name("k"), made))
        self.random.shuffle(keys)
        at = next(i for i, key in enumerate(keys) if key.expression is epoch)
        above = self._above(keys, calls(grower, RUNNING))
        # what moves in steps closes no groups of another query that live across epochs
        unit = length if step == 1 else 0
        columns = [(self._key(key), unit if n == at else 0) for n, key in enumerate(keys)]
        for kind in self.random.choices((Type.INT, Type.INT, Type.FLOAT, Type.IP), k=3):
            called = above.aggregate(kind)
            columns += [] if called is None else [(called, 0)]
        named, fields = self._named(columns, above, self._both(keys[at]))
        having = above.condition() if self.random.random() < 0.25 else None
        empty = Expression("=", Type.BOOL, (above.small[0], literal("0", Type.INT, 0)))
        closing = self.random.choice((empty, above.condition(), _either(empty, above.condition(1))))
        return Group(
            *(self._name("q"), fields, source, self._alias(), self._where(grower)),
            *(tuple(keys), at, having, named, closing),
            step=step,
        )

    def _above(
        self,
        keys: Sequence[Named],
        aggregate: Callable[[Type], Expression | None],
        others: Sequence[Expression] = (),
    ) -> Grower:
        """Grows what stands above groups: of their keys and aggregates."""
        count = Expression("aggregate", Type.INT, text="count(*)")
        leaves = [*(self._key(key) for key in keys), *others]
        return Grower(self.random, leaves, aggregate, [count], self.values)

    def _key(self, key: Named) -> Expression:
        """A group-by term by its name."""
        return Expression("key", key.expression.type, (key.expression,), text=key.name)

    def _both(self, key: Named) -> list[Expression]:
        """A group-by term by its name and written out."""
        return [self._key(key), replace(self._key(key), value=True)]

    def _shown(self, key: Named) -> Expression:
        """The same, now and then written out once more."""
        return replace(self._key(key), value=self.random.random() < 0.15 or None)

    def _merge(self) -> Query:
        if self.random.random() < 0.3:
            return self._merge_of_packets()
        types = [self.random.choice(_MERGED_TYPES) for _ in range(self.random.randrange(1, 4))]
        at = self.random.randrange(len(types) + 1)
        count = self.random.choice((2, 2, 3))
        as_timestamp = self.random.random() < 0.3
        inputs: list[Readable] = [self._like(types, at, as_timestamp) for _ in range(count)]
        return self._merged(inputs, at)

    def _merged(self, inputs: list[Readable], at: int) -> Merge:
        first = inputs[0].fields
        unit = max(source.fields[at].unit_ns for source in inputs)
        fields = tuple(
            replace(
                f,
                unit_ns=unit if i == at else 0,
                is_ordered=False,
                is_small=all(s.fields[i].is_small for s in inputs),
                is_aggregate=any(s.fields[i].is_aggregate for s in inputs),
            )
            for i, f in enumerate(first)
        )
        slack = self.random.choice((0, 0, 0, 1, 3))
        aliases = tuple(self._name("m") for _ in inputs)
        return Merge(self._name("q"), fields, tuple(inputs), aliases, at, slack)

    def _like(self, types: Sequence[Type], at: int, as_timestamp: bool) -> Query:
        """A selection with columns of ``types`` and a temporal one before the one at ``at``."""
        source = self._source()
        wanted = Type.TIMESTAMP if as_timestamp else Type.INT
        known = [f for f in source.fields if f.unit_ns and f.type is wanted]
        if not known:
            source = self._scan()
            known = [f for f in source.fields if f.unit_ns and f.type is wanted]
        grower = Grower.over(self.random, self.values, source.fields)
        columns = [(self._column(grower, kind), 0) for kind in types]
        chosen = self.random.choice([f for f in known if f.name != "time_ns"] or known)
        columns.insert(at, (column(chosen), chosen.unit_ns))
        named, fields = self._named(columns, grower, _ordered(source))
        made = Select(self._name("q"), fields, source, self._alias(), self._where(grower), named)
        return self._add(made)

    def _merge_of_packets(self) -> Query:
        """A merge of all fields of packets, which the reference cannot show, and what reads it."""
        protocol = self.random.choice(("TCP", "IP", "PKT", "UDP"))
        inputs: list[Readable] = [self._scan(protocol) for _ in range(self.random.choice((2, 3)))]
        at = self.random.choice((0, 1))
        merge = self._merged(inputs, at)
        hidden = replace(merge, name=merge.name.replace("q", HIDDEN))
        self._add(hidden)
        alias = self._alias()
        grower = Grower.over(self.random, self.values, hidden.fields)
        columns = [(column(hidden.fields[at]), hidden.fields[at].unit_ns)]
        columns += [(self._column(grower, self.random.choice(_COLUMN_TYPES)), 0) for _ in range(3)]
        named, fields = self._named(columns, grower, _ordered(hidden))
        return Select(self._name("q"), fields, hidden, alias, self._where(grower), named)


def _has_uneven_clock(query: Query) -> bool:
    """Whether groups that live on cannot, or not by a rule that is known here, follow its times."""
    source = query.source if isinstance(query, Select | Group) else None
    is_window = isinstance(query, Group) and query.window is not None
    return (
        is_window or moves_in_steps(query.body) or (isinstance(source, Join) and bool(source.terms))
    )


def _either(one: Expression, other: Expression) -> Expression:
    return Expression("or", Type.BOOL, (one, other))


def _ordered(source: Source) -> list[Expression]:
    """The columns of which an order is known, or may be inferred."""
    return [
        column(f, number)
        for number, side in enumerate(_sides(source))
        for f in side
        if f.unit_ns or f.is_ordered
    ]


def _sides(source: Source) -> tuple[tuple[Field, ...], ...]:
    return source.sides if isinstance(source, Join) else (source.fields,)


def _touch(ordered: Collection[Expression], expressions: Collection[Expression]) -> bool:
    """Whether some expression may be temporal too: then the epoch must be the first key."""
    return any(part in ordered for e in expressions for part in e.walk())


def _has_other_clock(source: Source, epoch: Expression, others: Sequence[Expression]) -> bool:
    """Whether a term may close groups in place of ``epoch``, which need not stay temporal then.

    Times of packets are one clock; of a query or a join, each column is a clock of its own.
    """
    if isinstance(source, Scan):
        return False
    own = [part for part in epoch.walk() if part.op == "column"]
    return _touch([each for each in _ordered(source) if each not in own], others)


def _only_first_temporal(fields: tuple[Field, ...], *, is_sure: bool) -> tuple[Field, ...]:
    """Return the fields of distinct rows; without ``is_sure`` no order of the first is known."""
    first = next(i for i, f in enumerate(fields) if f.unit_ns)
    return tuple(
        f if i == first and is_sure else replace(f, unit_ns=0) for i, f in enumerate(fields)
    )
