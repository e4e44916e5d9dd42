"""What is offered where, without a shell."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.completion.open_word import last_word
from gscope.cli.completion.query_words import words_for
from gscope.cli.completion.shells import BashLineComplete
from gscope.cli.config.settings import FORMATS
from gscope.cli.main import COMMANDS, cli
from gscope.cli.rundir.records import ENDED_FOLDER
from gscope.cli.rundir.run_dir import RunDir
from gscope.queries.library.files import full_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Complete = Callable[[str], list[str]]

QUANTITIES = {
    *(
        "DURATION",
        "[NAME=]DURATION",
        "N",
        "SIZE",
        "BYTES",
        "RATE",
        "X",
        "[ADDRESS:]PORT",
        "[NAME=]HOST:PORT",
        "FIRST-LAST",
        "CONSUMER",
        "EXPRESSION",
        "ID",
    ),
    *("SOURCE", "CLOCK", "WORD"),
    *("HOST", "PORT", "HOST:PORT", "NAME=VALUE"),
}
"""Values that a user has in mind, and two choices, which click completes: SOURCE and CLOCK."""


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Complete:
    monkeypatch.setenv("COMP_COMMAND", "gscope")
    monkeypatch.setenv("COMP_BREAKS", " \t\n\"'><=;|&(:")

    def completed(line: str) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        answer = BashLineComplete(cli, {}, "gscope", "_GSCOPE_COMPLETE").complete()
        return [" ".join(each.split("\t")[:2]).strip() for each in answer.splitlines()]

    return completed


def test_every_value_that_can_be_listed_is_completed() -> None:
    missing = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for parameter in command.params:
            is_switch = isinstance(parameter, click.Option) and parameter.is_flag
            is_listed = parameter._custom_shell_complete or isinstance(parameter.type, click.Choice)
            if not is_switch and not is_listed and parameter.metavar not in QUANTITIES:
                missing.append(f"{name} {parameter.name} {parameter.metavar}")
    assert missing == []


def test_commands_options_and_choices(complete: Complete) -> None:
    assert complete("gscope ") == [f"plain {name}" for name in COMMANDS]
    assert complete("gscope help st") == ["plain stop", "plain status"]
    assert complete("gscope run --timest") == ["plain --timestamps"]
    assert complete("gscope run --timestamps h") == ["plain hardware"]
    assert complete("gscope replay -o ") == [f"plain {name}" for name in FORMATS]
    assert complete("gscope completion install z") == ["plain zsh"]
    assert complete("gscope --user ro --no-such-option x ") == complete("gscope ")


def test_library_queries_with_files(complete: Complete) -> None:
    names = set(full_names())
    assert set(complete("gscope replay -q ")) == {"file", *(f"plain {name}" for name in names)}
    assert complete("gscope check published/tcp_f") == ["plain published/tcp_flows", "file"]
    assert complete("gscope report t.pcap syn_f") == ["plain syn_flood", "file"]
    assert complete("gscope report in=t.p") == complete("gscope replay in=t.p") != []
    assert complete("gscope library syn_f") == ["plain syn_flood"]
    assert complete("gscope schema ar") == ["plain arp", "plain arp_conflicts", "file"]


def test_devices_and_interfaces(complete: Complete, tmp_path: Path) -> None:
    devices = [name for _, name in socket.if_nameindex()]
    (tmp_path / "gscope.yaml").write_text("interfaces: {uplink: {device: lo}}\n")
    offered = complete("gscope run -i ")
    assert set(offered) == {f"plain {name}" for name in (*devices, "any", "udp://", "uplink")}
    assert complete("gscope run -i x=l") == ["plain lo"]
    assert complete("gscope replay a.pcap out=b.pcap -i o") == ["plain out"]
    (tmp_path / "gscope.yaml").write_text("interfaces: [")
    assert complete("gscope run -i up") == []


def test_runs_by_state(complete: Complete, tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows", is_exact=True):
        assert complete(f"gscope stop --work-dir {tmp_path} --run f") == ["plain flows"]
        assert complete(f"gscope status --run f --work-dir {tmp_path}/none --run f") == []
        with RunDir(tmp_path / ENDED_FOLDER, "fans", is_exact=True):
            assert complete(f"gscope stop --work-dir {tmp_path} --run f") == ["plain flows"]
            found = complete(f"gscope explain --work-dir {tmp_path} --run f")
        assert sorted(found) == ["plain fans", "plain flows"]


def test_lookups_by_name_then_their_files(complete: Complete) -> None:
    names = [f"open {name}=" for name in ("asn", "country", "networks", "services", "vendors")]
    assert complete("gscope replay x.pcap --lookup ") == names
    assert complete("gscope check --lookup s") == ["open services="]
    assert complete("gscope explain --lookup services=/e") == complete("gscope replay services=/e")


def test_parameters_and_results_of_the_queries_given(complete: Complete, tmp_path: Path) -> None:
    text = "DEFINE { query_name talkers; } PARAM { least UINT; net IP; } SELECT srcIP FROM IP"
    (tmp_path / "a.gsql").write_text(text)
    assert complete("gscope replay x.pcap -q a.gsql --param ") == ["open least=", "open net="]
    assert complete(f"gscope replay x.pcap -e {shlex.quote(text)} --param n") == ["open net="]
    assert complete("gscope run a.gsql --deliver t") == ["plain talkers"]
    assert complete("gscope run no.gsql --deliver t") == []


def test_the_words_of_a_query() -> None:
    def labels(query: str) -> list[str]:
        return [str(item.label) for item in words_for(query)]

    assert labels("SELECT time FROM TC") == ["TCP"]
    assert labels("select time from eth0.ud") == ["UDP"]
    assert [item.value for item in words_for("SELECT time FROM a.AR")] == ["SELECT time FROM a.ARP"]
    assert "srcPort" in labels("SELECT src")
    assert labels("SELECT time FROM ARP WHERE senderI") == ["senderIP"]
    assert "srcPort" not in labels("SELECT time FROM ARP WHERE src")
    assert "count(" in labels("SELECT cou")
    assert labels("SELECT time FROM TCP GRO") == ["GROUP BY"]
    assert labels("SELECT time FROM TCP") == []


@given(st.lists(st.text("a=' \\\"é$", max_size=8), min_size=1, max_size=4))
def test_a_quoted_line_ends_in_its_last_word(words: list[str]) -> None:
    word = last_word(shlex.join(words))
    assert (word.text, word.quote) == (words[-1], None)
    assert shlex.split(word.raw) == [words[-1]]


def test_an_open_quote_belongs_to_the_word() -> None:
    assert (last_word("a -e 'SELECT x").text, last_word("a -e 'SELECT x").quote) == ("SELECT x", 0)
    assert (last_word('a b="c d').text, last_word('a b="c d').quote) == ("b=c d", 2)
    assert last_word(r"a my\ file").text == "my file"
    assert last_word("a ").text == ""
    assert last_word("in=a:b").kept("=:") == 5


def test_completing_loads_nothing_heavy() -> None:
    heavy = ("pyarrow", "numba", "numpy", "pyspark", "lark", "rich")
    program = (
        "import os, sys; from gscope.cli.main import run\n"
        "for line in ('gscope run -i ', 'gscope replay -q ', \"gscope run -e 'SELECT s\"):\n"
        "    os.environ.update(COMP_LINE=line, COMP_COMMAND='gscope')\n"
        "    try: run([])\n"
        "    except SystemExit: pass\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"_GSCOPE_COMPLETE": "zsh_complete", "HOME": "/", "TMPDIR": os.environ["TMPDIR"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "top_talkers" in done.stdout
    assert "srcPort" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
