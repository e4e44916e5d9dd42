"""User code in queries: what it may declare, and what queries make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.user_code import offered

from gscope.errors import GsqlError, UsageError
from gscope.queries.analysis.typing.calls import BUILDERS
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import Direction

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program

SLOT = """
    @function("INT", returns="INT", lfta_safe=True, monotone=[1])
    def slot(time):
        return time // 300
"""
PLAIN = """
    @function("INT", returns="INT")
    def plain(x):
        return x + 1

    @function("STRING", "FLOAT", returns="BOOL", name="Odd_One", nullable=True)
    def odd(text, x):
        return None
"""
TOTAL = """
    @aggregate("INT", returns="FLOAT")
    class total:
        def initialize(self):
            self.sum = 0

        def iterate(self, value):
            self.sum += value

        def merge(self, other):
            self.sum += other.sum

        def output(self):
            return float(self.sum)
"""


def compiled(text: str) -> Program:
    return compile_queries([QueryText(text, "q")], CompileContext(("main1",))).program


def refused(*texts: str) -> str:
    with pytest.raises(UsageError) as caught, offered(*texts):
        pass
    assert "slot" not in FUNCTIONS
    return str(caught.value)


def test_a_monotone_function_makes_an_epoch_and_runs_low() -> None:
    with offered(SLOT):
        program = compiled("SELECT tb, count(*) FROM IP GROUP BY slot(time) as tb")
    (lfta,) = program.lftas
    assert lfta.is_aggregation
    assert program.schema("q")["tb"].ordering.direction is Direction.INCREASING


def test_a_function_that_is_not_safe_stays_high() -> None:
    with offered(PLAIN):
        program = compiled("SELECT tb, plain(len) as p FROM IP GROUP BY time/60 as tb, p")
    (lfta,) = program.lftas
    assert not lfta.is_aggregation
    assert len(program.nodes) == 1


def test_a_name_is_read_in_any_case_and_null_follows_the_declaration() -> None:
    with offered(PLAIN):
        program = compiled("SELECT time, ODD_ONE('x', len) as o, Plain(len) as p FROM IP")
    schema = program.schema("q")
    assert schema["o"].is_nullable
    assert not schema["p"].is_nullable


def test_a_wrong_argument_is_refused_as_for_a_built_in_function() -> None:
    with offered(PLAIN), pytest.raises(GsqlError, match="argument 1 of plain"):
        compiled("SELECT time, plain('x') FROM IP")
    with offered(PLAIN), pytest.raises(GsqlError, match="takes 1 argument, not 2"):
        compiled("SELECT time, plain(len, len) FROM IP")


def test_an_aggregate_is_computed_high() -> None:
    with offered(TOTAL):
        program = compiled("SELECT tb, total(len) as t, count(*) FROM IP GROUP BY time/60 as tb")
    (node,) = program.nodes
    assert not program.lftas[0].is_aggregation
    assert node.schema["t"].type.value == "FLOAT"


def test_nothing_is_left_behind() -> None:
    with offered(SLOT, PLAIN, TOTAL):
        assert "slot" in FUNCTIONS
        assert "plain" in BUILDERS
        assert "total" in AGGREGATES
    assert not {"slot", "plain", "odd_one"} & {*FUNCTIONS, *BUILDERS}
    assert "total" not in AGGREGATES


def test_a_name_is_declared_once() -> None:
    assert "slot, which mine.py declares as well" in refused(SLOT, SLOT.replace("300", "60"))


@pytest.mark.parametrize("name", ["abs", "count", "add_int", "select", "running_sum", "in_net"])
def test_built_in_names_are_taken(name: str) -> None:
    complaint = refused(SLOT, PLAIN.replace("Odd_One", name))
    assert (
        complaint == f"mine1.py declares {name}, which gscope already defines; choose another name"
    )


@pytest.mark.parametrize("name", ["no name", "x-y", "1st", "é"])
def test_a_query_must_be_able_to_write_the_name(name: str) -> None:
    assert "not a name that a query can use" in refused(PLAIN.replace("Odd_One", name))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import nosuch_module", "mine.py:2: ModuleNotFoundError: No module named 'nosuch_module'"),
        ("raise SystemExit(3)", "mine.py:2: SystemExit: 3"),
        ("def f(:", "mine.py:2: invalid Python"),
        ("x = 1", "mine.py declares nothing; put @function"),
        ("1 / 0", "mine.py:2: ZeroDivisionError: division by zero"),
        (
            '@function("INT", returns="NUMBER")\ndef f(x):\n    return x',
            "mine.py:2: unknown type 'NUMBER'; available: BOOL, INT",
        ),
        (
            '@function("INT", "INT", returns="INT")\ndef f(x):\n    return x',
            "f is declared with 2 parameters, but too many positional arguments",
        ),
        (
            '@function(returns="INT")\ndef f():\n    return 1',
            "f is declared without a parameter",
        ),
        (
            '@function("INT", returns="INT", monotone=[1, 1])\ndef f(x):\n    return x',
            "invalid monotone of f: expected one number for each parameter (1), got 2",
        ),
        (
            '@function("STRING", returns="INT", lfta_safe=True)\ndef f(x):\n    return 1',
            "an LFTA cannot compute user functions on STRING; declare lfta_safe=False",
        ),
        (
            '@function("INT", returns="INT", lfta_safe=True, nullable=True)\n'
            "def f(x):\n    return x",
            "neither accept nor return None",
        ),
        (
            '@aggregate("INT", returns="INT")\nclass a:\n    def initialize(self): ...',
            "a has no method iterate; an aggregate needs initialize, iterate, output",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_one_sentence_with_its_line(text: str, complaint: str) -> None:
    assert complaint in refused(text)
