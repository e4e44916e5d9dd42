"""The inputs of a relay, or of a run that reads other hosts, from the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.settings import InterfaceSettings, RelayInput, RelaySettings
from gscope.cli.config.quantities import show_duration
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.config.effective import Config
    from gscope.queries.plan.program import Program

DEFAULT_INTERFACE = "relay"
"""The interface that stands for those of all inputs, if queries name none."""

SILENT_INTERVALS = 5
MIN_SILENCE_NS = 5_000_000_000
"""The default timeout of an input, as of a capture thread; see ``failure.timeout``."""

_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
_INTERFACE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_CONSUMER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class InputRequest:
    """The logs of other hosts that a command line names.

    Attributes:
        inputs: ``HOST:PORT`` or ``NAME=HOST:PORT``.
        certificates: the file with the certificates to trust; None: TLS is not used.
        consumer: the name under which messages are acknowledged; None for one that is kept with
            the run.
        absent_after_ns: an input that is silent for longer is left out; None to wait for it.
        hosts: ``NAME=HOST:PORT``, or the name of a host of the configuration file.
        is_recording: whether the hosts only record, for a run that reads them later.
        partition_set: what divides the packets among the hosts, as GSQL; None if nothing is known.
    """

    inputs: tuple[str, ...] = ()
    certificates: Path | None = None
    consumer: str | None = None
    absent_after_ns: int | None = None
    hosts: tuple[str, ...] = ()
    is_recording: bool = False
    partition_set: str | None = None

    def ensure_unused(self) -> None:
        """Refuse options that mean something only with an input.

        Raises:
            UsageError: one is given.
        """
        for option, value in (
            ("--tls-ca", self.certificates),
            ("--as", self.consumer),
            ("--absent-after", self.absent_after_ns),
            ("--record", self.is_recording or None),
            ("--partition-set", self.partition_set),
        ):
            if value is not None:
                message = f"{option} is about the inputs of --from and --host, and there is none"
                raise UsageError(message)


def relay_settings(request: InputRequest, config: Config) -> RelaySettings:
    """Return the settings of a relay; its files are checked as far as this user can.

    Raises:
        UsageError: an address, name or file is invalid, or an input is named twice.
    """
    from gscope.capture.log.remote.credentials import read_tokens, trusted_certificates

    token = "" if config.token_file is None else str(config.token_file.absolute())
    trusted = "" if request.certificates is None else str(request.certificates.absolute())
    if token:
        read_tokens(Path(token))
    if trusted:
        trusted_certificates(Path(trusted))
    inputs = tuple(_input(text, token, trusted) for text in request.inputs)
    for values in ([each.name for each in inputs], [each.address for each in inputs]):
        if twice := next((value for value in values if values.count(value) > 1), None):
            message = f"duplicate input: expected each once, got {twice} twice"
            raise UsageError(message)
    if request.consumer is not None and not _CONSUMER.fullmatch(request.consumer):
        message = (
            f"invalid --as {request.consumer!r}: expected 1 to 64 letters, digits, dots, hyphens "
            "or underscores"
        )
        raise UsageError(message)
    timeout_ns, absent_ns = silence_limits(request, config)
    return RelaySettings(inputs, request.consumer or "", timeout_ns, absent_ns)


def silence_limits(request: InputRequest, config: Config) -> tuple[int, int | None]:
    """Return the silence after which an input is reported, and after which it is left out.

    Raises:
        UsageError: the second is shorter than the first.
    """
    timeout_ns = config.failure_timeout_ns or max(
        SILENT_INTERVALS * config.heartbeat_interval_ns, MIN_SILENCE_NS
    )
    absent_ns = request.absent_after_ns
    if absent_ns is not None and absent_ns < timeout_ns:
        message = (
            f"invalid --absent-after {show_duration(absent_ns)}: expected at least the failure "
            f"timeout, {show_duration(timeout_ns)}"
        )
        raise UsageError(message)
    return timeout_ns, absent_ns


def _input(text: str, token: str, trusted: str) -> RelayInput:
    match = _NAMED.fullmatch(text)
    name, place = match.groups() if match is not None else (text, text)
    address = TcpAddress.parse(place)
    if not address.port:
        message = f"invalid input {text!r}: expected the port at which it listens, got 0"
        raise UsageError(message)
    address.ensure_readable(has_tls=bool(trusted))
    if not token:
        message = f"{address} asks for a token; name its file with --token-file"
        raise UsageError(message)
    return RelayInput(name, str(address), token, trusted)


def named_interfaces(names: Sequence[str]) -> tuple[InterfaceSettings, ...]:
    """Return the interfaces that queries may name; one stands for all if none is given.

    Raises:
        UsageError: a name is invalid, or given twice.
    """
    for name in names:
        if not _INTERFACE.fullmatch(name):
            message = (
                f"invalid interface {name!r}: with --from, -i names an interface of the inputs as "
                "queries do, and no device"
            )
            raise UsageError(message)
    if len(set(names)) < len(names):
        message = f"duplicate interface: expected each once, got {', '.join(names)}"
        raise UsageError(message)
    return tuple(InterfaceSettings(name) for name in names or (DEFAULT_INTERFACE,))


def ensure_relayable(program: Program) -> None:
    """Refuse queries that a relay cannot answer.

    Raises:
        UsageError: they save packets, read none, or read an interface that is not named.
    """
    if program.saved_packets:
        message = (
            "packets are where they are captured: a run that reads other hosts saves none; leave "
            "save_packets out of DEFINE"
        )
        raise UsageError(message)
    if not program.lftas:
        message = "the queries read no packets, so that there is nothing to relay"
        raise UsageError(message)
    for lfta in program.lftas:
        if not lfta.interfaces:
            message = (
                f"{lfta.query} reads no interface of {', '.join(program.interfaces)}; name those "
                "of the inputs, as the query does, with -i"
            )
            raise UsageError(message)
