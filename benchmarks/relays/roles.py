"""The processes of a tree: four sensors, two relays and a run, each on a host of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.certificates import Certificate, make_certificate, token_file
from tests.support.gscope_command import command, descendants, is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.relays.hosts import Hosts

SENSORS = ("sensor1", "sensor2", "sensor3", "sensor4")
RELAYS = {"relay1": SENSORS[:2], "relay2": SENSORS[2:]}
ROOT = "root"
NAMES = (*SENSORS, *RELAYS, ROOT)
MODULES = {"daemon": "gscope.capture.daemon", "job": "gscope.engine.job", "java": "SparkSubmit"}
"""What the command line of a process contains, by its part; the supervisor is the command
itself."""

_PORT = 9470


class Role:
    """A command on a host, which is started again when its supervisor is killed."""

    def __init__(self, name: str, words: Sequence[str], errors: Path) -> None:
        self.name = name
        self._words = words
        self._errors = errors
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._errors.open("ab") as errors:
            return subprocess.Popen(self._words, stderr=errors, stdin=subprocess.DEVNULL)

    @property
    def reported(self) -> str:
        """What was written to standard error."""
        return self._errors.read_text(errors="replace")

    def find(self, part: str) -> int | None:
        """Return the number of the process that is ``part``, if it exists."""
        found = descendants(self.process.pid).items()
        return next((pid for pid, line in found if MODULES[part] in line), None)

    def kill(self, part: str) -> None:
        """Kill a part; resume the run if it was the supervisor, as a user would."""
        if part != "supervisor":
            os.kill(wait_for(lambda: self.find(part), f"{part} of {self.name}"), signal.SIGKILL)
            return
        children = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not any(map(is_alive, children)), f"the end of {self.name}")
        self.process = self._started()

    def ensure_alive(self) -> None:
        if self.process.poll() is not None:
            message = f"{self.name} ended with {self.process.returncode}: {self.reported}"
            raise AssertionError(message)

    def served(self) -> int:
        """Return the rows that the summary of a sensor or relay names."""
        found = re.search(r"([\d,]+) rows served", self.reported)
        return int(found[1].replace(",", "")) if found else 0


@dataclass(frozen=True, slots=True)
class Place:
    """What all commands of a tree share.

    Attributes:
        hosts: where they run.
        folder: for all files.
        options: for all commands, such as the queries.
    """

    hosts: Hosts
    folder: Path
    options: tuple[str, ...]

    def address(self, name: str) -> str:
        """Return where a host listens."""
        return f"{self.hosts.addresses[name]}:{_PORT}"


class Tree:
    """The started commands.

    Args:
        place: where.
        relays: each relay with its inputs; the run reads these, and what remains of the sensors.
        sensor: the words of a sensor's command, by its name.
    """

    def __init__(
        self,
        place: Place,
        relays: Mapping[str, tuple[str, ...]],
        sensor: Callable[[str], tuple[str, ...]],
    ) -> None:
        self.place = place
        self.out = place.folder / "out"
        token_file(place.folder)
        self._certificates = {
            name: make_certificate(place.folder, name, place.hosts.addresses[name])
            for name in (*SENSORS, *relays)
        }
        (place.folder / "ca.pem").write_bytes(
            b"".join(each.certificate.read_bytes() for each in self._certificates.values())
        )
        self.roles = {
            name: self._role(name, *sensor(name), "--no-job", *self._listening(name))
            for name in SENSORS
        }
        for name, inputs in relays.items():
            words = (*self._reading(inputs), *self._listening(name))
            self.roles[name] = self._role(name, "relay", *words)
        below = {each for inputs in relays.values() for each in inputs}
        tops = (*relays, *(name for name in SENSORS if name not in below))
        writing = ("-w", str(self.out), "-o", "csv", "--spark-memory", "1G")
        self.roles[ROOT] = self._role(ROOT, "run", *self._reading(tops), *writing)

    def wait(self, names: Sequence[str] = NAMES) -> None:
        """Wait until these have ended, and check how."""
        for role in [self.roles[name] for name in names if name in self.roles]:
            code = role.process.wait(600)
            if code not in (0, 128 + signal.SIGTERM):
                message = f"{role.name} ended with {code}: {role.reported}"
                raise AssertionError(message)

    def close(self) -> None:
        """End what is left."""
        for role in self.roles.values():
            role.process.kill()
            role.process.wait()

    def _role(self, name: str, *words: str) -> Role:
        shared = (*self.place.options, "--token-file", str(self.place.folder / "token"))
        own = ("--run", name) if words[0] != "replay" else ()
        work = ("--work-dir", str(self.place.folder / f"work-{name}"), "--no-progress")
        line = self.place.hosts.command(name, command(*words, *shared, *own, *work))
        return Role(name, line, self.place.folder / f"{name}.errors")

    def _listening(self, name: str) -> tuple[str, ...]:
        made: Certificate = self._certificates[name]
        tls = ("--tls-certificate", str(made.certificate), "--tls-key", str(made.key))
        return ("--listen", self.place.address(name), *tls)

    def _reading(self, inputs: Sequence[str]) -> tuple[str, ...]:
        named = (f"{name}={self.place.address(name)}" for name in inputs)
        words = (word for each in named for word in ("--from", each))
        return (*words, "--tls-ca", str(self.place.folder / "ca.pem"))


def report(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr, flush=True)
