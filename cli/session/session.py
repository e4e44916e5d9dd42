"""One run from the queries to the summary, as ``replay`` and ``run`` share it."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.errors import GscopeError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from prometheus_client import Metric

    from gscope.capture.log.agent.messages import CaptureRequest
    from gscope.capture.process.confinement.plan import Confinement
    from gscope.capture.settings import (
        InterfaceSettings,
        ListenerSettings,
        RelaySettings,
        SavedPackets,
    )
    from gscope.cli.config.effective import Config
    from gscope.cli.config.run_limits import RunLimits
    from gscope.cli.config.saving import SaveRequest
    from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
    from gscope.cli.delivery.delivery import Sink, Watch
    from gscope.cli.render.outcome import Outcome
    from gscope.cli.render.pager import PagedOutput
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.cli.rundir.run_log import RunLog
    from gscope.cli.session.end_report import EndReport
    from gscope.cli.session.hosts import HostsOfRun
    from gscope.cli.session.lifecycle import Listener
    from gscope.cli.session.request import QueryRequest
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.cli.view.live_view import LiveView
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class Session:
    """A run: its queries, their input, and the destination of the answers.

    Attributes:
        request: the queries.
        interfaces: captures or devices.
        limits: how fast and how long to capture.
        expected_bytes: size of all captures together; None if it is unknown.
        folder: the folder for output files; None: answers go to standard output.
        config: the settings.
        name: the name of the run; None: that of the first query, made unique.
        log_file: a further file for the run's log; None: none.
        saving: the packets to save; None: none.
        pager: the command that shows tables that are longer than the terminal; None: no pager.
        metrics: the URL at which metrics are served; None: they are not.
        relay: the logs of other hosts that are read instead of packets; None to capture.
        listener: where a sensor serves its rows, and answers nothing itself; None for a run that
            answers its queries.
        hosts: the hosts whose agents capture for this run; None for none.
        requested: what another host asks this one to capture, in place of ``request``; None for
            queries of this host.
        report: the file for a report; None: it goes to ``folder``, or to standard output.
        show_rows: makes the endpoint of metrics serve those that its argument returns as well;
            None: there is no endpoint.
    """

    request: QueryRequest
    interfaces: tuple[InterfaceSettings, ...]
    limits: RunLimits
    expected_bytes: int | None
    folder: Path | None
    config: Config
    name: str | None = None
    log_file: Path | None = None
    saving: SaveRequest | None = None
    pager: str | None = None
    metrics: str | None = None
    listener: ListenerSettings | None = None
    relay: RelaySettings | None = None
    hosts: HostsOfRun | None = None
    requested: CaptureRequest | None = None
    report: Path | None = None
    show_rows: Callable[[Callable[[], Iterable[Metric]]], None] | None = None

    @property
    def is_live(self) -> bool:
        """Whether the input cannot be read again: devices, or the logs of other hosts."""
        return self.relay is not None or any(
            interface.device is not None for interface in self.interfaces
        )

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of interfaces, or of the inputs of a run that reads other hosts."""
        return tuple(i.name for i in (self.relay.inputs if self.relay else self.interfaces))

    @property
    def is_interleaved(self) -> bool:
        """Whether rows of several results are merged into one order.

        Only answers in NDJSON on standard output are, and only of captures that are regular files:
        a pipe with packets may stay open, and a table shows the results in turn.
        """
        from gscope.cli.sinks.open_sink import is_ndjson

        return self.is_of_files and self.folder is None and is_ndjson(self.config.output_format)

    @property
    def is_of_files(self) -> bool:
        """Whether all packets come from regular files: the input is finite, and all there."""
        files = [file for interface in self.interfaces for file in interface.files]
        return not self.is_live and all(Path(file).is_file() for file in files)

    def answer(
        self, observer: RunObserver, report: EndReport, began: float, *listeners: Listener
    ) -> int:
        """Run all processes, deliver all answers and print the summary; return the exit code.

        Args:
            observer: shows progress and notices.
            report: what is printed at the end.
            began: ``time.monotonic()`` when the command began.
            listeners: called at every change of the run's record.

        Raises:
            GscopeError: a query is invalid, or a process failed.
        """
        from gscope.cli.rundir.ended import keep_counters
        from gscope.cli.rundir.run_dir import RunDir
        from gscope.cli.session.end_report import exit_code
        from gscope.cli.session.lifecycle import ensure_same, namesake, run_lifecycle
        from gscope.cli.session.reporting import ensure_reportable
        from gscope.cli.session.run_name import default_name
        from gscope.cli.session.sampling import ensure_same_sample
        from gscope.cli.session.viewing import ensure_viewable, live_view
        from gscope.cli.sinks.open_sink import ensure_partitions, ensure_shows_times

        ensure_shows_times(self.config, self.folder)
        ensure_partitions(self.config, self.folder)
        ensure_viewable(self)
        ensure_reportable(self)
        is_named = self.name is not None
        name = self.name or default_name(self.request)
        with RunDir(self.config.work_dir, name, is_exact=is_named) as run_dir:
            program = None
            if run_dir.resumed is not None:
                program = self.compiled(run_dir, observer)
                ensure_same_sample(self.config, run_dir, program)
                ensure_same(run_dir, program)
            if sentence := namesake(run_dir, name):
                observer.on_notice(sentence)
            with run_lifecycle(run_dir, self.log_file, listeners) as log:
                with live_view(self, run_dir.path, run_dir.name, observer) as view:
                    shown = observer if view is None else view.observer
                    outcome, rows = self._run(run_dir, log, program, shown, began, view)
                said = list(report.lines(outcome, rows))
                run_dir.write_summary("".join(f"{line}\n" for line in said))
                log.note("run", "\n".join(said))
            if is_named and not self.is_live:
                keep_counters(run_dir.path)
        for line in said:
            click.echo(line, err=True)
        return exit_code(outcome, self.config)

    def _run(
        self,
        run_dir: RunDir,
        log: RunLog,
        program: Program | None,
        observer: RunObserver,
        began: float,
        view: LiveView | None,
    ) -> tuple[Outcome, Mapping[str, int]]:
        """Run all processes until everything is answered; return the outcome and rows by query."""
        from gscope.cli.config.cluster import job_secrets
        from gscope.cli.config.destinations import without_secrets
        from gscope.cli.session.job_settings import job_settings, loads_early
        from gscope.cli.session.signals import signal_handlers
        from gscope.cli.supervision.liveness import SilenceLimits
        from gscope.cli.supervision.supervisor import Supervisor
        from gscope.queries.user_cache import unusable_cache

        config = self.config
        run_dir.file.change(
            command=without_secrets(sys.argv[1:], config.destinations),
            interfaces=self.input_names,
            is_live=self.is_live,
            folder=None if self.folder is None else str(self.folder.resolve()),
            metrics=self.metrics,
        )
        silence_limits = SilenceLimits.of(
            config.failure_timeout_ns,
            config.heartbeat_interval_ns,
            config.failure_step_timeout_ns,
        )
        confinement = self.prepared(run_dir.path)
        if confinement.cache is None and (sentence := unusable_cache()):
            observer.on_notice(sentence)

        def supervised(file: RunFile, quiet: RunObserver | None) -> Supervisor:
            """Return a supervisor of processes; of a second pass, ``quiet`` may observe it."""
            return Supervisor(
                file, quiet or observer, began, silence_limits, log=log, confinement=confinement
            )

        supervisor = supervised(run_dir.file, None)
        # The pager may outlive the processes: the user reads what they have answered.
        with self._paged_output(observer) as output, signal_handlers(supervisor):
            try:
                if self.listener is None and not self.is_live:
                    # Before the queries compile: loading libraries is the longest part of a small
                    # run.
                    if loads_early(self):
                        supervisor.start_job(job_settings(self), job_secrets(config))
                    if self.is_of_files:
                        supervisor.prepare_capture()
                program = program or self.compiled(run_dir, observer)
                if self.listener is not None:
                    from gscope.cli.session.sensor import serve_rows

                    serve_rows(self, self.listener, run_dir, supervisor, program)
                    return supervisor.outcome, {}
                saved = self.saving
                if saved is None and program.saved_packets:
                    from gscope.cli.config.saving import request_of_queries

                    saved = request_of_queries(program.saved_packets, dict(program.results))
                if saved is None:
                    rows = self._deliver(run_dir, supervisor, program, output, view)
                else:
                    from gscope.cli.session.saving_run import SavingRun

                    saving = SavingRun(self, saved, program)
                    rows = saving.run(
                        run_dir,
                        supervisor,
                        lambda saved, watch: self._deliver(
                            run_dir, supervisor, program, output, view, saved, watch
                        ),
                        supervised,
                    )
            finally:
                supervisor.stop()
            if view is not None:
                from gscope.cli.session.row_packets import RowPackets

                packets = RowPackets(self, program, run_dir.name, supervised)
                view.stay(
                    lambda: bool(supervisor.outcome.signal),
                    packets.save if self.is_of_files and saved is None else None,
                )
        return supervisor.outcome, rows

    def _paged_output(self, observer: RunObserver) -> AbstractContextManager[PagedOutput | None]:
        """Return the pager for tables of a finite input; None if rows go out as they come."""
        from gscope.cli.sinks.open_sink import is_table

        if (
            self.pager is None
            or self.folder is not None
            or not self.is_of_files
            or self.limits.speed is not None
            or not is_table(self.config.output_format)
            or not sys.stdout.isatty()
        ):
            return nullcontext()
        from gscope.cli.render.pager import paged_output

        return paged_output(self.pager, observer)

    def prepared(self, folder: Path, *further: str) -> Confinement:
        """Prepare the folder of a run, and further ones in it, for processes without privileges."""
        from gscope.cli.session.folders import prepared
        from gscope.queries.run_folder.layout import JOB_FOLDER

        return prepared(folder, (JOB_FOLDER, *further), self.config)

    def compiled(self, run_dir: RunDir, observer: RunObserver) -> Program:
        """Compile the queries, and report what they warn of.

        Raises:
            GscopeError: a query is invalid, does not permit the rate of the sample, or has no time
                by which its rows are to be partitioned.
        """
        from gscope.cli.config.shedding import chosen_shedding, ensure_allowed
        from gscope.cli.session.compile_request import compile_request, show_warnings
        from gscope.cli.session.measured_columns import measured_columns
        from gscope.cli.session.sampling import warn_of_unsampled
        from gscope.cli.sinks.open_sink import partitions_of

        if self.requested is not None:
            from gscope.cli.session.requested import compile_requested

            return compile_requested(self.requested, self.config)

        names = tuple(interface.name for interface in self.interfaces)
        try:
            compiled = compile_request(
                self.request,
                names,
                self.config,
                is_unbounded=self.is_live and not self.limits.is_bounded,
                is_repeatable=not self.is_live,
                is_interleaved=self.is_interleaved,
                is_resumable=self.is_live,
                hosts=() if self.hosts is None else self.hosts.names,
            )
        except GscopeError:
            run_dir.hand_back_if_resumed()
            raise
        program = compiled.program
        if self.hosts is not None and self.hosts.partition_set:
            from gscope.cli.session.answering_hosts import shared_with_hosts

            program = shared_with_hosts(compiled, self.hosts, observer)
        with observer.aside(is_message=True):
            show_warnings(compiled)
            ensure_allowed(program, chosen_shedding(self.config))
            partitions_of(program, self.config, self.folder)
            measured_columns(self, program)
            warn_of_unsampled(self.config, program)
        if self.relay is not None:
            from gscope.cli.config.relay_inputs import ensure_relayable

            ensure_relayable(program)
        run_dir.file.change(queries=tuple(query for query, _ in program.results))
        return program

    def _deliver(
        self,
        run_dir: RunDir,
        supervisor: Supervisor,
        program: Program,
        output: PagedOutput | None,
        view: LiveView | None,
        saved: SavedPackets | None = None,
        watch: Watch | None = None,
    ) -> Mapping[str, int]:
        """Capture, deliver the answers and return the number of rows by query."""
        supervisor.reached("queries compiled")
        from gscope.cli.config.capture_files import ensure_there
        from gscope.cli.session.table_files import ensure_tables

        ensure_there(self.interfaces)
        ensure_tables(program)
        alerts = None
        if self.config.alerts:
            from gscope.cli.session.sending import alerts_of

            alerts = alerts_of(self.config, program, supervisor.notify)
        self._start(run_dir, supervisor, program, saved)
        # Imported while the daemon starts, which takes as long.
        from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
        from gscope.cli.delivery.stream_reader import Passthrough
        from gscope.cli.session.row_metrics import delivery_of

        delivered = DeliveryCheckpoint(run_dir.path) if self.is_live else None
        if view is not None:
            watch = watch or view.raw_rows
        sink = self._sink(supervisor, program, delivered, output, view)
        outlets = None
        if self.config.destinations or self.config.row_commands:
            from gscope.cli.session.sending import outlet_sink

            sink = outlets = outlet_sink(
                self.config, sink, delivered, run_dir, supervisor.notify, alerts
            )
        answers = delivery_of(self, program, run_dir)(
            program,
            supervisor.outputs,
            sink,
            delivered,
            is_interleaved=self.is_interleaved and len(program.results) > 1,
            watch=watch,
            on_bound=None if alerts is None or outlets is None else outlets.advance,
        )
        known = delivered.position.streams if delivered is not None else {}
        is_complete = False
        try:
            supervisor.run(answers, Passthrough(program, run_dir.path, known))
            is_complete = True
        finally:
            supervisor.hide_progress()
            # Rows that are complete are delivered even if the run failed or was ended.
            with suppress(*() if is_complete else (GscopeError, OSError)):
                answers.finish(has_ended=is_complete)
            sink.close(is_complete=is_complete)
            if outlets is not None:
                supervisor.outcome.outlets = outlets.accounts()
            if output is not None:
                output.finish()
        return answers.rows

    def _start(
        self, run_dir: RunDir, supervisor: Supervisor, program: Program, saved: SavedPackets | None
    ) -> None:
        """Start the capture and, if the program needs it and it is not there yet, the job."""
        from gscope.cli.config.capture_settings import capture_settings, job_streams
        from gscope.cli.session.job_settings import job_settings, loads_early
        from gscope.cli.session.sampling import shedding_of_run
        from gscope.cli.session.table_files import closed_folders

        relay = self.relay
        if self.hosts is not None and relay is not None:
            relay = self.hosts.store(run_dir.path).requests(
                run_dir.path, relay, program, self.request, self.config
            )
        needs_job = bool(job_streams(program))
        closed = closed_folders(program, self.config.user) if needs_job else []
        if closed:
            supervisor.let_job_read(closed)
        has_job = loads_early(self)
        if has_job and not needs_job:
            supervisor.drop_job()
        elif has_job and closed:
            supervisor.restart_job()
        supervisor.start_capture(
            program,
            replace(
                capture_settings(program, self.interfaces, self.config, self.limits, relay),
                saved=saved,
                shedding=shedding_of_run(self.config, run_dir, program),
            ),
        )
        if needs_job and not has_job:
            from gscope.cli.config.cluster import job_secrets

            supervisor.start_job(job_settings(self), job_secrets(self.config))

    def _sink(
        self,
        supervisor: Supervisor,
        program: Program,
        delivered: DeliveryCheckpoint | None,
        output: PagedOutput | None,
        view: LiveView | None,
    ) -> Sink:
        """Return what takes the answers here: a view, a report, or rows on standard output."""
        from gscope.cli.session.reporting import is_reported, report_sink
        from gscope.cli.sinks.open_sink import sink_for

        if view is not None:
            return view.sink(program, self.config.time_style, supervisor.outcome)
        if is_reported(self):
            return report_sink(self, program, supervisor.outcome)
        return sink_for(program, self.config, self.folder, delivered, output)
