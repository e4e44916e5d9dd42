"""Hosts that do the work of a curve, one after the other, and what it costs the first of them.

Each host is a network namespace with a link to a bridge. The first one aggregates: it also captures
its share. Its processes are in a control group, which counts their CPU time.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from tests.support.certificates import make_certificate, token_file
from tests.support.gscope_command import command, wait_for

from benchmarks.partitioning.plans import ANSWERS, MERGED
from benchmarks.partitioning.traffic import GSQL
from benchmarks.relays.hosts import Hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.partitioning.plans import Work

_AGENT, _SENSOR, _RELAY = 9480, 9470, 9471
_TUPLES = re.compile(r"([\d,]+) partial tuples? from")
_PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work cost the aggregating host.

    Attributes:
        cpu_s: CPU time of its processes, seconds.
        received_bytes: bytes of frames that its link received.
        tuples: rows of LFTAs that it read, its own included; 0 for answers.
        rows: the number of rows of each result.
        digests: a digest of the rows of each result, whatever their order.
    """

    cpu_s: float
    received_bytes: int
    tuples: int
    rows: dict[str, int]
    digests: dict[str, str]


class ControlGroup:
    """A control group that counts CPU time, of either version; removed at the end."""

    def __init__(self, name: str) -> None:
        root = Path("/sys/fs/cgroup")
        self._is_first = (root / "cpuacct").is_dir()
        self._path = (root / "cpuacct" if self._is_first else root) / name

    def __enter__(self) -> Self:
        self._path.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        wait_for(lambda: not self._members(), "the end of all processes of a host")
        self._path.rmdir()

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the words that run a command in the group."""
        script = f'echo $$ > {self._path}/cgroup.procs && exec "$@"'
        return ["sh", "-c", script, "sh", *words]

    def cpu_s(self) -> float:
        """Return the CPU time of all processes that were ever in the group."""
        if self._is_first:
            return int((self._path / "cpuacct.usage").read_text()) / 1e9
        used = (self._path / "cpu.stat").read_text().split()
        return int(used[used.index("usage_usec") + 1]) / 1e6

    def _members(self) -> str:
        return (self._path / "cgroup.procs").read_text()


class Stations:
    """Hosts with captures, for one piece of work.

    Args:
        folder: for all files, empty.
        shares: the captures of each host; the first host aggregates.
        slots: of the group table of each LFTA.
    """

    def __init__(self, folder: Path, shares: Sequence[Sequence[Path]], slots: int) -> None:
        self._folder = folder
        self._shares = shares
        self._slots = slots
        self._names = [f"h{number}" for number in range(1, len(shares) + 1)]
        self._hosts = Hosts(self._names)
        self._group = ControlGroup(f"gscope-bench-{os.getpid()}")
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def cost(self, work: Work, *, at_once: bool = False) -> Cost:
        """Do the work, and return what it cost.

        Args:
            work: what to do.
            at_once: whether agents capture while the run reads them, instead of recording before.
        """
        with self._group, self._hosts:
            self._prepare()
            try:
                before = self._hosts.traffic("h1").received
                if len(self._names) == 1:
                    self._replay(work)
                elif work.sends == MERGED:
                    self._merge(work)
                else:
                    divided = ", ".join(GSQL[work.by]) if work.sends == ANSWERS else ""
                    self._ask_agents(work, divided, at_once=at_once)
                received = self._hosts.traffic("h1").received - before
                used_s = self._group.cpu_s()
            finally:
                for each in self._running.values():
                    each.kill()
                    each.wait()
        found = _TUPLES.search(self._said("run")) if work.sends != ANSWERS else None
        tuples = int(found[1].replace(",", "")) if found is not None else 0
        answers = {name: read_answers(self._folder / "out-h1", name) for name in work.results}
        rows = {name: table.num_rows for name, table in answers.items()}
        return Cost(used_s, received, tuples, rows, {n: _digest(t) for n, t in answers.items()})

    def _prepare(self) -> None:
        token_file(self._folder)
        made = [
            make_certificate(self._folder, name, self._hosts.addresses[name])
            for name in self._names
        ]
        (self._folder / "ca.pem").write_bytes(b"".join(e.certificate.read_bytes() for e in made))

    def _ask_agents(self, work: Work, divided: str, *, at_once: bool) -> None:
        for name in self._names:
            words = ("capture", "--listen", self._place(name, _AGENT), *self._tls(name))
            allowed = (word for each in self._captures(name) for word in ("--allow-capture", each))
            self._start(name, f"agent-{name}", *words, *allowed, *self._limits())
        for name in self._names:
            self._await(f"agent-{name}", "listening at")
        hosts = (w for n in self._names for w in ("--host", f"{n}={self._place(n, _AGENT)}"))
        words = ("run", "-e", work.text, *hosts, *self._trust(), "--run", "bench")
        if divided:
            words = (*words, "--partition-set", divided)
        if not at_once:
            self._finish("h1", "record", *words, "--record")
        self._finish("h1", "run", *words, *self._writing("h1"))

    def _merge(self, work: Work) -> None:
        for name in self._names[1:]:
            self._sensor(name, work)
            sensor = ("--from", self._place(name, _SENSOR), *self._trust())
            listen = ("--listen", self._place(name, _RELAY), *self._tls(name))
            self._start(name, f"relay-{name}", "relay", "-e", work.text, *sensor, *listen)
            # It ends when the relay has all of its rows.
            self._wait(f"sensor-{name}")
        self._sensor("h1", work)
        inputs = [("--from", self._place("h1", _SENSOR))]
        inputs += [("--from", self._place(name, _RELAY)) for name in self._names[1:]]
        words = (word for each in inputs for word in each)
        self._finish(
            "h1", "run", "run", "-e", work.text, *words, *self._trust(), *self._writing("h1")
        )

    def _sensor(self, name: str, work: Work) -> None:
        words = ("replay", *self._captures(name), "-e", work.text, *self._limits())
        listen = ("--no-job", "--listen", self._place(name, _SENSOR), *self._tls(name))
        self._start(name, f"sensor-{name}", *words, *listen)

    def _replay(self, work: Work) -> None:
        words = ("replay", *self._captures("h1"), "-e", work.text, *self._limits())
        self._finish("h1", "run", *words, *self._writing("h1"))

    def _place(self, name: str, port: int) -> str:
        return f"{self._hosts.addresses[name]}:{port}"

    def _captures(self, name: str) -> list[str]:
        return [f"p{n}={path}" for n, path in enumerate(self._shares[self._names.index(name)])]

    def _limits(self) -> tuple[str, ...]:
        return ("--table-slots", str(self._slots), "--log", "4G")

    def _token(self) -> tuple[str, ...]:
        return ("--token-file", str(self._folder / "token"))

    def _tls(self, name: str) -> tuple[str, ...]:
        files = (self._folder / f"{name}.crt", self._folder / f"{name}.key")
        return ("--tls-certificate", str(files[0]), "--tls-key", str(files[1]), *self._token())

    def _trust(self) -> tuple[str, ...]:
        return ("--tls-ca", str(self._folder / "ca.pem"), *self._token())

    def _writing(self, name: str) -> tuple[str, ...]:
        return ("-o", "arrow", "-w", str(self._folder / f"out-{name}"), "--no-progress")

    def _start(self, host: str, name: str, *words: str) -> None:
        # The run that records is the one that answers.
        work = self._folder / ("work" if name in ("record", "run") else f"work-{name}")
        self._popen(host, name, command(*words, "--work-dir", str(work)))

    def _popen(self, host: str, name: str, words: Sequence[str]) -> None:
        line = self._hosts.command(host, words)
        if host == "h1":
            line = self._group.command(line)
        with (
            (self._folder / f"{name}.err").open("wb") as errors,
            (self._folder / f"{name}.txt").open("wb") as output,
        ):
            self._running[name] = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
            )

    def _finish(self, host: str, name: str, *words: str) -> None:
        self._start(host, name, *words)
        self._wait(name)

    def _wait(self, name: str) -> None:
        code = self._running[name].wait(_PATIENCE_S)
        if code not in (0, 128 + signal.SIGTERM):
            message = f"{name} ended with {code}: {self._said(name)}"
            raise AssertionError(message)

    def _await(self, name: str, words: str) -> None:
        def has_said() -> bool:
            assert self._running[name].poll() is None, self._said(name)
            return words in self._said(name)

        wait_for(has_said, f"{name}: {words}")

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.err").read_text(errors="replace")

    def _output(self, name: str) -> str:
        assert self._running[name].poll() is None, self._said(name)
        return (self._folder / f"{name}.txt").read_text()


def read_answers(folder: Path, result: str) -> pa.Table:
    """Return the rows of a result in all files below ``folder``, sorted by all columns."""
    tables = list(_tables(folder, result))
    if not tables:
        # A live run makes no file of a result without rows.
        return pa.table({})
    table = pa.concat_tables(tables)
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def _digest(table: pa.Table) -> str:
    found = hashlib.sha256()
    for column in table.columns:
        found.update(repr(column.to_pylist()).encode())
    return found.hexdigest()


def _tables(folder: Path, result: str) -> Iterator[pa.Table]:
    for path in sorted(folder.rglob("*.arrow")):
        if path.name.startswith(result) or path.parent.name.startswith(result):
            with pa.memory_map(str(path)) as file, _reader(file) as reader:
                yield reader.read_all()


@contextmanager
def _reader(file: pa.NativeFile) -> Iterator[pa.RecordBatchFileReader]:
    try:
        made = pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        made = pa.ipc.open_stream(file)
    with made:
        yield made
