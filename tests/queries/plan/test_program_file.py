"""Programs survive the way through a file, and nothing but a program is read from one."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import LIBRARY, Case, all_cases
from tests.safety.planted import Trap
from tests.support.long_form import cases
from tests.support.user_code import user_file

from gscope import __version__
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call, Expression, Literal, NamedExpression, Value
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program, SelectionNode, StreamInput
from gscope.queries.plan.program_file import (
    program_digest,
    read_head,
    read_program,
    write_program,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.expressions.schema import Schema

EMPTY = Program(("a",), (), (), (), ())


def with_expression(expression: Expression, schema: Schema) -> Program:
    columns = (NamedExpression("x", expression),)
    node = SelectionNode("q", StreamInput("q"), None, columns, schema)
    return Program(("a",), (), (node,), (), ())


@pytest.fixture
def schema() -> Schema:
    text = QueryText("SELECT time FROM IP", "q")
    return compile_queries([text], CompileContext(("a",))).program.schemas[0][1]


def through_a_file(program: Program, folder: Path) -> Program:
    path = folder / "program.json"
    write_program(path, program)
    assert read_head(path).digest == program_digest(program)
    return read_program(path)


def test_windows_come_back_as_they_were(tmp_path: Path) -> None:
    text = (
        "Query a: SELECT srcIP, count(*), max(len) FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP"
        " ORDER BY count(*) LIMIT 3;"
        "Query b: SELECT sum(len / 2.0) FROM TCP [SLICES '12 sec', '500 ms']"
    )
    program = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program
    assert through_a_file(program, tmp_path) == program


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_golden_programs_come_back_as_they_were(case: Case, tmp_path: Path) -> None:
    program = case.program(case.settings.get("captures", {}) | case.settings.get("synthetic", {}))
    assert through_a_file(program, tmp_path) == program


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.gsql")), ids=lambda path: path.stem)
def test_programs_of_the_library_come_back_as_they_were(path: Path, tmp_path: Path) -> None:
    text = QueryText(path.read_text(encoding="utf-8"), path.name)
    program = compile_queries([text], CompileContext(())).program
    assert through_a_file(program, tmp_path) == program
    assert json.loads((tmp_path / "program.json").read_text())["gscope"] == __version__


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(1 << 63), (1 << 128) - 1, b"", bytes(range(256)), -0.0, 5e-324, math.inf],
)
def test_every_value_of_a_literal_comes_back(value: Value, tmp_path: Path, schema: Schema) -> None:
    program = with_expression(Literal(value, GsqlType.STRING), schema)
    back = through_a_file(program, tmp_path)
    assert back == program
    assert repr(back) == repr(program)


def test_not_a_number_comes_back(tmp_path: Path, schema: Schema) -> None:
    program = with_expression(Literal(math.nan, GsqlType.FLOAT), schema)
    assert "nan" in repr(through_a_file(program, tmp_path).nodes[0])


def test_user_code_comes_back(tmp_path: Path) -> None:
    file = user_file("# ünïcode \U0001f600\nx = '\\n'\n", "a b/ü.py")
    program = Program(("a",), (), (), (), (), (file,))
    assert through_a_file(program, tmp_path) == program


@pytest.mark.parametrize("depth", cases([5_000], long=[50_000]))
def test_a_deep_expression_needs_no_deep_stack(depth: int, tmp_path: Path, schema: Schema) -> None:
    assert depth > sys.getrecursionlimit()
    deep: Expression = Literal(1, GsqlType.INT)
    for _ in range(depth):
        deep = Call("add", (deep, Literal(1, GsqlType.INT)), GsqlType.INT, False)
    program = with_expression(deep, schema)
    back = through_a_file(program, tmp_path)
    assert program_digest(back) == program_digest(program)


def test_shared_parts_are_written_once(tmp_path: Path, schema: Schema) -> None:
    shared: Expression = Literal(1, GsqlType.INT)
    for _ in range(200):
        shared = Call("add", (shared, shared), GsqlType.INT, False)
    began = time.process_time()
    write_program(tmp_path / "p", with_expression(shared, schema))
    assert read_head(tmp_path / "p").digest
    assert (tmp_path / "p").stat().st_size < 100_000
    assert time.process_time() - began < 60


def test_programs_that_differ_have_other_digests(schema: Schema) -> None:
    values: list[Value] = [0, False, 0.0, -0.0, b"", None, b"0", 1]
    programs = [with_expression(Literal(value, GsqlType.INT), schema) for value in values]
    assert len({program_digest(program) for program in programs}) == len(values)


def test_what_a_file_cannot_hold_is_refused_when_it_is_written(tmp_path: Path) -> None:
    odd = Program(("a",), (), (), (("q", object()),), ())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a program holds a object"):
        write_program(tmp_path / "p", odd)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('"digest": "', '"digest": "0'), "its digest differs"),
        (('"a"', '"b"'), "its digest differs"),
        (('"is": "Program"', '"is": "Popen"'), "damaged: KeyError"),
        (('"is": "Program"', '"is": "Literal"'), "damaged: TypeError"),
        (('"interfaces"', '"intrefaces"'), "damaged: TypeError"),
        (('"calls": [', '"calls": [1, '), "damaged: TypeError"),
        (('"calls"', '"class"'), "damaged: KeyError"),
        (("{", ""), "does not hold a program"),
        ((f'"{__version__}"', '"9.9"'), f"written by gscope 9.9, expected {__version__}"),
    ],
)
def test_a_damaged_file_is_one_sentence(
    tmp_path: Path, schema: Schema, change: tuple[str, str], expected: str
) -> None:
    path = tmp_path / "program.json"
    call = Call("neg", (Literal(1, GsqlType.INT),), GsqlType.INT, False)
    write_program(path, with_expression(call, schema))
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(UsageError, match=expected):
        read_program(path)


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, cut: int, schema: Schema) -> None:
    path = tmp_path / "program.json"
    write_program(path, with_expression(Literal(1, GsqlType.INT), schema))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UsageError, match="does not hold a program"):
        read_program(path)


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    trap = Trap(tmp_path / "executed")
    path.write_bytes(trap.pickle())
    with pytest.raises(UsageError, match="does not hold a program"):
        read_program(path)
    assert not trap.has_sprung


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    write_program(path, EMPTY)
    path.chmod(0o666)
    with pytest.raises(UsageError, match="another user could have written it"):
        read_program(path)
    if os.geteuid() == 0:
        path.chmod(0o600)
        os.chown(path, 54321, 54321)
        with pytest.raises(UsageError, match="another user could have written it"):
            read_program(path)
