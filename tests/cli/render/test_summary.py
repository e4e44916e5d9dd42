from __future__ import annotations

from typing import Any

import pytest
from tests.cli.render.finished_captures import finished

from gscope.cli.render.outcome import Outcome
from gscope.cli.render.summary import is_whole, summary_lines
from gscope.cli.render.timings import timing_lines
from gscope.queries.streams.loss_reasons import IncompleteEpochs


def _interface(name: str = "a", **changes: Any) -> dict[str, Any]:
    whole = dict.fromkeys(("dropped", "filtered", "shed", "late", "unread"), 0)
    return {
        "name": name,
        "received": 1000,
        "accepted": 1000,
        "malformed": {},
        "unsupported": {},
        "damage": [],
        **whole,
        **changes,
    }


def _outcome(*interfaces: dict[str, Any], **changes: Any) -> Outcome:
    return Outcome(capture=finished(*interfaces, **changes), phases={"answered": 1.25})


def test_all_is_well_in_one_line() -> None:
    outcome = _outcome(_interface())
    assert list(summary_lines(outcome, {"q": 1234})) == [
        "gscope: 1,000 packets received = 1,000 accepted; 1,234 rows in 1.2 s"
    ]
    assert is_whole(outcome)


def test_a_run_that_its_limits_ended_lost_nothing() -> None:
    outcome = _outcome(_interface(accepted=990, unread=10))
    assert not is_whole(outcome)
    outcome.is_complete = True
    assert is_whole(outcome)
    assert list(summary_lines(outcome, {"q": 5})) == [
        "gscope: 1,000 packets received = 990 accepted + 10 unread;"
        " 5 rows in 1.2 s (complete by LIMIT)"
    ]


def test_payloads_that_a_function_could_not_read_are_counted() -> None:
    outcome = _outcome(_interface())
    outcome.undecodable = {"dns_qname": 1203, "tls_sni": 1}
    outcome.foreign = {"http_host": 2_000, "tls_sni": 1}
    assert list(summary_lines(outcome, {"q": 1}))[1:] == [
        "  1,203 payloads malformed or cut off, so that dns_qname is NULL",
        "  1 payload malformed or cut off, so that tls_sni is NULL",
        "  2,000 payloads do not begin a message of HTTP (http_host)",
        "  1 payload does not begin a message of TLS (tls_sni)",
    ]
    assert is_whole(outcome)


def test_sums_that_leave_64_bits_are_counted_by_query() -> None:
    outcome = _outcome(_interface())
    outcome.wrapped_sums = {"ages": 1203, "totals": 1}
    assert list(summary_lines(outcome, {"ages": 1}))[1:] == [
        "  1,203 sums of ages exceed 64 bits and have wrapped around",
        "  1 sum of totals exceeds 64 bits and has wrapped around",
    ]
    assert is_whole(outcome)


def test_tuples_without_room_for_a_group_are_counted_by_query() -> None:
    outcome = _outcome(_interface())
    outcome.crowded_out = {"sample": 1203}
    (line,) = list(summary_lines(outcome, {"sample": 1}))[1:]
    assert line == "  1,203 tuples of sample left out: a supergroup had reached max_groups"


def test_what_executors_transfer_is_shown_also_if_it_is_nothing() -> None:
    outcome = _outcome(_interface())
    outcome.transferred_bytes = {"segments": 0, "carried": 1, "returned": 4321, "exchanged": 0}
    (line,) = list(summary_lines(outcome, {"q": 1}))[1:]
    assert line == (
        "  executors fetched 0 bytes of segments and 1 byte of carried rows, returned 4,321 bytes"
        " and exchanged 0 bytes"
    )
    assert is_whole(outcome)


@pytest.mark.parametrize(
    ("received", "answers", "said"),
    [
        (5, 0, "5 partial tuples"),
        (5, 5, "5 answered rows"),
        (6, 1, "5 partial tuples and 1 answered row"),
        (0, 0, "0 partial tuples"),
    ],
)
def test_answers_of_hosts_are_counted_apart(received: int, answers: int, said: str) -> None:
    each = {"received_tuples_total": received, "received_answers_total": answers, "name": "a"}
    inputs = [{**each, "late_tuples_total": 0, "shed_tuples_total": 0, "state": "ended"}]
    (line,) = summary_lines(_outcome(inputs=tuple(inputs)), {"q": 1})
    assert line == f"gscope: {said} from 1 input; 1 row in 1.2 s"


def test_inputs_that_did_not_end_are_named_with_the_reason() -> None:
    quiet = {"received_tuples_total": 5, "late_tuples_total": 0, "shed_tuples_total": 0}
    inputs = [
        {**quiet, "name": "a", "state": "ended", "reason": ""},
        {**quiet, "name": "b", "state": "failed", "reason": "b:9470 does not answer: timed out"},
        {**quiet, "name": "c", "state": "connecting", "reason": ""},
    ]
    assert list(summary_lines(_outcome(inputs=tuple(inputs)), {"q": 1})) == [
        "gscope: 15 partial tuples from 3 inputs; 1 row in 1.2 s",
        "  input b: failed at the end (b:9470 does not answer: timed out)",
        "  input c: connecting at the end",
    ]


def test_every_term_that_is_not_0_is_shown() -> None:
    odd = _interface(
        accepted=900, late=40, unread=30, malformed={"ip_truncated": 10, "link_truncated": 20}
    )
    first, reasons, remedy = summary_lines(_outcome(odd), {"q": 1, "p": 2})
    assert "= 900 accepted + 30 malformed + 40 late + 30 unread; q 1 row, p 2 rows" in first
    assert reasons == "  malformed: link truncated 20, ip truncated 10"
    assert "--skew" in remedy


def test_the_skew_that_counts_every_packet_is_named() -> None:
    hour = 3_600_000_000_000
    late = _interface("up", late=3, needed_skew_ns=hour)
    assert "--skew 1h accepts them all" in list(summary_lines(_outcome(late), {"q": 1}))[1]
    other = _interface("down", late=1, needed_skew_ns=hour + 1)
    three = _outcome(late, _interface("side", needed_skew_ns=0), other)
    assert "--skew up=1h --skew down=3600000000001ns accepts" in list(summary_lines(three, {}))[1]
    many = [_interface(f"i{n}", late=1, needed_skew_ns=hour * n) for n in range(1, 12)]
    assert "; --skew 11h accepts" in list(summary_lines(_outcome(*many), {}))[1]
    live = _interface(late=1, needed_skew_ns=0)
    assert "raise it with --skew" in list(summary_lines(_outcome(live), {"q": 1}))[1]


def test_a_sample_is_reported_and_is_no_loss() -> None:
    outcome = _outcome(_interface(accepted=100, shed=900), sample_rate=0.1)
    assert list(summary_lines(outcome, {"q": 5})) == [
        "gscope: 1,000 packets received = 100 accepted + 900 shed; 5 rows in 1.2 s",
        "  answers are from a sample at the rate 0.1: 90.0% of the packets were shed",
    ]
    assert is_whole(outcome)


def test_rows_that_come_late_are_loss() -> None:
    outcome = _outcome(_interface())
    outcome.late_tuples = {"q": 0}
    assert is_whole(outcome)
    outcome.late_tuples = {"q": 1}
    assert not is_whole(outcome)


def test_one_of_a_kind_is_not_in_the_plural() -> None:
    outcome = _outcome(_interface(received=1, accepted=1))
    outcome.late_tuples = {"q": 1}
    assert list(summary_lines(outcome, {"q": 1})) == [
        "gscope: 1 packet received = 1 accepted; 1 row in 1.2 s",
        "  1 row arrived too late for q and is missing from its answer",
    ]


def test_unsupported_packets_are_shown_apart_from_malformed_ones() -> None:
    one = _interface(
        accepted=900, malformed={"ip_truncated": 10}, unsupported={"unknown_linktype": 90}
    )
    other = _interface("b", accepted=999, unsupported={"lowpan_fragment": 1})
    first, *reasons = summary_lines(_outcome(one, other), {"q": 1})
    assert "= 1,899 accepted + 10 malformed + 91 unsupported; 1 row" in first
    assert reasons == [
        "  malformed: ip truncated 10",
        "  unsupported: unknown linktype 90, lowpan fragment 1",
    ]
    lossy = _interface("b", accepted=998, unsupported={"lowpan_fragment": 1}, late=1)
    assert "  b: 1,000 packets received = 998 accepted + 1 unsupported + 1 late" in list(
        summary_lines(_outcome(one, lossy), {"q": 1})
    )


def test_malformed_and_unsupported_packets_alone_are_no_loss() -> None:
    odd = _interface(malformed={"ip_truncated": 10}, unsupported={"too_deep": 1})
    assert is_whole(_outcome(odd))


@pytest.mark.parametrize("term", ["dropped", "shed", "late", "unread"])
def test_a_lost_packet_is_a_loss(term: str) -> None:
    assert not is_whole(_outcome({**_interface(), term: 1}))


def test_a_full_log_and_damage_are_losses() -> None:
    assert not is_whole(_outcome(_interface(), log={"shed_tuples_total": 3}))
    assert not is_whole(_outcome(_interface(damage=["it ends early"])))


def test_damage_names_the_interface_where_there_are_several() -> None:
    lines = list(summary_lines(_outcome(_interface(damage=["it ends early"]), _interface("b")), {}))
    assert "  a: it ends early" in lines
    assert any(line.startswith("  b: 1,000 packets received") for line in lines)


def test_why_an_interface_failed_is_left_to_the_line_that_says_so() -> None:
    damage = ["it was down for 3 s", "it vanished"]
    outcome = _outcome(_interface(damage=damage), _interface("b"), failed={"a": "it vanished"})
    lines = list(summary_lines(outcome, {}))
    assert "  a: it was down for 3 s" in lines
    assert not any("it vanished" in line for line in lines)


def test_of_many_interfaces_only_those_that_lost_are_shown() -> None:
    many = [_interface(f"i{n}", late=int(n > 90), accepted=1000 - (n > 90)) for n in range(100)]
    lines = list(summary_lines(_outcome(*many), {"q": 0}))
    assert len(lines) == 11
    assert "i91" in lines[2]
    assert "1 more" in lines[-1]


def test_tuples_without_an_epoch_are_reported() -> None:
    outcome = _outcome(_interface(), lftas={"q@a": {"without_epoch_tuples_total": 5}})
    assert "5 packets with a NULL epoch" in list(summary_lines(outcome, {"q": 0}))[1]


def test_timings_are_in_order() -> None:
    outcome = _outcome(_interface(), phases={"kernels_s": 0.5})
    outcome.phases = {"answered": 2.0, "queries compiled": 0.1}
    outcome.job_phases = {"session": 1.5}
    lines = list(timing_lines(outcome))
    assert lines[1].endswith("queries compiled")
    assert any("kernel loaded or compiled" in line for line in lines)
    assert any("Spark session" in line for line in lines)


def test_a_daemon_that_died_is_a_loss_and_reported_as_what_it_took_at_most() -> None:
    counters = {
        "crashes_total": 2,
        "uncaptured_ns_total": 3_400_000_000,
        "lost_in_crash_tuples_total": 7,
    }
    outcome = _outcome(_interface(), lftas={"a@x": counters, "b@x": counters})
    assert not is_whole(outcome)
    assert list(summary_lines(outcome, {"q": 1}))[1:] == [
        "  the capture daemon was restarted 2 times: no packets were captured for 3.4 s,"
        " and up to 14 partial tuples of open groups were lost"
    ]


def test_a_job_that_died_is_no_loss() -> None:
    outcome = _outcome(_interface())
    outcome.restarts = {"job": 1}
    assert is_whole(outcome)
    assert list(summary_lines(outcome, {"q": 1}))[1:] == [
        "  the HFTA job was restarted 1 time; no answer was lost"
    ]


def test_rows_left_out_as_the_rate_fell_are_counted_with_the_overload() -> None:
    outcome = _outcome(_interface(), least_rate=0.25)
    outcome.trimmed_tuples = {"flows": 1200, "hosts": 1}
    assert list(summary_lines(outcome, {"q": 1}))[2:] == [
        "  1,200 rows left out of flows: the rate fell within their epoch",
        "  1 row left out of hosts: the rate fell within its epoch",
    ]
    assert not is_whole(outcome)


def test_epochs_that_may_lack_packets_are_named() -> None:
    outcome = _outcome(_interface())
    first = IncompleteEpochs("flows", "kernel", 28, 30, 12)
    restarted = IncompleteEpochs("flows", "restart", 31, 31)
    unknown = IncompleteEpochs("hosts", "log", None, 5)
    outcome.note_incomplete([first], {"flows": {"kernel": 3}})
    # A restarted job reports its commits again.
    outcome.note_incomplete([first, restarted], {"flows": {"kernel": 3, "restart": 1}})
    counts = {"flows": {"kernel": 3, "restart": 1}, "hosts": {"log": 1}}
    outcome.note_incomplete([unknown], counts)
    assert list(summary_lines(outcome, {"q": 1}))[1:] == [
        "  3 epochs of flows may lack rows or packets: the kernel dropped packets (28 to 30)",
        "  1 epoch of flows may lack rows or packets: the capture daemon was restarted (31)",
        "  1 epoch of hosts may lack rows or packets:"
        " rows were shed for want of disk space (? to 5)",
    ]


def test_of_many_incomplete_epochs_the_latest_are_named() -> None:
    outcome = _outcome(_interface())
    epochs = [IncompleteEpochs("flows", "kernel", n, n, 1) for n in range(0, 20, 2)]
    outcome.note_incomplete(epochs, {"flows": {"kernel": 10}})
    *_, line = summary_lines(outcome, {"q": 1})
    assert line.endswith("dropped packets (…, 10, 12, 14, 16, 18)")


def test_packets_that_were_not_saved_are_counted_by_reason() -> None:
    saved = {"path": "hits.pcapng", "packets": 1234, "bytes": 9, "failure": "no space left"}
    lost = {"over_limit": 2, "outrun": 0, "unwritten": 1}
    outcome = _outcome(_interface(), saved={**saved, **lost})
    assert list(summary_lines(outcome, {"q": 1}))[1:] == [
        "  1,234 packets saved in hits.pcapng",
        "  2 packets not saved: the file has reached --save-packets-limit",
        "  1 packet not saved: no space left",
    ]
    assert not is_whole(outcome)
    # A limit is kept on purpose.
    assert is_whole(_outcome(_interface(), saved={**saved, **lost, "unwritten": 0}))
    interrupted = _outcome(_interface(), saved={"interrupted": "hits.pcapng"})
    assert list(summary_lines(interrupted, {"q": 1}))[1:] == [
        "  no packets saved in hits.pcapng: interrupted before the captures were read again"
    ]
