"""User functions in kernels give what Python gives, and what would not is refused with its line."""

from __future__ import annotations

from itertools import product

import pytest
from tests.capture.lfta.lfta_builders import block_of, field, ipv4, literal, selection, udp
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run
from tests.support.user_code import offered

from gscope.capture.lfta.codegen.generate import generate
from gscope.capture.lfta.user_kernels import check_user_kernel
from gscope.errors import UsageError
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import NamedExpression
from gscope.queries.expressions.types import GsqlType

SAFE = """
    import math

    SLOT = 300

    @function("INT", returns="INT", lfta_safe=True, monotone=[1], cost=5)
    def slot(time):
        return time // SLOT

    @function("INT", "INT", returns="BOOL", lfta_safe=True)
    def is_far(a, b):
        if a > b:
            a, b = b, a
        return b - a > 2

    @function("INT", "FLOAT", returns="FLOAT", lfta_safe=True)
    def scaled(x, by):
        return math.floor(x * by) / 2

    @function("INT", returns="INT", lfta_safe=True)
    def product(x):
        return x * 6364136223846793005 + 1442695040888963407

    @function("INT", returns="FLOAT", lfta_safe=True)
    def whole(x):
        return x
"""
UNSAFE = """
    def other(x):
        return x

    @function("INT", returns="INT", lfta_safe=True)
    def f(x):
        {body}
"""


def test_a_kernel_gives_what_python_gives_and_null_for_null() -> None:
    a, b = field("srcPort", nullable=False), field("destPort", nullable=False)
    null_or_a = call("case", call("eq", b, literal(1)), literal(None), a)
    with offered(SAFE):
        expressions = [
            call("slot", a),
            call("slot", null_or_a),
            call("is_far", a, b),
            call("is_far", null_or_a, b),
            call("scaled", a, literal(0.3, GsqlType.FLOAT)),
            call("product", call("mul_int", a, literal(1 << 40))),
            call("whole", call("slot", call("mul_int", b, literal(1000)))),
        ]
        columns = [NamedExpression(f"c{n}", e) for n, e in enumerate(expressions)]
        lfta = selection(columns, call("not", call("is_far", a, literal(3))))
        block = block_of([(0, ipv4(1, 2, udp(a, b))) for a, b in product(range(9), range(4))])
        expected, _ = run(interpreted(), [lfta], [block])
        rows, _ = run(compiled(), [lfta], [block])
    assert rows["lfta"]
    assert answer(lfta, rows["lfta"]) == answer(lfta, expected["lfta"])


def test_a_kernel_s_file_is_another_when_the_user_s_text_is() -> None:
    sources = []
    for text in (SAFE, SAFE.replace("SLOT = 300", "SLOT = 60")):
        with offered(text):
            column = NamedExpression("c", call("slot", field("srcPort", nullable=False)))
            sources.append(generate([selection([column], None)]).source)
    assert sources[0] != sources[1]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            "return other(x)",
            "mine.py:7: f is declared lfta_safe, but numba cannot compile it:"
            " Untyped global name 'other'",
        ),
        ("return x / 2", "when compiled it returns float64, expected INT"),
        ("return 100 // x", "ZeroDivisionError"),
        ("raise ValueError", "mine.py:7: f is declared lfta_safe, but it can raise"),
        ("return x << 70 >> 70", " in Python, but "),
        ("return 'x'", "expected INT"),
        ("return open('/dev/null')", "numba cannot compile it: Untyped global name 'open'"),
    ],
)
def test_what_is_not_safe_is_refused_with_its_line_and_the_remedy(
    body: str, complaint: str
) -> None:
    with offered(UNSAFE.format(body=body)), pytest.raises(UsageError) as caught:
        check_user_kernel("f")
    assert complaint in str(caught.value)
    assert str(caught.value).endswith("declare lfta_safe=False to run it on Spark alone")
    assert "\n" not in str(caught.value)
