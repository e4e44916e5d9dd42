"""Pictures of the view, and what keys and clicks make of them, without a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.cli.view.answers import BEGAN, PORTS, TALKERS, model_of, of_minute, talkers

from gscope.cli.render.outcome import Outcome
from gscope.cli.sinks.table_cells import cell_len
from gscope.cli.view.actions import Actions, Request
from gscope.cli.view.choices import Choices
from gscope.cli.view.frame import Frame, FrameDrawer
from gscope.cli.view.model import Account, LinkState, ViewModel
from gscope.cli.view.recording import Recorder
from gscope.cli.view.rows.ordering import Sorting
from gscope.cli.view.terminal.keys import KeyReader
from gscope.cli.view.terminal.styles import cropped, plain
from gscope.queries.streams.loss_reasons import KERNEL, IncompleteEpochs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SIZES = [(80, 24), (160, 50)]


class Shown:
    """A view of a model on a screen of some size."""

    def __init__(self, model: ViewModel, columns: int = 80, lines: int = 24) -> None:
        self.size = os.terminal_size((columns, lines))
        self.choices = Choices(model, Recorder(model, model.note))
        self._drawer = FrameDrawer(model, self.choices, has_unicode=True)
        self._actions = Actions(self.choices)
        self._reader = KeyReader()
        self.frame = Frame()
        self.draw()

    def draw(self) -> None:
        self.frame = self._drawer.draw(self.size)
        assert len(self.frame.lines) == self.size.lines
        self.lines = [plain(cropped(line, self.size.columns)) for line in self.frame.lines]
        assert {cell_len(line) for line in self.lines} == {self.size.columns}

    def press(self, keys: str) -> Request | None:
        request = None
        events = self._reader.read(keys.encode()) + self._reader.read(b"")
        for event in events:
            request = self._actions.on(event, self.frame)
            self.draw()
            if request is Request.PACKETS:
                self.choices.ask_packets(self.frame.chosen)
                self.draw()
        return request

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def first_column(self) -> list[str]:
        """The first cell of each row that is shown."""
        assert self.frame.first_row is not None
        rows = self.lines[self.frame.first_row : self.size.lines - 1]
        return [row.split()[0] for row in rows if row.strip()]


def drawer(model: ViewModel) -> FrameDrawer:
    return FrameDrawer(model, Choices(model, Recorder(model, model.note)), has_unicode=False)


def hosts(numbers: Iterable[int]) -> list[tuple[str | None, int | None, int]]:
    return [(f"10.0.0.{n}", 300 - n, 10 * n) for n in numbers]


@pytest.fixture
def model() -> ViewModel:
    model = model_of(TALKERS, PORTS)
    for minute in range(5):
        model.add("talkers", talkers(minute, hosts(range(1, 60 + minute))))
    ports = {"destPort": pa.array([80, 443]), "packets": pa.array([7, 3])}
    model.add("ports", of_minute(0, ports))
    return model


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_the_latest_epoch_is_shown_with_the_greatest_rows_first(
    model: ViewModel, columns: int, lines: int
) -> None:
    shown = Shown(model, columns, lines)
    assert "minute 2023-11-14 22:18:00Z  63 rows" in shown.text
    count = lines - 5
    assert shown.first_column == [f"10.0.0.{n}" for n in range(1, count + 1)]
    assert shown.lines[3].split()[:3] == ["srcIP", "packets▼", "bytes"]
    values, bars, epochs = shown.lines[4].split("  ")[0], shown.lines[4].count("█"), "█████"
    assert values == "10.0.0.1"
    assert shown.lines[4].split()[1:3] == ["299", "10"]
    assert shown.lines[4].rstrip().endswith(epochs)
    assert bars - len(epochs) == shown.lines[4].split()[3].count("█") > 10


def test_sorting_by_keys(model: ViewModel) -> None:
    shown = Shown(model)
    shown.press("\x1b[C")
    assert shown.first_column[0] == "10.0.0.63"
    shown.press("r")
    assert "bytes▲" in shown.text
    assert shown.first_column[:2] == ["10.0.0.1", "10.0.0.2"]
    shown.press("\x1b[D\x1b[D")
    assert shown.choices.current.sorting == Sorting("srcIP", is_descending=False)
    # As addresses, not as texts.
    assert shown.first_column[8:11] == ["10.0.0.9", "10.0.0.10", "10.0.0.11"]
    shown.press("<")
    assert "▼" not in shown.text
    assert shown.first_column[0] == "10.0.0.1"


def test_sorting_and_choosing_with_the_mouse(model: ViewModel) -> None:
    shown = Shown(model)
    heading = shown.frame.heading
    assert heading is not None
    at = shown.lines[heading].index("bytes") + 1
    click = f"\x1b[<0;{at + 1};{heading + 1}M"
    shown.press(click)
    assert shown.first_column[0] == "10.0.0.63"
    shown.press(click)
    assert shown.first_column[0] == "10.0.0.1"
    shown.press(f"\x1b[<0;5;{heading + 4}M")
    assert shown.choices.current.row == 2
    shown.press(f"\x1b[<0;5;{heading + 4}M")
    assert "   srcIP  10.0.0.3" in shown.text
    shown.press("\x1b")
    shown.press("\x1b[<65;1;9M" * 20)
    assert shown.choices.current.row == 62
    shown.press("\x1b[<64;1;9M")
    assert shown.choices.current.row == 59
    tab = shown.lines[1].index("ports") + 1
    shown.press(f"\x1b[<0;{tab};2M")
    assert shown.choices.history.answer.query == "ports"


def test_moving_scrolls_as_little_as_it_must(model: ViewModel) -> None:
    shown = Shown(model)
    page = shown.frame.page_rows
    shown.press("\x1b[F")
    assert shown.first_column[-1] == "10.0.0.63"
    assert len(shown.first_column) == page
    shown.press("\x1b[A" * (page - 1))
    assert shown.choices.current.top == 63 - page
    shown.press("\x1b[A")
    assert shown.choices.current.top == 62 - page
    shown.press("g")
    assert shown.first_column[0] == "10.0.0.1"


def test_a_filter_takes_effect_as_it_is_typed(model: ViewModel) -> None:
    shown = Shown(model)
    shown.press("/srcIP=10.0.0.4")
    assert shown.first_column == ["10.0.0.4"]
    shown.press("0/29")
    assert "8 of 63 rows: srcIP=10.0.0.40/29" in shown.text
    assert shown.lines[-1].startswith(" filter: srcIP=10.0.0.40/29")
    shown.press(" bytes>")
    assert "a value is missing after >" in shown.lines[-2]
    assert "8 of 63 rows" in shown.text
    shown.press("420\r")
    assert sorted(shown.first_column) == [f"10.0.0.{n}" for n in range(43, 48)]
    # q in a filter is a letter.
    shown.press("/q")
    assert shown.choices.prompt is not None
    shown.press("\x1b")
    assert "5 of 63 rows" in shown.text
    shown.press("\x1b")
    assert "63 rows" in shown.text
    assert "of 63" not in shown.text


def test_frozen_rows_stay_while_others_are_delivered_and_let_go(model: ViewModel) -> None:
    shown = Shown(model)
    shown.press(" ")
    before = shown.first_column
    for minute in range(5, 300):
        model.add("talkers", talkers(minute, [("192.0.2.1", 1, 1)]))
    shown.draw()
    assert "22:18:00Z FROZEN, 295 behind  63 rows" in shown.text
    assert shown.first_column == before
    shown.press(" ")
    assert shown.first_column == ["192.0.2.1"]


def test_older_epochs(model: ViewModel) -> None:
    shown = Shown(model)
    shown.press("[[")
    assert "22:16:00Z FROZEN, 2 behind  61 rows" in shown.text
    shown.press("[" * 9)
    assert "22:14:00Z FROZEN, 4 behind  59 rows" in shown.text
    assert "no older epoch is kept" in shown.lines[-1]
    shown.press("]" * 5)
    assert "22:18:00Z  63 rows" in shown.text
    assert "FROZEN" not in shown.text


def test_another_query_has_choices_of_its_own(model: ViewModel) -> None:
    shown = Shown(model)
    shown.press("/10.0.0.7\r\t")
    assert shown.first_column == ["80", "443"]
    shown.press("r")
    assert shown.first_column == ["443", "80"]
    shown.press("1")
    assert shown.first_column == ["10.0.0.7"]
    shown.press("\x1b[Z")
    assert shown.first_column == ["443", "80"]
    shown.press("9")
    assert shown.first_column == ["443", "80"]


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_help_names_every_key_and_fits_or_scrolls(
    model: ViewModel, columns: int, lines: int
) -> None:
    shown = Shown(model, columns, lines)
    shown.press("?")
    seen = shown.text
    shown.press("\x1b[B" * 40)
    seen += shown.text
    for word in ("freeze", "filter", "Tab", "sort", "PgUp", "end the run", "missing"):
        assert word in seen
    shown.press("?")
    assert shown.frame.first_row is not None


def test_losses_add_up_and_incomplete_epochs_are_marked(model: ViewModel) -> None:
    outcome = Outcome()
    value = (BEGAN + 4 * 60) * 1_000_000_000
    outcome.note_incomplete([IncompleteEpochs("talkers", KERNEL, value, value)], {})
    model.follow(outcome)
    links = (
        LinkState("up", 1200.0, 10, None, "up"),
        LinkState("down", 0.0, 0, 75.0, "up"),
        LinkState("other", 0.0, 0, None, "down", has_packets=False),
    )
    equation = "1,000 packets received = 990 accepted + 10 dropped"
    model.state.account = Account(equation, ("10 packets dropped", "and more"), links)
    assert "other down, no packets yet  … 1 more" in Shown(model).text
    shown = Shown(model, 160, 50)
    assert "down silent for 1 min 15 s" in shown.text
    assert "other down, no packets yet" in shown.text
    assert "up 1,200 packets/s, 10 lost" in shown.text
    assert equation in shown.text
    assert "10 packets dropped and 1 more" in shown.text
    assert "63 rows INCOMPLETE" in shown.text
    shown.press("[")
    assert "INCOMPLETE" not in shown.text
    shown.press("n")
    assert "   and more" in shown.text


def test_a_notice_is_shown_until_it_is_read(model: ViewModel) -> None:
    shown = Shown(model)
    model.note("interface a: gone\x1b[2J; no longer captured")
    shown.draw()
    assert r"interface a: gone\u001b[2J; no longer captured" in shown.lines[-1]
    shown.press("n")
    assert "interface a: gone" in shown.text
    shown.press("n")
    assert "? help" in shown.lines[-1]


def test_recording_by_keys(model: ViewModel, tmp_path: Path) -> None:
    shown = Shown(model)
    shown.press("w")
    assert shown.lines[-1].startswith(" record in: gscope-talkers.csv")
    (tmp_path / "taken").touch()
    shown.press(f"\x15{tmp_path}/taken\r")
    assert "file exists" in shown.lines[-2]
    shown.press(f"\x15{tmp_path}/new\r")
    assert "63 rows RECORDING 0 rows" in shown.text
    shown.press("\t")
    assert "RECORDING" not in shown.text
    shown.press("\tw")
    assert "recorded 63 rows of talkers in " in shown.lines[-1]
    assert len((tmp_path / "new").read_text().splitlines()) == 64


def test_quitting_and_redrawing(model: ViewModel) -> None:
    shown = Shown(model)
    assert [shown.press(key) for key in ("q", "\x03", "\x0c", "x")] == [
        Request.QUIT,
        Request.QUIT,
        Request.REDRAW,
        None,
    ]


def test_values_from_packets_cannot_steer_the_terminal() -> None:
    model = model_of(TALKERS)
    model.add("talkers", talkers(0, [("\x1b]0;x\x07日本", 1, 1)]))
    assert r"\u001b]0;x\u0007日本" in Shown(model).text


def test_nothing_yet_and_a_screen_that_is_too_small() -> None:
    assert "no rows yet" in Shown(model_of(TALKERS)).text
    frame = drawer(model_of(TALKERS)).draw(os.terminal_size((39, 9)))
    assert plain(frame.lines[0]).startswith("the view needs 40 columns")


def test_wide_answers_follow_the_column_that_sorts() -> None:
    names = [f"count{n:02}" for n in range(12)]
    columns = ", ".join(f"count(*) AS {name}" for name in names)
    model = model_of(
        "DEFINE { query_name wide; }"
        f" SELECT minute, srcIP, {columns} FROM IP GROUP BY minute(time), srcIP"
    )
    data = {"srcIP": pa.array(["10.0.0.1", "10.0.0.2"])}
    data |= {name: pa.array([n, 99 - n]) for n, name in enumerate(names)}
    model.add("wide", of_minute(0, data))
    shown = Shown(model)
    assert "srcIP" in shown.text
    assert "count11" not in shown.text
    shown.press("\x1b[C" * 11)
    assert "count11▼" in shown.text
    assert shown.lines[-1].startswith(" ? help")


def test_ascii_terminals_get_ascii(model: ViewModel) -> None:
    frame = drawer(model).draw(os.terminal_size((160, 50)))
    assert all(plain(line).isascii() for line in frame.lines)


def test_a_million_rows_are_drawn_from_the_first_of_them() -> None:
    model = model_of(TALKERS)
    count = 1_000_000
    sources = pa.DictionaryArray.from_arrays(
        pa.array(range(count), pa.int32()), pa.array([f"h{n}" for n in range(count)])
    ).dictionary_decode()
    numbers = pa.array(range(count))
    model.add("talkers", of_minute(0, {"srcIP": sources, "packets": numbers, "bytes": numbers}))
    shown = Shown(model)
    assert shown.first_column[0] == "h999999"
    assert "1,000,000 rows" in shown.text
    order = shown._drawer.shown._order
    assert len(order) < 1000


def test_packets_of_the_chosen_row_are_asked_for_by_its_number(
    model: ViewModel, tmp_path: Path
) -> None:
    shown = Shown(model)
    shown.press("p")
    assert "when a replay of files has ended" in shown.lines[-1]
    model.can_save = True
    model.on_end()
    # Sorted by bytes with a filter: the third row is that of 10.0.0.61, delivered as the 61st.
    shown.press("/srcIP>10.0.0.9\r\x1b[C\x1b[B\x1b[Bp")
    assert shown.first_column[2] == "10.0.0.61"
    assert "save packets of the row in: gscope-talkers.pcapng" in shown.lines[-1]
    shown.press(f"\x15{tmp_path}/row.pcapng\r")
    wanted = model.wanted_packets.get_nowait()
    before = 59 + 60 + 61 + 62
    assert (wanted.query, wanted.row) == ("talkers", before + 60)
    assert wanted.path == tmp_path / "row.pcapng"
    shown.press("[p\x1b")
    assert shown.choices.prompt is None
    assert model.wanted_packets.empty()
