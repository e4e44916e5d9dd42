"""Settings of the HFTA job, which the supervisor leaves in the run's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.run_folder.layout import JOB_SETTINGS_FILE

if TYPE_CHECKING:
    from pathlib import Path


_MUCH_BYTES = 4 << 30
_LITTLE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings of the HFTA job.

    Attributes:
        cores: the number of threads that run Spark tasks; None for all cores of the machine.
        heap_bytes: the size of the heap of Spark's Java.
        consumer: the job's name towards the stream log.
        expected_bytes: the size of all captures together; None if it is unknown (a pipe, an
            interface).
        is_live: whether the input cannot be read again, so that a full log sheds batches.
        disk_bytes: the disk budget of undelivered answers and of carried rows.
        asks_for_heartbeats: whether operators that wait ask the capture daemon for heartbeats.
        latent_interfaces: the interfaces whose tuples need no order: a merge of these alone
            forwards rows as they arrive.
        sample_rate: share of groups or packets that the capture keeps, by which estimates are
            scaled.
    """

    cores: int | None = None
    heap_bytes: int = 2 << 30
    consumer: str = "hfta"
    expected_bytes: int | None = None
    asks_for_heartbeats: bool = False
    latent_interfaces: tuple[str, ...] = ()
    is_live: bool = False
    disk_bytes: int = 8 << 30
    sample_rate: float = 1.0

    @property
    def expects_much(self) -> bool:
        """Whether Java should use all its compilers: they pay in runs of many large steps."""
        return self.expected_bytes is not None and self.expected_bytes >= _MUCH_BYTES

    @property
    def expects_little(self) -> bool:
        """Whether Spark should interpret: compiling its plans would take longer than the work."""
        return self.expected_bytes is not None and self.expected_bytes < _LITTLE_BYTES

    def write(self, run_dir: Path) -> None:
        """Write the settings to ``run_dir``, where the job reads them."""
        (run_dir / JOB_SETTINGS_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, run_dir: Path) -> JobSettings:
        """Return the settings that ``write`` left in ``run_dir``.

        Raises:
            EngineError: the settings are missing, or this version does not understand them.
        """
        path = run_dir / JOB_SETTINGS_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            message = f"the settings {path} of the HFTA job are unusable: {error}"
            raise EngineError(message) from error
