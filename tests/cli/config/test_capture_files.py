from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.capture.settings import InterfaceSettings
from gscope.cli.config.capture_files import chosen_interfaces, ensure_there, interfaces_of
from gscope.cli.config.yaml_file import ConfiguredInterface
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_capture_is_called_by_its_base_name() -> None:
    assert interfaces_of(["a/main1.pcap.gz", "b.pcapng", "c.cap.zst", "plain", "-"]) == {
        "main1": ("a/main1.pcap.gz",),
        "b": ("b.pcapng",),
        "c": ("c.cap.zst",),
        "plain": ("plain",),
        "stdin": ("-",),
    }


def test_a_name_that_is_taken_gets_a_number() -> None:
    found = interfaces_of(["x/m.pcap", "y/m.pcap", "m=z.pcap", "w/m.pcap"])
    assert list(found) == ["m_2", "m_3", "m", "m_4"]


def test_one_name_given_several_times_is_one_interface_in_that_order() -> None:
    assert interfaces_of(["a=1.pcap", "b=2.pcap", "a=3.pcap"]) == {
        "a": ("1.pcap", "3.pcap"),
        "b": ("2.pcap",),
    }


def test_standard_input_can_be_read_only_once() -> None:
    with pytest.raises(UsageError, match="only once"):
        interfaces_of(["-", "a=-"])


def test_a_flag_of_its_own_counts_more_than_the_flag_for_all_and_the_configuration() -> None:
    configured = {"c": ConfiguredInterface(("c.pcap",), 7), "d": ConfiguredInterface((), 8)}
    plain = chosen_interfaces(["c.pcap", "d.pcap", "e.pcap"], [], [], configured)
    assert [i.skew_ns for i in plain] == [7, 8, 10_000_000_000]
    set_ = chosen_interfaces(["c.pcap", "d.pcap"], [], ["1ns", "d=2ns"], configured)
    assert [i.skew_ns for i in set_] == [1, 2]


def test_without_captures_the_configured_ones_are_read() -> None:
    configured = {"c": ConfiguredInterface(("c.pcap",)), "d": ConfiguredInterface(("d.pcap",))}
    assert [i.name for i in chosen_interfaces([], ["d"], [], configured)] == ["d"]


@pytest.mark.parametrize(
    ("captures", "names", "skews", "complaint"),
    [
        ([], [], [], "nothing to read"),
        (["a.pcap"], ["b"], [], "unknown interface 'b'; available: a"),
        (["a.pcap"], [], ["b=1s"], "unknown interface 'b'"),
        (["a.pcap"], [], ["a=soon"], "invalid duration"),
    ],
)
def test_what_cannot_be_chosen_is_a_sentence(
    captures: list[str], names: list[str], skews: list[str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        chosen_interfaces(captures, names, skews, {})


@pytest.mark.parametrize(
    ("file", "reason"), [("none.pcap", "no such file"), (".", "is a directory")]
)
def test_files_that_are_not_there_are_reported_at_once(
    file: str, reason: str, tmp_path: Path
) -> None:
    interfaces = [
        InterfaceSettings("a", ("-",), 0),
        InterfaceSettings("b", (str(tmp_path / file),), 0),
    ]
    with pytest.raises(CaptureError, match=f"cannot open .*: {reason}"):
        ensure_there(interfaces)


def test_files_that_are_there_and_standard_input_are_fine(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").touch()
    ensure_there([InterfaceSettings("a", ("-", str(tmp_path / "a.pcap")), 0)])
