from __future__ import annotations

import pytest
from tests.capture.sources.files.capture_bytes import pcap_header, section

from gscope.capture.sources.files.detect import detect_format
from gscope.errors import CaptureError


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "f is empty"),
        (b"\xd4\xc3", "f is not a capture: .*"),
        (b"../../default/pcap/bot.pcap\n", "f is not a capture: .*"),
        (b"\x0c\xa5\x02\0", "f ends within its header, after 4 of 40 bytes"),
        (b"\x0c\xa5\x01\0", "f is a file of nfcapd 1.6 or older, .*: nfdump -r f -w NEW"),
        (pcap_header()[:12], "f ends within its header, after 12 of 24 bytes"),
        (section()[:12], "f ends within its header, after 12 of 28 bytes"),
        (
            section()[:8] + bytes(20),
            "f is not a usable capture: its section header has no byte order",
        ),
        (section(version=(3, 1)), "f is not a usable capture: .* is of version 3.1, not 1.x"),
    ],
)
def test_what_is_no_capture_is_one_sentence(head: bytes, message: str) -> None:
    with pytest.raises(CaptureError, match=f"^{message}$"):
        detect_format(head, "f")


def test_the_header_of_pcap_is_passed_over_and_that_of_pcapng_is_a_block() -> None:
    assert detect_format(pcap_header(), "f")[1] == 24
    assert detect_format(section(), "f")[1] == 0
