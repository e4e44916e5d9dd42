"""``gscope interfaces``: lists the interfaces to capture on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gscope.cli.commands.options import option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.interfaces import Interface

_HEADER = ("INTERFACE", "STATE", "LINK TYPE", "ADDRESSES")


@click.command(short_help="List the network interfaces.")
@option("--json", "is_json", is_flag=True, help="Print JSON.")
def interfaces(is_json: bool) -> None:
    """List the network interfaces with state, link type and addresses.

    Reports why an interface cannot be captured.

    The name any stands for all interfaces together.
    """
    from gscope.capture.sources.af_packet.interfaces import list_interfaces

    found = list_interfaces()
    if is_json:
        click.echo(json.dumps([_described(each) for each in found], indent=2))
        return
    _print_aligned(
        [
            _HEADER,
            *((i.name, i.state, i.link_type.name, ", ".join(i.addresses)) for i in found),
        ]
    )
    for reason in dict.fromkeys(each.why_not for each in found if each.why_not):
        click.echo(f"gscope: {reason}", err=True)


def _described(interface: Interface) -> dict[str, Any]:
    return {
        "name": interface.name,
        "state": interface.state,
        "link_type": interface.link_type.name,
        "linktype": interface.link_type.number,
        "hardware_address": interface.hardware_address,
        "addresses": list(interface.addresses),
        "can_capture": not interface.why_not,
        "why_not": interface.why_not,
    }


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
