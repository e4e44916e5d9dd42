"""Capture settings survive JSON, and mistakes are reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.capture.settings import CaptureSettings, ConsumerSettings, InterfaceSettings
from gscope.errors import UsageError

POSITIVE = st.integers(1, 2**62)
SETTINGS = st.builds(
    CaptureSettings,
    interfaces=st.lists(
        st.builds(
            InterfaceSettings,
            st.text(),
            st.lists(st.text(), min_size=1).map(tuple),
            st.integers(0, 2**62),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda interface: interface.name,
    ).map(tuple),
    consumers=st.lists(st.builds(ConsumerSettings, st.text()), max_size=2).map(tuple),
    heartbeat_interval_ns=POSITIVE,
    heartbeat_every_tick=st.booleans(),
    speed=st.none() | st.floats(0.001, 1e6),
    table_slots=st.none() | POSITIVE,
    log_bytes=POSITIVE,
)


@given(SETTINGS)
def test_from_json_is_the_inverse_of_to_json(settings: CaptureSettings) -> None:
    assert CaptureSettings.from_json(settings.to_json()) == settings


def test_what_is_missing_has_its_default() -> None:
    settings = CaptureSettings.from_json(
        '{"interfaces": [{"name": "a", "files": ["a.pcap"]}], "speed": 2}'
    )
    assert settings == CaptureSettings((InterfaceSettings("a", ("a.pcap",)),), speed=2.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "expected CaptureSettings"),
        ("{}", "lacks interfaces"),
        ('{"interfaces": []}', "expected at least one interface"),
        ('{"interfaces": [{"name": "a"}]}', "'a' has no file and no device"),
        ('{"interfaces": [{"name": "a", "files": []}]}', "'a' has no file"),
        ('{"interfaces": [{"name": "a", "files": ["f"]}], "sped": 2}', "did you mean 'speed'"),
        (
            '{"interfaces": [{"name": "a", "files": ["f"]}], "xyz": 2}',
            "unknown key 'xyz'; available",
        ),
        (
            '{"interfaces": [{"name": "a", "files": ["f"]}], "speed": 0}',
            "expected a positive number",
        ),
        ('{"interfaces": [{"name": "a", "files": ["f"]}], "log_bytes": "1"}', "expected int"),
        ('{"interfaces": [{"name": "a", "files": ["f"]}], "log_bytes": true}', "expected int"),
        (
            '{"interfaces": [{"name": 1, "files": ["f"]}]}',
            r"interfaces\[0\].name: expected str, got 1",
        ),
    ],
)
def test_a_mistake_is_reported(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        CaptureSettings.from_json(text)
