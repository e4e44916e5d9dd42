"""The capture daemon: ``python -m gscope.capture.daemon RUN_DIR [SUPERVISOR_FD [early]]``.

Reads ``capture.json`` and ``program.json`` in RUN_DIR, runs the program's LFTAs over captures or
live interfaces into the stream log ``log`` (or merges the logs of other hosts, see
``capture/relay``), and serves the log on ``capture.sock`` until every
consumer has acknowledged all of it. A live capture resumes in the log of an earlier daemon; see
``capture/live/resume.py``. Events go to standard output; see
``queries/streams/process_events.py``.

First it opens its sockets, or the captures that only root can read, and reads the key and the token
with which it serves the log to other hosts. Then it drops the privileges
that it no longer needs (see ``capture/process/confinement/confine.py``), before it starts another
thread, looks at a byte of a packet or loads user code.

The supervisor holds the other end of SUPERVISOR_FD (0, standard input, unless a capture needs it).
When that closes, the supervisor has died, and the daemon exits immediately. The first SIGTERM or
SIGINT ends the input: windows are closed, and all output is logged and served as before. A further
signal ends the daemon immediately. With ``early``, it first waits until its settings are there; see
``queries/run_folder/early_start.py``.

Exit codes: 0 everything was served; 1 an input or the log is unusable (a file that is not a
capture, among others that are, is left out and reported in the summary); 2 invalid settings;
3 everything was served, but packets were lost in strict mode; 128 + n ended immediately by signal
n.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.process.confinement.plan import Confinement
from gscope.capture.process.events import CaptureEvents
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings
from gscope.errors import GscopeError, RefusedInputError, StreamError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.early_start import EARLY, await_settings
from gscope.queries.run_folder.layout import (
    CAPTURE_FOLDER,
    CAPTURE_SETTINGS_FILE,
    CAPTURE_STATISTICS_FILE,
    LOG_FOLDER,
)
from gscope.queries.run_folder.lease_file import read_leases
from gscope.queries.run_folder.snapshot import INTERVAL_S
from gscope.queries.run_folder.startup import settle
from gscope.queries.streams.process_events import CaptureFinished, ProcessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.log.log import StreamLog
    from gscope.capture.log.remote.listener import Listener
    from gscope.capture.process.server_thread import ServerThread
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.relay.relay_statistics import RelayStatistics
    from gscope.capture.saving.packet_file import PacketFile
    from gscope.capture.settings import RelaySettings
    from gscope.queries.plan.program import Program

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping(Protocol):
    """A switch that ends the input, for use by any thread."""

    def request(self) -> None:
        """End the input."""


S = TypeVar("S", bound=Stopping)


class Daemon:
    """One run of the capture daemon in ``run_dir``.

    Its interpreter took ``started_s`` to start.
    """

    def __init__(self, run_dir: Path, events: CaptureEvents, started_s: float) -> None:
        self._run_dir = run_dir
        self._events = events
        self._phases = {"started_s": started_s}
        self._log: StreamLog | None = None
        self._stop: Stopping | None = None
        self._is_stopping = threading.Event()
        self._has_begun = threading.Event()
        self._packet_file: PacketFile | None = None
        self._confinement = Confinement()
        self._unconfined: list[str] = []
        self._listener: Listener | None = None

    @property
    def leaves_data(self) -> bool:
        """Whether a run that ends now may have packets or rows to answer."""
        return self._log is None or not self._log.is_empty

    def run(self, supervisor_fd: int) -> None:
        """Capture and serve.

        Raises:
            GscopeError: settings, an input or the log are unusable.
        """
        settings = self._settings()
        self._confinement = Confinement.read(self._run_dir)
        for folder in (LOG_FOLDER, CAPTURE_FOLDER):
            (self._run_dir / folder).mkdir(mode=0o700, exist_ok=True)
        if supervisor_fd == 0 and any("-" in each.files for each in settings.interfaces):
            message = (
                "standard input cannot be both a capture and the supervisor's pipe; "
                "name another descriptor"
            )
            raise UsageError(message)
        if settings.listener is not None:
            from gscope.capture.log.remote.listener import take_listener

            self._listener = take_listener(settings.listener)
        if settings.relay is not None:
            self._relay(settings, settings.relay, supervisor_fd)
        elif settings.is_live:
            self._live(settings, supervisor_fd)
        else:
            self._replay(settings, supervisor_fd)

    def _replay(self, settings: CaptureSettings, supervisor_fd: int) -> None:
        began = time.perf_counter()
        files = [file for interface in settings.interfaces for file in interface.files]
        if self._confinement.identity is not None:
            from gscope.capture.sources.files.held import hold
            from gscope.capture.sources.files.stored import open_nonblocking

            hold(files, self._confinement.identity, open_nonblocking)
        folders = (Path(file).absolute().parent for file in files)
        # A link may lead to another folder, or in a circle, for which ``resolve`` raises.
        targets = (Path(os.path.realpath(file)) for file in files)
        self._confine([*folders, *targets])
        self._follow(supervisor_fd)
        # Imported once the settings are known to be valid: numba and pyarrow take most of the
        # start-up time.
        from gscope.capture.interface.division import with_block_bytes
        from gscope.capture.replay.open_inputs import OpenInputs
        from gscope.capture.replay.replay_capture import replay_capture
        from gscope.capture.replay.replay_stop import ReplayStop

        self._phases["imports_s"] = time.perf_counter() - began
        program = self._program()
        settings = with_block_bytes(program, settings)
        stop = self._offer(ReplayStop())
        with OpenInputs(settings, stop) as inputs:

            def capture(
                log: StreamLog, statistics: CaptureStatistics, demands: Demands
            ) -> CaptureSummary:
                self._has_begun.set()
                return replay_capture(
                    program,
                    settings,
                    log,
                    inputs=inputs,
                    stop=stop,
                    observers=CaptureObservers(
                        on_compile=self._events.send,
                        on_progress=self._events.on_progress,
                        statistics=statistics,
                        packet_file=self._open_packet_file(settings),
                    ),
                    demands=demands,
                )

            self._serve(program, settings, capture)

    def _live(self, settings: CaptureSettings, supervisor_fd: int) -> None:
        # The threads that OpenBLAS would start would keep their privileges, and are not needed.
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        began = time.perf_counter()
        from gscope.capture.live.devices import Devices
        from gscope.capture.live.resume import ended_interfaces
        from gscope.capture.process.thread_watchdog import ThreadWatchdog

        names = (each.name for each in settings.interfaces)
        ended = ended_interfaces(self._run_dir / LOG_FOLDER, names)
        with Devices(settings, ended) as devices:
            self._confine(())
            self._follow(supervisor_fd)
            program, inputs = self._program(), devices.inputs
            inputs.start(program, settings)
            from gscope.capture.live.live_capture import capture_live
            from gscope.capture.live.stop import LiveStop

            self._phases["imports_s"] = time.perf_counter() - began
            stop = self._offer(LiveStop())

            def capture(
                log: StreamLog, statistics: CaptureStatistics, demands: Demands
            ) -> CaptureSummary:
                return capture_live(
                    program,
                    settings,
                    log,
                    inputs,
                    stop=stop,
                    observers=CaptureObservers(
                        on_compile=self._events.send,
                        on_ready=lambda: self._renew_leases(log, settings),
                        on_begin=self._has_begun.set,
                        on_progress=self._events.on_progress,
                        on_failure=self._events.on_interface_failure,
                        statistics=statistics,
                        watchdog=watchdog,
                        packet_file=self._open_packet_file(settings),
                    ),
                    demands=demands,
                )

            with ThreadWatchdog(self._events) as watchdog:
                self._serve(program, settings, capture)

    def _relay(self, settings: CaptureSettings, relay: RelaySettings, supervisor_fd: int) -> None:
        began = time.perf_counter()
        from gscope.capture.relay.run_relay import input_endpoints, run_relay

        endpoints = input_endpoints(relay)
        self._confine((), has_internet=True)
        self._follow(supervisor_fd)
        from gscope.capture.live.stop import LiveStop
        from gscope.capture.process.thread_watchdog import ThreadWatchdog

        self._phases["imports_s"] = time.perf_counter() - began
        program = self._program()
        stop = self._offer(LiveStop())

        def capture(
            log: StreamLog, statistics: RelayStatistics, _demands: Demands
        ) -> CaptureSummary:
            self._renew_leases(log, settings)
            summary = run_relay(
                program,
                settings,
                log,
                endpoints,
                self._run_dir / CAPTURE_FOLDER,
                stop=stop,
                statistics=statistics,
                report=self._events.on_input_report,
                on_begin=self._has_begun.set,
                on_turn=lambda: watchdog.on_turn("relay"),
            )
            watchdog.on_end("relay")
            return summary

        with ThreadWatchdog(self._events) as watchdog:
            self._serve(program, settings, capture)

    def _confine(self, read: Iterable[Path], *, has_internet: bool = False) -> None:
        """Drop privileges: all inputs that need them are open."""
        from gscope.capture.process.confinement.confine import confine

        self._unconfined = confine(
            self._confinement,
            self._run_dir,
            (LOG_FOLDER, CAPTURE_FOLDER),
            read=read,
            may_execute=False,
            has_internet=has_internet,
        )

    def _serve(
        self,
        program: Program,
        settings: CaptureSettings,
        capture: Callable[[StreamLog, Any, Demands], CaptureSummary],
    ) -> None:
        """Capture into the log, and serve it until everything is acknowledged."""
        from gscope.capture.interface.open_log import open_log
        from gscope.capture.process.server_thread import ServerThread

        self._log = open_log(self._run_dir / LOG_FOLDER, program, settings)
        if not settings.is_live and not self._log.is_empty:
            message = f"{self._run_dir} holds an earlier capture; use a new folder"
            raise StreamError(message)
        demands = Demands(self._log.streams, is_served=settings.heartbeat_mode.is_on_demand)
        server = ServerThread(
            self._log,
            demands,
            program,
            self._run_dir,
            listener=self._listener,
            is_relay=settings.relay is not None,
            events=self._events,
            has_begun=self._has_begun,
        )
        statistics = self._statistics(settings, self._log, server)
        try:
            summary = capture(self._log, statistics, demands)
            if self._packet_file is not None:
                self._packet_file.close()
                summary = dataclasses.replace(summary, saved=self._packet_file.account())
            statistics.write()
            self._send_summary(summary)
            server.ensure_listening()
            while not (self._log.wait_acknowledged(INTERVAL_S) or self._log.is_closed):
                statistics.write()
        finally:
            if self._packet_file is not None:
                self._packet_file.close()
            self._log.close()
            self._has_begun.set()
            server.stop()

    def _statistics(
        self, settings: CaptureSettings, log: StreamLog, server: ServerThread
    ) -> CaptureStatistics | RelayStatistics:
        """Return the counters for other processes."""
        from gscope.capture.process.statistics import CaptureStatistics
        from gscope.capture.relay.relay_statistics import RelayStatistics

        made = CaptureStatistics if settings.relay is None else RelayStatistics
        path = self._run_dir / CAPTURE_STATISTICS_FILE
        return made(path, settings, log, unconfined=self._unconfined, remote=server.remote_status)

    def _open_packet_file(self, settings: CaptureSettings) -> PacketFile | None:
        """Return the file, or the ring, for packets; None if none are saved."""
        if settings.saved is not None:
            from gscope.capture.saving.packet_file import PacketFile
            from gscope.capture.saving.packet_ring import PacketRing

            self._packet_file = (
                PacketFile(settings.saved, self._run_dir, settings.is_live)
                if settings.saved.ring_bytes is None
                else PacketRing(settings.saved, self._run_dir)
            )
        return self._packet_file

    def _renew_leases(self, log: StreamLog, settings: CaptureSettings) -> None:
        """Lease the batches that readers leased from an earlier daemon and still read."""
        for consumer in settings.consumers:
            leases = read_leases(self._run_dir / CAPTURE_FOLDER, consumer.name)
            log.lease(consumer.name, {s: leases[s] for s in leases.keys() & set(log.streams)})

    def _follow(self, supervisor_fd: int) -> None:
        """Start handling signals and the end of the supervisor; earlier ones are pending."""
        for target, arguments in (
            (_follow_supervisor, (supervisor_fd,)),
            (_follow_signals, (self,)),
        ):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def _offer(self, stop: S) -> S:
        """Let signals request ``stop``, also a signal that came before this call."""
        self._stop = stop
        if self._is_stopping.is_set():
            stop.request()
        return stop

    def on_signal(self, number: int) -> None:
        """End the input at the first signal, and the process at a further one."""
        if self._is_stopping.is_set():
            os._exit(128 + number)
        self._is_stopping.set()
        if self._stop is not None:
            self._stop.request()

    def _send_summary(self, summary: CaptureSummary) -> None:
        fields = summary.to_dict()
        fields["phases"] = {**self._phases, **summary.phases}
        self._events.send(CaptureFinished(**fields))

    def _settings(self) -> CaptureSettings:
        path = self._run_dir / CAPTURE_SETTINGS_FILE
        try:
            return CaptureSettings.from_json(path.read_bytes())
        except OSError as error:
            message = f"cannot read the capture settings {path}: {os_reason(error)}"
            raise UsageError(message) from error

    def _program(self) -> Program:
        from gscope.queries.plan.program_file import read_program
        from gscope.queries.run_folder.layout import PROGRAM_FILE

        program = read_program(self._run_dir / PROGRAM_FILE)
        if program.user_files:
            from gscope.queries.catalog.user_functions.install import install

            install(program.user_files)
        return program


def _process_age_s() -> float:
    """Return the seconds since this process was started, to a hundredth."""
    started_ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")


def load_libraries() -> None:
    """Load what a replay needs; no thread may start, since privileges have not been dropped."""
    import gscope.capture.interface.open_log
    import gscope.capture.log.segment_rows
    import gscope.capture.log.server
    import gscope.capture.process.server_thread
    import gscope.capture.process.statistics
    import gscope.capture.replay.open_inputs
    import gscope.capture.replay.replay_capture  # noqa: F401
    from gscope.queries.plan.program_file import node_classes

    node_classes()


def _follow_supervisor(descriptor: int) -> None:
    """Exit when the supervisor has died."""
    try:
        while os.read(descriptor, 4096):
            pass
    except OSError:
        pass
    # There is nothing to clean up: the index of the log is consistent at any moment.
    os._exit(1)


def _follow_signals(daemon: Daemon) -> None:
    while True:
        daemon.on_signal(signal.sigwait(_SIGNALS))


def main(arguments: list[str]) -> int:
    """Run the daemon that the command line describes; return the exit code."""
    started_s = _process_age_s()
    settle()
    # Before any thread starts, so that all threads inherit the mask: one thread waits for signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    events = CaptureEvents(sys.stdout)
    run_dir = Path(arguments[0])
    supervisor_fd = int(arguments[1]) if len(arguments) > 1 else 0
    if EARLY in arguments[2:]:
        load_libraries()
        await_settings(supervisor_fd)
    daemon = Daemon(run_dir, events, started_s)
    try:
        daemon.run(supervisor_fd)
    except GscopeError as error:
        is_final = isinstance(error, RefusedInputError)
        events.send(
            ProcessError(str(error), is_final, error.exit_code, leaves_data=daemon.leaves_data)
        )
        return error.exit_code
    return 0


if __name__ == "__main__":
    _code = main(sys.argv[1:])
    sys.stdout.flush()
    if (_cache := sys.modules.get("gscope.capture.lfta.cache")) is not None:
        _cache.remove_private_folder()
    # Everything is closed; unloading the interpreter and its libraries would only take time.
    os._exit(_code)
