from __future__ import annotations

import ctypes.util
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.af_packet.live_frames import ADDRESSES, udp_frame
from tests.capture.sources.af_packet.network import DEVICE, receive, run_ip, send
from tests.support.requirements import needs, needs_libpcap

from gscope.capture.sources.af_packet.filter import accept_all, compile_filter
from gscope.capture.sources.af_packet.link_type import COOKED, link_type_of
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from tests.capture.sources.af_packet.conftest import Opener

pytestmark = pytest.mark.live

ETHERNET = link_type_of(1)
COMPILERS = [
    pytest.param("libpcap", marks=needs_libpcap()),
    pytest.param("tcpdump", marks=needs("tcpdump")),
]


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "libpcap":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    return str(request.param)


def test_only_what_the_filter_accepts_arrives(live: Opener, compiler: str) -> None:
    source = live(filter="udp port 1001")
    frames = [udp_frame(number, 1000 + number % 3) for number in range(30)]
    send(frames)
    wanted = frames[1::3]
    assert receive(source, len(wanted)) == wanted
    assert source.stats.received_packets == len(wanted)


def test_a_filter_finds_the_tag_that_the_kernel_moved(live: Opener, compiler: str) -> None:
    source = live(filter="vlan 5")
    tagged = [
        ADDRESSES + b"\x81\x00\x00" + bytes([number]) + b"\x88\xb5" + bytes(50)
        for number in range(9)
    ]
    send(tagged)
    assert receive(source, 1) == [tagged[5]]


def test_a_filter_keeps_the_snap_length(live: Opener, compiler: str) -> None:
    source = live(filter="udp", snaplen=20)
    send([udp_frame(1, 7)])
    assert receive(source, 1) == [udp_frame(1, 7)[:20]]


def test_a_filter_of_all_interfaces_sees_the_network_header(live: Opener, compiler: str) -> None:
    source = live("any", filter="udp src port 1001")
    send([udp_frame(1, 1001), udp_frame(2, 1002)])
    assert [packet[16:] for packet in receive(source, 1)] == [udp_frame(1, 1001)[14:]]


def test_a_wrong_filter_is_reported_with_the_reason(network: None, compiler: str) -> None:
    with pytest.raises(UsageError, match=r"the filter 'tcp prot 80' is invalid: .*syntax error"):
        compile_filter("tcp prot 80", device=DEVICE, link_type=ETHERNET, snaplen=96)


def test_a_filter_on_tags_cannot_be_compiled_while_the_interface_is_down(live: Opener) -> None:
    run_ip("link", "set", DEVICE, "down")
    live(filter="udp")
    with pytest.raises(CaptureError, match="must be up"):
        live(filter="vlan 5")


def test_what_a_cooked_packet_lacks_cannot_be_asked_for(network: None) -> None:
    with pytest.raises(UsageError, match="is invalid"):
        compile_filter("ether host 1:2:3:4:5:6", device="any", link_type=COOKED, snaplen=96)


def test_no_compiler_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(CaptureError, match="require libpcap or tcpdump"):
        compile_filter("tcp", device=DEVICE, link_type=ETHERNET, snaplen=96)


def test_no_filter_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    program = compile_filter(" ", device=DEVICE, link_type=ETHERNET, snaplen=96)
    assert program == accept_all(96)


def test_an_option_in_place_of_a_filter_is_a_wrong_filter(network: None, compiler: str) -> None:
    with pytest.raises(UsageError, match="is invalid"):
        compile_filter("-w /dev/null", device=DEVICE, link_type=ETHERNET, snaplen=96)
