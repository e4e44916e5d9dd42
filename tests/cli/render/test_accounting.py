"""The sum of tuples is shown as far as it is known."""

from __future__ import annotations

from tests.cli.render.finished_captures import finished

from gscope.cli.render.accounting import final, shed_lines, standing_lines, tuple_equation

LOG = {
    "tuples_total": 1000,
    "released_tuples_total": 700,
    "waiting_tuples": 200,
    "shed_tuples_total": 100,
}


def test_terms_that_are_0_are_left_out() -> None:
    assert tuple_equation(LOG) == "1,000 partial tuples = 700 released + 200 waiting + 100 shed"
    assert tuple_equation(final(LOG)) == "1,000 partial tuples = 900 released + 100 shed"
    assert tuple_equation({"tuples_total": 1, "released_tuples_total": 1}) == (
        "1 partial tuple = 1 released"
    )


def test_what_was_shed_is_reported_by_stream_with_its_remedy() -> None:
    stream = {"tuples_total": 600, "shed_tuples_total": 100, "shed_packets_total": 12_345}
    other = {"tuples_total": 400, "shed_tuples_total": 0, "shed_packets_total": 0}
    capture = finished(log=LOG, logged={"flow@eth0": stream, "flow@eth1": other})
    assert list(shed_lines(capture, {"talkers": 3})) == [
        "  1,000 partial tuples = 900 released + 100 shed",
        "    flow@eth0: 100 of 600 (12,345 packets)",
        "  shed tuples are missing from answers: the log was full; raise its limit with --log",
        "  3 rows waiting for talkers shed; raise the limit with --job-disk",
    ]
    assert list(shed_lines(finished(log={"tuples_total": 5}), {})) == []


def test_where_packets_and_tuples_are_while_a_run_lasts() -> None:
    interface = {
        "received_packets": 100,
        "accepted_packets": 73,
        "dropped_packets": 5,
        "unread_packets": 10,
        "malformed_packets": {"ip_truncated": 5},
        "unsupported_packets": {"too_deep": 3, "unknown_linktype": 4},
    }
    assert list(standing_lines({"interfaces": [interface], "log": {**LOG, "open_tuples": 7}})) == [
        "  100 packets received = 73 accepted + 5 malformed + 7 unsupported"
        " + 5 dropped + 10 unread",
        "  1,000 partial tuples = 700 released + 200 waiting + 100 shed; 7 not logged yet",
    ]
    assert next(standing_lines({})) == "  0 packets received = 0 accepted"
