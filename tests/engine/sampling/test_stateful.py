"""Stateful functions of user code: state for each supergroup, kept between windows and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.sampling.sampled import Row, Sampled, ip, packet

from gscope.errors import UsageError, UserCodeError
from gscope.queries.analysis.typing.user_code import offer, withdraw
from gscope.queries.catalog.user_functions.files import UserFile

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = '''
from gscope.queries.catalog.user import call, stateful

@stateful
class Budget:
    """Bytes of each source in a window; what is left goes to the next."""

    def initialize(self, before):
        self.left = 1000 + (before.left if before else 0)
        self.groups = before.groups if before else []

    @call("INT", returns="BOOL")
    def within_budget(self, length):
        if length == 13:
            raise ValueError("unlucky")
        if length > self.left:
            return False
        self.left -= length
        return True

    @call(returns="INT")
    def budget(self):
        return self.left

    @call(returns="FLOAT")
    def groups_before(self):
        return sum(self.groups)

    def final(self, live):
        self.groups = [*self.groups, live]
'''
QUERY = """
SELECT tb, srcIP, destIP, sum(len), budget(), groups_before() FROM IP
WHERE within_budget(len) AND len <> 7
GROUP BY time/10 AS tb, srcIP, destIP SUPERGROUP BY srcIP
"""


@pytest.fixture(autouse=True)
def _code() -> Iterator[None]:
    offer([UserFile("budget.py", CODE)])
    yield
    withdraw()


def test_states_live_by_supergroup_and_go_from_window_to_window() -> None:
    query = Sampled(QUERY)
    first = [packet(0, 600, 1, 1), packet(1, 500, 1, 2), packet(2, 300, 1, 2), packet(3, 900, 2, 1)]
    rows, states = query.answers(first)
    base = rows[0][0]
    assert rows == [
        (base, ip(1), ip(1), 600, 100, 2.0),
        (base, ip(1), ip(2), 300, 100, 2.0),
        (base, ip(2), ip(1), 900, 100, 1.0),
    ]
    # The source 2 is silent in the second window, so that it starts again in the third.
    second = [packet(10**10, 1100, 1, 3), packet(10**10, 7, 1, 3)]
    third = [packet(2 * 10**10, 1001, 2, 3), packet(2 * 10**10, 1000, 1, 3)]
    apart, states = query.answers(second, states)
    last, _ = query.answers(third, states)
    assert apart == [(base + 1, ip(1), ip(3), 1100, 0, 3.0)]
    assert last == [(base + 2, ip(1), ip(3), 1000, 0, 4.0)]
    together, _ = query.answers([*first, *second, *third])
    assert together == [*rows, *apart, *last]


def test_an_exception_names_the_call_and_the_line() -> None:
    with pytest.raises(UserCodeError) as caught:
        Sampled(QUERY).answers([packet(0, 13)])
    assert str(caught.value) == ("within_budget(13) failed at budget.py:15: ValueError: unlucky")


def offered(attributes: str) -> Sampled:
    """The query with a state that has these attributes besides."""
    withdraw()
    old = "self.groups = before.groups if before else []"
    assert old in CODE
    code = CODE.replace(old, f"{old}\n        {attributes}")
    offer([UserFile("budget.py", code)])
    return Sampled(QUERY)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("self.odd = {1}", "Object of type set is not JSON serializable"),
        ("self.odd = b'x'", "Object of type bytes is not JSON serializable"),
        ("self.odd = (1, 2)", "self['odd'] is a tuple"),
        ("self.odd = {80: 1}", "self['odd'] has the key 80"),
        ("self.odd = [0, {'a': (1,)}]", "self['odd'][1]['a'] is a tuple"),
        ("self.odd = []; self.odd.append(self.odd)", "Circular reference detected"),
    ],
)
def test_a_state_that_json_does_not_give_back_is_refused(attributes: str, message: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        offered(attributes).answers([packet(0)])
    assert str(caught.value) == (
        f"the state Budget of budget.py cannot be kept: {message}; "
        "expected numbers, texts, lists, and dictionaries whose keys are texts"
    )


def test_a_state_is_the_same_whether_it_was_saved_or_not() -> None:
    """``initialize`` gets a copy, so a list that it keeps and changes belongs to one window."""
    query = offered(
        "self.seen = before.seen if before"
        " else {'n': [float('nan'), 2**70, -0.0, None, True, 'é']};"
        " self.seen['n'].append(1); self.left += len(self.seen['n'])"
    )
    windows = [[packet(n * 10**10, 40, 1, 1)] for n in range(4)]
    apart: list[Row] = []
    states = None
    for window in windows:
        rows, states = query.answers(window, states)
        apart += rows
    together, after = query.answers([each for window in windows for each in window])
    assert together == apart
    assert states is not None
    assert after is not None
    assert after.equals(states)
    assert [row[4] for row in together] == [967, 1935, 2904, 3874]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def initialize", "def initialise", "needs the method initialize"),
        ('@call(returns="INT")', '@call(returns="STRING")', "has the type STRING"),
        ("def budget", "def ssample", "declares ssample, which gscope already defines"),
    ],
)
def test_a_wrong_class_is_refused(old: str, new: str, message: str) -> None:
    withdraw()
    with pytest.raises(UsageError, match=message):
        offer([UserFile("budget.py", CODE.replace(old, new))])
