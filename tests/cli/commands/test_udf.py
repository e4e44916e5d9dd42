"""User code by the command line: where it is named, what is said when it is wrong or fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gscope_command import run as run_process
from tests.support.requirements import CAPTURES, needs_captures

from gscope.cli.main import run
from gscope.queries.analysis.typing.user_code import withdraw

CAPTURE = CAPTURES / "ndpi-dns.pcap"
CODE = """
from gscope.queries.catalog.user import aggregate, function

@function("INT", returns="INT", lfta_safe=True, monotone=[1])
def slot(time):
    return time // 300

@function("INT", returns="INT", lfta_safe=True)
def inverse(x):
    return 100 // x

@function("INT", returns="INT")
def fragile(x):
    assert x < 100, "too long"
    return x
"""
LOW = "SELECT slot(time) as tb, len FROM IP"


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path) -> object:
    (tmp_path / "mine.py").write_text(CODE)
    yield
    withdraw()


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_no_file_is_loaded_without_being_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "check", "-e", LOW)
    assert code == 2
    assert "unknown function slot" in err


def test_check_and_explain_know_user_code(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(CODE.replace("100 // x", "100 - x"))
    code, out, _ = _run(capsys, "check", "--udf", "mine.py", "-e", LOW)
    right = "ok  mine.py: slot, inverse, fragile\nok  query: query (tb INT increasing, len INT)\n"
    assert (code, out) == (0, right)
    assert _run(capsys, "check", "--udf", "mine.py")[1] == right.splitlines(keepends=True)[0]
    code, out, _ = _run(capsys, "explain", "--udf", "mine.py", "--lfta", "-e", LOW)
    assert code == 0
    assert "user_slot = user_kernel('slot'" in out


def test_what_a_file_prints_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loud.py").write_text(CODE.replace("100 // x", "100 - x") + "\nprint('hello')\n")
    code, out, err = _run(capsys, "check", "--udf", "loud.py", "-e", LOW)
    assert (code, err) == (0, "hello\n")
    assert "hello" not in out


def test_the_environment_and_the_configuration_name_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.py").write_text(CODE.replace("100 // x", "100 - x"))
    monkeypatch.setenv("GSCOPE_UDF", "mine.py")
    assert _run(capsys, "check", "-e", LOW)[0] == 0
    monkeypatch.delenv("GSCOPE_UDF")
    withdraw()
    Path("gscope.yaml").write_text("udf: [mine.py]\n")
    assert _run(capsys, "check", "-e", LOW)[0] == 0
    assert "udf: [mine.py]" in _run(capsys, "config")[1]


def test_check_compiles_what_is_to_run_low(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "check", "--udf", "mine.py", "-e", LOW)
    assert (code, out) == (2, "ok  query: query (tb INT increasing, len INT)\n")
    assert "mine.py:8: inverse is declared lfta_safe, but for some values it fails" in err


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("nosuch.py", "cannot read the user code nosuch.py: no such file or directory"),
        (".", "cannot read the user code .: is a directory"),
        ("wrong.py", "the user code wrong.py is not UTF-8 text"),
        ("empty.py", "empty.py declares nothing"),
    ],
)
def test_a_wrong_file_is_one_sentence(
    capsys: pytest.CaptureFixture[str], path: str, complaint: str
) -> None:
    Path("wrong.py").write_bytes(b"\xff\xfe")
    Path("empty.py").write_text("")
    code, _, err = _run(capsys, "check", "--udf", path, "-e", LOW)
    assert code == 2
    assert err.startswith(f"gscope: {complaint}")
    assert err.count("\n") == 1


@pytest.mark.slow
@needs_captures
def test_a_function_in_the_capture_daemon_answers_and_a_wrong_one_is_refused(
    tmp_path: Path,
) -> None:
    arguments = ("replay", CAPTURE, "--udf", "mine.py", "-o", "csv", "--quiet")
    done = run_process(*arguments, "-e", LOW, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()
    assert rows[0] == "tb,len"
    assert len(rows) == 6
    query = "SELECT time FROM IP WHERE inverse(len) = 3"
    done = run_process(*arguments, "-e", query, cwd=tmp_path)
    assert done.returncode == 2
    assert "inverse is declared lfta_safe, but" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.spark
@needs_captures
def test_a_function_that_fails_ends_the_query_with_one_sentence(tmp_path: Path) -> None:
    query = "SELECT time, fragile(len) as f FROM IP"
    arguments = ("--udf", "mine.py", "-e", query, "--work-dir", tmp_path / "work")
    done = run_process("replay", CAPTURE, *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "gscope: fragile(219) failed at mine.py:14: AssertionError: too long\n"
