"""Link types that are not read are counted by name, however their packets are read."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import (
    drain,
    enhanced,
    interface,
    pcap_header,
    pcap_record,
    section,
)

from gscope.capture.packet.dissector.link_headers import DecodeFailure
from gscope.capture.packet.dissector.link_types import first_layer
from gscope.capture.packet.link_names import READ_LINK_TYPES, link_type_name
from gscope.capture.sources.files.open import open_source

if TYPE_CHECKING:
    from pathlib import Path


def is_read(linktype: int) -> bool:
    try:
        first_layer(linktype)
    except DecodeFailure:
        return False
    return True


def test_the_link_types_that_are_read_are_those_of_the_dissector() -> None:
    assert {n for n in range(1000) if is_read(n)} == READ_LINK_TYPES
    assert not any("LINKTYPE_" in link_type_name(n) for n in READ_LINK_TYPES)


def test_packets_are_counted_by_the_name_of_their_link_type(tmp_path: Path) -> None:
    ng = tmp_path / "x.pcapng"
    blocks = [interface(1), interface(189), interface(9999)]
    blocks += [enhanced(b"abc", 1, number) for number in (0, 1, 1, 2, 1)]
    ng.write_bytes(section() + b"".join(blocks))
    old = tmp_path / "x.pcap"
    old.write_bytes(pcap_header(linktype=189) + 4 * pcap_record(b"abc"))
    source = open_source(str(ng), str(old))
    assert len(drain(source)) == 9
    assert source.stats.unread_links == {"LINKTYPE_USB_LINUX (189)": 7, "link type 9999": 1}


@pytest.mark.slow
def test_a_replay_says_which_link_type_it_did_not_read(tmp_path: Path) -> None:
    # Large enough for the compiled loop that reads blocks by itself.
    path = tmp_path / "usb.pcap"
    path.write_bytes(pcap_header(linktype=189) + 100_000 * pcap_record(bytes(60)))
    command = [sys.executable, "-m", "gscope", "replay", str(path), "-e", "SELECT time FROM IP"]
    done = subprocess.run(
        [*command, "--work-dir", str(tmp_path / "work")], capture_output=True, check=True, text=True
    )
    assert "unknown linktype 100,000" in done.stderr
    assert "LINKTYPE_USB_LINUX (189) 100,000" in done.stderr
