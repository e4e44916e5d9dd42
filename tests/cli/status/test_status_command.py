"""``gscope status`` through the command line, on runs' folders without processes."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console, Group
from tests.cli.status.run_folder import TRACED, run_folder

from gscope.cli.main import run
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.status.document import status_document
from gscope.cli.status.run_list import run_list
from gscope.queries.run_folder.layout import (
    CAPTURE_STATISTICS_FILE,
    JOB_FOLDER,
    JOB_STATISTICS_FILE,
    LOG_FOLDER,
    TRACES_FOLDER,
)

SCHEMA = Path(__file__).parents[3] / "docs" / "status.schema.json"
COLUMNS = 80


@pytest.fixture(autouse=True)
def _work_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GSCOPE_WORK_DIR", str(tmp_path / "work"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


Shown = tuple[int, str, str]


@pytest.fixture
def status(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: str) -> Shown:
        code = run(["status", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_no_run_is_said_so(status: Any) -> None:
    code, out, err = status()
    assert (code, out) == (1, "")
    assert "no run is active" in err
    assert "`gscope run top_talkers -i DEVICE` starts one" in err


def test_several_runs_are_listed_with_what_is_wrong(work: Path, status: Any) -> None:
    with run_folder(work, "killed_run_of_a_long_name", has_reported=False) as killed:
        _keep(killed)
    with RunDir(work, "broken", is_exact=True) as broken:
        _keep(broken)
        broken.file.enter("failed", "the disk is full: 0 bytes are left")
    with run_folder(work, "one") as one, run_folder(work, "two", has_reported=False):
        _set_counters(one.path, {"dropped_packets": 1203, "packets_per_second": 4321.4})
        one.file.on_restart("job", "signal SIGKILL")
        with RunDir(work, "done", is_exact=True) as done:
            _keep(done)
            done.file.enter("ended")
        code, out, err = status()
        assert status("two")[1].startswith("two  running since")
        assert status("two", "--run", "one")[0] == 2
        assert status("--json")[0] == 2
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 2 * COLUMNS
    shown = {line.split()[0]: line.split() for line in out.splitlines()[1:6]}
    assert {name: cells[1] for name, cells in shown.items()} == {
        "killed_run_of_a_long_name": "stale",
        "broken": "failed",
        "done": "ended",
        "one": "running",
        "two": "running",
    }
    assert shown["killed_run_of_a_long_name"][-1] == "killed"
    assert " ".join(shown["broken"]).endswith("the disk is full: 0 bytes are left")
    assert shown["done"][-1] == shown["two"][-1] == "-"
    assert shown["one"][3:] == (
        [
            "eth0,",
            "eth1",
            "8,643",
            "tens,",
            "minutes",
            "job",
            "restarting;",
            "job",
            "restarted",
            "1",
            "time;",
            "2,406",
            "dropped",
        ]
    )
    assert "`gscope status NAME` shows one run" in out
    assert "resumes a stale, failed or recorded run" in out


def test_the_list_fits_in_80_columns_and_keeps_states_and_figures(work: Path) -> None:
    with run_folder(work, "a_run_with_quite_a_long_name") as one:
        _set_counters(one.path, {"dropped_packets": 123_456_789_012, "packets_per_second": 9e8})
        one.file.change(queries=tuple(f"query_{n}" for n in range(50)))
        document = status_document(one.file.record, time.time_ns())
        console = Console(width=COLUMNS, file=io.StringIO())
        console.print(Group(*run_list([document, document])))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= COLUMNS
    assert "running" in lines[1]
    assert "1.80G" in lines[1]


def test_where_metrics_are_served_is_shown(work: Path, status: Any) -> None:
    with run_folder(work) as run_dir:
        run_dir.file.change(metrics="http://127.0.0.1:40001/metrics")
        assert "  metrics at http://127.0.0.1:40001/metrics\n" in status()[1]


def _keep(run_dir: RunDir) -> None:
    """Let the folder stay, as that of a live run that has logged packets does."""
    run_dir.is_kept = True
    run_dir.file.change(is_live=True)
    (run_dir.path / LOG_FOLDER).mkdir()


def _set_counters(folder: Path, counters: dict[str, Any]) -> None:
    """Replace counters of both interfaces in the report of the capture daemon."""
    file = folder / CAPTURE_STATISTICS_FILE
    report = json.loads(file.read_text())
    for each in report["interfaces"]:
        each.update(counters)
    file.write_text(json.dumps(report))


def test_a_typo_gets_a_suggestion(work: Path, status: Any) -> None:
    with run_folder(work, "talkers", has_reported=False):
        code, _, err = status("--run", "talker")
    assert code == 2
    assert "did you mean talkers?" in err


def test_all_is_shown_in_80_columns_without_colours(work: Path, status: Any) -> None:
    with run_folder(work):
        code, out, err = status()
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= COLUMNS
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:3] == ["talkers", "running", "since"]
    assert next(line for line in lines if line[:1] == ["eth0"])[:2] == ["eth0", "ended"]
    tens = [line for line in lines if line[:1] == ["tens"]]
    # The name, the day and the time of the watermark, its lag; then rows and late tuples.
    assert tens[0][4:6] == ["3", "0"]
    assert tens[1][-1] == "eth1"


def test_whom_an_operator_waits_for_is_shown(work: Path, status: Any) -> None:
    with run_folder(work):
        _, out, _ = status()
    (line,) = (line for line in out.splitlines() if line.startswith("tens") and "aggreg" in line)
    assert line.split() == ["tens", "aggregation", "5", "100", "-", "eth1"]


def test_the_slowest_stage_of_a_trace_is_marked(work: Path, status: Any) -> None:
    with run_folder(work):
        _, out, _ = status()
    heading = next(line for line in out.splitlines() if "HEARTBEAT" in line)
    assert heading.split() == [
        *("HEARTBEAT", "LFTA", "LOG", "FLIGHT", "INBOX", "OPERATOR", "STEP", "COMMIT"),
        *("TOTAL", "ROWS"),
    ]
    (line,) = (line for line in out.splitlines() if line.split()[:1] == [str(TRACED)])
    assert line.count("*") == 1


def test_one_heartbeat_is_followed(work: Path, status: Any) -> None:
    with run_folder(work):
        code, out, _ = status("--trace", str(TRACED))
    assert code == 0
    names = [line.split()[0].lstrip("*") for line in out.splitlines()[2:-1]]
    assert names == ["tens@eth1", "log", "flight", "inbox", "tens", "minutes", "step", "commit"]
    assert max(map(len, out.splitlines())) <= COLUMNS


def test_a_heartbeat_that_released_nothing_is_said_to_be_one(work: Path, status: Any) -> None:
    with run_folder(work):
        code, out, _ = status("--trace", str(TRACED + 1))
    assert code == 0
    assert "released nothing" in out


def test_the_newest_heartbeat_is_followed_as_far_as_it_came(work: Path, status: Any) -> None:
    with run_folder(work) as run_dir:
        for file in (run_dir.path / JOB_FOLDER / TRACES_FOLDER).iterdir():
            file.unlink()
        code, out, _ = status("--trace", str(TRACED + 1))
        assert code == 0
        assert "has released nothing so far" in out
        assert "inbox" in out
        assert status("--trace", str(TRACED))[1].count("\n") == 1


@pytest.mark.parametrize(
    ("wanted", "words"),
    [("99", "traces 6 to 7 are kept"), ("x", "invalid heartbeat"), ("-3", "invalid heartbeat")],
)
def test_an_unknown_heartbeat_is_one_sentence(
    work: Path, status: Any, wanted: str, words: str
) -> None:
    with run_folder(work):
        code, out, err = status("--trace", wanted)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_run_that_has_reported_nothing_yet_is_shown(work: Path, status: Any) -> None:
    with run_folder(work, has_reported=False):
        code, out, _ = status()
        assert code == 0
        assert "talkers  running" in out
        assert status("--json")[0] == 0
        assert status("--prometheus")[0] == 0
        assert "no heartbeat has released rows yet" in status("--trace", "1")[2]


def test_a_run_that_was_killed_can_be_read(work: Path, status: Any) -> None:
    with run_folder(work) as run_dir:
        run_dir.is_kept = True
        run_dir.file.change(is_live=True)
        run_dir.file.on_restart("job", "signal SIGKILL")
    code, out, _ = status()
    assert code == 0
    assert "talkers  stale" in out
    assert "signal SIGKILL" in out
    assert "tens" in out


@pytest.mark.parametrize("name", [CAPTURE_STATISTICS_FILE, JOB_STATISTICS_FILE])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema":99}', '{"schema":1}', "\0\xff"])
def test_damaged_snapshots_are_no_crash(work: Path, status: Any, name: str, text: str) -> None:
    with run_folder(work) as run_dir:
        (run_dir.path / name).write_text(text)
        for flag in ((), ("--json",), ("--prometheus",)):
            code, _, err = status(*flag)
            assert "bug" not in err
            assert code in (0, 1)


def test_damaged_traces_are_skipped(work: Path, status: Any) -> None:
    with run_folder(work) as run_dir:
        file = run_dir.path / JOB_FOLDER / TRACES_FOLDER / "traces.ndjson"
        file.write_bytes(file.read_bytes() + b'{"id":3}\n{"hops":5}\n[1]\nnull\n{"id": 4, "ho')
        code, out, err = status()
        assert (code, err) == (0, "")
        assert str(TRACED) in out
        assert status("--trace", "3")[0] == 2


def test_json_is_as_its_schema_says(work: Path, status: Any) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for has_reported in (True, False):
        with run_folder(work, has_reported=has_reported):
            _, out, _ = status("--json")
        validator.validate(json.loads(out))


def test_the_loss_sums_close(work: Path, status: Any) -> None:
    with run_folder(work):
        _, out, _ = status("--json")
    loss = json.loads(out)["loss"]
    assert [each["difference"] for each in loss["interfaces"]] == [0, 0]
    assert loss["interfaces"][0]["received_packets"] == 4
    tuples = loss["tuples"]
    assert tuples["put_out"] == tuples["logged"] + tuples["open"]


def test_what_excludes_each_other_is_refused(work: Path, status: Any) -> None:
    assert status("--json", "--prometheus")[0] == 2
    with run_folder(work, has_reported=False):
        code, _, err = status("--watch")
    assert code == 2
    assert "requires a terminal" in err
