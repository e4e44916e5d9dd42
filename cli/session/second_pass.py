"""A process that reads packets again, of captures or of the ring, and saves those of groups."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.supervision.supervisor import Supervisor
    from gscope.queries.plan.program import Program


def read_again(
    supervisor: Supervisor, program: Program, settings: CaptureSettings, folder: Path
) -> None:
    """Run a capture daemon to its end, and discard the rows; its account is in the outcome.

    Args:
        supervisor: of this pass alone; the caller stops it.
        program: the LFTAs that select the packets.
        settings: the input, and what is saved of it.
        folder: the folder of this pass.
    """
    from gscope.cli.delivery.delivery import Delivery
    from gscope.cli.delivery.stream_reader import Passthrough
    from gscope.cli.sinks.replay_files import StreamSink

    supervisor.start_capture(program, settings)
    nowhere = StreamSink(io.BytesIO(), "ndjson", ())
    answers = Delivery(program, supervisor.outputs, nowhere)
    supervisor.run(answers, Passthrough(program, folder))
