"""Functions that are the same except for their numbers are translated once.

They are translated to the same assembly.
"""

from __future__ import annotations

from typing import Any

import pytest

from gscope.capture.kernels.language.kinds import Kind
from gscope.capture.kernels.native.module import KernelModule
from gscope.capture.kernels.native.source import source_of, translated_module
from gscope.capture.kernels.native.translations import Translations
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.kernel_assembly import KernelTranslator
from gscope.queries.compile import CompileContext, QueryText, compile_queries

QUERIES = """
DEFINE { query_name pairs; }
SELECT tb, srcIP, destIP, count(*) FROM IP GROUP BY time/10 AS tb, srcIP, destIP;
DEFINE { query_name bytes_sent; }
SELECT tb, srcIP, destIP, sum(len) FROM IP GROUP BY time/60 AS tb, srcIP, destIP;
DEFINE { query_name ports; }
SELECT tb, destPort, count(*) FROM TCP WHERE len > 60 GROUP BY time/10 AS tb, destPort;
DEFINE { query_name servers; }
SELECT tb, srcPort, count(*) FROM TCP WHERE len > 90 GROUP BY time/10 AS tb, srcPort;
DEFINE { query_name long_packets; } SELECT time, len FROM IP WHERE len > 1000;
"""

TEXT = """
from gscope.capture.kernels.jit import kernel, kernel_part
scale_1 = 2
scale_2 = 3
@kernel_part
def inner_1(a):
    return {inner_1}


@kernel_part
def inner_2(a):
    return a + 5


@kernel
def outer_1(a):
    return int(inner_1(a)) * {factor_1}


@kernel
def outer_2(a):
    return int(inner_2(a)) * {factor_2}
"""


def translated(text: str, names: list[str]) -> list[str]:
    """Translate functions, each in a module of its own, that know of each other."""
    module, known = translated_module("numbered", text), Translations()
    made = []
    for name in names:
        kernel = KernelModule(translations=known)
        kernel.export(getattr(module, name), [Kind.INT])
        made.append(str(kernel))
    return made


def test_modules_of_a_kernel_are_those_that_each_would_be_alone() -> None:
    lftas = compile_queries([QueryText(QUERIES, "q")], CompileContext(("up",))).program.lftas
    text = load_kernel(lftas).path.read_text()
    together = KernelTranslator("together", text, len(lftas))
    for number in range(-1, len(lftas)):
        alone = KernelTranslator("alone", text, len(lftas))
        shared, expected = (
            each.kernel() if number < 0 else each.part(number) for each in (together, alone)
        )
        # Declarations may come in another order.
        assert sorted(shared.splitlines()) == sorted(expected.splitlines())


@pytest.mark.parametrize(
    ("values", "second"),
    [
        ({"inner_1": "a + 5", "factor_1": "7", "factor_2": "7"}, "mul nsw i64"),
        # The callees differ, of which one returns a float.
        ({"inner_1": "a + 5.5", "factor_1": "7", "factor_2": "7"}, "mul nsw i64"),
        ({"inner_1": "a + 6", "factor_1": "7", "factor_2": "7"}, "mul nsw i64"),
        # Constants of the same name but for the number.
        ({"inner_1": "a + 5", "factor_1": "scale_1", "factor_2": "scale_2"}, "3"),
    ],
)
def test_what_differs_is_translated_by_itself(values: dict[str, str], second: str) -> None:
    text = TEXT.format(**values)
    shared = translated(text, ["outer_1", "outer_2"])
    assert shared == [*translated(text, ["outer_1"]), *translated(text, ["outer_2"])]
    assert second in shared[1]
    assert "outer_1" not in shared[1]


def test_a_repeated_function_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(function: Any) -> Any:
        asked.append(function.__name__)
        return source_of(function)

    monkeypatch.setattr("gscope.capture.kernels.native.module.source_of", counted)
    text = TEXT.format(inner_1="a + 5", factor_1="7", factor_2="7")
    translated(text, ["outer_1", "outer_2"])
    assert asked == ["outer_1", "inner_1"]
