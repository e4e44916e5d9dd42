"""The loss summary: what became of every packet, at the end of a run.

received = dropped + filtered + shed + late + malformed + unsupported + accepted + unread, on every
interface.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gscope.cli.config.quantities import show_duration
from gscope.cli.render.accounting import UNDECODED, shed_lines
from gscope.cli.render.incomplete import incomplete_lines
from gscope.cli.render.partial import gap_lines, partial_lines
from gscope.cli.render.sent import UNSENT, sent_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.cli.render.outcome import Outcome
    from gscope.queries.streams.process_events import CaptureFinished, CaptureProgress

TERMS = ("dropped", "filtered", "shed", "late", "unread")
_LOST = ("dropped", "shed", "late", "unread")
_UNSAVED = ("unwritten", "outrun", "gone_groups", "unsearched_groups")
"""What the file of saved packets has lost; packets above its limit are left out on purpose."""
_INTERFACES_SHOWN = 8
_DAMAGE_SHOWN = 20


def is_whole(outcome: Outcome) -> bool:
    """Return whether nothing was lost: on interfaces, in the log, in the job, with a daemon."""
    capture = outcome.finished_capture
    lost = _lost_tuples(capture) + sum(outcome.shed_tuples.values())
    for each in capture.inputs:
        lost += each["late_tuples_total"] + each["shed_tuples_total"] + len(each.get("gaps", ()))
    lost += sum(capture.saved.get(name, 0) for name in _UNSAVED)
    lost += sum(outcome.late_tuples.values())
    lost += sum(each[name] for each in outcome.outlets for name in UNSENT)
    return (
        not lost
        and capture.least_rate == 1
        and not _crash_count(capture)
        and not outcome.partial
        and not outcome.incomplete_epochs
        and not any(_has_loss(each, outcome) for each in capture.interfaces)
    )


def summary_lines(outcome: Outcome, rows: Mapping[str, int]) -> Iterator[str]:
    """Yield one line if all is well, and more for what was lost, unusual or damaged."""
    capture = outcome.finished_capture
    interfaces = capture.interfaces
    totals = {name: sum(i[name] for i in interfaces) for name in ("received", "accepted", *TERMS)}
    undecoded = {kind: _by_reason(interfaces, kind) for kind in UNDECODED}
    totals |= {kind: sum(counts.values()) for kind, counts in undecoded.items()}
    stopped = " (complete by LIMIT)" if outcome.is_complete else ""
    stopped = " (interrupted)" if outcome.signal else stopped
    said = _rows(rows) if rows else f"{_counted(capture.log.get('tuples_total', 0), 'row')} served"
    taken = _inputs(capture.inputs) if capture.inputs else _equation(totals)
    yield f"gscope: {taken}; {said} in {outcome.phases['answered']:.1f} s{stopped}"
    for kind, counts in undecoded.items():
        if counts:
            yield f"  {kind}: " + ", ".join(
                f"{reason.replace('_', ' ')} {count:,}" for reason, count in counts.items()
            )
    yield from _sampled(capture, totals)
    yield from _overloaded(capture, totals, outcome.trimmed_tuples)
    yield from _unread_links(interfaces)
    yield from _late(interfaces)
    yield from _odd_interfaces(interfaces, outcome)
    yield from _damage(interfaces, capture.failed)
    yield from _left_out(capture)
    yield from _odd_inputs(capture.inputs)
    for line in partial_lines(outcome.partial) if outcome.partial else gap_lines(capture):
        yield f"  {line}"
    for query, count in outcome.late_tuples.items():
        came = (
            "row arrived too late for {} and is"
            if count == 1
            else "rows arrived too late for {} and are"
        )
        yield f"  {count:,} {came.format(query)} missing from its answer"
    for function, count in outcome.undecodable.items():
        yield f"  {_counted(count, 'payload')} malformed or cut off, so that {function} is NULL"
    for function, count in outcome.foreign.items():
        begins = "does" if count == 1 else "do"
        protocol = function.partition("_")[0].upper()
        yield (
            f"  {_counted(count, 'payload')} {begins} not begin a message of {protocol}"
            f" ({function})"
        )
    for query, count in outcome.wrapped_sums.items():
        does = "exceeds 64 bits and has" if count == 1 else "exceed 64 bits and have"
        yield f"  {_counted(count, 'sum')} of {query} {does} wrapped around"
    for query, count in outcome.crowded_out.items():
        tuples = _counted(count, "tuple")
        yield f"  {tuples} of {query} left out: a supergroup had reached max_groups"
    if sent := outcome.transferred_bytes:
        fetched, carried, returned, exchanged = (
            _counted(sent.get(kind, 0), "byte")
            for kind in ("segments", "carried", "returned", "exchanged")
        )
        yield (
            f"  executors fetched {fetched} of segments and {carried} of carried rows, returned"
            f" {returned} and exchanged {exchanged}"
        )
    yield from shed_lines(capture, outcome.shed_tuples)
    yield from incomplete_lines(outcome)
    yield from _saved(capture.saved)
    yield from sent_lines(outcome.outlets)
    if times := outcome.restarts.get("job"):
        yield f"  the HFTA job was restarted {_counted(times, 'time')}; no answer was lost"
    yield from _crashes(capture)


def failure_lines(capture: CaptureFinished) -> Iterator[str]:
    """Yield why inputs were left out, then why interfaces ended before the run."""
    for sentence in capture.refused.values():
        yield f"{sentence}; skipped"
    for name, sentence in capture.failed.items():
        yield f"interface {name}: {sentence}"


def _sampled(capture: CaptureFinished, totals: Mapping[str, int]) -> Iterator[str]:
    """Yield the rate of the sample, and which share of the packets it left out."""
    rate = capture.sample_rate
    if rate < 1:
        share = totals["shed"] / totals["received"] if totals["received"] else 0.0
        yield (
            f"  answers are from a sample at the rate {rate:g}:"
            f" {share:.1%} of the packets were shed"
        )


def _overloaded(
    capture: CaptureFinished, totals: Mapping[str, int], trimmed: Mapping[str, int]
) -> Iterator[str]:
    """Yield what the capture left out because it was overloaded, and the job after it."""
    if (rate := capture.least_rate) < 1:
        share = totals["shed"] / totals["received"] if totals["received"] else 0.0
        yield (
            f"  the capture was overloaded: it sampled at rates down to {rate:.3g}, and"
            f" {share:.1%} of the packets were shed"
        )
    for query, count in trimmed.items():
        rows = _counted(count, "row")
        yield (
            f"  {rows} left out of {query}: the rate fell within "
            f"{'its' if count == 1 else 'their'} epoch"
        )


def _inputs(inputs: Sequence[Mapping[str, Any]]) -> str:
    """Return ``1,000 partial tuples and 20 answered rows from 2 inputs``.

    Of 0 terms it has only the first.
    """
    answered = sum(each.get("received_answers_total", 0) for each in inputs)
    rows = sum(each["received_tuples_total"] for each in inputs) - answered
    parts = [_counted(rows, "partial tuple")] if rows or not answered else []
    parts += [_counted(answered, "answered row")] if answered else []
    return f"{' and '.join(parts)} from {_counted(len(inputs), 'input')}"


def _odd_inputs(inputs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what inputs have lost, and which of them did not come to their end."""
    for each in inputs:
        if late := each["late_tuples_total"]:
            yield (
                f"  {each['name']}: {_counted(late, 'partial tuple')} came after --absent-after and"
                f" {'is' if late == 1 else 'are'} in no answer"
            )
        if shed := each["shed_tuples_total"]:
            yield (
                f"  {each['name']}: {_counted(shed, 'partial tuple')} shed before it could be read"
            )
        if each["state"] in ("failed", "refused", "absent", "connecting"):
            reason = f" ({each['reason']})" if each["reason"] else ""
            yield f"  input {each['name']}: {each['state']} at the end{reason}"


def _unread_links(interfaces: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the link types that are not decoded, by name."""
    counts: Counter[str] = Counter()
    for each in interfaces:
        counts.update(each.get("unread_links", {}))
    if counts:
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
        yield f"  unknown link types, which gscope does not decode: {listed}"


def _late(interfaces: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the skew at which no packet would have been late, if it is known."""
    late = [each for each in interfaces if each["late"]]
    if not late:
        return
    needed = {each["name"]: each.get("needed_skew_ns", 0) for each in late}
    if not all(needed.values()):
        yield "  late packets step back in time by more than the skew; raise it with --skew"
        return
    is_one = len(interfaces) == 1
    flags = [
        f"--skew {'' if is_one else f'{name}='}{show_duration(skew_ns)}"
        for name, skew_ns in list(needed.items())[:_INTERFACES_SHOWN]
    ]
    if len(needed) > _INTERFACES_SHOWN:
        flags = [f"--skew {show_duration(max(needed.values()))}"]
    yield (
        f"  late packets step back in time by more than the skew; {' '.join(flags)} accepts "
        "them all"
    )


def _crashes(capture: CaptureFinished) -> Iterator[str]:
    """Return what a killed capture daemon lost."""
    times = _crash_count(capture)
    if not times:
        return
    streams = capture.lftas.values()
    uncaptured_ns = max((c.get("uncaptured_ns_total", 0) for c in streams), default=0)
    tuples = sum(counters.get("lost_in_crash_tuples_total", 0) for counters in streams)
    lost = (
        f"up to {_counted(tuples, 'partial tuple')} of open groups" if tuples else "no open group"
    )
    yield (
        f"  the capture daemon was restarted {_counted(times, 'time')}: no packets were "
        f"captured for {uncaptured_ns / 1e9:.1f} s, and {lost} "
        f"{'were' if tuples > 1 else 'was'} lost"
    )


def counter_line(progress: CaptureProgress | None, rows: Mapping[str, int], seconds: float) -> str:
    """Return the line that SIGUSR1 prints, from the latest progress and rows by query."""
    packets = _counted(progress.packets if progress else 0, "packet")
    dropped = progress.dropped if progress else 0
    return f"gscope: {packets}, {dropped:,} dropped; {_rows(rows)}; after {seconds:.1f} s"


def _crash_count(capture: CaptureFinished) -> int:
    """Return how many capture daemons died before the end of the input."""
    streams = capture.lftas.values()
    return max((counters.get("crashes_total", 0) for counters in streams), default=0)


def _left_out(capture: CaptureFinished) -> Iterator[str]:
    """Return how many packets passed an LFTA's predicate but are in no row."""
    for counter, why in (
        ("without_epoch_tuples_total", "packets with a NULL epoch are in no group"),
        (
            "out_of_order_tuples_total",
            "packets violate an ordering that a query declares, and were discarded",
        ),
    ):
        count = sum(counters.get(counter, 0) for counters in capture.lftas.values())
        if count:
            yield f"  {count:,} {why}"


def _equation(terms: Mapping[str, int]) -> str:
    """Return ``1,000 packets received = 990 accepted + 10 malformed``, without terms that are 0."""
    parts = [f"{terms['accepted']:,} accepted"]
    parts += [f"{terms[name]:,} {name}" for name in (*UNDECODED, *TERMS) if terms[name]]
    return f"{_counted(terms['received'], 'packet')} received = {' + '.join(parts)}"


def _rows(rows: Mapping[str, int]) -> str:
    if len(rows) == 1:
        return _counted(sum(rows.values()), "row")
    return ", ".join(f"{query} {_counted(count, 'row')}" for query, count in rows.items())


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _saved(saved: Mapping[str, Any]) -> Iterator[str]:
    """Yield what became of the packets to be saved; nothing if none were to be."""
    if not saved:
        return
    if path := saved.get("interrupted"):
        yield f"  no packets saved in {path}: interrupted before the captures were read again"
        return
    yield f"  {_counted(saved['packets'], 'packet')} saved in {saved['path']}"
    for counter, why in (
        ("over_limit", "the file has reached --save-packets-limit"),
        ("outrun", "the disk was too slow"),
        ("unwritten", saved["failure"]),
    ):
        if count := saved[counter]:
            yield f"  {_counted(count, 'packet')} not saved: {why}"
    if count := saved.get("gone_groups", 0):
        yield (
            f"  packets of {_counted(count, 'group')} had left the ring, in part or as a whole;"
            " --packet-ring keeps more"
        )
    if count := saved.get("unsearched_groups", 0):
        yield f"  packets of {_counted(count, 'group')} not saved: {saved['failure']}"


def _odd_interfaces(interfaces: Sequence[Mapping[str, Any]], outcome: Outcome) -> Iterator[str]:
    """Yield the account of each interface: all if there are few, otherwise those with losses."""
    if len(interfaces) == 1:
        return
    odd = [i for i in interfaces if _has_loss(i, outcome)]
    shown = interfaces if odd and len(interfaces) <= _INTERFACES_SHOWN else odd
    for interface in shown[:_INTERFACES_SHOWN]:
        sums = {kind: sum(interface[kind].values()) for kind in UNDECODED}
        yield f"  {interface['name']}: {_equation({**interface, **sums})}"
    if len(shown) > _INTERFACES_SHOWN:
        yield f"  … and {len(shown) - _INTERFACES_SHOWN} more interfaces with loss"


def _damage(interfaces: Sequence[Mapping[str, Any]], failed: Mapping[str, str]) -> Iterator[str]:
    """Yield damage of captures, except that of interfaces that are reported as failed anyway."""
    sentences = [
        sentence if len(interfaces) == 1 else f"{interface['name']}: {sentence}"
        for interface in interfaces
        for sentence in interface["damage"]
        if sentence != failed.get(interface["name"])
    ]
    for sentence in sentences[:_DAMAGE_SHOWN]:
        yield f"  {sentence}"
    if len(sentences) > _DAMAGE_SHOWN:
        yield f"  … and {len(sentences) - _DAMAGE_SHOWN} more damaged places"


def _by_reason(interfaces: Sequence[Mapping[str, Any]], kind: str) -> dict[str, int]:
    """Return the packets of one kind, on all interfaces, by reason; most frequent first."""
    counts: dict[str, int] = {}
    for interface in interfaces:
        for reason, count in interface[kind].items():
            counts[reason] = counts.get(reason, 0) + count
    return dict(sorted(((r, c) for r, c in counts.items() if c), key=lambda item: -item[1]))


def _has_loss(interface: Mapping[str, Any], outcome: Outcome) -> bool:
    """Return whether an interface lost packets.

    A run that is complete needs no more of them, and a fixed rate sheds on purpose.
    """
    expected = {"unread"} if outcome.is_complete else set()
    expected |= {"shed"} if outcome.finished_capture.sample_rate < 1 else set()
    return any(interface[name] for name in _LOST if name not in expected) or bool(
        interface["damage"]
    )


def _lost_tuples(capture: CaptureFinished) -> int:
    return capture.log.get("shed_tuples_total", 0)
