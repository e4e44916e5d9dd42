from __future__ import annotations

import pytest

from gscope.cli.config_file import ConfiguredInterface
from gscope.cli.interfaces import chosen_interfaces, interfaces_of
from gscope.errors import UsageError


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
        (["a.pcap"], ["b"], [], "no interface 'b'; there are a"),
        (["a.pcap"], [], ["b=1s"], "no interface 'b'"),
        (["a.pcap"], [], ["a=soon"], "no duration"),
    ],
)
def test_what_cannot_be_chosen_is_a_sentence(
    captures: list[str], names: list[str], skews: list[str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        chosen_interfaces(captures, names, skews, {})
