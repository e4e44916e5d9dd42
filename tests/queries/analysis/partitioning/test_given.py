"""Sets that are given as text."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.partitioning.given import given_set


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("srcIP", ("srcIP",)),
        ("destIP, srcIP & 0xFFFFFFF0", ("srcIP & 4294967280", "destIP")),
        ("{destIP, srcIP}, protocol", ("protocol", "{srcIP, destIP}")),
        ("prefix(srcIP, 24, 48)", ("prefix(srcIP, 24, 48)",)),
        ("srcIP, srcIP & 255", ("srcIP",)),
        ("srcPort, destPort, {srcPort, destPort}", ("srcPort", "destPort")),
        ("{srcPort >> 2, destPort / 4}", ("{srcPort & -4, destPort & -4}",)),
    ],
)
def test_a_set_is_read(text: str, members: tuple[str, ...]) -> None:
    assert set(given_set(text, "-").texts()) == set(members)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a member is empty"),
        ("srcIP,, destIP", "a member is empty"),
        ("{srcIP}", "expected the same function of two fields"),
        ("{srcIP, destIP, srcPort}", "expected the same function of two fields"),
        ("{srcIP & 255, destIP}", "expected the same function of two fields"),
        ("time/60", "cannot be divided by"),
        ("len * 0.5", "cannot be divided by"),
        ("42", "cannot be divided by"),
        ("no_such", "no_such"),
        ("count(*)", "expected expressions over packet fields"),
        ("srcIP FROM TCP; SELECT destIP", "expected expressions over packet fields"),
        ("srcIP as a WHERE len > 3 GROUP BY time", ""),
        ("{srcIP, destIP", ""),
        ("*", "cannot be divided by"),
    ],
)
def test_what_is_no_set_is_refused(text: str, message: str) -> None:
    with pytest.raises(GsqlError) as refused:
        given_set(text, "--partition-set")
    assert message in refused.value.message
