"""The commands that need no capture, through the whole of the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from gscope import __version__
from gscope.cli.config.settings import SETTINGS
from gscope.cli.main import COMMANDS, cli, run
from gscope.queries.analysis.typing.user_code import withdraw
from gscope.queries.library.files import full_names

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "SELECT tb, count(*) as cnt FROM TCP GROUP BY time/60 as tb"


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_no_argument_shows_a_first_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys)
    assert code == 0
    assert "gscope replay trace.pcap -q top_talkers" in out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "--version") == (0, f"gscope {__version__}\n", "")
    assert _run(capsys, "-V") == (0, f"gscope {__version__}\n", "")


@pytest.mark.parametrize("named", [[], ["run"], ["replay"], ["help"]])
def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str], named: list[str]) -> None:
    assert _run(capsys, "help", *named) == _run(capsys, *named, "-h")


def test_starting_imports_nothing_heavy() -> None:
    program = (
        "import sys; from gscope.cli.main import run; run(['--version']);"
        "print([m for m in ('pyarrow','numba','pyspark','lark','rich','yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_names_its_options_and_their_variables(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "-h"])
    assert result.exit_code == 0, result.output
    # Click's mark for text that is not to be wrapped, which a raw docstring would show.
    assert "\\b" not in result.output
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if (
            isinstance(parameter, click.Option)
            and parameter.name != "help"
            and not parameter.hidden
        ):
            assert parameter.opts[-1] in result.output
            assert str(parameter.envvar).startswith("GSCOPE_")


def test_variables_are_distinct() -> None:
    names = [s.variable for s in SETTINGS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["repaly"], "unknown command 'repaly'; did you mean replay?"),
        (["help", "repaly"], "unknown command 'repaly'; did you mean replay?"),
        (["replay", "--timing"], "--timings"),
        (["replay", "x.pcap"], "write one with -e"),
        (["replay", "-q", "flow"], "nothing to read"),
        (["replay", "x.pcap", "-q", "top_talker"], "did you mean 'top_talkers'"),
        (["replay", "x.pcap", "-q", "no/such.gsql"], "cannot read query file"),
        (["replay", "x.pcap", "-e", GOOD, "-o", "xml"], "invalid output format"),
        (["replay", "x.pcap", "-e", GOOD, "-o", "json"], "gscope calls it ndjson"),
        (["replay", "x.pcap", "-e", GOOD, "--speed", "0"], "speed"),
        (["replay", "x.pcap", "-e", GOOD, "--param", "x"], "--param NAME=VALUE"),
        (["run", "-i", "lo", "-e", GOOD, "--run", ""], "invalid run name"),
        (["run", GOOD], f"use -e '{GOOD[:59]}"),
        (["run", "SELECT", "time", "FROM", "TCP"], "use -e 'SELECT time FROM TCP'"),
        (["run", "-q", "select time from TCP"], "use -e 'select time from TCP'"),
        (["run", "-i", "lo", "tcp port 80"], "use -f 'tcp port 80'"),
        (["run", "-i", "lo", "tcp", "port", "80"], "use -f 'tcp port 80'"),
        (["run", "tcp"], "'tcp' is a packet filter, not a query file; use -f tcp"),
        (["replay", "x.pcap", "tcp port 80"], "use -f 'tcp port 80'"),
        (["replay", "x.pcap", "-e", GOOD, "not port 22"], "use -f 'not port 22'"),
        (["replay", "-r", "x.pcap", "-e", GOOD, "tcp[13] & 2 != 0"], "use -f 'tcp[13] & 2 != 0'"),
        (["replay", "x.pcap", GOOD], "is a query, not a capture; use -e"),
        (["replay", "x.pcap", "top_talkers"], "is a library query, not a capture; use -q top"),
        (["replay", "-r", "x.pcap", "-q", "top_talker"], "did you mean 'top_talkers'"),
        (["explain", GOOD], "use -e"),
        (["check", "SELECT time FROM TCP"], "use -e 'SELECT time FROM TCP'"),
        (["replay", "x.pcap", "-e", GOOD, "-w", "out.pcap"], "answers are rows, not packets"),
        (["run", "-e", GOOD, "-w", "out.pcapng"], "-o csv, ndjson, parquet or arrow"),
        (
            ["replay", "x.pcap", "-e", GOOD, "-f", "tcp prt 80"],
            "the filter 'tcp prt 80' is invalid",
        ),
        (["replay", "x.pcap", "-", "-e", GOOD, "-c", "3"], "requires regular files"),
        (["replay", "x.pcap", "-e", GOOD, "-c", "0"], "expected a positive integer"),
        (["check"], "nothing to check"),
        (["explain"], "write one with -e"),
        (["schema", "nix"], "neither a protocol nor a file nor a library query"),
        (["library", "flwo"], "did you mean flow?"),
        (["config", "--log", "x"], "--log: invalid size 'x'"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    code, out, err = _run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


def test_a_wrong_query_is_shown_with_a_caret(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "check", "-e", "SELECT nix FROM TCP")
    assert code == 2
    assert "query:1:8:" in err
    assert "\n    |        ^^^" in err


def test_check_reports_every_query_of_every_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.gsql").write_text(f"{GOOD};\nSELECT x FROM TCP")
    (tmp_path / "b.gsql").write_text("SELCT")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.gsql").write_text(GOOD)
    code, out, err = _run(capsys, "check", str(tmp_path))
    assert code == 2
    assert [line.split(": ")[1].split(" ")[0] for line in out.splitlines()] == ["a_1", "c"]
    assert err.count("no column x") == 1
    assert "b.gsql:1:1" in err


def test_check_gives_each_file_the_parameters_that_it_declares(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.gsql").write_text("PARAM { n INT; } SELECT time FROM TCP WHERE len > $n")
    (tmp_path / "b.gsql").write_text(GOOD)
    code, out, err = _run(capsys, "check", str(tmp_path), "--param", "n=3")
    assert (code, err) == (0, "")
    assert out.count("ok  ") == 2
    code, _, err = _run(capsys, "check", str(tmp_path), "--param", "n=3", "--param", "m=4")
    assert (code, err) == (2, "gscope: no query declares a parameter m\n")


def test_check_together_lets_files_read_each_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "low.gsql").write_text(GOOD)
    (tmp_path / "high.gsql").write_text("SELECT th, sum(cnt) FROM low GROUP BY tb/60 as th")
    assert _run(capsys, "check", str(tmp_path))[0] == 2
    assert _run(capsys, "check", "--together", str(tmp_path))[0] == 0


def test_every_query_of_the_library_passes_its_check(capsys: pytest.CaptureFixture[str]) -> None:
    for name in full_names():
        code, out, err = _run(capsys, "check", name)
        assert (code, err) == (0, "")
        assert out.startswith("ok  ")


def test_a_query_that_the_library_prints_parses(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = _run(capsys, "library", "top_talkers")
    assert _run(capsys, "check", "-e", text)[0] == 0


def test_explain_shows_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    low = "DEFINE { query_name 'low'; } SELECT time, len FROM main1.TCP WHERE len > 100;"
    high = "DEFINE { query_name 'high'; } SELECT tb, sum(len) FROM low GROUP BY time/60 as tb"
    code, out, _ = _run(capsys, "explain", "-e", low + high, "--spark", "--lfta")
    assert code == 0
    for part in ("Query low", "Plan", "After inline_selections", "LFTA high", "HFTA high"):
        assert part in out
    assert "high@main1" in out
    assert "SELECT" in out.partition("Spark SQL")[2]
    assert "def run(" in out


def test_explain_as_a_graph(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "explain", "published/full_flow", "--dot")
    assert code == 0
    edges = re.findall(r'^  "(.+?)" -> "(.+?)"', out, re.MULTILINE)
    assert ("lfta:flow2", "hfta:flow2") in edges
    assert ("hfta:flow1", "hfta:full_flow") in edges
    assert ("hfta:full_flow", "result:full_flow") in edges
    assert {name for edge in edges for name in edge} == set(
        re.findall(r'^ *"(.+?)" \[shape', out, re.MULTILINE)
    )


def test_explain_quotes_what_a_graph_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    text = r"""SELECT time FROM TCP WHERE str_match_start[TCP_data, 'a"\b']"""
    code, out, _ = _run(capsys, "explain", "-e", text, "--dot")
    assert code == 0
    for line in out.splitlines():
        assert re.sub(r"\\.", "", line).count('"') % 2 == 0


def test_explain_warns_of_epochs_that_only_traffic_moves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "SELECT part, count(*) FROM TCP GROUP BY increasing(sequence_number)/1000 as part"
    _, out, _ = _run(capsys, "explain", "-e", text)
    assert "orders     increasing(sequence_number)" in out
    assert "warning    no epoch closes without tuples" in out
    _, out, _ = _run(capsys, "explain", "-e", GOOD)
    assert "warning" not in out


@pytest.mark.parametrize(("known", "shown"), [(("-i", "a"), "no"), ((), "any")])
def test_explain_distinguishes_no_interface_from_any(
    known: tuple[str, ...], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT time FROM IP WHERE interface = 'nope'"
    _, out, _ = _run(capsys, "explain", *known, "-e", text)
    assert f"IP on {shown} interface" in out


def test_explain_shows_the_prefilter(capsys: pytest.CaptureFixture[str]) -> None:
    part = "Query {}: SELECT time, {} FROM TCP WHERE destPort = 80;"
    text = part.format("a", "srcIP") + part.format("b", "destIP")
    _, out, _ = _run(capsys, "explain", "-e", text)
    assert "bit 0      protocol = 6" in out
    assert "bit 1      destPort = 80" in out


def test_explain_as_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "explain", "-e", GOOD, "--json")
    explained = json.loads(out)
    assert code == 0
    assert explained["lftas"][0]["epoch"] == "tb"
    assert "group table" in explained["lftas"][0]["state"]
    assert explained["results"] == {"query": "HFTA query"}


def test_schema_lists_protocols_and_shows_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert "TCP (IP)" in _run(capsys, "schema")[1]
    _, out, _ = _run(capsys, "schema", "tcp", "DataProtocol")
    assert "time " in out
    assert "increasing" in out
    assert "sequence number" in out
    assert "\nIP\n" in out


def test_schema_of_a_query_has_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "schema", "top_talkers", "--json")
    columns = json.loads(out)["top_talkers"]
    assert [c["name"] for c in columns] == ["minute", "srcIP", "packets", "bytes"]
    assert columns[0]["ordering"] == "increasing"


def test_columns_that_only_order_rows_are_not_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "own.gsql"
    path.write_text("SELECT srcIP FROM IP GROUP BY time/60 AS tb, srcIP ORDER BY sum(len) LIMIT 3")
    _, schema, _ = _run(capsys, "schema", str(path))
    _, check, _ = _run(capsys, "check", str(path))
    _, explained, _ = _run(capsys, "explain", str(path))
    assert schema.split() == ["own", "srcIP", "IP"]
    assert "own (srcIP IP)" in check
    assert "Query own (srcIP IP)" in explained
    assert "OrderBy $by1; Limit 3 of each epoch $order" in explained


def test_schema_lists_functions_and_aggregates_with_their_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = _run(capsys, "schema", "--functions")
    assert "quantile(FLOAT|INT, q)" in out
    assert "standard error" in out
    _, out, _ = _run(capsys, "schema", "--functions", "--json")
    described = json.loads(out)
    levels = {one["name"]: one["levels"] for one in described["aggregates"]}
    assert levels["count_diff"] == "high"
    assert levels["sum"] == "low (no FLOAT), high"
    running = {one["name"]: one["levels"] for one in described["running aggregates"]}
    assert running["moving_sum"] == "low (no FLOAT), high"
    assert running["sum_of_dups"] == "low (no STRING), high"
    assert running["running_count"] == "low, high"
    assert all(one["is"] for family in described.values() for one in family)


def test_schema_lists_functions_of_user_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = "from gscope.queries.catalog.user import function\n@function('INT', returns='INT')\n"
    (tmp_path / "own.py").write_text(f"{code}def twice(n):\n    return 2 * n\n")
    try:
        _, out, _ = _run(capsys, "schema", "--functions", "--udf", str(tmp_path / "own.py"))
    finally:
        withdraw()
    assert "functions: user code\n  twice(INT)  INT        high" in out


def test_config_says_where_values_come_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gscope.yaml").write_text("spark: {cores: 2}")
    monkeypatch.setenv("GSCOPE_LOG", "1G")
    code, out, _ = _run(capsys, "config", "--heartbeat-interval", "100ms", "--strict")
    assert code == 0
    assert "interval: 100ms  # --heartbeat-interval" in out
    assert "log: 1G  # $GSCOPE_LOG" in out
    assert "cores: 2  # gscope.yaml:1" in out
    assert "strict: true  # --strict" in out


def test_several_values_of_a_variable_stand_on_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSCOPE_EXPRESSION", "SELECT time\nFROM TCP")
    monkeypatch.setenv("GSCOPE_INTERFACE", "a\nb")
    code, out, _ = _run(capsys, "explain", "--json")
    assert code == 0
    assert json.loads(out)["lftas"][0]["reads"] == "TCP on a, b"


def test_an_unexpected_error_is_called_a_bug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "surprise\nmore"
        raise RuntimeError(message)

    monkeypatch.setattr(cli, "main", fail)
    code, _, err = _run(capsys, "config")
    assert code == 1
    assert err.count("\n") == 1
    assert "bug in gscope (RuntimeError: surprise)" in err
    monkeypatch.setenv("GSCOPE_DEBUG", "1")
    assert "Traceback" in _run(capsys, "config")[2]


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 1)]
)
def test_errors_of_the_system_have_their_codes(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "main", fail)
    assert _run(capsys, "config")[0] == code


def test_head_ends_a_command_quietly() -> None:
    command = f"{sys.executable} -m gscope explain -e '{GOOD}' --lfta | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["check", "explain", "schema"])
def test_a_command_that_runs_nothing_has_no_settings_but_those_it_explains(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "-h"]).output
    assert "--config" in shown
    of_samples = {"shedding.mode", "shedding.min_rate", "shedding.rate"}
    known = {"lookups"}
    if name == "explain":
        known |= of_samples | {"partitions", "work_dir"}
    words = set(re.findall(r"--[\w-]+", shown))
    assert {setting.key for setting in SETTINGS if setting.long in words} == known


def test_explain_without_a_query_asks_for_none_with_an_option_it_has_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = _run(capsys, "explain")
    assert code == 2
    assert "no query given" in err
    assert "-q" not in err


def test_check_says_which_file_has_no_query(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.gsql").write_text("-- nothing\n")
    (tmp_path / "own.gsql").write_text("PROTOCOL Web (TCP) WHERE destPort = 80 { }")
    code, out, err = _run(capsys, "check", "empty.gsql", "own.gsql")
    assert (code, out) == (2, "ok  own.gsql: no query\n")
    assert err == "empty.gsql: the text contains no query\n"
    assert "empty.gsql: the text contains no query" in _run(capsys, "explain", "empty.gsql")[2]


def test_a_set_of_interfaces_that_are_not_there_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "gscope.yaml").write_text(
        "interfaces: {up: {device: eth0}, down: {device: eth1}}\nsets: {both: [up, donw]}\n"
    )
    code, _, err = _run(capsys, "explain", "-e", "SELECT time FROM [both].TCP")
    assert code == 2
    assert "set both has an unknown interface 'donw'; did you mean 'down'?" in err


def test_check_takes_watchlists_for_what_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = "DEFINE {{ query_name 'hosts'; {} }} WATCHLIST FIELDS {{ IP address; STRING why }};"
    query = "DEFINE { query_name 'seen'; } SELECT time, why FROM IP, hosts WHERE srcIP = address"
    (tmp_path / "a.gsql").write_text(table.format("filename 'hosts.csv';") + query)
    code, out, err = _run(capsys, "check", "a.gsql")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "ok  a.gsql: hosts (address IP NULL, why STRING)"
    assert out.splitlines()[1].startswith("ok  a.gsql: seen (")
    (tmp_path / "b.gsql").write_text(table.format(""))
    code, out, err = _run(capsys, "check", "b.gsql")
    assert (code, out) == (2, "")
    assert "b.gsql:1:33: the watchlist hosts has no file" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-e", "SELECT time, '\udcff' as x FROM UDP"],
        ["-e", "SELECT time FROM UDP WHERE len = \udcff"],
        ["-e", "PARAM { a string; } SELECT time, $a as a FROM UDP", "--param", "a=\udcff"],
        ["-e", "SELECT time FROM UDP", "--param", "\udcff=1"],
    ],
)
def test_arguments_that_are_not_utf_8_are_refused(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", *arguments]) == 2
    _, said = capfd.readouterr()
    assert "expected UTF-8" in said
    assert "bug" not in said
