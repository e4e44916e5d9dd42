"""Random queries: they are refused with a place or they mean what their types say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    PacketField,
    Value,
    walk,
)
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import LogicalPlan, Project

ATOMS = st.sampled_from(
    [
        *("len", "time", "timestamp", "srcIP", "destIP", "srcMAC", "flags", "vlan", "TCP_data"),
        *("SYN", "inner.srcIP", "interface", "5", "0", "-3", "2.5", "'GET'", "'10.0.0.1'", "NULL"),
        *("TRUE", "IP_VAL'::1'", "INTERVAL '5 sec'", "TIMEVAL'12.5'", "0xFFFFFFF0"),
        *("9223372036854775807", "count(*)"),
    ]
)
OPERATORS = st.sampled_from(
    "+ - * / % DIV & | << >> = <> < <= > >= AND OR".split()  # noqa: SIM905
)
FUNCTION_NAMES = st.sampled_from(
    [
        *("abs", "floor", "round", "sqrt", "log", "INT", "FLOAT", "STRING", "BOOL", "TIMESTAMP"),
        *("length", "lower", "to_hex", "to_int", "string_hash", "is_private", "ipv4", "strtoip"),
        *("prefix", "in_net", "str_truncate", "str_find", "pow", "coalesce", "min_of", "if_else"),
        *("str_match_start", "byte_match_offset", "non_temporal", "max"),
    ]
)


def grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, OPERATORS, parts).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["NOT ", "- ", "~ "]), parts).map(lambda t: f"({t[0]}{t[1]})"),
        st.tuples(FUNCTION_NAMES, st.lists(parts, min_size=1, max_size=3)).map(
            lambda t: f"{t[0]}({', '.join(t[1])})"
        ),
        st.tuples(parts, parts, parts).map(
            lambda t: f"(CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END)"
        ),
        st.tuples(parts, parts, parts).map(lambda t: f"({t[0]} IN ({t[1]}, {t[2]}))"),
        st.tuples(parts, parts, parts).map(lambda t: f"({t[0]} BETWEEN {t[1]} AND {t[2]})"),
        parts.map(lambda part: f"({part} IS NOT NULL)"),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=6)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: dict[GsqlType, st.SearchStrategy[Value]] = {
    GsqlType.INT: st.integers(-9, 99) | INT64,
    GsqlType.TIMESTAMP: INT64,
    GsqlType.STRING: st.binary(max_size=9),
    GsqlType.IP: st.integers(0, (1 << 128) - 1) | st.integers(0xFFFF << 32, (0x10000 << 32) - 1),
    GsqlType.MAC: st.integers(0, (1 << 48) - 1),
}
PYTHON_TYPES = {
    GsqlType.BOOL: bool,
    GsqlType.FLOAT: float,
    GsqlType.STRING: bytes,
}


def planned(text: str) -> LogicalPlan | GsqlError:
    try:
        return analyze([parse(text)], ("a",), {}, {}, is_unbounded=True)
    except GsqlError as error:
        return error


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS, st.data())
def test_what_is_accepted_has_the_type_and_nullability_it_states(
    text: str, data: st.DataObject
) -> None:
    plan = planned(f"SELECT {text} AS x FROM TCP")
    if isinstance(plan, GsqlError):
        assert plan.position is not None
        return
    root = plan.queries[0].root
    assert isinstance(root, Project)
    expression = root.columns[0].expression
    check_calls(expression)
    values: dict[str, Value] = {}

    def leaf(field: PacketField | Column) -> Value:
        if field.name not in values:
            strategy = VALUES[field.type]
            values[field.name] = data.draw(st.none() | strategy if field.is_nullable else strategy)
        return values[field.name]

    value = evaluate(expression, leaf)
    if value is None:
        assert expression.is_nullable
    else:
        assert type(value) is PYTHON_TYPES.get(expression.type, int)


def check_calls(expression: Expression) -> None:
    """The arguments of every call have the types of its parameters."""
    for part in walk(expression):
        if not isinstance(part, Call):
            continue
        parameters = FUNCTIONS[part.function].parameters
        free = set()
        for number, argument in enumerate(part.arguments):
            type_ = parameters[min(number, len(parameters) - 1)].type
            if part.function == "case":
                is_condition = number % 2 == 0 and number < len(part.arguments) - 1
                type_ = GsqlType.BOOL if is_condition else None
            if type_ is None:
                free.add(argument.type)
            else:
                assert argument.type is type_
        assert len(free) <= 1, part
        assert GsqlType.NULL not in free


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_grouped_queries_are_planned_or_refused_with_a_place(a: str, b: str, c: str) -> None:
    text = f"SELECT {a} AS x, max({b}) FROM TCP GROUP BY time/60 AS tb, {c} AS y HAVING {b} > 5"
    plan = planned(text)
    assert not isinstance(plan, GsqlError) or plan.position is not None
