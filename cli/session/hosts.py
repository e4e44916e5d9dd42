"""The hosts of a run: what their agents offer, and what the run asks each of them to capture."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.cli.rundir.records import FOLDER_PREFIX
from gscope.errors import GscopeError, StreamError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import HOSTS_FILE, HOSTS_FOLDER
from gscope.queries.run_folder.whole_file import replace_file
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.capture.settings import RelayInput, RelaySettings
    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest
    from gscope.queries.plan.program import Program

_NAME_LETTERS = 48


@dataclass(frozen=True, slots=True)
class HostInterfaces:
    """The interfaces of a host that a run may read.

    Attributes:
        host: the name of the host.
        interfaces: the names of its interfaces, without that of the host.
        skew_ns: the least skew of its devices; 0 if it has none.
    """

    host: str
    interfaces: tuple[str, ...]
    skew_ns: int = 0


@dataclass(frozen=True, slots=True)
class HostsOfRun:
    """The hosts that a run reads.

    Attributes:
        offers: their interfaces.
        capture: the name of the run's captures on all agents; "" until the run has a folder.
        partition_set: what divides the packets among the hosts, as GSQL; "" if nothing is known.
    """

    offers: tuple[HostInterfaces, ...]
    capture: str = ""
    partition_set: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return tuple(each.host for each in self.offers)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The names of all interfaces, as queries have them: ``HOST.NAME``."""
        return tuple(f"{each.host}.{name}" for each in self.offers for name in each.interfaces)

    def limited(self, chosen: Sequence[str]) -> HostsOfRun:
        """Return the hosts with the interfaces that ``-i`` names; with all for ().

        Raises:
            UsageError: there is no such interface.
        """
        if not chosen:
            return self
        for name in chosen:
            if not any(
                _is_named(name, each.host, i) for each in self.offers for i in each.interfaces
            ):
                message = (
                    f"unknown interface {name!r}; available: {', '.join(self.interfaces) or 'none'}"
                )
                raise UsageError(message)
        kept = (
            replace(
                each,
                interfaces=tuple(
                    i for i in each.interfaces if any(_is_named(n, each.host, i) for n in chosen)
                ),
            )
            for each in self.offers
        )
        return replace(self, offers=tuple(each for each in kept if each.interfaces))

    def store(self, run_dir: Path) -> HostsOfRun:
        """Return what the folder of a run has stored, after storing this in a new one.

        Raises:
            UsageError: the file cannot be written, or the run began with other hosts.
        """
        path = run_dir / HOSTS_FILE
        try:
            before = read_hosts(run_dir)
            if before is not None:
                if before.names != self.names:
                    message = (
                        f"the run was started with the hosts {', '.join(before.names)}; resume it "
                        "with those, or choose another name with --run"
                    )
                    raise UsageError(message)
                return before
            name = run_dir.name.removeprefix("run-")[:_NAME_LETTERS]
            made = replace(self, capture=f"{name}-{secrets.token_hex(4)}")
            replace_file(path, json.dumps(to_plain(made)))
        except OSError as error:
            message = f"cannot write {path}: {os_reason(error)}"
            raise UsageError(message) from error
        return made

    def requests(
        self,
        run_dir: Path,
        relay: RelaySettings,
        program: Program,
        request: QueryRequest,
        config: Config,
    ) -> RelaySettings:
        """Return the inputs of a run, with files that say what each agent is to capture.

        A host whose interfaces no query reads is left out.

        Raises:
            UsageError: a file cannot be written, or no query reads a host.
        """
        from gscope import __version__
        from gscope.capture.log.agent.messages import CaptureRequest, RequestedText
        from gscope.capture.log.description import describe_program
        from gscope.cli.session.compile_request import (
            gather_texts,
            interface_sets,
            parse_parameters,
        )

        texts, delivered = gather_texts(request)
        common = CaptureRequest(
            gscope=__version__,
            host="",
            interfaces=self.interfaces,
            hosts=self.names,
            texts=tuple(RequestedText(each.text, each.source) for each in texts),
            lftas=describe_program(program),
            sets=interface_sets(config, self.interfaces),
            parameters=parse_parameters(request.parameters),
            delivered=delivered,
            window_plan=request.window_plan,
            heartbeat_interval_ns=config.heartbeat_interval_ns,
            answered=tuple(each.query for each in program.lftas if each.answers is not None),
        )
        inputs = []
        skews = {each.host: each.skew_ns for each in self.offers}
        folder = run_dir / HOSTS_FOLDER
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            for each in relay.inputs:
                asked = replace(common, host=each.name)
                if asked.own_interfaces:
                    path = folder / f"{each.name}.json"
                    replace_file(path, asked.to_json())
                    skew_ns = skews.get(each.name, 0)
                    inputs.append(
                        replace(each, capture=self.capture, request=str(path), skew_ns=skew_ns)
                    )
        except OSError as error:
            message = f"cannot write to {folder}: {os_reason(error)}"
            raise UsageError(message) from error
        if not inputs:
            message = "no query reads an interface of a host"
            raise UsageError(message)
        return replace(relay, inputs=tuple(inputs))


def read_hosts(run_dir: Path) -> HostsOfRun | None:
    """Return the hosts that are stored in the folder of a run; None without any.

    Raises:
        UsageError: the file is damaged.
    """
    path = run_dir / HOSTS_FILE
    try:
        text = path.read_bytes()
    except OSError:
        return None
    try:
        return from_plain(HostsOfRun, json.loads(text))  # type: ignore[no-any-return]
    except (ValueError, TypeError, AttributeError) as error:
        message = f"{path} is damaged: {error}"
        raise UsageError(message) from error


def requested_hosts(
    relay: RelaySettings,
    chosen: Sequence[str],
    partition_set: str | None,
    name: str | None,
    work_dir: Path,
) -> HostsOfRun:
    """Return the hosts whose agents capture for a run.

    A run that is resumed has stored their interfaces.

    Args:
        relay: their agents.
        chosen: the interfaces to read; () for all.
        partition_set: what divides the packets among the hosts; None if the user says nothing of
            it.
        name: the name of the run; None for a new one.
        work_dir: the folder of the runs.

    Raises:
        GscopeError: an agent does not answer or refuses, or the run was started otherwise.
    """
    stored = None if name is None else read_hosts(work_dir / f"{FOLDER_PREFIX}{name}")
    if stored is None:
        return replace(offered_hosts(relay).limited(chosen), partition_set=partition_set or "")
    if partition_set is not None and partition_set != stored.partition_set:
        before = f"divided by {stored.partition_set}" if stored.partition_set else "without a set"
        message = (
            f"run {name} was started with packets {before}; resume it with the same "
            "--partition-set, or choose another name with --run"
        )
        raise UsageError(message)
    names = [each.name for each in relay.inputs]
    if missing := [each for each in stored.names if each not in names]:
        message = (
            f"run {name} was started with the hosts {', '.join(stored.names)}, and "
            f"{missing[0]} is missing; name all of them, or choose another name with --run"
        )
        raise UsageError(message)
    return stored


def offered_hosts(relay: RelaySettings) -> HostsOfRun:
    """Ask all agents what they offer.

    Raises:
        GscopeError: an agent does not answer, or refuses.
    """
    with ThreadPoolExecutor(max_workers=min(32, len(relay.inputs))) as pool:
        return HostsOfRun(tuple(pool.map(_offer, relay.inputs)))


def _offer(each: RelayInput) -> HostInterfaces:
    from gscope.capture.log.agent.client import AgentClient
    from gscope.capture.log.agent.messages import INTERFACE_NAME, LIVE
    from gscope.capture.log.remote.credentials import log_address

    try:
        with AgentClient(log_address(each.address, each.token, each.certificates)) as agent:
            offer = agent.offer()
    except StreamError as error:
        message = f"host {each.name}: {error}"
        raise GscopeError(message) from error
    names = tuple(interface.name for interface in offer.interfaces)
    if not names or not all(INTERFACE_NAME.fullmatch(name) for name in names):
        message = f"host {each.name}: the agent at {each.address} offers no valid interfaces"
        raise GscopeError(message)
    skews = [interface.skew_ns for interface in offer.interfaces if interface.kind == LIVE]
    return HostInterfaces(each.name, names, min(skews, default=0))


def _is_named(text: str, host: str, interface: str) -> bool:
    return text in (interface, f"{host}.{interface}")
