"""The syntax of alerts, and what is reported where it is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.config.alerts import parse_alerts, show_alerts
from gscope.queries.gsql.alerts.parser import parse_alert
from gscope.queries.gsql.alerts.rule import AlertRule, Condition

OPERATORS = ["<", "<=", ">", ">="]
HOLDS = {
    "<": lambda value, number: value < number,
    "<=": lambda value, number: value <= number,
    ">": lambda value, number: value > number,
    ">=": lambda value, number: value >= number,
}


def test_a_whole_alert() -> None:
    text = (
        "busy = talkers: raise n > 1000 for 3 epochs, clear n < 8e2 or silent for 1 epoch by a, b"
    )
    assert parse_alert(f"  {text} ") == AlertRule(
        text=text,
        name="busy",
        query="talkers",
        raises=Condition("n", ">", 1000),
        raise_epochs=3,
        clears=Condition("n", "<", 800.0),
        clear_epochs=1,
        silence_clears=True,
        by=("a", "b"),
    )


@pytest.mark.parametrize("text", ["port_scan", "port_scan: raise any, clear silent"])
def test_any_row_raises_what_has_no_threshold_and_silence_clears_it(text: str) -> None:
    assert parse_alert(text) == AlertRule(text, "port_scan", "port_scan", None, 1, None, 1, True)


def test_without_clear_the_opposite_clears_and_silence_does_not() -> None:
    rule = parse_alert("q: RAISE n >= -1.5")
    assert (rule.raises, rule.clears) == (Condition("n", ">=", -1.5), Condition("n", "<", -1.5))
    assert not rule.silence_clears


def test_words_of_the_syntax_name_queries_and_columns() -> None:
    rule = parse_alert("clear: raise raise > 1 by by")
    assert (rule.query, rule.raises, rule.by) == ("clear", Condition("raise", ">", 1), ("by",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a name at character 1, got the end"),
        ("q raise", "expected ':', '=' or the end at character 3, got 'raise'"),
        ("q: raise n 5", "expected <, <=, > or >= at character 12, got '5'"),
        ("q: raise n > x", "expected a number at character 14, got 'x'"),
        ("q: raise n > 5 for 3.5 epochs", "expected a whole number at character 20, got '3.5'"),
        ("q: raise n > 5; x", "at character 15, got ';'"),
        ("q: raise n > 5 for 0 epochs", "expected 1 to 1,000,000 epochs, got 0"),
        ("q: raise n > 5, clear n < 7", "choose a threshold within n <= 5"),
        ("q: raise n > 5, clear n > 7", "choose a threshold within n <= 5"),
        ("q: raise n > 5, clear m < 4", "expected one column, got n to raise and m to clear"),
        ("q: raise any, clear n < 3", "write 'clear silent'"),
        ("q: raise n > 9223372036854775808", "expected a number below 2^63"),
        ("q: raise n > 1e999", "expected a number below 2^63"),
        (f"q: raise n > {'1' * 5000}", "expected at most 4096 characters"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="invalid") as caught:
        parse_alert(text)
    assert reason in str(caught.value)


@given(
    st.sampled_from(OPERATORS),
    st.integers(-3, 3),
    st.sampled_from(OPERATORS),
    st.integers(-3, 3),
)
def test_conditions_are_refused_exactly_if_a_value_fulfils_both(
    raising: str, high: int, clearing: str, low: int
) -> None:
    values = [value / 2 for value in range(-20, 21)]
    overlap = any(HOLDS[raising](v, high) and HOLDS[clearing](v, low) for v in values)
    try:
        parse_alert(f"q: raise n {raising} {high}, clear n {clearing} {low}")
    except ValueError:
        assert overlap
    else:
        assert not overlap


def test_alerts_on_lines_are_shown_as_they_are_read_and_need_names() -> None:
    text = "q: raise n > 5\nbusy = q: raise n > 50"
    rules = parse_alerts(text)
    assert [rule.name for rule in rules] == ["q", "busy"]
    assert parse_alerts(show_alerts(rules)) == rules
    assert parse_alerts("") == ()
    with pytest.raises(
        ValueError, match="two alerts are called q; name one of them: 'NAME = q: …'"
    ):
        parse_alerts("q: raise n > 5\nq: raise n > 50")
