"""A whole relay: set up, resume, merge, summarise; without the process and its server."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.interface.summary import CaptureSummary
from gscope.capture.log.budget import AdmitAll
from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.remote.credentials import log_address
from gscope.capture.relay.endpoints import AgentEndpoint, FixedEndpoint
from gscope.capture.relay.held_rows import Shelf
from gscope.capture.relay.relay_loop import RelayLoop
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.capture.live.stop import LiveStop
    from gscope.capture.log.log import StreamLog
    from gscope.capture.relay.endpoints import Endpoint
    from gscope.capture.relay.relay_statistics import RelayStatistics
    from gscope.capture.settings import CaptureSettings, RelayInput, RelaySettings
    from gscope.queries.plan.program import Program

STATE_FOLDER = "relay"
ROWS_FOLDER = "relay-rows"
"""In the folder that the relay may write to."""


def input_endpoints(settings: RelaySettings) -> dict[str, Endpoint]:
    """Return how to connect to each input; reads tokens, certificates and requests.

    Raises:
        UsageError: an address, token, certificate or request is invalid, or would be sent
            unprotected.
    """
    return {each.name: _endpoint(each) for each in settings.inputs}


def _endpoint(given: RelayInput) -> Endpoint:
    address = log_address(given.address, given.token, given.certificates)
    if not given.capture:
        return FixedEndpoint(address)
    try:
        request = json.loads(Path(given.request).read_bytes())
    except (OSError, ValueError) as error:
        message = f"cannot read the request {given.request}: {error}"
        raise UsageError(message) from error
    return AgentEndpoint(address, given.capture, request)


def run_relay(
    program: Program,
    settings: CaptureSettings,
    log: StreamLog,
    endpoints: Mapping[str, Endpoint],
    folder: Path,
    *,
    stop: LiveStop,
    statistics: RelayStatistics,
    report: Callable[[str, str], None],
    on_begin: Callable[[], None],
    on_turn: Callable[[], None],
) -> CaptureSummary:
    """Merge the inputs into ``log`` until they end or the stop; end the streams of the log.

    Args:
        program: the compiled query set.
        settings: the relay; its inputs are set.
        log: the log that ``open_log`` returned; stays open. What it holds is continued.
        endpoints: how to connect to each input.
        folder: folder that the relay may write to, beside its log.
        stop: ends the relay.
        statistics: counters for other processes.
        report: called with the name of an input and a phrase when its state changes.
        on_begin: called when inputs are about to be read.
        on_turn: called several times a second.

    Raises:
        StreamError: the log or the state cannot be written, or an input refuses at first contact.
    """
    assert settings.relay is not None
    began = time.perf_counter()
    states = folder / STATE_FOLDER
    with plain_errors("make the folder", states):
        states.mkdir(mode=0o700, exist_ok=True)
    shelf = Shelf(folder / ROWS_FOLDER, settings.log_bytes)
    loop = RelayLoop(
        program,
        settings.relay,
        endpoints,
        log,
        AdmitAll(settings.log_bytes),
        shelf,
        states,
        report,
    )
    statistics.follow(loop, shelf)
    on_begin()

    def turn() -> None:
        statistics.on_turn()
        on_turn()

    ready = time.perf_counter()
    loop.run(stop.event, turn)
    return CaptureSummary(
        (),
        {each["name"]: _counters(each) for each in statistics.streams()},
        asdict(log.stats),
        {"opened_s": ready - began, "relay_s": time.perf_counter() - ready},
        stop.event.is_set(),
        logged=log.counters(),
        inputs=statistics.inputs(),
    )


def _counters(stream: Mapping[str, object]) -> dict[str, int]:
    return {
        name: count
        for name, count in stream.items()
        if isinstance(count, int) and name.endswith(("_total", "_groups"))
    }
