"""In the locale C everything is ASCII: help, tables, plans, errors, summaries."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import dpkt
import pytest

from gscope.cli.render.plain_text import plain

if TYPE_CHECKING:
    from pathlib import Path

LOCALES = {
    "coerced to UTF-8 by Python": {"LC_ALL": "C"},
    "as Python once took it": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
}
COMMANDS = [
    [],
    *([name, "-h"] for name in ("run", "replay", "status", "check", "schema", "library", "man")),
    *(["schema"], ["schema", "TCP"], ["schema", "--functions"]),
    *(["library"], ["library", "top_talkers"], ["interfaces"], ["config"], ["man", "run"]),
    *(["completion", shell] for shell in ("bash", "zsh", "fish")),
    ["explain", "--lfta", "--spark", "-e", "SELECT tb, count(*) FROM TCP GROUP BY time/60 as tb"],
    *(["check", "-e", text] for text in ("SELEC", "SELECT tim FROM TCP", "SELECT 'é…' FROM TCP")),
    *(["status"], ["run", "é…"], ["replay", "é.pcap", "-q", "top_talkers"], ["é"]),
]
PROGRAM = """
import sys
from gscope.cli.render.standard_streams import settle_streams
from gscope.cli.main import run
settle_streams()
for line in sys.stdin.read().split("\\0\\0"):
    run([word for word in line.split("\\0") if word])
    sys.stdout.flush()
"""
"""Runs many commands in one process, with the streams as ``main`` settles them."""


def environment(tmp_path: Path, locale: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME") if name in os.environ}
    return {**kept, **LOCALES[locale], "HOME": str(tmp_path), "GSCOPE_WORK_DIR": str(tmp_path)}


def ensure_plain(output: bytes) -> None:
    assert output
    assert [line for line in output.splitlines() if not line.isascii()] == []


@pytest.mark.slow
@pytest.mark.parametrize("locale", LOCALES)
def test_commands_print_ascii(tmp_path: Path, locale: str) -> None:
    (tmp_path / "é").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        # PYTHONIOENCODING concerns standard input, too.
        input="\0\0".join("\0".join(words) for words in COMMANDS).encode("ascii", "replace"),
        capture_output=True,
        env=environment(tmp_path, locale),
        check=True,
    )
    ensure_plain(done.stdout)
    ensure_plain(done.stderr)
    assert b"bug" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"FROM TCP" in done.stdout


@pytest.mark.slow
def test_an_answer_and_its_summary_are_ascii(tmp_path: Path) -> None:
    with (tmp_path / "é.pcap").open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        payload = "é…€".encode()
        datagram = dpkt.udp.UDP(sport=53, dport=9, data=payload, ulen=8 + len(payload))
        packet = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=17, data=datagram)
        packet.len = len(bytes(packet))
        writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=packet)), ts=1)
        writer.writepkt(b"cut", ts=2)
    text = "SELECT interface, UDP_data, data_length FROM UDP"
    done = subprocess.run(
        [sys.executable, "-m", "gscope", "replay", "é.pcap", "-o", "table", "-e", text],
        capture_output=True,
        env=environment(tmp_path, "coerced to UTF-8 by Python"),
        cwd=tmp_path,
        check=False,
    )
    ensure_plain(done.stdout)
    ensure_plain(done.stderr)
    assert done.returncode == 0, done.stderr
    assert rb"\u00e9\u2026\u20ac" in done.stdout
    assert b"2 packets received = 1 accepted + 1 malformed" in done.stderr


def test_similar_characters_are_preferred_to_escapes() -> None:
    assert plain("run … — 3 ≤ x → │─┼", "backslashreplace") == b"run ... - 3 <= x -> |-+"
    assert plain("né\u200b", "backslashreplace") == rb"n\xe9\u200b"
    with pytest.raises(UnicodeEncodeError):
        plain("…")


@pytest.mark.parametrize("locale", LOCALES)
def test_an_ellipsis_is_three_dots(tmp_path: Path, locale: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gscope", "check", "-e", "SELEC"],
        capture_output=True,
        env=environment(tmp_path, locale),
        check=False,
    )
    assert b"such as SELECT ... FROM ..." in done.stderr
