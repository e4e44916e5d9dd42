"""Runs a module with few rights: ``python -m …unprivileged MODULE RUN_DIR ARGUMENT…``.

The HFTA job is started in this way. Whatever the supervisor may do, the job, its Java and its
Python workers run as the run's unprivileged user, hold no capability, neither root's nor those that
a service manager passes on (systemd's AmbientCapabilities), and write only where they have to.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from gscope.capture.process.confinement.confine import confine
from gscope.capture.process.confinement.plan import Confinement
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import CAPTURE_FOLDER, JOB_FOLDER
from gscope.queries.streams.event_codec import EventWriter
from gscope.queries.streams.process_events import ProcessError


def main() -> None:
    """Drop the rights that the job does not need, and run the module named by the arguments."""
    del sys.argv[0]
    run_dir = Path(sys.argv[1])
    try:
        confine(
            Confinement.read(run_dir),
            run_dir,
            (JOB_FOLDER, CAPTURE_FOLDER),
            # User code may read any file, and Java loads files from wherever it is installed.
            read=None,
            may_execute=True,
            has_internet=True,
        )
    except GscopeError as error:
        EventWriter(sys.stdout).send(ProcessError(str(error), is_final=True))
        raise SystemExit(error.exit_code) from error
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
