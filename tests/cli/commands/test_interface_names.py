"""``-i`` of commands that only compile takes what ``gscope run`` takes.

It means the same names.
"""

from __future__ import annotations

import json

import pytest

from gscope.cli.main import run

NAMES = [
    ("eth0", "eth0"),
    ("uplink=eth0", "uplink"),
    ("udp://:9995", "udp9995"),
    ("udp://[::1]", "udp2055"),
    ("routers=udp://192.0.2.1:2055", "routers"),
]


@pytest.mark.parametrize(("given", "name"), NAMES)
@pytest.mark.parametrize("is_exported", [False, True])
def test_queries_refer_to_the_name_that_a_run_gives(
    given: str,
    name: str,
    is_exported: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_exported:
        monkeypatch.setenv("GSCOPE_INTERFACE", given)
    words = () if is_exported else ("-i", given)
    query = f"SELECT tb, count(*) AS n FROM {name}.FLOW GROUP BY time/60 AS tb"
    assert run(["explain", *words, "--json", "-e", query]) == 0
    (lfta,) = json.loads(capsys.readouterr().out)["lftas"]
    assert lfta["streams"] == [f"query@{name}"]
    assert run(["check", *words, "-e", query]) == 0
    assert capsys.readouterr().out.startswith("ok")
    assert run(["check", *words, "-e", query.replace(name, "zzz")]) == 2
    assert f"available interfaces: {name}" in capsys.readouterr().err


def test_an_invalid_port_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "-i", "udp://:99999", "-e", "SELECT time FROM FLOW"]) == 2
    assert "invalid address udp://:99999: invalid port 99999" in capsys.readouterr().err
