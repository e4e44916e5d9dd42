"""Tables for a terminal of any width."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.text import Text

from gscope.cli.status.tables import StatusTable

NAME = "protocol_mix_of_all_links"
TABLE = StatusTable(
    ("QUERY", "=WATERMARK", ">ROWS", "WAITS FOR"),
    [
        (NAME, "2026-11-21 03:58:30", "123,456", ", ".join(f"eth{n}" for n in range(12))),
        ("udp", "-", Text("7", "red"), "-"),
    ],
)


def lines(width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(TABLE)
    return captured.get().splitlines()


def test_it_is_as_wide_as_it_needs() -> None:
    shown = lines(200)
    assert len(shown) == 3
    assert shown[1].endswith("eth11")
    assert [line.index(part) for line, part in zip(shown, ("ROWS", "123,456", "7"), strict=True)]
    assert shown[0].index("ROWS") + 4 == shown[1].index("456") + 3 == shown[2].index("7") + 1


@pytest.mark.parametrize("width", range(54, 100))
def test_names_are_cut_and_figures_are_not(width: int) -> None:
    shown = lines(width)
    assert len(shown) == 3
    assert max(map(len, shown)) <= width
    assert "2026-11-21 03:58:30" in shown[1]
    assert "123,456" in shown[1]
    assert "…" in shown[1]
