"""The status of a run as metrics for Prometheus, with names and units by its conventions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gscope.cli.status.document import status_document
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from gscope.cli.rundir.records import RunRecord
    from gscope.cli.status.document import Document

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, from one field of the status document.

    Attributes:
        name: the name, without the ``_total`` of counters.
        field: the field of the objects that the metric is reported for.
        meaning: the help text.
        is_counter: whether the metric only grows within a run.
        scale: the factor from the unit of the field to that of the metric.
    """

    name: str
    field: str
    meaning: str
    is_counter: bool = True
    scale: float = 1


def gauge(name: str, field: str, meaning: str, scale: float = 1) -> Metric:
    """Return a metric that may rise and fall."""
    return Metric(name, field, meaning, is_counter=False, scale=scale)


INTERFACE = (
    Metric("gscope_received_packets", "received_packets", "Packets received from the source."),
    Metric("gscope_received_bytes", "received_bytes", "Bytes received, as on the wire."),
    Metric("gscope_dropped_packets", "dropped_packets", "Packets dropped by the kernel."),
    Metric("gscope_filtered_packets", "filtered_packets", "Packets rejected by the source."),
    Metric("gscope_shed_packets", "shed_packets", "Packets left out by sampling."),
    Metric("gscope_late_packets", "late_packets", "Packets later than the skew."),
    Metric("gscope_accepted_packets", "accepted_packets", "Packets decoded completely."),
    Metric("gscope_ring_freezes", "frozen_total", "How often the ring became full."),
    Metric(
        "gscope_interface_interruptions", "interruptions_total", "How often the link went down."
    ),
    Metric("gscope_heartbeats_sent", "heartbeats_total", "Heartbeats sent."),
    Metric("gscope_heartbeats_on_demand", "answers_total", "Heartbeats that answered a demand."),
    Metric("gscope_packet_work_seconds", "worked_ns", "Time spent in LFTAs.", scale=_NS),
    gauge("gscope_unread_packets", "unread_packets", "Packets received and not processed yet."),
    gauge("gscope_packets_per_second", "packets_per_second", "Current processing rate."),
    gauge("gscope_ring_bytes", "ring_bytes", "Size of the ring."),
    gauge("gscope_ring_occupancy_ratio", "ring_occupancy", "Share of the ring in use."),
    gauge("gscope_skew_seconds", "skew_ns", "How late packets may be.", _NS),
    gauge(
        "gscope_largest_lag_seconds",
        "largest_lag_ns",
        "Longest time from timestamp to processing.",
        _NS,
    ),
    gauge(
        "gscope_last_packet_timestamp_seconds", "last_packet_ns", "Time of the last packet.", _NS
    ),
    gauge("gscope_idle_seconds", "idle_ns", "Time since the last packet.", _NS),
    gauge("gscope_heartbeat_timestamp_seconds", "clock_ns", "Clock of the last heartbeat.", _NS),
    gauge("gscope_work_per_packet_seconds", "ns_per_packet", "Time in LFTAs for each packet.", _NS),
)
STREAM = (
    Metric("gscope_lfta_tuples_in", "tuples_in_total", "Packets that passed the predicate."),
    Metric("gscope_lfta_tuples_out", "tuples_out_total", "Partial tuples emitted."),
    Metric("gscope_lfta_evicted_groups", "evicted_groups_total", "Groups evicted on collision."),
    Metric(
        "gscope_lfta_without_epoch_tuples", "without_epoch_tuples_total", "Tuples without an epoch."
    ),
    Metric(
        "gscope_lfta_out_of_order_tuples",
        "out_of_order_tuples_total",
        "Tuples that violate a declared ordering.",
    ),
    Metric("gscope_stream_late_tuples", "late_tuples_total", "Tuples below earlier punctuation."),
    Metric("gscope_crashes", "crashes_total", "Capture daemons that died."),
    Metric(
        "gscope_lost_in_crash_tuples",
        "lost_in_crash_tuples_total",
        "Tuples lost when a daemon died.",
    ),
    Metric(
        "gscope_uncaptured_seconds",
        "uncaptured_ns_total",
        "Time without a capture daemon.",
        scale=_NS,
    ),
    gauge("gscope_lfta_live_groups", "live_groups", "Groups in the table."),
    gauge("gscope_lfta_table_slots", "table_slots", "Slots of the table."),
    gauge("gscope_lfta_table_bytes", "table_bytes", "Memory that the tables may take."),
    gauge(
        "gscope_lfta_selectivity_ratio", "selectivity", "Tuples emitted for each tuple accepted."
    ),
)
LOG = (
    Metric("gscope_log_batches", "batches_total", "Batches written."),
    Metric("gscope_log_tuples", "tuples_total", "Tuples written."),
    Metric("gscope_log_written_bytes", "written_bytes_total", "Bytes written."),
    Metric(
        "gscope_log_released_tuples", "released_tuples_total", "Tuples acknowledged by all readers."
    ),
    Metric("gscope_log_shed_batches", "shed_batches_total", "Batches shed."),
    Metric("gscope_log_shed_tuples", "shed_tuples_total", "Tuples of these batches."),
    Metric("gscope_log_shed_packets", "shed_packets_total", "Packets in shed tuples."),
    Metric(
        "gscope_log_thinned_tuples",
        "thinned_tuples_total",
        "Shed tuples that were removed from batches by their hash.",
    ),
    Metric("gscope_log_merged_batches", "merged_batches_total", "Batches merged into others."),
    Metric("gscope_log_full_disk", "full_disk_total", "How often the disk was full."),
    gauge("gscope_log_waiting_tuples", "waiting_tuples", "Tuples not acknowledged yet."),
    gauge("gscope_log_waiting_messages", "waiting_messages", "Messages not acknowledged yet."),
    gauge("gscope_log_open_tuples", "open_tuples", "Tuples in open batches."),
    gauge("gscope_log_used_bytes", "used_bytes", "Bytes of segments."),
    gauge("gscope_log_index_bytes", "index_bytes", "Bytes of the index."),
    gauge("gscope_log_budget_bytes", "budget_bytes", "Limit of the bytes of segments."),
)
INPUT = (
    Metric("gscope_input_received_tuples", "received_tuples_total", "Rows received."),
    Metric("gscope_input_received_answers", "received_answers_total", "Rows of answers received."),
    Metric("gscope_input_received_bytes", "received_bytes", "Bytes of rows received."),
    Metric("gscope_input_late_tuples", "late_tuples_total", "Rows that came too late."),
    Metric("gscope_input_shed_tuples", "shed_tuples_total", "Rows shed before they were read."),
    Metric("gscope_input_absences", "absences_total", "How often the input was left out."),
    gauge("gscope_input_held_tuples", "held_tuples", "Rows that are not released."),
    gauge("gscope_input_lag_seconds", "lag_ns", "Time since its last heartbeat.", _NS),
    gauge(
        "gscope_input_clock_offset_seconds",
        "clock_offset_ns",
        "How far the clock of the input is ahead.",
        _NS,
    ),
    gauge("gscope_input_clock_error_seconds", "clock_error_ns", "How wrong that may be.", _NS),
)
REMOTE = (
    gauge("gscope_remote_connections", "connections", "Connections of readers on other hosts."),
)
READER = (
    Metric("gscope_reader_bytes_out", "bytes_out_total", "Bytes sent to the reader."),
    Metric("gscope_reader_rows_out", "rows_out_total", "Rows sent to the reader."),
    gauge("gscope_reader_waiting_messages", "waiting_messages", "Messages not acknowledged."),
    gauge("gscope_reader_waiting_tuples", "waiting_tuples", "Tuples not acknowledged."),
    gauge("gscope_reader_waiting_bytes", "waiting_bytes", "Bytes of segments not acknowledged."),
    gauge(
        "gscope_reader_last_contact_timestamp_seconds",
        "last_contact_ns",
        "Last request of the reader.",
        _NS,
    ),
)
CAPTURE = (
    Metric("gscope_capture_cpu_seconds", "cpu_s", "CPU time of the capture daemon."),
    gauge("gscope_capture_memory_bytes", "memory_bytes", "Memory of the capture daemon."),
    gauge(
        "gscope_capture_written_timestamp_seconds",
        "written_ns",
        "When the process wrote its counters.",
        _NS,
    ),
    gauge("gscope_sample_rate", "sample_rate", "Rate of the sample; 1 if all packets are kept."),
    gauge("gscope_load_rate", "load_rate", "Rate to which overload has lowered the sample."),
    gauge("gscope_least_load_rate", "least_load_rate", "Least value of gscope_load_rate so far."),
)
JOB = (
    Metric("gscope_job_cpu_seconds", "cpu_s", "CPU time of the HFTA job without Java."),
    Metric("gscope_java_cpu_seconds", "java_cpu_s", "CPU time of Spark's Java."),
    gauge("gscope_job_memory_bytes", "memory_bytes", "Memory of the HFTA job without Java."),
    gauge("gscope_java_memory_bytes", "java_memory_bytes", "Memory of Spark's Java."),
    gauge(
        "gscope_job_written_timestamp_seconds",
        "written_ns",
        "When the process wrote its counters.",
        _NS,
    ),
    gauge("gscope_clock_timestamp_seconds", "clock_ns", "Latest clock of a heartbeat.", _NS),
)
STEPS = (
    Metric("gscope_steps", "evaluated_total", "Steps evaluated."),
    Metric("gscope_step_seconds", "seconds_total", "Duration of all steps."),
    Metric("gscope_step_tuples", "tuples_total", "Tuples read by steps."),
    Metric("gscope_step_rows", "rows_total", "Rows answered by steps."),
    gauge("gscope_last_step_number", "number", "Number of the last step."),
    gauge("gscope_last_step_seconds", "last_seconds", "Duration of the last step."),
    gauge("gscope_last_step_tuples", "last_tuples", "Tuples read by the last step."),
    gauge("gscope_average_step_seconds", "average_seconds", "Average duration of a step."),
    gauge(
        "gscope_step_tuples_per_second", "tuples_per_second", "Tuples read in a second of steps."
    ),
)
CURRENT_STEP = (
    gauge("gscope_current_step_seconds", "seconds", "How long the current step has been running."),
    gauge(
        "gscope_current_step_still_seconds",
        "still_seconds",
        "Time since a task of the current step ended.",
    ),
)
INBOX = (
    Metric("gscope_stream_batches", "batches_total", "Batches received by the HFTA job."),
    Metric("gscope_stream_tuples", "tuples_total", "Tuples of these batches."),
    Metric("gscope_stream_bytes", "bytes_total", "Bytes of these."),
    Metric("gscope_stream_heartbeats", "heartbeats_total", "Heartbeats received by the HFTA job."),
    gauge(
        "gscope_stream_heartbeat_timestamp_seconds",
        "last_heartbeat_ns",
        "Time of the last heartbeat.",
        _NS,
    ),
)
OPERATOR = (
    Metric("gscope_operator_late_tuples", "late_tuples_total", "Tuples below the watermark."),
    Metric(
        "gscope_operator_shed_tuples", "shed_tuples_total", "Tuples shed for want of disk space."
    ),
    Metric(
        "gscope_operator_trimmed_tuples",
        "trimmed_tuples_total",
        "Tuples left out because the rate of their sample fell within their epoch.",
    ),
    gauge("gscope_operator_waiting_tuples", "waiting_tuples", "Tuples waiting at the operator."),
    gauge("gscope_operator_waiting_bytes", "waiting_bytes", "Bytes of these."),
    gauge(
        "gscope_operator_state_tuples", "state_tuples", "Groups and slices kept from step to step."
    ),
    gauge("gscope_operator_state_bytes", "state_bytes", "Bytes of these."),
    gauge(
        "gscope_operator_open_window_end",
        "open_window_end",
        "End of the first window without an answer; unit of window_end.",
    ),
    gauge(
        "gscope_operator_watermark", "watermark", "Everything below is answered; unit of the epoch."
    ),
    gauge(
        "gscope_operator_watermark_timestamp_seconds",
        "watermark_ns",
        "The watermark as a time.",
        _NS,
    ),
)
QUERY = (
    Metric("gscope_query_rows", "rows_total", "Rows answered."),
    Metric("gscope_query_late_tuples", "late_tuples_total", "Tuples below the watermark."),
    gauge(
        "gscope_query_watermark_timestamp_seconds",
        "watermark_ns",
        "Everything below is answered.",
        _NS,
    ),
    gauge("gscope_query_lag_seconds", "lag_ns", "Time since the watermark.", _NS),
    gauge("gscope_query_last_answer_timestamp_seconds", "last_answer_ns", "Last answer.", _NS),
)
OUTLET = (
    Metric("gscope_outlet_sent_rows", "sent_rows_total", "Rows that the destination accepted."),
    Metric(
        "gscope_outlet_dropped_rows", "dropped_rows_total", "Rows for which the spool was full."
    ),
    Metric("gscope_outlet_refused_rows", "refused_rows_total", "Rows that it will never accept."),
    Metric("gscope_outlet_failures", "failures_total", "Attempts to send rows that failed."),
    Metric("gscope_outlet_outages", "outages_total", "How often it stopped accepting rows."),
    gauge("gscope_outlet_waiting_rows", "waiting_rows", "Rows that it has not accepted yet."),
)
ALERT = (
    gauge("gscope_alert_keys", "keys", "Groups that the alert keeps in mind."),
    gauge("gscope_alert_raised_keys", "raised_keys", "Groups for which it is raised."),
    Metric(
        "gscope_alert_ignored_rows", "ignored_rows_total", "Rows for whose group it had no room."
    ),
    Metric("gscope_alert_late_rows", "late_rows_total", "Rows of epochs that had closed."),
)
ROWS = (gauge("gscope_rows_series", "series", "Series of the metrics gscope_row_…."),)
HEARTBEATS = (
    Metric("gscope_heartbeats", "heartbeats_total", "Heartbeats received by the HFTA job."),
    Metric(
        "gscope_idle_heartbeats", "idle_total", "Heartbeats that released nothing by themselves."
    ),
    Metric("gscope_heartbeat_demands", "asked_total", "Demands for heartbeats."),
)


class RunCollector(Collector):
    """Collects the metrics of a status document at each request.

    Args:
        document: returns the current status; None if there is no run.
    """

    def __init__(self, document: Callable[[], Document | None]) -> None:
        self._document = document

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """See ``prometheus_client.registry.Collector``."""
        document = self._document()
        if document is None:
            return
        capture, job = document["capture"] or {}, document["job"] or {}
        run = document["run"]
        yield _family(
            gauge("gscope_up", "is_alive", "Whether the run's supervisor is alive."),
            ("run",),
            [((run["name"],), run)],
        )
        restarts = [((name,), each) for name, each in run["processes"].items()]
        yield _family(
            Metric("gscope_restarts", "restarts_total", "How often the process was restarted."),
            ("process",),
            restarts,
        )
        yield from _families(CAPTURE, (), [((), capture)] if capture else [])
        yield from _families(INTERFACE, ("interface",), _named(capture, "interfaces"))
        yield _by_reason(
            capture, "malformed_packets", "Packets that are damaged or not captured completely."
        )
        yield _by_reason(
            capture, "unsupported_packets", "Packets that gscope does not decode completely."
        )
        yield _up(
            capture.get("interfaces", ()), "interface", "Whether the link is up.", ("up", "reading")
        )
        yield from _families(INPUT, ("input",), _named(capture, "inputs"))
        yield _up(
            capture.get("inputs", ()), "input", "Whether the input sends heartbeats.", ("up",)
        )
        yield from _families(STREAM, ("stream",), _named(capture, "streams"))
        yield from _families(LOG, (), [((), capture["log"])] if capture else [])
        remote = capture.get("remote")
        yield from _families(REMOTE, (), [((), remote)] if remote else [])
        yield from _families(READER, ("reader",), _named(remote or {}, "consumers"))
        yield _counts(
            "gscope_remote_refused",
            "Connections and requests of other hosts that were refused.",
            "reason",
            (remote or {}).get("refused_total"),
        )
        yield from _families(JOB, (), [((), job)] if job else [])
        yield from _families(STEPS, (), [((), job["steps"])] if job else [])
        current_step = job.get("current_step")
        yield from _families(CURRENT_STEP, (), [((), current_step)] if current_step else [])
        yield from _families(INBOX, ("stream",), _named(job, "streams"))
        yield from _families(OPERATOR, ("operator",), _named(job, "operators"))
        yield from _families(QUERY, ("query",), _named(document, "queries"))
        yield from _families(OUTLET, ("outlet",), _named(document, "outlets"))
        yield from _families(ALERT, ("alert",), _named(document, "alerts"))
        yield from _families(ROWS, ("query",), _named(document, "row_metrics"))
        yield _left_out(document.get("row_metrics", ()))
        yield from _families(HEARTBEATS, (), [((), job["heartbeats"])] if job else [])
        yield _incomplete([*job.get("operators", ()), *document["answered"]])
        yield _counts(
            "gscope_undecodable_payloads",
            "Payloads of a function's protocol that are malformed or cut off.",
            "function",
            job.get("undecodable"),
        )
        yield _counts(
            "gscope_foreign_payloads",
            "Payloads that do not begin a message of a function's protocol.",
            "function",
            job.get("foreign"),
        )
        yield _counts(
            "gscope_wrapped_sums",
            "Sums of integers that left 64 bits.",
            "query",
            job.get("wrapped_sums"),
        )
        yield _counts(
            "gscope_crowded_out_tuples",
            "Tuples that a sampling operator left out because their supergroup was full.",
            "query",
            job.get("crowded_out"),
        )
        yield _counts(
            "gscope_transferred_bytes",
            "Bytes that executors of a cluster have fetched, returned and exchanged.",
            "kind",
            job.get("transferred_bytes"),
        )


def exposition(document: Document) -> str:
    """Return the metrics of ``document`` as text."""
    return generate_latest(registry(lambda: document)).decode()


def registry(document: Callable[[], Document | None]) -> CollectorRegistry:
    """Return a registry that holds the metrics of a run only."""
    made = CollectorRegistry()
    made.register(RunCollector(document))
    return made


def run_registry(run: Callable[[], RunRecord | None]) -> CollectorRegistry:
    """Return a registry of a run's metrics at each request; it is empty while there is no run."""

    def document() -> Document | None:
        record = run()
        return None if record is None else status_document(record, time.time_ns())

    return registry(document)


_Labelled = tuple[tuple[str, ...], "Mapping[str, Any]"]


def _named(document: Mapping[str, Any], kind: str) -> list[_Labelled]:
    return [((each["name"],), each) for each in document.get(kind, ())]


def _families(
    metrics: Iterable[Metric], labels: tuple[str, ...], objects: Sequence[_Labelled]
) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    for metric in metrics:
        yield _family(metric, labels, objects)


def _family(
    metric: Metric, labels: tuple[str, ...], objects: Sequence[_Labelled]
) -> CounterMetricFamily | GaugeMetricFamily:
    made = (CounterMetricFamily if metric.is_counter else GaugeMetricFamily)(
        metric.name, metric.meaning, labels=labels
    )
    for values, fields in objects:
        value = fields.get(metric.field)
        if value is not None:
            made.add_metric(values, value * metric.scale)
    return made


def _by_reason(capture: Mapping[str, Any], name: str, meaning: str) -> CounterMetricFamily:
    made = CounterMetricFamily(f"gscope_{name}", meaning, labels=("interface", "reason"))
    for each in capture.get("interfaces", ()):
        for reason, packets in each.get(name, {}).items():
            made.add_metric((each["name"], reason), packets)
    return made


def _incomplete(operators: Iterable[Mapping[str, Any]]) -> CounterMetricFamily:
    made = CounterMetricFamily(
        "gscope_incomplete_epochs",
        "Epochs whose answers may lack packets.",
        labels=("query", "reason"),
    )
    for each in operators:
        for reason, epochs in each["incomplete_epochs_total"].items():
            made.add_metric((each["name"], reason), epochs)
    return made


def _left_out(results: Iterable[Mapping[str, Any]]) -> CounterMetricFamily:
    made = CounterMetricFamily(
        "gscope_rows_left_out",
        "Rows that the metrics gscope_row_… lack.",
        labels=("query", "reason"),
    )
    for each in results:
        for reason, rows in each["left_out_rows_total"].items():
            made.add_metric((each["name"], reason), rows)
    return made


def _up(
    objects: Iterable[Mapping[str, Any]], kind: str, meaning: str, states: Container[str]
) -> GaugeMetricFamily:
    """Return 1 for each object that is in one of ``states``, 0 for others."""
    made = GaugeMetricFamily(f"gscope_{kind}_up", meaning, labels=(kind,))
    for each in objects:
        made.add_metric((each["name"],), each["state"] in states)
    return made


def _counts(
    name: str, meaning: str, label: str, counts: Mapping[str, float] | None
) -> CounterMetricFamily:
    """Return counts that have one label; none if there are no counts."""
    made = CounterMetricFamily(name, meaning, labels=(label,))
    for value, count in (counts or {}).items():
        made.add_metric((value,), count)
    return made
