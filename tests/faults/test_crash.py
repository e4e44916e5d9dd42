"""Kills, full disks and wrong input: a whole answer, or none and a sentence."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.golden.cases import Case, all_cases
from tests.reference.queries import COUNT, get, ip
from tests.reference.reference import group, read_packets, shown
from tests.support.gscope_command import PATIENCE_S, command, descendants, is_alive, run, wait_for
from tests.support.long_form import cases
from tests.support.requirements import CAPTURES

CASES = {case.name: case for case in all_cases()}
CAPTURE = CAPTURES / "ndpi-netflix.pcap"
PER_SECOND = "SELECT tb, srcIP, destIP, count(*) as cnt FROM IP GROUP BY time as tb, srcIP, destIP"
PACED = ("--speed", "9", "--heartbeat-interval", "500ms")
"""Ninety seconds of trace in ten, with a step every now and then: Spark is ready long before the
end."""

spark = pytest.mark.spark


def inputs(case: Case) -> list[str]:
    return [f"{name}={path}" for name, paths in case.files.items() for path in paths]


def read(path: Path) -> list[tuple[str, ...]]:
    """The rows of a CSV file, sorted; as they stand there, their first column never falls."""
    with path.open(newline="") as file:
        rows = [tuple(row) for row in list(csv.reader(file))[1:]]
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    return sorted(rows)


def answers(folder: Path) -> list[str]:
    """What looks like an answer there; names with a point in front do not."""
    return sorted(path.name for path in folder.glob("[!.]*"))


def is_a_sentence(text: str) -> bool:
    return "Traceback" not in text and len(text.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def whole() -> list[tuple[str, ...]]:
    """The answer, by a loop over the packets of the capture."""
    keys = {name: get(name) for name in ("time", "srcIP", "destIP")}
    rows = group(ip(read_packets(CAPTURE, "netflix")), keys, {"cnt": COUNT})
    assert sum(row["cnt"] for row in rows) == 1793
    return sorted(shown(rows, (*keys, "cnt")))


@spark
@pytest.mark.parametrize("name", cases(["merge", "selection"], long=["tunnels", "hostnames"]))
def test_a_golden_case_as_a_command(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    query = tmp_path / f"{name}.gsql"
    (text,) = case.texts
    query.write_text(text.text)
    done = run("replay", *inputs(case), "-q", query, "-w", tmp_path / "answers")
    assert done.returncode == 0, done.stderr
    expected = case.expected()
    assert answers(tmp_path / "answers") == sorted(f"{result}.csv" for result in expected)
    for result, rows in expected.items():
        found = read(tmp_path / "answers" / f"{result}.csv")
        assert found == rows


@spark
def test_a_killed_hfta_job_is_started_again_and_the_answer_is_whole(
    tmp_path: Path, whole: list[tuple[str, ...]]
) -> None:
    work = tmp_path / "work"
    arguments = ("replay", CAPTURE, "-e", PER_SECOND, "-w", tmp_path / "out", "--work-dir", work)
    process = subprocess.Popen(
        command(*arguments, *PACED), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: list(work.glob("run-*/job/commits/*.json")), "the first commit")
    (job,) = [pid for pid, line in descendants(process.pid).items() if "gscope.engine.job" in line]
    os.kill(job, signal.SIGKILL)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    (name,) = answers(tmp_path / "out")
    assert read(tmp_path / "out" / name) == whole
    assert list(work.glob("run-*")) == []


@spark
def test_a_killed_capture_daemon_ends_the_replay_with_a_sentence(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    arguments = ("replay", CAPTURE, "-e", PER_SECOND, "-w", out, "--work-dir", work)
    process = subprocess.Popen(command(*arguments, *PACED), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(work.glob("run-*/job/commits/*.json")), "the first commit")
    (daemon,) = [p for p, line in descendants(process.pid).items() if "capture.daemon" in line]
    os.kill(daemon, signal.SIGKILL)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert is_a_sentence(errors), errors
    assert list(out.iterdir()) == []
    assert list(work.glob("run-*")) == []


IN_SPARK = ("--master", "local[1]")


@spark
@pytest.mark.parametrize(
    ("where", "processes"),
    [((), {"job", "daemon"}), (IN_SPARK, {"job", "daemon", "SparkSubmit"})],
    ids=["here", "spark"],
)
def test_a_killed_replay_leaves_no_answer_and_a_second_one_is_whole(
    tmp_path: Path,
    whole: list[tuple[str, ...]],
    where: tuple[str, ...],
    processes: set[str],
) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    arguments: tuple[str | Path, ...] = (
        "replay",
        *where,
        CAPTURE,
        "-e",
        PER_SECOND,
        "-w",
        out,
        "--work-dir",
        work,
    )
    process = subprocess.Popen(command(*arguments, *PACED), stderr=subprocess.DEVNULL)
    wait_for(lambda: [p for p in out.glob(".*") if p.stat().st_size > 100], "a first row")
    children = descendants(process.pid)
    process.kill()
    process.wait()
    assert {name for name in processes if name in " ".join(children.values())} == processes
    assert answers(out) == []
    wait_for(lambda: not any(map(is_alive, children)), "the end of all children")
    assert len(list(work.glob("run-*"))) == 1

    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    (name,) = answers(out)
    assert read(out / name) == whole
    assert [path.name for path in out.glob(".*")] == []
    assert list(work.glob("run-*")) == []


@spark
def test_an_earlier_answer_stays_until_the_next_one_is_whole(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    arguments = ("replay", CAPTURE, "-e", PER_SECOND, "-w", out, "--work-dir", work)
    out.mkdir()
    (out / "query.csv").write_text("earlier\n")
    process = subprocess.Popen(command(*arguments, *PACED), stderr=subprocess.DEVNULL)
    wait_for(lambda: list(out.glob(".*")), "the start of writing")
    assert "earlier\n" in [path.read_text() for path in out.glob("[!.]*")]
    process.kill()
    process.wait()
    assert (out / "query.csv").read_text() == "earlier\n"


@spark
def test_a_reader_that_leaves_ends_the_replay_quietly() -> None:
    shell = " ".join(f"'{word}'" for word in command("replay", CAPTURE, "-e", PER_SECOND))
    done = subprocess.run(
        ["bash", "-c", f"{shell} --quiet -o csv | head -1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.stdout == "tb,srcIP,destIP,cnt\n"
    assert done.stderr == ""


def test_a_folder_that_cannot_be_written_is_a_sentence() -> None:
    done = run("replay", CAPTURE, "-e", PER_SECOND, "-w", "/proc/answers")
    assert done.returncode in (1, 2)
    assert is_a_sentence(done.stderr), done.stderr


@spark
def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = run("replay", CAPTURE, "-e", PER_SECOND, "-o", "csv", "--quiet", stdout=full)
    assert done.returncode == 1
    assert is_a_sentence(done.stderr), done.stderr


SMALL_FILES = ("bash", "-c", 'trap "" XFSZ; ulimit -f 6; exec "$@"', "bash")
"""Runs a command whose files cannot grow beyond six kilobytes, as on a disk that is nearly full."""


@spark
def test_a_disk_that_fills_up_is_a_sentence_and_no_answer(tmp_path: Path) -> None:
    query = "SELECT time, srcIP, destIP, len FROM IP"
    arguments = ("replay", CAPTURE, "-e", query, "-w", tmp_path / "out", "--quiet")
    done = subprocess.run(
        [*SMALL_FILES, *command(*arguments, "--work-dir", tmp_path / "work")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1, done.stderr
    assert is_a_sentence(done.stderr), done.stderr
    assert answers(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no such file"), (b"", "is empty"), (b"hello, world\n" * 9, "is not a capture")],
    ids=["missing", "empty", "text"],
)
def test_a_file_that_is_no_capture_is_a_sentence(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.pcap"
    if content is not None:
        path.write_bytes(content)
    done = run("replay", path, "-e", "SELECT time, len FROM IP")
    assert done.returncode == 1
    assert done.stdout == ""
    assert is_a_sentence(done.stderr), done.stderr
    assert "trace.pcap" in done.stderr
    assert words.lower() in done.stderr.lower()


@pytest.mark.parametrize(
    ("text", "line", "marked", "remedy"),
    [
        ("SELECT tb, srcIP,\n count(* FROM TCP", 2, "FROM", ")"),
        ("SELECT time,\n scrIP FROM TCP", 2, "scrIP", "srcIP"),
        ("SELECT tb\nFROM TCP WHERE count(*) > 1 GROUP BY time/60 AS tb", 2, "count", "HAVING"),
        ("SELECT time FROM TPC", 1, "TPC", "TCP"),
    ],
)
def test_a_wrong_query_shows_the_line_a_caret_and_the_remedy(
    text: str, line: int, marked: str, remedy: str
) -> None:
    done = run("replay", CAPTURE, "-e", text)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    source = next(n for n, shown in enumerate(lines) if shown.strip().startswith(f"{line} |"))
    caret = lines[source + 1].index("^")
    assert lines[source][caret:].startswith(marked)
    assert remedy in done.stderr


@spark
def test_a_run_that_fails_early_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    """Java is starting when it turns out that it is not needed."""
    work = tmp_path / "work"
    (tmp_path / "text.pcap").write_text("no capture")
    for capture, target in [(tmp_path / "text.pcap", "/dev/null"), (CAPTURE, "/dev/full")]:
        with Path(target).open("w") as output:
            arguments = ("replay", capture, "-e", PER_SECOND, "-o", "csv", "--work-dir", work)
            assert run(*arguments, stdout=output).returncode == 1
        assert [line for line in descendants(1).values() if str(work) in line] == []
        assert list(work.iterdir()) == []
