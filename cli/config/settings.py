"""The table of settings in ``gscope.yaml``, in the environment and in flags.

Defaults are those of the classes that the settings configure.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.lfta.settings import MIN_TABLE_SLOTS, LftaSettings
from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.capture.shedding.settings import DEFAULT_MIN_RATE, SheddingMode
from gscope.cli.config.alerts import ALERT_SETTINGS
from gscope.cli.config.cluster import CLUSTER_SETTINGS
from gscope.cli.config.destinations import (
    DEFAULT_SPOOL_BYTES,
    DESTINATIONS,
    MIN_SPOOL_BYTES,
)
from gscope.cli.config.lookups import LOOKUP
from gscope.cli.config.partition_unit import PartitionUnit
from gscope.cli.config.quantities import (
    parse_count,
    parse_duration,
    parse_positive_duration,
    parse_size,
    show_duration,
    show_size,
)
from gscope.cli.config.row_commands import ROW_COMMANDS
from gscope.cli.config.row_metrics import ROW_METRICS_SETTINGS
from gscope.cli.config.setting import FILE, Kind, Setting
from gscope.cli.config.time_style import TimeStyle
from gscope.cli.rundir.run_dir import default_work_dir
from gscope.engine.settings import JobSettings
from gscope.errors import UsageError
from gscope.queries.shares import parse_share

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXTS, _COLUMNS, _REPORTS = ("ndjson", "csv"), ("parquet", "arrow"), ("html", "svg", "png")
FORMATS = ("table", "vertical", "view", *_TEXTS, *_COLUMNS, *_REPORTS)
_OTHER_FORMATS = {"json": "ndjson", "jsonl": "ndjson", "jsonlines": "ndjson", "line": "vertical"}
_OTHER_FORMATS |= {"expanded": "vertical", "box": "table", "text": "table", "feather": "arrow"}
"""Formats by the names that other programs give them."""

MIN_FAILURE_TIMEOUT_NS = 2_000_000_000
"""The least failure timeout: processes send a sign of life twice a second, and some are delayed."""

MIN_STEP_TIMEOUT_NS = 60_000_000_000
"""The least step timeout: the first task after a start of Java takes seconds, or tens of them."""

_DEFAULT_PARTITIONS, _MAX_PARTITIONS = 64, 1024
"""Partitions of a run: more than it has hosts and cores, so that they can be shared out evenly."""


def _at_least(least_ns: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = parse_duration(text)
        if value < least_ns:
            message = f"invalid duration {text!r}: expected at least {show_duration(least_ns)}"
            raise ValueError(message)
        return value

    return parse


def _parse_positive_size(text: str) -> int:
    value = parse_size(text)
    if value < 1:
        message = f"invalid size {text!r}: expected more than 0"
        raise ValueError(message)
    return value


def _parse_spool(text: str) -> int:
    value = parse_size(text)
    if value < MIN_SPOOL_BYTES:
        message = f"invalid size {text!r}: expected at least {show_size(MIN_SPOOL_BYTES)}"
        raise ValueError(message)
    return value


def _parse_slots(text: str) -> int:
    slots = parse_count(text)
    if slots < MIN_TABLE_SLOTS or slots & (slots - 1):
        message = (
            f"invalid number of slots {text!r}: expected a power of two of at least"
            f" {MIN_TABLE_SLOTS}"
        )
        raise ValueError(message)
    return slots


def _parse_partitions(text: str) -> int:
    number = parse_count(text)
    if number > _MAX_PARTITIONS:
        message = f"invalid number of partitions {text!r}: expected at most {_MAX_PARTITIONS}"
        raise ValueError(message)
    return number


def _parse_format(text: str) -> str:
    if text not in FORMATS:
        message = f"invalid output format {text!r}: expected one of {', '.join(FORMATS)}"
        if (meant := _OTHER_FORMATS.get(text.lower())) is not None:
            message += f"; gscope calls it {meant}"
        raise ValueError(message)
    return text


def _parse_time_style(text: str) -> TimeStyle:
    if text not in list(TimeStyle):
        message = f"invalid time {text!r}: expected one of {', '.join(TimeStyle)}"
        raise ValueError(message)
    return TimeStyle(text)


def _parse_partition_unit(text: str) -> PartitionUnit:
    if text not in list(PartitionUnit):
        message = f"invalid partition {text!r}: expected one of {', '.join(PartitionUnit)}"
        raise ValueError(message)
    return PartitionUnit(text)


def _parse_mode(text: str) -> HeartbeatMode:
    if text not in list(HeartbeatMode):
        message = f"invalid heartbeat mode {text!r}: expected one of {', '.join(HeartbeatMode)}"
        raise ValueError(message)
    return HeartbeatMode(text)


def _parse_shedding_mode(text: str) -> SheddingMode:
    if text not in list(SheddingMode):
        message = f"invalid shedding mode {text!r}: expected one of {', '.join(SheddingMode)}"
        raise ValueError(message)
    return SheddingMode(text)


def _parse_switch(text: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}
    if text.strip().lower() not in words:
        message = f"invalid switch {text!r}: expected true or false"
        raise ValueError(message)
    return words[text.strip().lower()]


def _parse_folder(text: str) -> Path:
    if not text or "\0" in text:
        message = f"invalid folder {text!r}: expected a path"
        raise ValueError(message)
    return Path(text)


def _parse_user(text: str) -> str:
    if not text.strip() or "\0" in text:
        message = f"invalid user {text!r}: expected a name or a uid"
        raise ValueError(message)
    return text.strip()


def _parse_address(text: str) -> TcpAddress:
    try:
        return TcpAddress.parse(text.strip())
    except UsageError as error:
        raise ValueError(str(error)) from error


DURATION = Kind("DURATION", parse_positive_duration, show_duration)
FAILURE_TIMEOUT = Kind("DURATION", _at_least(MIN_FAILURE_TIMEOUT_NS), show_duration)
STEP_TIMEOUT = Kind("DURATION", _at_least(MIN_STEP_TIMEOUT_NS), show_duration)
SIZE = Kind("SIZE", _parse_positive_size, show_size)
COUNT = Kind("N", parse_count, str)
SPOOL = Kind("SIZE", _parse_spool, show_size)
SLOTS = Kind("N", _parse_slots, str)
PARTITIONS = Kind("N", _parse_partitions, str)
FORMAT = Kind("|".join(FORMATS), _parse_format, str)
TIME_STYLE = Kind("|".join(TimeStyle), _parse_time_style, str)
PARTITION_UNIT = Kind("|".join(PartitionUnit), _parse_partition_unit, str)
MODE = Kind("|".join(HeartbeatMode), _parse_mode, str)
SHEDDING = Kind("|".join(SheddingMode), _parse_shedding_mode, str)
RATE = Kind("RATE", parse_share, str)
FOLDER = Kind("DIR", _parse_folder, str)
USER = Kind("NAME", _parse_user, str)
ADDRESS = Kind("HOST:PORT", _parse_address, str)
SWITCH = Kind("", _parse_switch, lambda value: str(value).lower())

_ENGINE = JobSettings()
_LFTA = LftaSettings()
_CAPTURE = CaptureSettings((InterfaceSettings("default", ("default",)),))
DEFAULT_SKEW_NS = _CAPTURE.interfaces[0].skew_ns

OUTPUT_FORMAT = Setting(
    "output.format",
    "output_format",
    FORMAT,
    None,
    "output format; vertical is a table with one line for each value, as \\G in mysql and \\x in"
    " psql, and a table becomes vertical if its rows do not fit; view shows the rows of the latest"
    " epoch on the whole terminal, sorted and filtered by keys, and without a query a board of the"
    " traffic; html is a report of a replay with plots and tables, and svg and png plot one result"
    " over time (they need gscope[report]). Default: table on a terminal, ndjson in a pipe, csv in"
    " files",
    short="-o",
    flag="--output",
)
SETTINGS: tuple[Setting, ...] = (
    OUTPUT_FORMAT,
    Setting(
        "output.time",
        "time_style",
        TIME_STYLE,
        TimeStyle.UTC,
        "how tables and reports show times, and INT columns that count time such as time and"
        " time/60: in UTC, in local time with its offset from UTC, or as computed, with TIMESTAMP"
        " in seconds since 1970. Other formats are for programs and do not take it: in them a"
        " TIMESTAMP is always in UTC",
        flag="--time",
    ),
    Setting(
        "output.partition_by",
        "partition_unit",
        PARTITION_UNIT,
        PartitionUnit.NONE,
        "with -w DIR -o parquet, write the rows of each answer to folders by their time in UTC,"
        " such as DIR/QUERY/date=2026-11-24/hour=9, which DuckDB and Spark read as columns. The"
        " time is the first column that is ordered in time, otherwise the first that is a time",
        flag="--partition-by",
    ),
    Setting(
        "output.to",
        "destinations",
        DESTINATIONS,
        (),
        "send rows to URL as well: https://HOST/PATH posts them as JSON, syslog://HOST (UDP),"
        " syslog+tcp://HOST and syslog+tls://HOST send a message for each, and so does"
        " kafka://BROKER/TOPIC. Rows wait on disk while URL does not accept them. May be repeated."
        " Default: none",
        flag="--to",
    ),
    Setting(
        "output.on_row",
        "row_commands",
        ROW_COMMANDS,
        (),
        "run COMMAND for each row, without a shell: the row is on standard input as JSON, and its"
        " columns are in the environment as GSCOPE_ROW_<COLUMN>. May be repeated. Default: none",
        flag="--on-row",
    ),
    *ROW_METRICS_SETTINGS,
    *ALERT_SETTINGS,
    Setting("strict", "is_strict", SWITCH, False, "exit with code 3 if packets or input were lost"),
    Setting(
        "heartbeat.interval",
        "heartbeat_interval_ns",
        DURATION,
        _CAPTURE.heartbeat_interval_ns,
        "interval between heartbeats, in the time of the trace or of the clock; does not change"
        " answers",
    ),
    Setting(
        "heartbeat.mode",
        "heartbeat_mode",
        MODE,
        _CAPTURE.heartbeat_mode,
        "when to send heartbeats: at every interval, when a waiting operator requests one, both, or"
        " never; affects how soon answers are emitted, not their content",
    ),
    Setting(
        "shedding.mode",
        "shedding_mode",
        SHEDDING,
        SheddingMode.OFF,
        "whether to sample packets, where the queries permit it. fixed: at --sample-rate. auto:"
        " keep every packet until a live capture is overloaded, then lower the rate until the"
        " overload ends, and raise it again as the load falls",
        flag="--shedding",
    ),
    Setting(
        "shedding.min_rate",
        "min_sample_rate",
        RATE,
        DEFAULT_MIN_RATE,
        "least rate that --shedding auto may choose (0.1, 10% or 1/10)",
        flag="--min-rate",
    ),
    Setting(
        "shedding.rate",
        "sample_rate",
        RATE,
        None,
        "answer from a sample: keep the share RATE (0.1, 10% or 1/10) of the groups of a query,"
        " each with all its packets, or of single packets where no group can be kept whole;"
        " estimated counts and sums are scaled by 1/RATE. `gscope explain --sample-rate` shows what"
        " is kept. Implies --shedding fixed. Default: none",
        flag="--sample-rate",
    ),
    Setting(
        "failure.timeout",
        "failure_timeout_ns",
        FAILURE_TIMEOUT,
        None,
        "restart the capture daemon if a live interface sends no heartbeat for DURATION, and report"
        " an input of --from that is silent for that time. Default: 5 heartbeat intervals, at"
        " least 5s",
    ),
    Setting(
        "failure.step_timeout",
        "failure_step_timeout_ns",
        STEP_TIMEOUT,
        None,
        "restart the HFTA job from its last commit if no Spark task of a step finishes for"
        " DURATION. Default: only report such a step, after 5min",
    ),
    Setting(
        "listen",
        "listen",
        ADDRESS,
        None,
        "address at which a relay, a sensor (--no-job), an agent (`gscope capture`) or `gscope"
        " serve` accepts connections. Port 0 picks a free port and reports it. Beyond loopback,"
        " --tls-certificate and --tls-key are required. Default: none",
    ),
    Setting(
        "token_file",
        "token_file",
        FILE,
        None,
        "file with the token that readers on other hosts present; only its owner may read it. With"
        " several tokens, one a line, a server accepts each of them and a reader presents the"
        " first. Default: none",
    ),
    Setting(
        "tls.certificate",
        "tls_certificate",
        FILE,
        None,
        "file with the certificate chain for --listen, and for executors that fetch files of the"
        " run from here, in PEM. Default: none",
    ),
    Setting(
        "tls.key",
        "tls_key",
        FILE,
        None,
        "file with the key of --tls-certificate, in PEM and without a password, which only its"
        " owner may read. Default: none",
    ),
    Setting(
        "spark.cores",
        "spark_cores",
        COUNT,
        _ENGINE.cores,
        "number of cores for Spark. Default: all",
    ),
    Setting(
        "spark.memory", "spark_memory_bytes", SIZE, _ENGINE.heap_bytes, "Java heap size of Spark"
    ),
    *CLUSTER_SETTINGS,
    Setting(
        "partitions",
        "partitions",
        PARTITIONS,
        _DEFAULT_PARTITIONS,
        "divide rows into N partitions, which tasks and hosts process independently; 1 turns that"
        " off. Does not change answers",
    ),
    Setting(
        "limits.table_slots",
        "table_slots",
        SLOTS,
        _LFTA.table_slots,
        "slots in the group table of each LFTA, a power of two; small captures get fewer",
        flag="--table-slots",
    ),
    Setting(
        "limits.output_rows",
        "output_rows",
        COUNT,
        _LFTA.batch_rows,
        "rows in the output buffer of each LFTA",
        flag="--output-rows",
    ),
    Setting(
        "limits.block",
        "block_bytes",
        SIZE,
        _CAPTURE.block_bytes,
        "bytes to read from a capture at a time. Default: 512K, or 4M if LFTAs run in parts",
        flag="--block",
    ),
    Setting(
        "limits.batch_rows",
        "batch_rows",
        COUNT,
        _CAPTURE.batch_rows,
        "seal a batch of the stream log at N rows",
        flag="--batch-rows",
    ),
    Setting(
        "limits.batch",
        "batch_bytes",
        SIZE,
        _CAPTURE.batch_bytes,
        "seal a batch of the stream log at SIZE",
        flag="--batch",
    ),
    Setting(
        "limits.open",
        "open_bytes",
        SIZE,
        _CAPTURE.open_bytes,
        "memory for batches that are not sealed yet",
        flag="--open",
    ),
    Setting(
        "limits.log",
        "log_bytes",
        SIZE,
        _CAPTURE.log_bytes,
        "disk space for the stream log",
        flag="--log",
    ),
    Setting(
        "limits.memory",
        "memory_bytes",
        SIZE,
        _CAPTURE.memory_bytes,
        "memory limit of the capture daemon (tables, buffers, rings). Default: half of the"
        " machine's memory",
        flag="--memory",
    ),
    Setting(
        "limits.job_disk",
        "job_disk_bytes",
        SIZE,
        _ENGINE.disk_bytes,
        "disk space for answers that are not delivered yet and for rows that operators hold back",
        flag="--job-disk",
    ),
    Setting(
        "limits.spool",
        "spool_bytes",
        SPOOL,
        DEFAULT_SPOOL_BYTES,
        "disk space for rows that destinations of --to have not accepted yet; a live run drops and"
        " counts the oldest ones when it is full",
        flag="--spool",
    ),
    Setting(
        "lookups",
        "lookups",
        LOOKUP,
        {},
        "file in which functions look values up: asn=FILE for asn(), country=FILE for country(),"
        " networks=FILE for network(), services=FILE for service(), vendors=FILE for vendor(). May"
        " be repeated. Default: the file of the system, such as /etc/services",
        flag="--lookup",
    ),
    Setting(
        "user",
        "user",
        USER,
        None,
        "user that decodes packets and evaluates queries if root starts the run; root stays root,"
        " without capabilities. Default: gscope if that user exists, else the user nobody",
    ),
    Setting(
        "sandbox",
        "is_sandboxed",
        SWITCH,
        True,
        "restrict file access and system calls of the processes that handle packets, as far as the"
        " kernel supports it",
    ),
    Setting(
        "work_dir",
        "work_dir",
        FOLDER,
        default_work_dir(),
        "folder that holds the private folder of each run",
    ),
)
