"""The head of a report says what is missing, in the words of the summary."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.render.finished_captures import finished
from tests.cli.report.things import RATES, rows_of

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.render.outcome import Outcome
from gscope.cli.report.facts import duration_text, facts_of_captures, marks
from gscope.queries.streams.loss_reasons import LOG, IncompleteEpochs

COUNTS = {"dropped": 0, "filtered": 0, "shed": 0, "late": 3, "unread": 0}


def interface(name: str, received: int, **counts: Any) -> dict[str, Any]:
    lost = {"malformed": {}, "unsupported": {}, **COUNTS} | counts
    return {
        "name": name,
        "received": received,
        "accepted": received - 3,
        "damage": [],
        "needed_skew_ns": 0,
        "unread_links": {},
        **lost,
    }


def outcome(**capture: Any) -> Outcome:
    interfaces = [interface("a", 10), interface("b", 7, malformed={"ip_bad_length": 2, "x": 0})]
    return Outcome(capture=finished(*interfaces, **capture), phases={"answered": 1.0})


def test_every_packet_is_accounted_for() -> None:
    facts = facts_of_captures({}, outcome(), [("a", "x.pcap")], [], TimeStyle.UTC)
    assert facts.accounts == (
        ("interface", "received", "accepted", "malformed: ip bad length", "late"),
        ("a", "10", "7", "0", "3"),
        ("b", "7", "4", "2", "3"),
    )
    assert facts.entries == (("capture", "a: x.pcap"), ("packets", "17"))
    assert "malformed: ip bad length 2" in facts.losses
    assert any(line.startswith("late packets step back in time") for line in facts.losses)


def test_many_captures_are_counted() -> None:
    captures = [(f"n{number}", f"x/n{number}.pcap") for number in range(1011)]
    facts = facts_of_captures({}, outcome(), captures, [], TimeStyle.UTC)
    assert facts.title == "Report of n0, n1, n2 and 1,008 more"
    shown = "; ".join(f"x/n{number}.pcap" for number in range(8))
    assert facts.entries[0] == ("captures", f"{shown} and 1,003 more")


def test_captures_that_were_not_read_are_named() -> None:
    ended = outcome(refused={"c": "c.pcap is not a capture"}, failed={"b": "b.pcap is cut off"})
    ended.signal = 2
    facts = facts_of_captures({}, ended, [("a", "x/a.pcap"), ("b", "b.pcap")], [], TimeStyle.UTC)
    assert facts.losses[0] == "interrupted: the rest of the captures was not read"
    assert facts.losses[-2:] == (
        "c.pcap is not a capture; skipped",
        "interface b: b.pcap is cut off",
    )
    assert facts.entries[0] == ("captures", "x/a.pcap; b.pcap")


def test_incomplete_epochs_are_marked_at_their_answer() -> None:
    ended = outcome()
    ended.note_incomplete([IncompleteEpochs("rates", LOG, 5, 7)], {"rates": {LOG: 3}})
    (sentence,) = marks(ended, "rates")
    assert sentence.startswith("3 epochs of rates may lack rows or packets: rows were shed")
    assert "5 to 7" in sentence
    assert marks(ended, "other") == ()
    columns: dict[str, Any] = {
        "second": [0],
        "srcIP": ["10.0.0.1"],
        "packets": [1],
        "bits": [1],
        "mean": [1.0],
    }
    rows = {"rates": rows_of(RATES, columns)}
    facts = facts_of_captures(rows, ended, [("a", "a.pcap")], [], TimeStyle.UTC)
    assert sentence in facts.losses


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ms"),
        (1_500, "0.0015 ms"),
        (59_999_600_000, "1 min"),
        (61_250_000_000, "1 min 1.25 s"),
        (90_061_000_000_000, "1 d 1 h 1 min 1 s"),
        (3_600_000_000_000, "1 h"),
    ],
)
def test_durations_are_in_units_of_clocks(duration_ns: int, text: str) -> None:
    assert duration_text(duration_ns) == text
