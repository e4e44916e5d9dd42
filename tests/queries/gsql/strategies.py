"""Hypothesis strategies for syntax nodes: every node that some text stands for, and no other."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from gscope.errors import Position
from gscope.queries.gsql import nodes
from gscope.queries.gsql.literals import MAX_INTEGER
from gscope.queries.gsql.nodes import BinaryOperator, JoinKind, LiteralKind, UnaryOperator
from gscope.queries.gsql.scanner import RESERVED
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

HERE = Position(1, 1)

FIELDS_CALLED_LIKE_KEYWORDS = [
    "time",
    "len",
    "data",
    "protocol",
    "offset",
    "id",
    "type",
    "code",
    "window",
    "interface",
    "op",
    "min",
    "max",
    "first",
    "last",
    "left",
    "right",
    "full",
    "outer",
    "inner",
    "range",
    "slide",
    "slices",
    "slack",
    "define",
    "param",
    "query",
    "with",
    "watchlist",
    "fields",
    "on",
    "cleaning",
    "closing",
    "hex",
    "interval",
    "timeval",
    "ip_val",
    "filter_join",
]

identifiers = st.one_of(
    st.sampled_from(FIELDS_CALLED_LIKE_KEYWORDS),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
).filter(lambda word: word.upper() not in RESERVED)

texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["'", "''", "a\nb", "\\.", "-- x", "/*", "10.0.0.1", "5 sec"]),
)


def _literal(kind: LiteralKind, values: SearchStrategy[Any]) -> SearchStrategy[nodes.LiteralSyntax]:
    return st.builds(nodes.LiteralSyntax, values, st.just(kind), position=st.just(HERE))


integers = _literal(LiteralKind.INTEGER, st.integers(0, MAX_INTEGER))
floats = _literal(LiteralKind.FLOAT, st.floats(0, allow_nan=False, allow_infinity=False).map(abs))
strings = _literal(LiteralKind.STRING, texts)
intervals = _literal(LiteralKind.INTERVAL, st.one_of(st.integers(0, MAX_INT), st.just(15 * 10**9)))
literals = st.one_of(
    integers,
    floats,
    strings,
    intervals,
    _literal(LiteralKind.BOOL, st.booleans()),
    _literal(LiteralKind.NULL, st.none()),
    _literal(LiteralKind.IP, st.integers(0, 2**32 - 1).map(lambda n: str(IPv4Address(n)))),
    _literal(LiteralKind.IPV6, st.integers(0, 2**128 - 1).map(lambda n: str(IPv6Address(n)))),
    _literal(LiteralKind.TIMEVAL, texts),
)

names = st.builds(
    nodes.Name,
    st.builds(lambda first, rest: (first, *rest), identifiers, st.lists(identifiers, max_size=2)),
    position=st.just(HERE),
)
parameters = st.builds(nodes.ParameterReference, identifiers, position=st.just(HERE))
definitions = st.builds(nodes.Definition, identifiers, position=st.just(HERE))
properties = st.builds(nodes.Property, identifiers, position=st.just(HERE))


def _some(
    values: SearchStrategy[Any], least: int = 1, most: int = 3
) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=least, max_size=most).map(tuple)


def _calls(inner: SearchStrategy[Any]) -> SearchStrategy[nodes.FunctionCall]:
    flags = st.booleans()
    here = st.just(HERE)
    return st.one_of(
        st.builds(
            nodes.FunctionCall, identifiers, _some(inner, 0), superaggregate=flags, position=here
        ),
        st.builds(
            nodes.FunctionCall, identifiers, _some(inner), distinct=st.just(True), position=here
        ),
        st.builds(
            nodes.FunctionCall,
            identifiers,
            st.just(()),
            star=st.just(True),
            superaggregate=flags,
            filter=st.one_of(st.none(), inner),
            position=here,
        ),
        st.builds(nodes.FunctionCall, identifiers, _some(inner), filter=inner, position=here),
        st.builds(
            nodes.FunctionCall, identifiers, _some(inner, 0), bracketed=st.just(True), position=here
        ),
    )


def _compound(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    here = st.just(HERE)
    branches = st.builds(nodes.CaseBranch, inner, inner, position=here)
    maybe = st.one_of(st.none(), inner)
    return st.one_of(
        st.builds(nodes.Unary, st.sampled_from(UnaryOperator), inner, position=here),
        st.builds(nodes.Binary, st.sampled_from(BinaryOperator), inner, inner, position=here),
        _calls(inner),
        st.builds(nodes.Case, maybe, _some(branches, 1, 2), maybe, position=here),
        st.builds(nodes.InList, inner, _some(inner), st.booleans(), position=here),
        st.builds(nodes.Between, inner, inner, inner, st.booleans(), position=here),
        st.builds(nodes.Like, inner, inner, st.booleans(), position=here),
        st.builds(nodes.IsNull, inner, st.booleans(), position=here),
        st.builds(nodes.IsTruth, inner, st.booleans(), st.booleans(), position=here),
        st.builds(nodes.IsDistinct, inner, inner, st.booleans(), position=here),
    )


expressions = st.recursive(
    st.one_of(names, literals, parameters, definitions, properties), _compound, max_leaves=12
)
small_expressions = st.recursive(st.one_of(names, literals), _compound, max_leaves=3)

extents = st.one_of(integers, intervals, parameters, definitions)
windows = st.one_of(
    st.builds(
        nodes.RangeWindow,
        extents,
        st.one_of(st.none(), extents),
        st.one_of(st.none(), names),
        position=st.just(HERE),
    ),
    st.builds(
        nodes.SlicesWindow, _some(extents), st.one_of(st.none(), names), position=st.just(HERE)
    ),
)

interface_names = st.one_of(
    identifiers, st.sampled_from(["eth0.100", "main-1", "select", "it's", "10.0.0.1"])
)


@st.composite
def stream_inputs(draw: st.DrawFn) -> nodes.NamedInput:
    place: dict[str, Any] = draw(
        st.one_of(
            st.just({}),
            st.fixed_dictionaries({"interface": interface_names}),
            st.fixed_dictionaries({"interface": interface_names, "host": interface_names}),
            st.fixed_dictionaries({"interface_set": interface_names}),
            st.fixed_dictionaries({"library": _some(identifiers, 1, 2).map("/".join)}),
        )
    )
    return nodes.NamedInput(
        draw(identifiers),
        alias=draw(st.one_of(st.none(), identifiers)),
        window=draw(st.one_of(st.none(), windows)),
        position=HERE,
        **place,
    )


def _inputs(bodies: SearchStrategy[Any]) -> SearchStrategy[Any]:
    alias = st.one_of(st.none(), identifiers)
    window = st.one_of(st.none(), windows)
    subqueries = st.builds(nodes.SubqueryInput, bodies, alias, window, position=st.just(HERE))
    return st.one_of(stream_inputs(), subqueries)


@st.composite
def joins(draw: st.DrawFn) -> nodes.JoinClause:
    kind = draw(st.sampled_from(JoinKind))
    bound = (
        nodes.FilterBound(draw(names), draw(extents), position=HERE)
        if kind is JoinKind.FILTER
        else None
    )
    return nodes.JoinClause(
        kind, draw(st.one_of(st.none(), small_expressions)), bound, position=HERE
    )


_order_terms = st.builds(
    nodes.OrderTerm, small_expressions, st.booleans(), st.booleans(), position=st.just(HERE)
)
_limits = st.one_of(
    integers,
    st.builds(nodes.ParameterReference, identifiers, position=st.just(HERE)),
    st.builds(nodes.Definition, identifiers, position=st.just(HERE)),
)

_samplings = st.one_of(
    st.tuples(_some(small_expressions, 0, 2), st.just(False)),
    st.just(((), True)),
)


@st.composite
def selects(draw: st.DrawFn, inputs: SearchStrategy[Any]) -> nodes.Select:
    name = st.one_of(st.none(), identifiers)
    here = st.just(HERE)
    output = st.one_of(
        st.builds(nodes.OutputItem, small_expressions, name, position=here),
        st.builds(nodes.Star, name, position=here),
    )
    terms = _some(st.builds(nodes.GroupTerm, small_expressions, name, position=here), 0, 2)
    condition = st.one_of(st.none(), small_expressions)
    sources = draw(_some(inputs))
    return nodes.Select(
        draw(_some(output)),
        sources,
        tuple(draw(joins()) for _ in sources[1:]),
        draw(st.booleans()),
        draw(condition),
        draw(terms),
        draw(terms),
        draw(condition),
        draw(condition),
        draw(condition),
        draw(condition),
        draw(_some(_order_terms, 0, 2)),
        draw(st.one_of(st.none(), _limits)),
        *draw(_samplings),
        position=HERE,
    )


@st.composite
def merges(draw: st.DrawFn, inputs: SearchStrategy[Any]) -> nodes.MergeQuery:
    sources = draw(_some(inputs, 2, 3))
    columns = tuple(draw(names) for _ in sources)
    slack = draw(st.one_of(st.none(), extents))
    return nodes.MergeQuery(columns, sources, slack, *draw(_samplings), position=HERE)


@st.composite
def unions(draw: st.DrawFn) -> nodes.MergeQuery:
    """Return a UNION ALL of SELECTs; what stands behind the last belongs to the union."""
    members = draw(_some(selects(stream_inputs()), 2, 3))
    last = replace(members[-1], order_by=(), limit=None, sample_by=(), is_not_sampled=False)
    inputs = tuple(nodes.SubqueryInput(one, position=HERE) for one in (*members[:-1], last))
    return nodes.MergeQuery((), inputs, None, *draw(_samplings), position=HERE)


watchlists = st.builds(
    nodes.WatchlistQuery,
    _some(st.builds(nodes.WatchField, identifiers, identifiers, position=st.just(HERE)), 0, 2),
    position=st.just(HERE),
)


def _nested(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    here = st.just(HERE)
    bindings = st.builds(nodes.WithBinding, identifiers, inner, position=here)
    return st.one_of(
        selects(_inputs(inner)),
        merges(_inputs(inner)),
        st.builds(nodes.With, _some(bindings, 1, 2), inner, position=here),
    )


_flat = st.one_of(selects(stream_inputs()), merges(stream_inputs()), unions(), watchlists)
bodies = st.recursive(_flat, _nested, max_leaves=3)

_signed = st.one_of(
    literals,
    _literal(LiteralKind.INTEGER, st.integers(-MAX_INT, -1)),
    _literal(LiteralKind.FLOAT, st.just(-2.5)),
)
define_entries = st.builds(
    nodes.DefineEntry,
    identifiers.filter(lambda word: word != "query_name"),
    _signed,
    position=st.just(HERE),
)
param_entries = st.builds(nodes.ParamEntry, identifiers, identifiers, position=st.just(HERE))
queries = st.builds(
    nodes.Query,
    st.one_of(st.none(), identifiers),
    bodies,
    st.lists(define_entries, max_size=3, unique_by=lambda entry: entry.name).map(tuple),
    st.lists(param_entries, max_size=2, unique_by=lambda entry: entry.name).map(tuple),
    position=st.just(HERE),
)
protocols = st.builds(
    nodes.ProtocolDefinition,
    identifiers,
    identifiers,
    st.one_of(st.none(), small_expressions),
    _some(
        st.builds(
            nodes.ProtocolFieldDefinition, identifiers, small_expressions, position=st.just(HERE)
        ),
        0,
        3,
    ),
    position=st.just(HERE),
)
files = st.builds(nodes.File, _some(st.one_of(queries, protocols), 0, 3), position=st.just(HERE))
