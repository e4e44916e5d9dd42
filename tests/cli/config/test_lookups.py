"""The files of lookups from flags, the environment and ``gscope.yaml``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gscope.cli.config.effective import load_config
from gscope.cli.config.lookups import parse_lookups, show_lookups
from gscope.cli.main import run
from gscope.errors import UsageError
from gscope.queries import lookup_files
from gscope.queries.lookup_files import files_of

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "SELECT tb, network(srcIP), count(*) FROM IP GROUP BY time/60 AS tb, network(srcIP)"


def test_what_is_shown_is_read() -> None:
    files = {"networks": "a b=c.csv", "services": "/etc/services"}
    assert parse_lookups(show_lookups(files)) == files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("networks", "invalid lookup 'networks': expected NAME=FILE"),
        ("networks=", "invalid lookup 'networks=': expected NAME=FILE"),
        ("network=a.csv", "unknown lookup 'network'; did you mean 'networks'?"),
        (
            "x=a.csv",
            "unknown lookup 'x'; expected one of asn, country, networks, services, vendors",
        ),
        ("services=a\nservices=b", "the lookup services is given twice"),
    ],
)
def test_invalid_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_lookups(text)


def test_the_file_has_lookups_as_a_mapping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gscope.yaml"
    path.write_text("lookups:\n  networks: nets.csv\n")
    assert load_config({}, path).lookups == {"networks": "nets.csv"}
    assert run(["config", "--config", str(path), "--lookup", "services=s"]) == 0
    shown = capsys.readouterr().out
    assert "lookups:  # --lookup\n  services: s\n" in shown
    path.write_text("strict: false\nlookups:\n  nets: nets.csv\n")
    with pytest.raises(UsageError, match=r"gscope.yaml:3: unknown lookup 'nets'"):
        load_config({}, path)


def test_the_file_of_the_system_is_used_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "services"
    places = dict.fromkeys(lookup_files.LOOKUP_NAMES, ())
    monkeypatch.setattr(
        lookup_files, "_OF_SYSTEMS", places | {"services": ("/no/such", str(there))}
    )
    assert files_of({}) == {}
    there.write_text("")
    assert files_of({}) == {"services": str(there)}
    monkeypatch.chdir(tmp_path)
    assert files_of({"services": "mine"}) == {"services": str(tmp_path / "mine")}


def test_a_query_needs_the_file_and_the_remedy_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "-e", QUERY]) == 2
    said = capsys.readouterr().err
    assert "network needs the file of the lookup networks" in said
    assert "--lookup networks=FILE, or in gscope.yaml as lookups: {networks: FILE}" in said
    assert run(["explain", "-e", QUERY, "--lookup", f"networks={tmp_path / 'n.csv'}"]) == 0
    shown = capsys.readouterr().out
    assert "keys       tb := time DIV 60, srcIP\n" in shown
    assert f"networks  {tmp_path / 'n.csv'}\n" in shown
    assert run(["check", "-e", QUERY, "--lookup", "networks=n.csv"]) == 0
