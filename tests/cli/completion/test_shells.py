"""Completion in bash, zsh and fish themselves, which are asked for what they offer or insert."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.completion.interactive_shell import line_after
from tests.support.requirements import needs

from gscope.cli.completion.shells import script

LINES = {
    "gscope repl": "gscope replay ",
    "gscope replay -q top_ta": "gscope replay -q top_talkers ",
    "gscope replay in=tra": "gscope replay in=trace.pcap ",
    "gscope replay 'my cap": "gscope replay 'my capture.pcap' ",
    "gscope replay my": r"gscope replay my\ capture.pcap ",
    "gscope replay --output=nd": "gscope replay --output=ndjson ",
    "gscope check que": "gscope check queries.gsql ",
    "gscope replay -w fol": "gscope replay -w folder/",
    "gscope replay -q queries.gsql --param le": "gscope replay -q queries.gsql --param least=",
    "gscope replay x -e 'SELECT count(*) FROM TC": "gscope replay x -e 'SELECT count(*) FROM TCP",
    "true | gscope sch": "true | gscope schema ",
}
"""What is typed, and what the line holds after the Tab key: one for each way through a script."""

SHELLS = [pytest.param(shell, marks=needs(shell)) for shell in ("bash", "zsh")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("trace.pcap", "my capture.pcap"):
        (tmp_path / name).touch()
    (tmp_path / "queries.gsql").write_text("PARAM { least UINT; } SELECT time FROM TCP")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_completes_the_line(shell: str, folder: Path) -> None:
    source = folder / "completion"
    source.write_text(script(shell))
    found = lines_after(shell, folder, f". '{source}'", list(LINES))
    assert found == list(LINES.values())


def lines_after(shell: str, folder: Path, loading: str, typed: list[str]) -> list[str]:
    return line_after(shell, folder, loading, [f"{each}\t" for each in typed])


@pytest.mark.slow
@needs("fish")
def test_fish_offers_the_same(folder: Path) -> None:
    source = folder / "gscope.fish"
    source.write_text(script("fish"))
    program = f"source {source}; for line in $argv; complete -C $line | string split -f 1 \\t; end"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program, *LINES],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=True,
    )
    assert done.stdout.splitlines() == [
        "replay",
        "top_talkers",
        "in=trace.pcap",
        "my capture.pcap",
        "my capture.pcap",
        "--output=ndjson",
        "queries.gsql",
        "folder/",
        "least=",
        "SELECT count(*) FROM TCP",
        "schema",
    ]
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_an_installed_completion_works_in_a_new_shell(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "my home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR")}
    environment = {**kept, "HOME": str(home), "SHELL": f"/bin/{shell}"}
    command = [sys.executable, "-m", "gscope", "completion", "install"]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    startup = home / f".{shell}rc"
    written = startup.read_text()
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert startup.read_text() == written
    assert f"added a line to {startup}" in first.stdout
    assert "up to date" in again.stdout
    assert "loads it already" in again.stdout
    assert lines_after(shell, home, f". '{startup}'", ["gscope vers", "gscope sche"]) == [
        "gscope vers",
        "gscope schema ",
    ]
