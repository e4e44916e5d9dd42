"""As root with the default configuration, no process that sees packets is root.

None has a capability, or may do much.
"""

from __future__ import annotations

import io
import json
import os
import pwd
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.capture.sources.af_packet.network import DEVICE, own_network, run_ip, send
from tests.live.test_run import udp
from tests.support.gscope_command import command, descendants, is_alive, run, status, wait_for
from tests.support.requirements import needs_landlock, needs_root

from gscope.capture.process.confinement.landlock import landlock_version

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, needs_root]

PATIENCE_S = 180.0
FLOWS = "SELECT tb, srcPort, count(*) AS n FROM UDP GROUP BY time/60 AS tb, srcPort"
DECODED = (
    "SELECT tb, dns_qname(UDP_data) AS q, count(*) FROM UDP"
    " GROUP BY time/60 AS tb, dns_qname(UDP_data)"
)
USER = next(
    entry for name in ("gscope", "nobody") for entry in pwd.getpwall() if entry.pw_name == name
)


def fields_of(pid: int) -> list[dict[str, str]]:
    """What /proc says of each thread of a process; some may end meanwhile."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = (task / "status").read_text().splitlines()
            found.append(dict(line.split(":\t", 1) for line in lines if ":\t" in line))
    assert found
    return found


def ensure_unprivileged(pid: int) -> None:
    """No thread has a uid or gid of root's, another group, a capability, or a way to get one."""
    for fields in fields_of(pid):
        assert set(fields["Uid"].split()) == {str(USER.pw_uid)}, fields
        assert set(fields["Gid"].split()) == {str(USER.pw_gid)}, fields
        assert fields["Groups"].split() == []
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(fields[name], 16) == 0, (name, fields)
        assert fields["NoNewPrivs"] == "1"
        assert fields["Seccomp"] == "2"


class Running:
    """A command that is under way, its rows going to a file."""

    def __init__(self, folder: Path, *arguments: str | Path, **options: Any) -> None:
        self.work_dir = folder / "wd"
        self.rows = (folder / "rows").open("wb")
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command(*arguments, "--work-dir", self.work_dir, "-o", "csv"),
                stdout=self.rows,
                stderr=errors,
                **options,
            )

    def status(self) -> dict[str, Any]:
        return status(self.work_dir)

    def wait_for_status(self, name: str) -> dict[str, Any]:
        """Wait until the process ``capture`` or ``job`` has reported."""
        return dict(wait_for(lambda: self.is_ended() or self.status().get(name), f"{name} reports"))

    def rows_total(self) -> int:
        """Return how many rows of the first query the job reports."""
        job = self.status().get("job")
        return int(job["queries"][0]["rows_total"]) if job else 0

    def is_ended(self) -> bool:
        assert self.process.poll() is None, self.errors.read_text()
        return False

    def workers(self) -> dict[int, str]:
        """The processes of the run by number; the supervisor is not among them."""
        return descendants(self.process.pid)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.rows.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    started: list[Running] = []

    def begin(*arguments: str | Path, **options: Any) -> Running:
        started.append(Running(tmp_path, *arguments, **options))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture that only root can read, in folders that only root can enter."""
    path = tmp_path / "closed" / "main.pcap"
    path.parent.mkdir(mode=0o700)
    write_pcap(path, [(10**9 * n, udp(n)) for n in range(100)])
    path.chmod(0o600)
    return path


def opened(pipe: Path) -> io.FileIO:
    """A named pipe for writing, also before there is a reader."""
    return io.FileIO(os.open(pipe, os.O_RDWR), "wb")


def ensure_all_unprivileged(running: Running, *expected: str) -> None:
    found = running.workers()
    for part in expected:
        assert any(part in line for line in found.values()), (part, found)
    for pid in found:
        ensure_unprivileged(pid)


def test_a_replay(start: Any, capture: Path) -> None:
    """With Java and Python workers, who read payloads; at a speed at which it lasts for minutes."""
    write_pcap(capture, [(10**9 * n, udp(n)) for n in range(0, 36_000, 20)])
    running = start("replay", capture, "-e", DECODED, "--speed", "60", "--master", "local[1]")
    running.wait_for_status("capture")
    running.wait_for_status("job")
    wait_for(lambda: running.rows_total() or running.is_ended(), "a row")
    ensure_all_unprivileged(running, "capture.daemon", "engine.job", "java", "worker_daemon")
    reported = running.status()["capture"]["privileges"]
    assert (reported["uid"], reported["capabilities"], reported["no_new_privs"]) == (
        USER.pw_uid,
        0,
        True,
    )
    if landlock_version() >= 2:
        assert reported["unconfined"] == []
    assert running.end() == 128 + signal.SIGTERM
    assert len(Path(running.rows.name).read_text().splitlines()) > 1


@pytest.mark.live
def test_a_live_run_also_after_its_daemon_is_started_again(start: Any) -> None:
    with own_network():
        run_ip("link", "set", "lo", "up")
        running = start("run", "-i", DEVICE, "-e", FLOWS, "--run", "flows")
        first = running.wait_for_status("capture")["pid"]
        running.wait_for_status("job")
        ensure_all_unprivileged(running, "capture.daemon", "engine.job", "java")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: running.status()["capture"]["pid"] != first, "another daemon")
        send([udp(n) for n in range(10)])
        second = wait_for(
            lambda: (c := running.status()["capture"])["interfaces"][0]["received_packets"] and c,
            "packets",
        )
        ensure_unprivileged(second["pid"])
        workers = running.workers()
        assert running.end() == 128 + signal.SIGTERM, running.errors.read_text()
        assert not any(is_alive(pid) for pid in workers)
    assert list(running.work_dir.iterdir()) == []


def test_the_supervisor_keeps_only_what_it_needs(start: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    running = start("replay", tmp_path / "pipe", "-e", FLOWS)
    with opened(tmp_path / "pipe"):
        wait_for(lambda: running.is_ended() or running.workers(), "processes")
        sys_module, sys_ptrace, sys_boot, sys_rawio = 16, 19, 22, 17
        for fields in fields_of(running.process.pid):
            for number in (sys_module, sys_ptrace, sys_boot, sys_rawio):
                assert not int(fields["CapEff"], 16) & 1 << number
                assert not int(fields["CapBnd"], 16) & 1 << number


def test_captures_that_only_root_can_read_are_read(capture: Path, tmp_path: Path) -> None:
    packed = capture.with_suffix(".pcap.gz")
    subprocess.run(["gzip", "-k", capture], check=True)
    packed.chmod(0o600)
    done = run(
        *("replay", f"a={capture}", f"a={packed}", f"b={capture}", "-o", "csv"),
        *("-e", "SELECT time, srcPort FROM UDP", "--skew", "24h", "-w", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    written = tmp_path / "out" / "query.csv"
    assert len(written.read_text().splitlines()) == 301
    assert written.stat().st_uid == 0


def test_root_can_stay_root(capture: Path) -> None:
    done = run("replay", capture, "--user", "root", "-o", "csv", "-e", "SELECT time FROM UDP")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 101


def test_a_user_that_is_not_there_is_one_sentence(capture: Path) -> None:
    done = run("replay", capture, "--user", "nemo", "-e", "SELECT time FROM UDP")
    assert done.returncode == 2
    assert "--user nemo: unknown user" in done.stderr


INSIDE = """
import json, os, socket, subprocess, sys
from pathlib import Path
from gscope.capture.process.confinement.confine import confine
from gscope.capture.process.confinement.prepare import prepare
run_dir, secret, outside = map(Path, sys.argv[1:4])
confinement = prepare(run_dir, ("log",), None, is_sandboxed=True)
missing = confine(
    confinement, run_dir, ("log",), read=(), may_execute=False, has_internet=False
)
def tried(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"
def connect():
    with socket.socket() as s:
        s.connect(("127.0.0.1", 9))
def send_udp():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", 9))
import numpy, lz4.frame  # libraries load all the same
print(json.dumps({
    "missing": missing,
    "write in the run": tried(lambda: (run_dir / "log" / "x").write_text("x")),
    "rename in the run": tried(lambda: (run_dir / "log" / "x").rename(run_dir / "tmp" / "y")),
    "write outside": tried(lambda: (outside / "x").write_text("x")),
    "write to the run's own files": tried(lambda: (run_dir / "run.json").write_text("x")),
    "read a secret": tried(lambda: secret.read_text()),
    "read the system": tried(lambda: Path("/etc/passwd").read_text()),
    "execute": tried(lambda: subprocess.run(["/bin/true"], check=True)),
    "connect": tried(connect),
    "datagram": tried(send_udp),
    "packet socket": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
    "unix socket": tried(lambda: socket.socket(socket.AF_UNIX).close()),
    "become root": tried(lambda: os.setuid(0)),
}))
"""


def inside(folder: Path, patch: str = "") -> dict[str, Any]:
    """What a confined process can do."""
    run_dir, outside = folder / "run-x", folder / "outside"
    run_dir.mkdir(mode=0o700)
    outside.mkdir()
    outside.chmod(0o777)
    secret = folder / "secret"
    secret.write_text("for all, but not for decoders")
    secret.chmod(0o644)
    done = subprocess.run(
        [sys.executable, "-c", patch + INSIDE, run_dir, secret, outside],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@needs_landlock(2)
def test_what_a_confined_process_can_do(open_folder: Path) -> None:
    found = inside(open_folder)
    assert found == {
        "missing": [],
        "write in the run": "done",
        "rename in the run": "done",
        "write outside": "PermissionError",
        "write to the run's own files": "PermissionError",
        "read a secret": "PermissionError",
        "read the system": "done",
        "execute": "PermissionError",
        "connect": "PermissionError",
        "datagram": "PermissionError",
        "packet socket": "PermissionError",
        "unix socket": "done",
        "become root": "PermissionError",
    }


ABSENT = """
import errno, os
from gscope.capture.process.confinement import confine as module, landlock, seccomp
def refused(*_, **__):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
landlock.system_call = refused
seccomp.process_control = refused
"""


def test_a_kernel_without_landlock_and_seccomp_is_reported_and_the_rest_holds(
    open_folder: Path,
) -> None:
    found = inside(open_folder, ABSENT)
    assert found["missing"] == [
        "files are not restricted: no Landlock in this kernel",
        "system calls are not restricted: seccomp: function not implemented",
    ]
    assert (found["read a secret"], found["execute"]) == ("done", "done")
    assert found["connect"] == "ConnectionRefusedError"
    assert found["write to the run's own files"] == "PermissionError"
    assert found["packet socket"] == "PermissionError"
    assert found["become root"] == "PermissionError"
