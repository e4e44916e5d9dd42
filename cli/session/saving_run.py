"""A run that saves packets: as they are selected, or in second passes once groups are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.session.group_rows import GroupRows
from gscope.cli.session.saved_packets import opened_packet_file, save_plan
from gscope.cli.session.second_pass import read_again
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from gscope.capture.settings import SavedPackets
    from gscope.cli.config.saving import SaveRequest
    from gscope.cli.delivery.delivery import Watch
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.cli.session.session import Session
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.queries.plan.program import Program

    Start = Callable[[RunFile, RunObserver | None], Supervisor]
    Deliver = Callable[[SavedPackets | None, Watch | None], Mapping[str, int]]


class SavingRun:
    """Answers queries and saves packets.

    Args:
        session: the run.
        request: the packets to save.
        program: the compiled queries.

    Raises:
        UsageError: packets of a query cannot be saved.
    """

    def __init__(self, session: Session, request: SaveRequest, program: Program) -> None:
        files = [file for interface in session.interfaces for file in interface.files]
        is_repeatable = bool(files) and all(Path(file).is_file() for file in files)
        self._session = session
        self._program = program
        self._plan = save_plan(
            program, request, is_repeatable=is_repeatable, is_live=session.is_live
        )

    def run(
        self,
        run_dir: RunDir,
        supervisor: Supervisor,
        deliver: Deliver,
        start: Start,
    ) -> Mapping[str, int]:
        """Deliver the answers and save the packets; return the number of rows by query.

        Args:
            run_dir: the folder of the run.
            supervisor: its supervisor.
            deliver: delivers the answers; saves packets meanwhile, and calls a function with rows.
            start: returns a supervisor for a second pass, with an observer or that of the run.
        """
        plan = self._plan
        with opened_packet_file(plan, run_dir.path, is_live=self._session.is_live) as descriptor:
            if plan.second is None:
                return deliver(plan.saved(descriptor, plan.queries), None)
            if plan.ring_bytes is not None:
                return self._search_ring(run_dir.path, descriptor, supervisor, deliver, start)
            groups = GroupRows(plan)
            rows = deliver(None, groups)
            supervisor.outcome.note_saved(
                {"interrupted": str(plan.path)}
                if supervisor.outcome.signal
                else self._second_pass(plan.second, run_dir.name, descriptor, groups, start)
            )
            return rows

    def save_rows(
        self, name: str, query: str, rows: pa.Table, start: Start
    ) -> dict[str, int | str]:
        """Read captures whose answers are known again, and save the packets of some rows.

        Args:
            name: the name of the run.
            query: the answer that the rows are of.
            rows: the rows as they are delivered, before they become readable.
            start: see ``run``.

        Raises:
            UsageError: the rows are not those of groups, or the file cannot be created.
        """
        plan = self._plan
        if plan.second is None:
            message = f"the rows of {query} are packets, and not groups of them; see --save-packets"
            raise UsageError(message)
        with opened_packet_file(plan, plan.path, is_live=False) as descriptor:
            groups = GroupRows(plan)
            groups.take(query, rows)
            return self._second_pass(plan.second, name, descriptor, groups, start)

    def _search_ring(
        self,
        run_dir: Path,
        descriptor: int,
        supervisor: Supervisor,
        deliver: Deliver,
        start: Start,
    ) -> Mapping[str, int]:
        """Deliver the answers of a live run and save packets meanwhile."""
        from gscope.cli.session.ring_search import RingSearch

        plan = self._plan
        assert plan.second is not None
        programs = self._program, plan.second
        search = RingSearch(self._session, plan, run_dir, descriptor, programs, start)
        try:
            rows = deliver(plan.ring, search)
            account = supervisor.outcome.finished_capture.saved
            supervisor.outcome.note_saved(search.finish(account))
            return rows
        finally:
            search.close()

    def _second_pass(
        self,
        program: Program,
        name: str,
        descriptor: int,
        groups: GroupRows,
        start: Start,
    ) -> dict[str, int | str]:
        """Read the captures again and save packets; return what became of them."""
        from gscope.cli.rundir.run_dir import RunDir
        from gscope.cli.session.signals import signal_handlers

        session = self._session
        with RunDir(session.config.work_dir, f"{name}-packets") as run_dir:
            session.prepared(run_dir.path)
            supervisor = start(run_dir.file, None)
            # As in the first pass, also the skew: the same packets are late.
            settings = capture_settings(
                self._program, session.interfaces, session.config, session.limits
            )
            saved = self._plan.saved(descriptor, groups.write(run_dir.path))
            settings = replace(settings, consumers=(), speed=None, saved=saved)
            with signal_handlers(supervisor):
                try:
                    read_again(supervisor, program, settings, run_dir.path)
                finally:
                    supervisor.stop()
            return supervisor.outcome.finished_capture.saved
