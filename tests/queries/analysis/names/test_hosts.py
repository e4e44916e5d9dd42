"""Interfaces of hosts in FROM: one of one host, and one of every host that has it."""

from __future__ import annotations

import pytest

from gscope.errors import ResolveError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

INTERFACES = ("a.up", "a.eth0.7", "b.up", "b.down", "local")
HOSTS = ("a", "b")


def read_by(source: str, **context: object) -> tuple[str, ...]:
    """Return the interfaces that ``FROM source`` reads."""
    known = {"interfaces": INTERFACES, "hosts": HOSTS, **context}
    text = QueryText(f"SELECT time FROM {source}", "q")
    (lfta,) = compile_queries([text], CompileContext(**known)).program.lftas  # type: ignore[arg-type]
    return lfta.interfaces


@pytest.mark.parametrize(
    ("source", "interfaces"),
    [
        ("a.up.IP", ("a.up",)),
        ("b.down.IP", ("b.down",)),
        ("a.'eth0.7'.IP", ("a.eth0.7",)),
        ("'a.up'.IP", ("a.up",)),
        ("up.IP", ("a.up", "b.up")),
        ("down.IP", ("b.down",)),
        ("'eth0.7'.IP", ("a.eth0.7",)),
        ("local.IP", ("local",)),
        ("IP", INTERFACES),
        ("[both].IP", ("a.up", "b.up")),
    ],
)
def test_an_input_reads_the_interfaces_that_it_names(
    source: str, interfaces: tuple[str, ...]
) -> None:
    assert read_by(source, interface_sets={"both": ("a.up", "b.up")}) == interfaces


@pytest.mark.parametrize(
    ("source", "hosts", "message"),
    [
        ("c.up.IP", HOSTS, "unknown host c"),
        ("c.up.IP", (), "name it with --host c=HOST:PORT"),
        ("a.down.IP", HOSTS, "unknown interface a.down"),
        ("eth9.IP", HOSTS, "unknown interface eth9"),
        ("a.IP", HOSTS, "unknown interface a"),
    ],
)
def test_an_unknown_host_or_interface_is_refused(
    source: str, hosts: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ResolveError) as raised:
        read_by(source, hosts=hosts)
    assert message in str(raised.value)


def test_without_known_interfaces_any_host_is_accepted() -> None:
    assert read_by("c.up.IP", interfaces=(), hosts=()) == ("c.up",)
