"""Destinations as ``--to`` and ``gscope.yaml`` name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.cli.commands.config import config_lines
from gscope.cli.config.destinations import (
    Destination,
    parse_destination,
    parse_destinations,
    show_destinations,
    without_secrets,
)
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h.example/a?b=c", ("https", "h.example", 443, "/a?b=c", "")),
        ("http://h:8080", ("http", "h", 8080, "/", "")),
        ("https://me:p%40ss@[::1]:1/x", ("https", "::1", 1, "/x", "me:p@ss")),
        ("syslog://logs", ("syslog", "logs", 514, "", "")),
        ("syslog+tcp://logs", ("syslog+tcp", "logs", 601, "", "")),
        ("syslog+tls://logs:99?ca=a.pem", ("syslog+tls", "logs", 99, "", "")),
        ("kafka://a,[::1]:9/t.x?key=c", ("kafka", "a,[::1]:9", 0, "t.x", "")),
    ],
)
def test_a_url_has_a_scheme_a_host_and_a_port(text: str, expected: tuple[object, ...]) -> None:
    found = parse_destination(text)
    assert (found.scheme, found.host, found.port, found.path, found.credentials) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("logs:514", "unknown scheme"),
        ("ftp://h/x", "unknown scheme"),
        ("https:///path", "expected a URL such as"),
        ("http://h:99999/", "Port out of range"),
        ("http://h/a b", "expected a URL such as"),
        ("syslog://h/path", "expected syslog://HOST:PORT"),
        ("syslog://h?facilty=user", "unknown option 'facilty'; did you mean 'facility'"),
        ("syslog://h?facility=local9", "unknown facility 'local9'"),
        ("syslog+tcp://h?ca=x", "unknown option 'ca'"),
        ("kafka://h:9092", "expected kafka://BROKER"),
        ("kafka://h:9092/a/b", "expected kafka://BROKER"),
        ("kafka://h:x/t", "expected kafka://BROKER"),
        ("kafka://h/t?keys=a", "unknown option 'keys'; did you mean 'key'"),
    ],
)
def test_an_invalid_url_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="invalid destination") as refused:
        parse_destination(text)
    assert message in str(refused.value)


def test_a_name_shows_no_secret() -> None:
    names = [
        parse_destination("https://me:secret@h/secret?token=secret").name,
        parse_destination("syslog+tls://h?ca=a.pem").name,
        parse_destination("kafka://a,b:9/t?config=secret").name,
    ]
    assert names == ["https://h:443/…", "syslog+tls://h:6514", "kafka://a,b:9/t"]


def test_a_command_line_is_shown_without_secrets() -> None:
    words = ["run", "--to", "http://h/a", "--to=http://h/a/b", "-e", "SELECT time FROM IP"]
    found = parse_destinations("http://h/a\nhttp://h/a/b\nhttps://in.the/file")
    shown = ("run", "--to", "http://h:80/…", "--to=http://h:80/…", "-e", "SELECT time FROM IP")
    assert without_secrets(words, found) == shown
    assert without_secrets(words, ()) == tuple(words)


def test_destinations_are_read_back_as_they_are_shown() -> None:
    found = parse_destinations("http://a/\n\nsyslog://b?severity=err\n")
    assert [each.url for each in found] == ["http://a/", "syslog://b?severity=err"]
    assert parse_destinations(show_destinations(found)) == found
    with pytest.raises(ValueError, match="http://a/ is given twice"):
        parse_destinations("http://a/\nhttp://a/")


def destinations(tmp_path: Path, text: str) -> tuple[Destination, ...]:
    path = tmp_path / "gscope.yaml"
    path.write_text(text)
    return load_config({}, path).destinations


def test_the_file_has_a_list_of_them(tmp_path: Path) -> None:
    listed = destinations(tmp_path, 'output:\n  to: [http://a/, "syslog://b?severity=err"]\n')
    assert [each.host for each in listed] == ["a", "b"]
    assert [each.host for each in destinations(tmp_path, "output:\n  to: http://a/\n")] == ["a"]
    with pytest.raises(UsageError, match=r"gscope\.yaml:3: .*unknown scheme"):
        destinations(tmp_path, "output:\n  to:\n  - htp://a/\n")


def test_the_effective_configuration_can_be_read_back(tmp_path: Path) -> None:
    given = GivenSetting("http://a/x\nsyslog://b", "--to")
    config = load_config({"output.to": given}, None)
    lines = list(config_lines(config))
    assert '  to: ["http://a/x", "syslog://b"]  # --to' in lines
    assert destinations(tmp_path, "\n".join(lines)) == config.destinations
