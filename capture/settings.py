"""Settings of the capture daemon, which the command line writes to ``capture.json``."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from enum import StrEnum
from typing import Any, get_args, get_origin

from gscope.capture.heartbeats.mode import HeartbeatMode

# ``_ensure_type`` reads the hints when it runs.
from gscope.capture.shedding.settings import SheddingSettings  # noqa: TC001
from gscope.capture.sources.udp.address import UdpAddress, is_udp
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.records import dataclass

SECOND_NS = 1_000_000_000

MIN_LIVE_SKEW_NS = 50_000_000
"""Least skew of a live interface.

The kernel hands over a block that is not full after its retire time of 50 ms, or at the next
timeout if the block was opened just after one; packets in it hold promises back."""

LIVE_SKEW_NS = 200_000_000
"""Default skew of a live interface: time for a busy machine to hand packets over.

It delays answers by as much."""

MAX_SPEED = 1e9
"""Largest speed of a replay, in seconds of the trace a second; beyond it, give none."""

MAX_FANOUT = 64

SOURCES = ("auto", "af_packet", "scapy")
"""``auto`` is the kernel's ring (AF_PACKET) on Linux, and scapy's capture elsewhere."""

TIMESTAMPS = ("kernel", "hardware", "arrival")
"""``arrival`` is the kernel's time, or the time promised for a packet that comes later than that.

So promises need not stay behind the clock by the skew, and no packet is ever late."""


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """A network interface of the machine, captured live, or a UDP port of it.

    Attributes:
        device: the system's name of the device; ``udp://ADDRESS:PORT`` for the port.
        snaplen: length to which packets are truncated, in bytes.
        ring_bytes: size of the ring that the kernel fills, or of the buffer of a port.
        is_promiscuous: whether packets for other hosts are captured.
        filter: classic BPF expression in tcpdump's language; "" for none.
        fanout: number of threads that share the packets, each with a ring and LFTAs of its own.
        source: how packets are captured: one of ``SOURCES``.
        timestamps: what stamps packets: one of ``TIMESTAMPS``.
        has_kernel_filter: whether the kernel rejects packets that no query can accept.

    Raises:
        UsageError: a value is invalid, or two values contradict each other.
    """

    device: str
    snaplen: int = 262_144
    ring_bytes: int = 64 << 20
    is_promiscuous: bool = True
    filter: str = ""
    fanout: int = 1
    source: str = "auto"
    timestamps: str = "kernel"
    has_kernel_filter: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.fanout <= MAX_FANOUT:
            message = f"{self.device}: invalid fanout {self.fanout}: expected 1 to {MAX_FANOUT}"
            raise UsageError(message)
        for name, value, allowed in (
            ("source", self.source, SOURCES),
            ("timestamps", self.timestamps, TIMESTAMPS),
        ):
            if value not in allowed:
                message = (
                    f"{self.device}: invalid {name}: expected one of {', '.join(allowed)},"
                    f" got {value!r}"
                )
                raise UsageError(message)
        if self.source == "scapy" and (self.fanout > 1 or self.timestamps == "hardware"):
            message = f"{self.device}: scapy supports neither fanout nor hardware timestamps"
            raise UsageError(message)
        if self.is_udp:
            self._ensure_port()

    @property
    def is_udp(self) -> bool:
        """Whether this is a UDP port, whose datagrams export flow records."""
        return is_udp(self.device)

    def _ensure_port(self) -> None:
        try:
            UdpAddress.parse(self.device)
        except ValueError as error:
            message = f"invalid address {self.device}: {error}"
            raise UsageError(message) from error
        for name, is_given in (
            ("a packet filter", self.filter != ""),
            ("fanout", self.fanout > 1),
            ("scapy", self.source == "scapy"),
            ("hardware timestamps", self.timestamps == "hardware"),
        ):
            if is_given:
                message = f"{self.device}: a UDP port does not support {name}"
                raise UsageError(message)


@dataclass(frozen=True, slots=True)
class FilterProgram:
    """A packet filter for captures, compiled to classic BPF for one link type.

    Attributes:
        linktype: pcap link type of the packets that it is for.
        instructions: four numbers an instruction: code, jump if true, jump if false, operand.
    """

    linktype: int
    instructions: tuple[int, ...]

    def rows(self) -> list[tuple[int, ...]]:
        """Return the instructions, one a row."""
        return [self.instructions[i : i + 4] for i in range(0, len(self.instructions), 4)]


@dataclass(frozen=True, slots=True)
class InterfaceSettings:
    """One interface: captures or a device.

    Attributes:
        name: name of the interface in the program.
        files: captures to read one after the other, ``-`` for standard input; () for a device.
        skew_ns: for captures, how far a packet may be behind the latest one before it and still be
            on time: captures of several queues or machines step back by microseconds to seconds.
            For a device, the longest time from a packet's timestamp to its arrival here at which it
            is still on time.
        device: the device; None for captures.
        is_latent: whether a merge of only such interfaces forwards rows as they come, in no order.
        finds_skew: for captures, whether a walk over them before the replay may raise the skew so
            that no packet is late.
        filters: for captures, the packet filter, for each link type to which it applies; () for
            none.
        reads_flows: whether the queries read flow records, which its packets export.
    """

    name: str
    files: tuple[str, ...] = ()
    skew_ns: int = 10 * SECOND_NS
    device: DeviceSettings | None = None
    is_latent: bool = False
    finds_skew: bool = False
    filters: tuple[FilterProgram, ...] = ()
    reads_flows: bool = False

    @property
    def promise_skew_ns(self) -> int:
        """How far promises stay behind the clock."""
        is_on_arrival = self.device is not None and self.device.timestamps == "arrival"
        return 0 if is_on_arrival else self.skew_ns


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """A reader of the log that acknowledges messages.

    Attributes:
        name: name under which it acknowledges.
        streams: streams that it reads; () for all.
    """

    name: str
    streams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query whose packets are saved.

    Attributes:
        lfta: name of the LFTA that selects them.
        query: name of the query, the comment of each packet.
        keys: an Arrow file with the keys of the groups in the answer, in columns named like the
            LFTA's: only packets of these groups are saved; "" to save all that the LFTA selects.
    """

    lfta: str
    query: str
    keys: str = ""


@dataclass(frozen=True, slots=True)
class SavedPackets:
    """The packets to save, and the file or the ring for them.

    Attributes:
        descriptor: of the open file, which the daemon inherits; -1 for a ring.
        queries: the selections.
        path: of the file, for reports.
        limit_bytes: size that the file does not exceed; None for no limit.
        is_second_pass: whether the rows of LFTAs are wanted for no answer.
        start_bytes: size of the file before packets of a second pass are appended.
        ring_bytes: size of the ring in the folder of the run that keeps packets for second passes;
            None to write to the file.
    """

    descriptor: int
    queries: tuple[SavedQuery, ...]
    path: str = ""
    limit_bytes: int | None = None
    is_second_pass: bool = False
    start_bytes: int = 0
    ring_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """Where a daemon serves its log to other hosts, and to whom.

    Attributes:
        descriptor: of the listening socket, which the daemon inherits.
        address: address of the socket, for reports.
        token: path of the file with the tokens that readers present.
        certificate: path of the file with the certificate chain; "" for no TLS.
        key: path of the file with its key.
    """

    descriptor: int
    address: str
    token: str
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class RelayInput:
    """A log of another host, or of another process, that a relay reads, or an agent.

    Attributes:
        name: name of the input.
        address: ``HOST:PORT``, or the path of a unix socket.
        token: path of the file with the token to present; "" for none.
        certificates: path of the file with the certificates to trust; "": TLS is not used.
        capture: name of the capture to request from an agent at ``address``; "" if a log is served
            there.
        request: path of the file with the request.
        skew_ns: how far the clock of an agent may be ahead or behind before it is reported; 0 if
            its packets do not have the time of that clock.
    """

    name: str
    address: str
    token: str = ""
    certificates: str = ""
    capture: str = ""
    request: str = ""
    skew_ns: int = 0


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """A relay: what takes the place of interfaces.

    Attributes:
        inputs: the logs that it reads.
        consumer: name under which it acknowledges; "" for one that is kept with its log.
        timeout_ns: an input that is silent for longer is reported.
        absent_after_ns: an input that is silent for longer holds nothing back; None to wait.
    """

    inputs: tuple[RelayInput, ...]
    consumer: str = ""
    timeout_ns: int = 5 * SECOND_NS
    absent_after_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Settings of the capture daemon; answers depend on ``interfaces`` and ``shedding`` alone.

    Attributes:
        interfaces: the interfaces of the program, each with its input.
        consumers: readers that must acknowledge everything before the daemon ends; () to end with
            the input.
        heartbeat_interval_ns: the trace clock, or the clock of live interfaces, ticks at multiples
            of this interval.
        heartbeat_mode: when heartbeats are sent.
        heartbeat_every_tick: whether to send heartbeats at every tick, however frequent; for tests.
        speed: seconds of the trace to replay in one second; None for as fast as possible.
        table_slots: slots of each LFTA's group table, a power of two; None for the default. Small
            captures get fewer.
        output_rows: rows of an LFTA's output buffer; None for the default.
        block_bytes: bytes of input in a block; None for the default.
        read_ahead: whether a thread reads large or piped inputs ahead of the LFTAs.
        batch_rows: number of rows at which an open batch is sealed.
        batch_bytes: size at which an open batch is sealed.
        open_bytes: limit of the size of all open batches together.
        log_bytes: disk budget of the log.
        memory_bytes: limit of the memory that the capture may use; None for half of the machine's.
        packets: number of packets after which a capture ends, over all interfaces and of those that
            its filter accepts; None for no limit. Of captures, the first packets in the order of
            time.
        duration_ns: duration after which a live capture ends; None for no limit.
        allow_missing_devices: whether a live capture continues without interfaces whose devices are
            missing while there is another one, as a restarted daemon does.
        saved: the packets to save; None for none.
        listener: where the log is served to other hosts; None for this host only.
        relay: the logs that are read instead of packets; None to capture.
        shedding: how packets are sampled; None to keep all.
    """

    interfaces: tuple[InterfaceSettings, ...]
    consumers: tuple[ConsumerSettings, ...] = ()
    heartbeat_interval_ns: int = SECOND_NS
    heartbeat_mode: HeartbeatMode = HeartbeatMode.PERIODIC
    heartbeat_every_tick: bool = False
    speed: float | None = None
    table_slots: int | None = None
    output_rows: int | None = None
    block_bytes: int | None = None
    read_ahead: bool = True
    batch_rows: int = 1 << 20
    batch_bytes: int = 64 << 20
    open_bytes: int = 128 << 20
    log_bytes: int = 8 << 30
    memory_bytes: int | None = None
    packets: int | None = None
    duration_ns: int | None = None
    allow_missing_devices: bool = False
    saved: SavedPackets | None = None
    listener: ListenerSettings | None = None
    relay: RelaySettings | None = None
    shedding: SheddingSettings | None = None

    @property
    def is_live(self) -> bool:
        """Whether the interfaces are devices, or a relay's inputs."""
        return self.relay is not None or any(
            interface.device is not None for interface in self.interfaces
        )

    @property
    def sample_rate(self) -> float:
        """The rate at which packets are sampled; 1 if all are kept."""
        return 1.0 if self.shedding is None else self.shedding.rate

    @property
    def inherited(self) -> tuple[int, ...]:
        """The open descriptors that the daemon inherits."""
        found = []
        if self.saved is not None and self.saved.ring_bytes is None:
            found.append(self.saved.descriptor)
        if self.listener is not None:
            found.append(self.listener.descriptor)
        return tuple(found)

    def __post_init__(self) -> None:
        for name in (
            "heartbeat_interval_ns",
            "batch_rows",
            "batch_bytes",
            "open_bytes",
            "log_bytes",
        ):
            if getattr(self, name) < 1:
                message = f"invalid {name}: expected a positive number, got {getattr(self, name)!r}"
                raise UsageError(message)
        if self.speed is not None and not 0 < self.speed <= MAX_SPEED:
            message = (
                f"invalid speed: expected a positive number of at most {MAX_SPEED:g},"
                f" got {self.speed!r}"
            )
            raise UsageError(message)
        names = [interface.name for interface in self.interfaces]
        if not names or len(set(names)) != len(names):
            message = f"expected at least one interface and unique names, got {names}"
            raise UsageError(message)
        for interface in () if self.relay is not None else self.interfaces:
            if bool(interface.files) == (interface.device is not None):
                which = "both files and a device" if interface.files else "no file and no device"
                message = f"the interface {interface.name!r} has {which}"
                raise UsageError(message)
            if self.is_live and interface.device is None:
                message = f"the interface {interface.name!r} has files, but others are live"
                raise UsageError(message)
            if interface.device is not None and interface.skew_ns < MIN_LIVE_SKEW_NS:
                message = (
                    f"invalid skew of the live interface {interface.name!r}: expected at least"
                    f" {MIN_LIVE_SKEW_NS} ns, as long as the kernel may hold packets back,"
                    f" got {interface.skew_ns} ns"
                )
                raise UsageError(message)

    def to_json(self) -> str:
        """Return the settings as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> CaptureSettings:
        """Return the settings that ``to_json`` wrote; a missing key gets its default.

        Raises:
            UsageError: the text is not JSON, or has an unknown key or an invalid value.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            message = f"the capture settings are not JSON: {error}"
            raise UsageError(message) from error
        settings = _ensure_type(value, cls, "the capture settings")
        assert isinstance(settings, cls)
        return settings


def _ensure_type(value: object, wanted: Any, where: str) -> object:
    """Return ``value`` as ``wanted``: an object as a dataclass, a list as a tuple."""
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type) and isinstance(value, dict):
        return _dataclass(value, wanted, where)
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is tuple and isinstance(value, list):
        return tuple(_ensure_type(v, arguments[0], f"{where}[{i}]") for i, v in enumerate(value))
    if origin is types.UnionType:
        if value is None:
            return None
        return _ensure_type(value, arguments[0], where)
    if wanted is float and type(value) is int:
        return float(value)
    if isinstance(wanted, type) and issubclass(wanted, StrEnum) and value in list(wanted):
        return wanted(str(value))
    if type(value) is not wanted:
        message = f"{where}: expected {getattr(wanted, '__name__', wanted)}, got {value!r:.100}"
        raise UsageError(message)
    return value


def _dataclass(value: dict[str, object], wanted: type, where: str) -> object:
    hints = typing.get_type_hints(wanted)
    for key in value:
        if key not in hints:
            hint = suggestion(key, hints, f"available: {', '.join(sorted(hints))}", is_quoted=True)
            message = f"{where} has an unknown key {key!r}; {hint}"
            raise UsageError(message)
    fields = {key: _ensure_type(v, hints[key], f"{where}.{key}") for key, v in value.items()}
    try:
        return wanted(**fields)
    except TypeError as error:
        missing = [
            f.name
            for f in dataclasses.fields(wanted)
            if f.name not in fields and f.default is dataclasses.MISSING
        ]
        message = f"{where} lacks {', '.join(missing)}"
        raise UsageError(message) from error
