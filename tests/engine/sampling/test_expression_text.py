"""Expressions in the text of kernels, run by Python and compiled, are what the catalog computes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.running.test_vectors import BIG, same

from gscope.engine.running.vectors import dtype_of, from_list
from gscope.engine.sampling.expression_text import KernelText, Term
from gscope.engine.sampling.jit import compiled
from gscope.engine.sampling.kernel_text import library_text
from gscope.engine.sampling.kernels import meaning_of
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Value

VALUES: dict[GsqlType, tuple[Value, ...]] = {
    GsqlType.BOOL: (True, False),
    GsqlType.INT: (0, 1, -1, 7, -8, 63, 64, 1000, BIG, -BIG, -BIG - 1),
    GsqlType.FLOAT: (0.0, -0.0, 1.5, -2.25, 1e300, -1e300, float("nan"), float("inf"), -np.inf),
    GsqlType.TIMESTAMP: (0, 1, -1, BIG, -BIG - 1),
    GsqlType.INTERVAL: (0, 1, -1, BIG, -BIG - 1),
    GsqlType.MAC: (0, 1, (1 << 48) - 1),
}
KINDS = tuple(VALUES)
ROWS = 40
NAMES = [
    name
    for name, entry in FUNCTIONS.items()
    if entry.is_foldable
    and entry.result in (None, *KINDS)
    and all(p.type in (None, *KINDS) and not p.is_literal for p in entry.parameters)
]
"""The functions of numbers: no others reach a kernel."""
FAST = [
    *("add_int", "sub_int", "mul_int", "neg_int", "abs_int", "idiv_int", "mod_int", "bit_and"),
    *("bit_or", "bit_xor", "bit_not", "add_float", "sub_float", "mul_float", "neg_float"),
    *("abs_float", "div_float", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "is_null"),
    *("is_true", "case", "coalesce", "in", "min_of", "max_of", "int_to_float", "bool_to_int"),
    *("int_to_bool", "ts_add", "ts_sub", "ts_to_int", "int_to_ts"),
]
"""The functions that need no call of the catalog."""


def column(kind: GsqlType, number: int, *, is_nullable: bool) -> Column:
    suffix = "n" if is_nullable else ""
    return Column(f"{kind.name.lower()}{number}{suffix}", kind, is_nullable)


COLUMNS = [
    column(kind, number, is_nullable=is_nullable)
    for kind in KINDS
    for number in range(2)
    for is_nullable in (False, True)
]


def table_of(chance: random.Random) -> dict[str, list[Value]]:
    """Random rows of all columns."""
    return {
        each.name: [
            None
            if each.is_nullable and chance.random() < 0.25
            else chance.choice(VALUES[each.type])
            for _ in range(ROWS)
        ]
        for each in COLUMNS
    }


def random_expression(
    chance: random.Random, kind: GsqlType, depth: int, names: Sequence[str]
) -> Expression:
    """An expression of a type over columns and constants."""
    made = [name for name in names if FUNCTIONS[name].result in (None, kind)]
    if depth == 0 or not made or chance.random() < 0.15:
        if chance.random() < 0.25:
            return Literal(chance.choice((*VALUES[kind], None)), kind)
        return chance.choice([each for each in COLUMNS if each.type is kind])
    return random_call(chance, chance.choice(made), kind, depth, names)


def random_call(
    chance: random.Random, name: str, kind: GsqlType, depth: int, names: Sequence[str]
) -> Call:
    """A call of a function; ``kind`` is the type of parameters that take any."""
    entry = FUNCTIONS[name]
    if entry.result is not None:
        kind = chance.choice(KINDS)
    kinds = [parameter.type or kind for parameter in entry.parameters]
    if entry.repeats:
        times = chance.randrange(3)
        last = kinds[-entry.repeats :] if name != "case" else []
        kinds += last * times
        if name == "case":
            kinds = [GsqlType.BOOL, kind] * (1 + times) + [kind]
    return call(name, *(random_expression(chance, each, depth - 1, names) for each in kinds))


def kernel_of(expressions: Sequence[Expression]) -> tuple[str, list[str], tuple[Call, ...]]:
    """The text of a function that computes expressions for each row, and its parameters."""
    text = KernelText()
    text.line("for i in range(rows):")
    text.depth += 1

    def leaf(part: Column) -> Term:
        return Term(f"v_{part.name}[i]", f"n_{part.name}[i]" if part.is_nullable else None)

    for number, each in enumerate(expressions):
        term = text.expression(each, leaf)
        text.line(f"out{number}[i] = {term.value}")
        text.line(f"ok{number}[i] = {term.valid or 'True'}")
    parameters = ["rows", *(f"{p}_{c.name}" for c in COLUMNS for p in "vn")]
    parameters += [f"{p}{n}" for n, _ in enumerate(expressions) for p in ("out", "ok")]
    if text.externals:
        parameters.append("external")
    lines = [f"def fold({', '.join(parameters)}):", *text.lines, "    return 0", ""]
    return library_text() + "\n".join(lines), parameters, tuple(text.externals)


def check(
    expressions: Sequence[Expression],
    chance: random.Random,
    prepared: Callable[[Callable[..., int]], Callable[..., int]] = lambda fold: fold,
) -> None:
    """Compare the values and validities of all expressions over random rows with the catalog."""
    text, parameters, externals = kernel_of(expressions)
    space: dict[str, Any] = {"__name__": "kernel_of_expressions"}
    exec(compile(text, "<kernel>", "exec"), space)
    run = prepared(space["fold"])
    for _ in range(3):
        table = table_of(chance)
        arrays: dict[str, Any] = {"rows": ROWS}
        for each in COLUMNS:
            vector = from_list(table[each.name], each.type)
            arrays |= {f"v_{each.name}": vector.values, f"n_{each.name}": vector.valid}
        for number, expression in enumerate(expressions):
            arrays[f"out{number}"] = np.zeros(ROWS, dtype_of(expression.type))
            arrays[f"ok{number}"] = np.zeros(ROWS, np.bool_)
        arrays["external"] = [meaning_of(each) for each in externals]
        with np.errstate(all="ignore"):
            run(*(arrays[name] for name in parameters))
        for number, expression in enumerate(expressions):
            values, valid = arrays[f"out{number}"].tolist(), arrays[f"ok{number}"].tolist()
            for row in range(ROWS):
                want = evaluate(expression, leaf_of(table, row))
                got = values[row] if valid[row] else None
                assert same(want, got), (expression, row, want, got)


def leaf_of(table: dict[str, list[Value]], row: int) -> Callable[[Column | PacketField], Value]:
    return lambda part: table[part.name][row]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_in_a_kernel_is_that_of_the_catalog(name: str) -> None:
    chance = random.Random(name)
    calls = [random_call(chance, name, chance.choice(KINDS), 1, NAMES) for _ in range(5)]
    check(calls, chance)


def test_nested_expressions_are_those_of_the_catalog() -> None:
    chance = random.Random(1)
    check([random_expression(chance, chance.choice(KINDS), 4, NAMES) for _ in range(60)], chance)


def overflowing(sign: str) -> list[Call]:
    """Comparisons that an optimizer would decide if integers never exceeded 64 bits."""
    x, one = column(GsqlType.INT, 0, is_nullable=False), Literal(1, GsqlType.INT)
    names = {">": "gt", "<": "lt"}
    sums = [call("add_int", x, one), call("sub_int", x, one), call("neg_int", call("neg_int", x))]
    sums += [call("idiv_int", call("mul_int", x, Literal(4, one.type)), Literal(4, one.type))]
    return [
        *(call(names[sign], each, x) for each in sums),
        call(names[sign], call("abs_int", x), Literal(-1, one.type)),
    ]


@pytest.mark.slow
def test_compiled_expressions_are_those_of_the_catalog() -> None:
    chance = random.Random(2)
    singles = [random_call(chance, name, chance.choice(KINDS), 1, FAST) for name in FAST]
    singles += [*overflowing(">"), *overflowing("<")]
    nested = [random_expression(chance, chance.choice(KINDS), 2, FAST) for _ in range(8)]

    def prepared(fold: Callable[..., int]) -> Callable[..., int]:
        return lambda *arguments: compiled(fold, arguments)(*arguments)  # type: ignore[misc]

    check([*singles, *nested], chance, prepared)


def test_integers_of_python_wrap_as_compiled_ones_do() -> None:
    """Counts and constants are integers of Python, which have no limit."""
    text = KernelText()
    big = Literal(BIG, GsqlType.INT)
    count = Column("count", GsqlType.INT, is_nullable=False)
    term = text.expression(
        call("add_int", call("mul_int", count, big), call("neg_int", Literal(-BIG - 1, big.type))),
        lambda _: Term("count"),
    )
    lines = ["def fold(count):", *text.lines, f"    return {term.value}"]
    space: dict[str, Any] = {}
    exec(library_text() + "\n".join(lines), space)
    with np.errstate(all="ignore"):
        assert int(space["fold"](3)) == (3 * BIG + (1 << 63) + (1 << 63)) % (1 << 64) - (1 << 63)


def test_calls_that_no_kernel_computes_are_listed() -> None:
    square = call("sqrt", Column("x", GsqlType.FLOAT, is_nullable=True))
    text = KernelText()
    text.expression(square, lambda _: Term("x", "x_ok"))
    assert text.externals == [square]
    assert meaning_of(replace(square))(4.0) == 2.0
    assert meaning_of(square)(None) is None
