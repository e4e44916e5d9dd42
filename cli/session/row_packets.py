"""The packets behind one row of a replay that has ended: its captures are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.saving import SaveRequest
from gscope.errors import GscopeError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.session.saving_run import Start
    from gscope.cli.session.session import Session
    from gscope.queries.plan.program import Program


class RowPackets:
    """Saves the packets of rows.

    Args:
        session: the replay.
        program: its queries.
        name: the name of its run.
        start: returns a supervisor for a pass over the captures.
    """

    def __init__(self, session: Session, program: Program, name: str, start: Start) -> None:
        self._session = session
        self._program = program
        self._name = name
        self._start = start

    def save(self, query: str, row: pa.Table, path: Path) -> str:
        """Save the packets of a row in a new file; return what became of it, as a sentence.

        Args:
            query: the answer that the row is of.
            row: the row as it is delivered, before it becomes readable.
            path: the file.
        """
        from gscope.cli.session.saving_run import SavingRun

        try:
            saving = SavingRun(self._session, SaveRequest(path, (query,)), self._program)
            saved = saving.save_rows(self._name, query, row, self._start)
        except GscopeError as error:
            return str(error)
        count = int(saved["packets"])
        packets = "1 packet" if count == 1 else f"{count:,} packets"
        return f"{packets} of the row saved in {saved['path']}"
