"""Calls of user code.

Values of the declared type come out, or one sentence says what went wrong.
"""

from __future__ import annotations

import pickle

import pytest
from tests.support.user_code import offered, user_file

from gscope.errors import UserCodeError
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.user import AggregateFacts
from gscope.queries.catalog.user_functions.calls import UserFold
from gscope.queries.catalog.user_functions.files import load_module
from gscope.queries.catalog.user_functions.install import installed

RETURNS = """
    @function("INT", returns="{kind}", nullable={nullable})
    def f(x):
        return {value}
"""
LIFE = """
    destroyed = []

    @aggregate("INT", returns="INT")
    class life:
        def initialize(self):
            self.sum = 0

        def iterate(self, value):
            self.sum += 60 // value

        def output(self):
            return self.sum

        def destroy(self):
            destroyed.append(self.sum)
            raise RuntimeError("too late to matter")
"""


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("INT", "True", 1),
        ("INT", "1 << 63", -(1 << 63)),
        ("FLOAT", "3", 3.0),
        ("STRING", "'é'", "é".encode()),
        ("STRING", "b'x'", b"x"),
        ("BOOL", "x > 3", True),
        ("IP", "1 << 127", 1 << 127),
        ("TIMESTAMP", "x", 7),
    ],
)
def test_results_are_values_of_the_declared_type(kind: str, value: str, expected: object) -> None:
    with offered(RETURNS.format(kind=kind, value=value, nullable=False)):
        assert FUNCTIONS["f"].evaluate(7) == expected


@pytest.mark.parametrize(
    ("kind", "value", "complaint"),
    [
        ("INT", "'7'", "f(7) of mine.py returned '7', expected INT"),
        ("INT", "None", "f(7) of mine.py returned None, expected INT; declare nullable=True"),
        ("BOOL", "1", "f(7) of mine.py returned 1, expected BOOL"),
        ("IP", "-1", "f(7) of mine.py returned -1, expected IP"),
        ("MAC", "1 << 48", "f(7) of mine.py returned 281474976710656, expected MAC"),
        ("INT", "x // 0", "f(7) failed at mine.py:4: ZeroDivisionError: integer division"),
        ("INT", "f", "f(7) of mine.py returned <function f at"),
        ("INT", "f(x)", "f(7) failed at mine.py:4: RecursionError"),
    ],
)
def test_what_goes_wrong_is_one_sentence(kind: str, value: str, complaint: str) -> None:
    with (
        offered(RETURNS.format(kind=kind, value=value, nullable=False)),
        pytest.raises(UserCodeError) as caught,
    ):
        FUNCTIONS["f"].evaluate(7)
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


def test_a_nullable_function_may_give_none() -> None:
    with offered(RETURNS.format(kind="INT", value="None", nullable=True)):
        assert FUNCTIONS["f"].evaluate(7) is None


def test_a_file_is_executed_as_python_would() -> None:
    text = """
        from dataclasses import dataclass

        @dataclass
        class Pair:
            left: int
            right: int

        assert Pair.__annotations__["left"] is int

        @function("INT", returns="INT")
        def f(x):
            return Pair(x, 1).left
    """
    with offered(text):
        assert FUNCTIONS["f"].evaluate(7) == 7


def test_calls_travel_with_the_text_of_their_file() -> None:
    with offered(RETURNS.format(kind="INT", value="x + 1", nullable=False)):
        travelled = pickle.loads(pickle.dumps(FUNCTIONS["f"].evaluate))
    assert travelled(7) == 8


def test_an_aggregate_leaves_nulls_out_and_is_null_without_values() -> None:
    with offered(LIFE):
        evaluate = AGGREGATES["life"].evaluate
        assert evaluate([1, None, 2]) == 90
        assert evaluate([None]) is None


def test_a_state_is_destroyed_whatever_happens() -> None:
    with offered(LIFE):
        (code,) = installed()
        assert isinstance(code, UserFold)
        assert code([1]) == 60
        with pytest.raises(UserCodeError, match=r"life\(0\) failed at mine.py:\d+: ZeroDivision"):
            code([2, 0])
        assert load_module(code.file).destroyed[-2:] == [60, 30]


def test_a_class_that_cannot_be_made_is_one_sentence() -> None:
    text = LIFE.replace("class life:", "class life:\n        def __init__(self, x): ...\n")
    with offered(text):
        (code,) = installed()
        assert isinstance(code.facts, AggregateFacts)
        with pytest.raises(UserCodeError, match=r"life.* failed at mine.py: TypeError"):
            UserFold(user_file(text), "life", code.facts)([1])
