"""Wide, long and deep queries compile in seconds or are refused.

That is with a place and a remedy, never by an accident.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gscope.capture.lfta.codegen.generate import generate
from gscope.errors import GsqlSyntaxError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.gsql.limits import MAX_COLUMNS, MAX_JOINED, MAX_PARTS
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.scanner import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_CPU_S = 30
"""For all that precedes machine code: ten times what the slowest takes."""


def sums(count: int) -> str:
    columns = ", ".join(f"sum(len + {n}) AS s{n}" for n in range(count))
    return f"SELECT {columns} FROM IP GROUP BY time/60 AS tb"


def columns(count: int) -> str:
    return f"SELECT {', '.join(f'len AS c{n}' for n in range(count))} FROM IP"


def terms(count: int) -> str:
    keys = ", ".join(f"len + {n} AS k{n}" for n in range(count - 1))
    return f"SELECT tb, count(*) AS c FROM IP GROUP BY time/60 AS tb, {keys}"


def joined(count: int) -> str:
    inputs = ", ".join(f"TCP q{n}" for n in range(count))
    same = " AND ".join(f"q{n}.time = q{n + 1}.time" for n in range(count - 1))
    return f"SELECT q0.time, q{count - 1}.len FROM {inputs} WHERE {same}"


def balanced(leaves: int) -> str:
    """A sum whose brackets keep it shallow."""
    if leaves == 1:
        return "len"
    return f"({balanced(leaves // 2)} + {balanced(leaves - leaves // 2)})"


def case(count: int) -> str:
    branches = " ".join(f"WHEN srcPort = {n} THEN {n}" for n in range(count))
    return f"CASE {branches} END"


def cases(count: int) -> str:
    return f"SELECT time, {case(count)} AS c FROM TCP"


def chain(word: str, count: int) -> str:
    return f"SELECT time FROM TCP WHERE {f' {word} '.join(['srcPort = 1'] * count)}"


TOO_MUCH: dict[str, tuple[str, str]] = {
    "sums": (sums(3000), "too many selected columns: expected at most"),
    "columns": (columns(MAX_COLUMNS + 1), f"got {MAX_COLUMNS + 1}"),
    "terms": (terms(MAX_COLUMNS + 1), "too many GROUP BY terms"),
    "inputs": (joined(MAX_JOINED + 1), f"too many inputs: expected at most {MAX_JOINED}"),
    "balanced": (f"SELECT {balanced(MAX_PARTS)} AS x FROM IP", "the query is too long"),
    "cases": (cases(MAX_PARTS // 2), "the query is too long"),
    "cases in columns": (
        f"SELECT {', '.join(f'{case(140)} AS c{n}' for n in range(6))} FROM TCP",
        "the query is too long",
    ),
    "subqueries": (
        f"SELECT time FROM ({columns(MAX_COLUMNS + 1)}) AS q",
        "too many selected columns",
    ),
    "or": (chain("OR", 1000), f"nested more than {MAX_DEPTH} deep"),
    "and": (chain("AND", 1000), f"nested more than {MAX_DEPTH} deep"),
    "brackets": (f"SELECT {'(' * 5000}len{')' * 5000} AS x FROM IP", "nested more than"),
    "calls": (f"SELECT {'abs(' * 5000}len{')' * 5000} AS x FROM IP", "nested more than"),
    "minus": (f"SELECT {'- ' * 5000}len AS x FROM IP", "nested more than"),
    "case in case": (
        f"SELECT {'CASE WHEN SYN = 1 THEN ' * 500}1{' END' * 500} AS x FROM TCP",
        "nested more than",
    ),
    "query in query": (
        f"{'SELECT time FROM (' * 500}SELECT time FROM IP{') AS q' * 500}",
        "nested more than",
    ),
}


@pytest.mark.parametrize(("text", "reason"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_would_compile_for_minutes_is_refused_at_once(text: str, reason: str) -> None:
    began_s = time.process_time()
    with pytest.raises(GsqlSyntaxError) as caught:
        parse(text)
    assert time.process_time() - began_s < LIMIT_CPU_S
    assert reason in caught.value.message
    assert caught.value.position is not None
    assert caught.value.remedy


ALLOWED: dict[str, Callable[[], str]] = {
    "sums": lambda: sums(MAX_COLUMNS),
    "columns": lambda: columns(MAX_COLUMNS),
    "terms": lambda: terms(MAX_COLUMNS),
    "inputs": lambda: joined(MAX_JOINED),
    "balanced": lambda: f"SELECT {balanced(MAX_PARTS // 2)} AS x FROM IP",
    "cases": lambda: cases(MAX_PARTS // 3),
    "or": lambda: chain("OR", MAX_DEPTH - 5),
}


@pytest.mark.parametrize("make", ALLOWED.values(), ids=ALLOWED)
def test_what_is_within_the_limits_becomes_a_kernel_in_seconds(make: Callable[[], str]) -> None:
    began_s = time.process_time()
    compiled = compile_queries([QueryText(make(), "wide")], CompileContext(("main",)))
    kernel = generate(compiled.program.lftas)
    compile(kernel.source, "kernel", "exec")
    assert time.process_time() - began_s < LIMIT_CPU_S


def test_each_query_of_a_text_has_limits_of_its_own() -> None:
    one = f"SELECT {balanced(MAX_PARTS // 2)} AS x FROM IP;\n"
    assert len(parse(one * 3).queries) == 3
    with pytest.raises(GsqlSyntaxError, match="too long") as caught:
        parse(one + f"SELECT {balanced(MAX_PARTS)} AS x FROM IP")
    assert caught.value.position is not None
    assert caught.value.position.line == 2


def test_constants_do_not_count() -> None:
    values = ", /* not plain */ ".join(map(str, range(2 * MAX_PARTS)))
    assert parse(f"SELECT time FROM TCP WHERE srcPort IN ({values})").queries
