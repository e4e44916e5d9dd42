"""What the capture daemon is told by whoever starts it."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_args, get_origin

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion

SETTINGS_FILE = "capture.json"
CAPTURE_FOLDER = "capture"
SOCKET_FILE = "capture/capture.sock"
LOG_FOLDER = "log"

SECOND_NS = 1_000_000_000

MIN_LIVE_SKEW_NS = 50_000_000
"""The kernel hands over a block that is not full after its retire time of 20 ms, or, when it was opened just
after its timer went off, at the next time."""

LIVE_SKEW_NS = 200_000_000
"""Leaves a busy machine some time to hand packets over; answers are later by as much."""

MAX_SPEED = 1e9
"""Seconds of a trace a second: beyond that a replay without a speed is what is meant."""

MAX_FANOUT = 64

SOURCES = ("auto", "af_packet", "scapy")
"""``auto`` is the kernel's ring (AF_PACKET) on Linux, and scapy's capture elsewhere."""

TIMESTAMPS = ("kernel", "hardware", "arrival")
"""``arrival`` is the kernel's time, or, for a packet that comes later than promised, the moment promised: so promises
need not stay behind the clock by the skew, and no packet is ever late."""


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """A network interface of the machine, captured live.

    Attributes:
        device: what the system calls it.
        snaplen: bytes captured of a packet at most.
        ring_bytes: of the ring that the kernel fills.
        is_promiscuous: whether packets for others are captured.
        filter: classic BPF expression in tcpdump's language; "" for none.
        fanout: threads that share the packets, each with a ring and with LFTAs of its own.
        source: what captures: one of ``SOURCES``.
        timestamps: who stamps packets: one of ``TIMESTAMPS``.
        has_kernel_filter: whether the kernel leaves out what no query can want.

    Raises:
        UsageError: values that cannot be, or not together.
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
                message = f"{self.device}: {name} is {value!r}; there are {', '.join(allowed)}"
                raise UsageError(message)
        if self.source == "scapy" and (self.fanout > 1 or self.timestamps == "hardware"):
            message = f"{self.device}: scapy supports neither fanout nor hardware timestamps"
            raise UsageError(message)


@dataclass(frozen=True, slots=True)
class InterfaceSettings:
    """One interface: captures or a device.

    Attributes:
        name: as in the program.
        files: captures, read one after the other; ``-`` is standard input. () of a device.
        skew_ns: of captures: by how much a packet may be behind the latest one before it and still count
            as in time. Captures of several queues or machines step back by microseconds to seconds.
            Of a device: how long after its stamp a packet may reach us and still count as in time.
        finds_skew: of captures: whether a walk over them before their replay may raise the skew, so that no packet
            is late.
        device: None of captures.
        is_latent: whether merges of such interfaces alone take rows as they come, in no order.
    """

    name: str
    files: tuple[str, ...] = ()
    skew_ns: int = 10 * SECOND_NS
    device: DeviceSettings | None = None
    is_latent: bool = False
    finds_skew: bool = False

    @property
    def promise_skew_ns(self) -> int:
        """By how much promises stay behind the clock."""
        is_on_arrival = self.device is not None and self.device.timestamps == "arrival"
        return 0 if is_on_arrival else self.skew_ns


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Somebody who reads the log and acknowledges.

    Attributes:
        name: by which it acknowledges.
        streams: those it reads; () for all.
    """

    name: str
    streams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Settings of the capture daemon; answers depend on none of them but ``interfaces``.

    Attributes:
        interfaces: those of the program, each with its input.
        consumers: the daemon serves until all have acknowledged everything; with none it ends with the input.
        heartbeat_interval_ns: the clock, of the trace or of live interfaces, ticks at its multiples.
        heartbeat_mode: see ``HeartbeatMode``.
        heartbeat_every_tick: beat at every tick, also where that is often (for tests).
        speed: replay at so many times the speed of the trace; None for as fast as possible.
        table_slots: slots of each LFTA's group table, a power of two; None for the default.
        output_rows: rows of an LFTA's output buffer; None for the default.
        block_bytes: bytes of input in a block; None for the default.
        read_ahead: whether a thread a large or piped input reads ahead of the LFTAs.
        batch_rows: rows at which an open batch is sealed.
        batch_bytes: bytes at which an open batch is sealed.
        open_bytes: bytes of all open batches together.
        log_bytes: disk budget of the log.
        memory_bytes: that the capture may come to use; None for half of the machine's.
        is_strict: exit with code 3 when packets were lost or input was damaged.
        packets: end live capture after so many packets of all interfaces; None for no limit.
        duration_ns: end live capture after so long; None for no limit.
        allow_missing_devices: live, whether to go on without interfaces whose devices are gone, as long as there is another one:
            so does a daemon that takes over from one that failed.
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
    is_strict: bool = False
    packets: int | None = None
    duration_ns: int | None = None
    allow_missing_devices: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the interfaces are devices."""
        return any(interface.device is not None for interface in self.interfaces)

    def __post_init__(self) -> None:
        for name in (
            "heartbeat_interval_ns",
            "batch_rows",
            "batch_bytes",
            "open_bytes",
            "log_bytes",
        ):
            if getattr(self, name) < 1:
                message = f"{name} is {getattr(self, name)!r}; expected a positive number"
                raise UsageError(message)
        if self.speed is not None and not 0 < self.speed <= MAX_SPEED:
            message = (
                f"speed is {self.speed!r}; expected a positive number of at most {MAX_SPEED:g}"
            )
            raise UsageError(message)
        names = [interface.name for interface in self.interfaces]
        if not names or len(set(names)) != len(names):
            message = f"expected at least one interface and unique names, got {names}"
            raise UsageError(message)
        for interface in self.interfaces:
            if bool(interface.files) == (interface.device is not None):
                which = "both files and a device" if interface.files else "no file and no device"
                message = f"the interface {interface.name!r} has {which}"
                raise UsageError(message)
            if self.is_live and interface.device is None:
                message = f"the interface {interface.name!r} has files, but others are live"
                raise UsageError(message)
            if interface.device is not None and interface.skew_ns < MIN_LIVE_SKEW_NS:
                message = (
                    f"the skew of the live interface {interface.name!r} is {interface.skew_ns} ns; it"
                    f" must be at least {MIN_LIVE_SKEW_NS} ns, the time that the kernel may hold a"
                    " block back"
                )
                raise UsageError(message)

    def to_json(self) -> str:
        """The settings as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> CaptureSettings:
        """The settings that ``to_json`` wrote; what is missing has its default.

        Raises:
            UsageError: not JSON, an unknown key, a wrong type or value.
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
    """``value`` as ``wanted``: a dataclass of an object, a tuple of a list, a plain type of itself."""
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
        message = f"{where} is {value!r:.100}; expected {getattr(wanted, '__name__', wanted)}"
        raise UsageError(message)
    return value


def _dataclass(value: dict[str, object], wanted: type, where: str) -> object:
    hints = typing.get_type_hints(wanted)
    for key in value:
        if key not in hints:
            hint = suggestion(key, hints, f"there are {sorted(hints)}", is_quoted=True)
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
