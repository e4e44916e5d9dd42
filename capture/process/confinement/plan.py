"""How the processes of a run are confined, recorded by the supervisor in the run's folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.identity import Identity
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import CONFINEMENT_FILE
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Confinement:
    """How the processes of a run are confined.

    Attributes:
        identity: the user to change to; None to keep the user who started the run.
        is_sandboxed: whether to use Landlock and seccomp if the kernel supports them.
        cache: the folder for compiled kernels, in place of $XDG_CACHE_HOME; None for the usual one.
        needed: further files and folders that the user must be able to reach.
    """

    identity: Identity | None = None
    is_sandboxed: bool = True
    cache: str | None = None
    needed: tuple[str, ...] = ()

    def write(self, run_dir: Path) -> None:
        """Write the record to the folder of the run."""
        (run_dir / CONFINEMENT_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, run_dir: Path) -> Confinement:
        """Return the record in the folder of a run; the defaults if there is none.

        Raises:
            UsageError: the record is damaged or cannot be read.
        """
        path = run_dir / CONFINEMENT_FILE
        try:
            value = json.loads(path.read_bytes())
            identity = value.pop("identity")
            value["needed"] = tuple(value["needed"])
            return cls(None if identity is None else Identity(**identity), **value)
        except FileNotFoundError:
            return cls()
        except OSError as error:
            message = f"cannot read {path}: {os_reason(error)}"
            raise UsageError(message) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{path} is damaged: {error}"
            raise UsageError(message) from error
