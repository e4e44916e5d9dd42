"""What the HFTA job is told by whoever starts it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gscope.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS_FILE = "engine.json"
PROGRAM_FILE = "program.pickle"
SOCKET_FILE = "capture.sock"
LOG_FOLDER = "log"
JOB_FOLDER = "job"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the HFTA job.

    Attributes:
        cores: threads that run Spark tasks; None for all cores of the machine.
        heap_bytes: of Spark's Java.
        consumer: the job's name towards the stream log.
        expects_much: whether large steps are to be expected: Java then uses all its compilers, which
            costs a little at the start and pays from some 200,000 tuples a step on.
    """

    cores: int | None = None
    heap_bytes: int = 2 << 30
    consumer: str = "hfta"
    expects_much: bool = False

    def write(self, run_dir: Path) -> None:
        """Leave the settings in ``run_dir`` for the job."""
        (run_dir / SETTINGS_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, run_dir: Path) -> EngineSettings:
        """The settings left in ``run_dir``.

        Raises:
            EngineError: they are missing or not what this version understands.
        """
        path = run_dir / SETTINGS_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            message = f"the settings {path} of the HFTA job are unusable: {error}"
            raise EngineError(message) from error
