"""Random joins are refused with a place, or become programs whose parts fit together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.errors import GsqlError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Expression, walk
from gscope.queries.plan.program import (
    JoinNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
    WatchlistJoinNode,
    node_inputs,
)

INPUTS = """
PROTOCOL T (TCP) { tb = time/60; cnt = len; }
Query g: SELECT tb, srcIP, vlan, count(*) as cnt FROM TCP GROUP BY time/60 as tb, srcIP, vlan;
Query s: SELECT time, time/60 as tb, srcIP, vlan, 5 as five, coalesce(vlan, 0) as v, len as cnt,
  lower(TCP_data) as text FROM TCP WHERE SYN = 1;
Query m: MERGE a.tb : b.tb FROM (SELECT time/60 as tb, srcIP, len as cnt, vlan FROM x.TCP) a,
  (SELECT time/60 as tb, srcIP, len as cnt, vlan FROM y.UDP) b;
DEFINE { query_name 'w'; filename 'w.csv'; } WATCHLIST FIELDS { IP srcIP; int cnt; int vlan; int tb };
"""  # noqa: E501
STREAM = st.sampled_from(
    ["g", "s", "m", "T", "x.T", "(SELECT tb, srcIP, vlan, cnt+1 as cnt FROM g)"]
)
FIELDS = ["tb", "srcIP", "vlan", "cnt"]
TERMS = st.sampled_from(
    [
        *(f"{side}.{name}" for side in "pq" for name in FIELDS),
        *("p.tb/2", "q.tb + 1", "p.cnt + q.cnt", "coalesce(q.cnt, p.vlan, 1)", "1", "tb"),
        *("p.five", "p.v", "p.text", "upper(p.text)", "p.interface", "q.time", "r.cnt"),
    ]
)
EPOCHS = st.sampled_from(
    ["{}.tb = {}.tb", "{}.tb = {}.tb + 1", "{}.tb/2 = {}.tb", "{}.vlan = {}.tb"]
)
REST = st.lists(
    st.one_of(
        st.tuples(TERMS, st.sampled_from(["=", "<", "<>"]), TERMS).map(" ".join),
        st.sampled_from(["p.text = 'x'", "p.srcIP = q.srcIP", "(p.cnt > 1 or q.cnt > 1)", "NULL"]),
        st.sampled_from(["tb > 5", "1 = 2", "p.cnt = q.vlan", "q.srcIP = '10.0.0.1'"]),
    ),
    max_size=3,
)
KINDS = st.sampled_from(
    [", ", " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " FILTER_JOIN(tb, 2) "]
)
TAILS = st.sampled_from(
    ["", "", " GROUP BY p.tb", " GROUP BY tb HAVING count(*) > 1 and tb > 3", " GROUP BY q.srcIP"]
)


@settings(max_examples=200, deadline=None)
@given(
    inputs=st.lists(STREAM, min_size=1, max_size=2),
    last=STREAM | st.just("w"),
    kind=KINDS,
    epochs=st.lists(EPOCHS, min_size=2, max_size=2),
    rest=REST,
    outputs=st.lists(TERMS | st.sampled_from(["*", "p.*", "p.tb"]), min_size=1, max_size=3),
    distinct_and_tail=st.tuples(st.sampled_from(["", "", "DISTINCT "]), TAILS),
    delivers_all=st.booleans(),
)
def test_random_joins_are_refused_with_a_place_or_fit_together(
    inputs: list[str],
    last: str,
    kind: str,
    epochs: list[str],
    rest: list[str],
    outputs: list[str],
    distinct_and_tail: tuple[str, str],
    delivers_all: bool,
) -> None:
    distinct, tail = distinct_and_tail
    kind = ", " if last == "w" else kind
    streams = [*inputs, last]
    named = kind.join(f"{one} {name}" for one, name in zip(streams, "pqr", strict=False))
    pairs = zip(epochs, ("pq", "qr")[: len(inputs)], strict=False)
    conditions = [*(epoch.format(*pair) for epoch, pair in pairs), *rest]
    columns = ["p.tb", "max(q.cnt)", "count(*)"] if tail else outputs
    text = (
        f"Query j: SELECT {distinct}{', '.join(columns)} FROM {named}"
        f" WHERE {' AND '.join(conditions)}{tail}"
    )
    only = ("g", "s", "m", "j") if delivers_all else ("j",)
    context = CompileContext(("x", "y"), only=only)
    program = compiled(text, context)
    if isinstance(program, GsqlError):
        assert program.position is not None
        return
    for node in program.nodes:
        assert len({c.name for c in node.schema.columns}) == len(node.schema.columns)
        if isinstance(node, JoinNode | WatchlistJoinNode | SelectionNode):
            check(program, node)


def compiled(text: str, context: CompileContext) -> Program | GsqlError:
    try:
        return compile_queries([QueryText(INPUTS + text, "j.gsql")], context).program
    except GsqlError as error:
        return error


def check(program: Program, node: JoinNode | WatchlistJoinNode | SelectionNode) -> None:
    """Every column that a node reads is one of its input's, of that type."""
    schemas = []
    for source in node_inputs(node):
        match source:
            case StreamInput(name):
                schemas.append(program.lfta(name).stream_schema)
            case QueryInput(name):
                schemas.append(program.schema(name))
    if isinstance(node, WatchlistJoinNode):
        schemas.append(node.watchlist.schema)
    for expression in expressions(node):
        for part in walk(expression):
            if isinstance(part, Column):
                assert schemas[part.input][part.name].type is part.type, (node.query, part)
    assert node.schema.names == tuple(c.name for c in node.columns)
    for column in node.columns:
        assert node.schema[column.name].type is column.expression.type


def expressions(node: JoinNode | WatchlistJoinNode | SelectionNode) -> list[Expression]:
    found = [column.expression for column in node.columns]
    match node:
        case JoinNode():
            found += [e for pair in (node.epochs, *node.keys) for e in pair]
            found += [e for e in (*node.predicates, node.residual) if e is not None]
        case WatchlistJoinNode():
            found += [e for pair in node.keys for e in pair]
            found += [e for e in (node.predicate, node.residual) if e is not None]
        case SelectionNode():
            found += [node.predicate] if node.predicate is not None else []
    return found
