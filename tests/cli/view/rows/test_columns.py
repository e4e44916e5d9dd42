"""What the view knows of an answer: its epoch, what identifies a row, what is compared."""

from __future__ import annotations

from tests.cli.view.answers import PACKETS, TALKERS, WHOLE, answers

from gscope.cli.view.rows.columns import Role


def roles(text: str) -> dict[str, Role]:
    (answer,) = answers(text).values()
    return {column.name: column.role for column in answer.columns}


def test_groups_have_an_epoch_keys_and_measures() -> None:
    assert roles(TALKERS) == {
        "minute": Role.EPOCH,
        "srcIP": Role.KEY,
        "packets": Role.MEASURE,
        "bytes": Role.MEASURE,
    }


def test_a_key_that_is_a_number_is_a_key() -> None:
    text = (
        "SELECT tb, destPort, protocol, avg(len) AS mean FROM IP"
        " GROUP BY time/10 AS tb, destPort, protocol"
    )
    assert roles(text) == {
        "tb": Role.EPOCH,
        "destPort": Role.KEY,
        "protocol": Role.KEY,
        "mean": Role.MEASURE,
    }


def test_a_computed_key_is_no_key_by_which_a_row_is_found_again() -> None:
    text = "SELECT tb, p + 1 AS next, count(*) AS n FROM IP GROUP BY time/10 AS tb, destPort AS p"
    assert roles(text)["next"] is Role.MEASURE


def test_packets_divide_into_seconds_and_keep_their_times() -> None:
    (answer,) = answers("SELECT timestamp, srcIP, len FROM IP").values()
    assert answer.clock is not None
    assert (answer.clock.width, answer.clock.is_exact) == (1_000_000_000, False)
    assert [column.name for column in answer.shown] == ["timestamp", "srcIP", "len"]
    (answer,) = answers(PACKETS).values()
    assert answer.clock is not None
    assert answer.clock.is_exact


def test_the_whole_input_is_one_epoch() -> None:
    (answer,) = answers(WHOLE).values()
    assert answer.clock is None
    assert answer.keys == ("srcIP",)


def test_windows_and_first_rows_have_the_roles_of_their_groups() -> None:
    window = (
        "SELECT window_end, srcIP, sum(len) AS b FROM IP [RANGE '1 min' SLIDE '10 sec']"
        " GROUP BY srcIP"
    )
    assert roles(window) == {"window_end": Role.EPOCH, "srcIP": Role.KEY, "b": Role.MEASURE}
    (answer,) = answers(f"{TALKERS} ORDER BY bytes DESC LIMIT 3").values()
    assert (answer.keys, answer.ordered_by) == (("srcIP",), "bytes")
