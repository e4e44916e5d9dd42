"""Declared facts that an example contradicts are refused, with the example."""

from __future__ import annotations

import pytest
from tests.support.user_code import offered

from gscope.errors import UsageError

FUNCTION = """
    from fractions import Fraction

    @function("INT", "INT", returns="INT", monotone=[{monotone}])
    def f(x, y):
        return {value}
"""
AGGREGATE = """
    @aggregate("INT", returns="{returns}")
    class a:
        def initialize(self):
            self.seen = []

        def iterate(self, value):
            self.seen.append(value)

        def merge(self, other):
            self.seen {merge}

        def output(self):
            return {output}
"""


@pytest.mark.parametrize(
    ("monotone", "value"),
    [
        ("1, None", "x + y % 7"),
        ("Fraction(1, 60), None", "x // 60"),
        ("-2, None", "-2 * x + y"),
        ("1, 0", "x if y == y else 0"),
        ("None, None", "hash((x, y))"),
        ("1, 1", "max(x, y)"),
        ("1, -1", "x - y"),
        ("1, 1", "x // 0"),
    ],
)
def test_facts_that_hold_are_believed(monotone: str, value: str) -> None:
    with offered(FUNCTION.format(monotone=monotone, value=value)):
        pass


@pytest.mark.parametrize(
    ("monotone", "value", "complaint"),
    [
        ("1, None", "x % 100", r"from f\(.*\) = .* to f\(.*\) = .* it falls"),
        ("-1, None", "x", "it rises"),
        ("Fraction(1, 60), None", "x // 30", "it rises by"),
        ("1, 0", "x + y", "in parameter 2"),
        ("0, 0", "x", "it rises"),
        ("1, 1", "x * y", "in parameter"),
    ],
)
def test_facts_that_an_example_contradicts_are_refused(
    monotone: str, value: str, complaint: str
) -> None:
    text = FUNCTION.format(monotone=monotone, value=value)
    with pytest.raises(UsageError, match=complaint), offered(text):
        pass


def test_only_numbers_have_an_order() -> None:
    text = '@function("STRING", returns="INT", monotone=[1])\ndef f(x):\n    return len(x)'
    with pytest.raises(UsageError, match="only INT, TIMESTAMP, INTERVAL, FLOAT"), offered(text):
        pass


@pytest.mark.parametrize(
    ("merge", "output", "returns"),
    [
        ("+= other.seen", "len(self.seen)", "INT"),
        ("+= other.seen", "sum(self.seen) / 3", "FLOAT"),
        ("+= other.seen", "1 // 0", "INT"),
    ],
)
def test_a_right_merge_is_believed(merge: str, output: str, returns: str) -> None:
    with offered(AGGREGATE.format(merge=merge, output=output, returns=returns)):
        pass


def test_a_merge_that_forgets_is_refused_with_an_example() -> None:
    text = AGGREGATE.format(merge="= other.seen", output="len(self.seen)", returns="INT")
    complaint = r"merge of a in mine.py is wrong: \[.*\] at once give"
    with pytest.raises(UsageError, match=complaint), offered(text):
        pass
