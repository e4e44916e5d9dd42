"""What the capture daemon and the HFTA job report to the supervisor, and others to an agent.

A process writes one line for each event to its standard output, see ``event_codec.py``.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

# The codec reads annotations.
from gscope.queries.streams.loss_reasons import IncompleteEpochs  # noqa: TC001
from gscope.records import dataclass


class ProcessEvent:
    """A report of a process to its supervisor.

    Attributes:
        kind: names the class in the line.
    """

    __slots__ = ()
    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class ProcessError(ProcessEvent):
    """The process ends because of an error, or cannot begin.

    Attributes:
        message: a sentence, or one a line.
        is_final: whether the process would fail again if it were restarted.
        exit_code: with which the command is to end; None: that of the kind of process.
        leaves_data: whether the run may have packets or rows to answer.
    """

    kind = "error"
    message: str
    is_final: bool = False
    exit_code: int | None = None
    leaves_data: bool = True


@dataclass(frozen=True, slots=True)
class Listening(ProcessEvent):
    """The daemon takes packets, and consumers may subscribe to its log.

    Attributes:
        socket: path of the socket of the log's server.
    """

    kind = "listening"
    socket: str


@dataclass(frozen=True, slots=True)
class KernelCompiling(ProcessEvent):
    """The daemon compiles a kernel that is not in the cache, before it takes packets.

    Attributes:
        queries: the queries whose LFTAs are in the kernel; () for a kernel of gscope itself, which
            all query sets share.
        number: how many kernels the daemon has begun to compile, with this one. Kernels of gscope
            are compiled at the first use of a version.
    """

    kind = "compiling"
    queries: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True)
class CaptureProgress(ProcessEvent):
    """How far a capture has come.

    Attributes:
        packets: processed so far.
        input_bytes: bytes of the input that were read so far.
        size_bytes: size of the whole input; None if it is unknown.
        clock_ns: the time that the trace or the clock has reached.
        dropped: packets that the kernel dropped on live interfaces.
    """

    kind = "progress"
    packets: int
    input_bytes: int
    size_bytes: int | None
    clock_ns: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class ThreadsAlive(ProcessEvent):
    """The daemon of a live capture runs; sent twice a second.

    Attributes:
        silent_s: for how long the most silent capture thread has made no progress, in seconds.
    """

    kind = "alive"
    silent_s: float


@dataclass(frozen=True, slots=True)
class InterfaceFailed(ProcessEvent):
    """An interface is no longer captured; the others are.

    Attributes:
        interface: its name.
        message: why, a phrase.
    """

    kind = "failed"
    interface: str
    message: str


@dataclass(frozen=True, slots=True)
class InputReport(ProcessEvent):
    """An input of a relay has been silent, has been left out, or is back.

    Attributes:
        input: its name.
        message: what happened, a phrase.
    """

    kind = "input"
    input: str
    message: str


@dataclass(frozen=True, slots=True)
class CaptureFinished(ProcessEvent):
    """All input is in the log. The fields are those of the summary of the capture.

    Attributes:
        interfaces: the counters of each interface, see ``InterfaceSummary``.
        lftas: the counters of the LFTA that wrote each stream.
        log: the counters of the stream log.
        phases: seconds spent, by phase.
        is_stopped: whether the capture was stopped before the end of its input.
        refused: why inputs that are not captures were left out, by interface.
        failed: why live interfaces ended before the run, by interface.
        logged: what became of the tuples of each stream in the log.
        saved: what became of the packets to be saved in a file; {} if none were.
        inputs: the counters of each input of a relay; () if packets are captured.
        sample_rate: the fixed rate at which packets are sampled; 1 if all are kept.
        least_rate: the least rate at which packets were sampled because the capture was overloaded.
    """

    kind = "summary"
    interfaces: tuple[dict[str, Any], ...]
    lftas: dict[str, dict[str, int]]
    log: dict[str, int]
    phases: dict[str, float]
    is_stopped: bool
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    logged: dict[str, dict[str, int]] = field(default_factory=dict)
    saved: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[dict[str, Any], ...] = ()
    sample_rate: float = 1.0
    least_rate: float = 1.0


@dataclass(frozen=True, slots=True)
class JavaStarted(ProcessEvent):
    """The job has started a Java, which must not outlive it.

    Attributes:
        pid: its process id.
    """

    kind = "java"
    pid: int


@dataclass(frozen=True, slots=True)
class SparkReady(ProcessEvent):
    """The Spark session is open.

    Attributes:
        session_s: seconds since the start of the job.
    """

    kind = "spark"
    session_s: float


@dataclass(frozen=True, slots=True)
class JobReady(ProcessEvent):
    """The job evaluates steps as soon as the daemon listens."""

    kind = "ready"


@dataclass(frozen=True, slots=True)
class JobAlive(ProcessEvent):
    """The job works, and Java answers if Spark is ready; sent every second.

    Attributes:
        step: number of the step that is evaluated; None between steps.
        step_s: seconds since the step began; None between steps.
        still_s: seconds in which no task of the step has ended; None between steps.
        awaits_spark: whether the step waits until Spark is ready.
    """

    kind = "alive"
    step: int | None = None
    step_s: float | None = None
    still_s: float | None = None
    awaits_spark: bool = False


@dataclass(frozen=True, slots=True)
class JavaFailed(ProcessEvent):
    """Java is gone or useless: the job ends, and can be restarted.

    Attributes:
        message: why, a phrase.
        out_of_memory: whether Java's heap was too small.
    """

    kind = "failed"
    message: str
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class CommittedOutput:
    """Rows of one query that a step answered: an Arrow file, or a folder of Parquet files.

    Attributes:
        query: its name.
        path: of the file or folder, relative to the outputs folder.
        rows: number of rows in all files together.
        files: their names within the folder, in the order of their epochs; () for one Arrow file.
            The folder holds no others, and a reader need not look.
    """

    query: str
    path: str
    rows: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepCommitted(ProcessEvent):
    """A step is committed; a restarted job reports those that were committed before, too.

    Counters are totals since the run began, and without those that are 0.

    Attributes:
        step: its number.
        outputs: what it answered.
        bounds: for each result its temporal columns, below which no later step has rows.
        watermarks: of every operator, by query.
        step_s: how long the step was evaluated, in seconds.
        late_tuples: tuples below an operator's watermark on arrival, in no answer, by query.
        shed_tuples: tuples that the job had no disk space to keep, by query.
        trimmed_tuples: tuples that the job left out because the threshold of their sample fell, by
            the query that reads them.
        incomplete: those of the epochs answered with this step that may lack packets.
        incomplete_epochs: number of such epochs, by query and reason.
        undecodable: payloads of a function's protocol that it could not decode, by function.
        wrapped_sums: sums that exceeded 64 bits and wrapped around, by query.
        foreign: payloads that do not begin a message of a function's protocol, by function.
        crowded_out: tuples that a sampling operator left out because their supergroup was full, by
            query.
        transferred_bytes: what executors of a cluster have fetched, returned and exchanged, by
            kind, also what is 0; empty without a cluster.
        partial: the epochs that were answered without a host, by query; see ``PartialAnswer``.
        lost_answers: which rows of the results that other hosts read may lack packets, of the
            epochs answered with this step, by query; the fields of ``LostRows``.
    """

    kind = "commit"
    step: int
    outputs: tuple[CommittedOutput, ...]
    bounds: dict[str, dict[str, float]]
    watermarks: dict[str, float]
    step_s: float
    late_tuples: dict[str, int]
    shed_tuples: dict[str, int]
    trimmed_tuples: dict[str, int]
    incomplete: tuple[IncompleteEpochs, ...]
    incomplete_epochs: dict[str, dict[str, int]]
    undecodable: dict[str, int]
    wrapped_sums: dict[str, int]
    foreign: dict[str, int]
    crowded_out: dict[str, int]
    transferred_bytes: dict[str, int] = field(default_factory=dict)
    partial: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    lost_answers: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BoundsPromised(ProcessEvent):
    """Bounds have risen although no step was committed; only where something waits for them.

    Attributes:
        bounds: see ``StepCommitted``.
    """

    kind = "promised"
    bounds: dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class JobFinished(ProcessEvent):
    """Everything is answered.

    Attributes:
        steps: the number of the last step.
        phases: seconds since the start of the job, by the phase that was reached then.
        clocks: for each result its temporal columns, and the value that the packets had reached
            when the input ended.
    """

    kind = "finished"
    steps: int
    phases: dict[str, float]
    clocks: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaptureRequested(ProcessEvent):
    """Another host asks an agent for a capture that the control process does not know.

    Attributes:
        capture: its name.
        request: the request, see ``CaptureRequest``.
        is_known: whether the host has rows of it already.
        is_recording: whether it is to be kept for a run that reads it later.
    """

    kind = "requested"
    capture: str
    request: dict[str, Any]
    is_known: bool = False
    is_recording: bool = False


@dataclass(frozen=True, slots=True)
class CaptureWanted(ProcessEvent):
    """A run of another host reads a capture; sent at most once a second.

    Attributes:
        capture: its name.
    """

    kind = "wanted"
    capture: str


@dataclass(frozen=True, slots=True)
class CaptureDismissed(ProcessEvent):
    """The host that requested a capture needs it no longer.

    Attributes:
        capture: its name.
    """

    kind = "dismissed"
    capture: str


@dataclass(frozen=True, slots=True)
class CaptureServing(ProcessEvent):
    """A capture that another host requested takes packets, and serves its log.

    Attributes:
        port: the port at which it serves.
    """

    kind = "serving"
    port: int


@dataclass(frozen=True, slots=True)
class CaptureComplete(ProcessEvent):
    """The input of a capture that another host requested has ended; its log has all rows."""

    kind = "complete"


CAPTURE_EVENTS: tuple[type[ProcessEvent], ...] = (
    Listening,
    KernelCompiling,
    CaptureProgress,
    ThreadsAlive,
    InterfaceFailed,
    InputReport,
    CaptureFinished,
    ProcessError,
)
"""What the capture daemon reports."""

JOB_EVENTS: tuple[type[ProcessEvent], ...] = (
    JavaStarted,
    SparkReady,
    JobReady,
    JobAlive,
    JavaFailed,
    StepCommitted,
    BoundsPromised,
    JobFinished,
    ProcessError,
)
"""What the HFTA job reports."""

CONTROL_EVENTS: tuple[type[ProcessEvent], ...] = (
    Listening,
    CaptureRequested,
    CaptureWanted,
    CaptureDismissed,
    ProcessError,
)
"""What the control process of an agent reports to it."""

REQUESTED_CAPTURE_EVENTS: tuple[type[ProcessEvent], ...] = (
    CaptureServing,
    CaptureComplete,
    ProcessError,
)
"""What a capture that another host requested reports to the agent."""
