"""The account of a run in the view."""

from __future__ import annotations

from tests.cli.render.finished_captures import finished

from gscope.cli.render.outcome import Outcome
from gscope.cli.view.accounts import account_of, final_account
from gscope.cli.view.model import LinkState
from gscope.queries.streams.loss_reasons import KERNEL, IncompleteEpochs

COUNTS = {
    "received_packets": 1_000,
    "accepted_packets": 930,
    "dropped_packets": 20,
    "late_packets": 3,
    "filtered_packets": 0,
    "shed_packets": 0,
    "unread_packets": 40,
    "malformed_packets": {"truncated": 7},
    "unsupported_packets": {},
}
UP = {"name": "up", "state": "up", "packets_per_second": 12.5, "idle_ns": 100_000_000, **COUNTS}
DOWN: dict[str, object] = {
    **{name: {} if isinstance(value, dict) else 0 for name, value in COUNTS.items()},
    "name": "down",
    "state": "down",
    "packets_per_second": 0.0,
    "idle_ns": 75_000_000_000,
}


def test_terms_add_up_and_losses_are_named() -> None:
    outcome = Outcome()
    outcome.note_incomplete([IncompleteEpochs("q", KERNEL, 1, 2)], {"q": {KERNEL: 2}})
    outcome.late_tuples = {"q": 4}
    account = account_of({"interfaces": [UP, DOWN], "log": {"shed_tuples_total": 5}}, outcome)
    assert account.equation == (
        "1,000 packets received = 930 accepted + 7 malformed + 20 dropped + 3 late + 40 unread"
    )
    assert account.losses == (
        "20 packets dropped",
        "3 packets late",
        "5 tuples shed by the log",
        "q: 2 incomplete epochs (the kernel dropped packets: 2)",
        "q: 4 rows too late",
    )
    assert account.links == (
        LinkState("up", 12.5, 23, None, "up"),
        LinkState("down", 0.0, 0, 75.0, "down", has_packets=False),
    )


def test_nothing_is_known_before_the_capture_reports() -> None:
    account = account_of({}, Outcome())
    assert (account.equation, account.losses, account.links) == ("", (), ())


def test_inputs_of_other_hosts_are_links() -> None:
    inputs = [{"name": "a", "state": "absent", "late_tuples_total": 2, "shed_tuples_total": 1}]
    (link,) = account_of({"inputs": inputs}, Outcome()).links
    assert link == LinkState("a", None, 3, None, "absent")


def test_the_account_of_a_run_that_has_ended_is_that_of_its_summary() -> None:
    interface = {
        "name": "a",
        "received": 10,
        "accepted": 8,
        "dropped": 2,
        **dict.fromkeys(("filtered", "shed", "late", "unread"), 0),
        "malformed": {},
        "unsupported": {},
        "damage": [],
    }
    outcome = Outcome(capture=finished(interface), phases={"answered": 1.0})
    outcome.late_tuples = {"q": 1}
    account = final_account(outcome, {"q": 3}, ())
    assert account.equation == "10 packets received = 8 accepted + 2 dropped"
    assert account.losses == ("1 row arrived too late for q and is missing from its answer",)
    outcome.late_tuples, interface["dropped"], interface["accepted"] = {}, 0, 10
    assert final_account(outcome, {"q": 3}, ()).losses == ()


def test_a_sample_at_a_fixed_rate_is_no_loss() -> None:
    interface = {**UP, "shed_packets": 50}
    for rate, lost in ((1.0, 73), (0.5, 23)):
        account = account_of({"interfaces": [interface], "sample_rate": rate}, Outcome())
        assert account.links[0].lost_packets == lost
        assert ("50 packets shed" in account.losses) == (rate == 1)
