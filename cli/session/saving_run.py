"""A run that saves packets: as they are selected, or in a second pass once all groups are known."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.session.saved_packets import opened_packet_file, save_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.capture.settings import SavedPackets, SavedQuery
    from gscope.cli.config.saving import SaveRequest
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.cli.session.saved_packets import SavePlan
    from gscope.cli.session.session import Session
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.queries.plan.program import Program

    Watch = Callable[[str, pa.Table], object]
    Deliver = Callable[[SavedPackets | None, Watch | None], Mapping[str, int]]


class GroupRows:
    """The keys of the groups in answers, collected while these are delivered."""

    def __init__(self, plan: SavePlan) -> None:
        self._plan = plan
        self._tables: dict[str, list[pa.Table]] = {each.query: [] for each in plan.queries}

    def take(self, query: str, table: pa.Table) -> None:
        """Note the keys of the rows of an answer."""
        for saved in self._plan.queries:
            if saved.query == query and saved.lfta in self._plan.groups:
                keys = self._plan.groups[saved.lfta].keys
                columns = [table[shown] for _, shown in keys] or [pa.nulls(table.num_rows)]
                names = [column for column, _ in keys] or [""]
                self._tables[query].append(pa.table(columns, names))

    def write(self, folder: Path) -> tuple[SavedQuery, ...]:
        """Write the keys to files in ``folder``; return the queries with the names of the files."""
        queries = []
        for saved in self._plan.queries:
            if saved.lfta not in self._plan.groups:
                queries.append(saved)
                continue
            tables = self._tables[saved.query]
            table = pa.concat_tables(tables) if tables else pa.table({})
            if not self._plan.groups[saved.lfta].keys:
                # All packets are of one group, which is in the answer or is not.
                table = table.slice(0, 1)
            path = folder / f"{saved.lfta}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            path.chmod(0o644)
            queries.append(replace(saved, keys=str(path)))
        return tuple(queries)


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
        self._plan = save_plan(program, request, is_repeatable=is_repeatable)

    def run(
        self,
        run_dir: RunDir,
        supervisor: Supervisor,
        deliver: Deliver,
        start: Callable[[RunFile], Supervisor],
    ) -> Mapping[str, int]:
        """Deliver the answers and save the packets; return the number of rows by query.

        Args:
            run_dir: the folder of the run.
            supervisor: its supervisor.
            deliver: delivers the answers; saves packets meanwhile, and calls a function with rows.
            start: returns a supervisor for a second pass.
        """
        plan = self._plan
        with opened_packet_file(plan, run_dir.path, is_live=self._session.is_live) as descriptor:
            if plan.second is None:
                return deliver(plan.saved(descriptor, plan.queries), None)
            groups = GroupRows(plan)
            rows = deliver(None, groups.take)
            supervisor.outcome.capture["saved"] = (
                {"interrupted": str(plan.path)}
                if supervisor.outcome.signal
                else self._second_pass(plan.second, run_dir.name, descriptor, groups, start)
            )
            return rows

    def _second_pass(
        self,
        program: Program,
        name: str,
        descriptor: int,
        groups: GroupRows,
        start: Callable[[RunFile], Supervisor],
    ) -> dict[str, int | str]:
        """Read the captures again and save packets; return what became of them."""
        from gscope.cli.delivery.delivery import Delivery
        from gscope.cli.delivery.stream_reader import Passthrough
        from gscope.cli.rundir.run_dir import RunDir
        from gscope.cli.session.signals import signal_handlers
        from gscope.cli.sinks.replay_files import StreamSink

        session = self._session
        with RunDir(session.config.work_dir, f"{name}-packets") as run_dir:
            session.prepared(run_dir)
            supervisor = start(run_dir.file)
            # As in the first pass, also the skew: the same packets are late.
            settings = capture_settings(
                self._program, session.interfaces, session.config, session.limits
            )
            saved = self._plan.saved(descriptor, groups.write(run_dir.path))
            settings = replace(settings, consumers=(), speed=None, saved=saved)
            with signal_handlers(supervisor):
                try:
                    supervisor.start_capture(program, settings)
                    nowhere = StreamSink(io.BytesIO(), "ndjson", ())
                    answers = Delivery(program, supervisor.outputs, nowhere)
                    supervisor.run(answers, Passthrough(program, run_dir.path))
                finally:
                    supervisor.stop()
            return dict(supervisor.outcome.capture["saved"])
