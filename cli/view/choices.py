"""What the user has chosen to see, and how keys and clicks change it."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.cli.view.model import WantedPackets
from gscope.cli.view.rows.filters import Filter, InvalidFilterError, parse_filter, valid_part
from gscope.cli.view.rows.history import Frozen
from gscope.cli.view.rows.ordering import Sorting
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.view.model import ViewModel
    from gscope.cli.view.recording import Recorder
    from gscope.cli.view.rows.columns import Answer
    from gscope.cli.view.rows.history import History


_FILTER = "filter"
_PACKETS = "save packets of the row in"


class Page(Enum):
    """What fills the screen."""

    ROWS = "the rows of an epoch"
    ROW = "all values of one row"
    HELP = "the keys"
    NOTES = "losses and notices"


@dataclass(slots=True)
class AnswerChoice:
    """What the user has chosen for one answer.

    Attributes:
        sorting: how rows are sorted; None for the order of delivery.
        filter: which rows are shown.
        row: the place of the chosen row among those that are shown.
        top: the place of the first row on the screen.
        frozen: the epoch that is shown; None for the latest.
    """

    sorting: Sorting | None
    filter: Filter = field(default_factory=Filter)
    row: int = 0
    top: int = 0
    frozen: Frozen | None = None


@dataclass(slots=True)
class Prompt:
    """A line that the user types.

    Attributes:
        title: what it is for.
        text: what has been typed.
        error: why that is invalid; "" if it is not.
    """

    title: str
    text: str = ""
    error: str = ""


def first_choice(answer: Answer) -> AnswerChoice:
    """Return how an answer is shown at first: by ORDER BY, otherwise the greatest rows first."""
    if answer.ordered_by is not None or not answer.measures or not answer.keys:
        return AnswerChoice(None)
    return AnswerChoice(Sorting(answer.measures[0]))


class Choices:
    """The choices of the user.

    Args:
        model: what there is to see.
        recorder: records it.

    Attributes:
        recorder: see above.
        page: what fills the screen.
        prompt: the line that is typed; None for none.
        message: what the last key did, if that must be said.
        place: which answer is shown, from 0.
        scroll: the first line that is shown of a page other than rows.
        read_notices: how many notices the user has seen.
    """

    def __init__(self, model: ViewModel, recorder: Recorder) -> None:
        self.recorder = recorder
        self.page = Page.ROWS
        self.prompt: Prompt | None = None
        self.message = ""
        self.place = 0
        self.scroll = 0
        self.read_notices = 0
        self._model = model
        self._of: dict[str, AnswerChoice] = {}
        self._filter_before: Filter | None = None
        self._wanted_row = 0

    @property
    def histories(self) -> Sequence[History]:
        """The answers."""
        return self._model.histories

    @property
    def history(self) -> History:
        """The answer that is shown."""
        return self.histories[self.place]

    @property
    def current(self) -> AnswerChoice:
        """The choices for the answer that is shown."""
        answer = self.history.answer
        return self._of.setdefault(answer.query, first_choice(answer))

    def show_answer(self, place: int) -> None:
        """Show another answer; the first one follows the last one."""
        self.place = place % len(self.histories)
        self.page = Page.ROWS

    def shown(self) -> Frozen | None:
        """Return the epoch that is shown, with its rows; None before the first row."""
        with self._model.lock:
            if (frozen := self.current.frozen) is not None:
                return frozen
            epoch = self.history.latest
            if epoch is None or (table := epoch.table) is None:
                return None
            return Frozen(epoch, table)

    def freeze(self) -> None:
        """Keep the epoch on the screen, or show the latest one again."""
        choice = self.current
        choice.frozen = self.shown() if choice.frozen is None else None

    def step_epoch(self, by: int) -> None:
        """Show an older or newer epoch whose rows are kept; behind the latest, follow again."""
        shown = self.shown()
        if shown is None:
            return
        with self._model.lock:
            latest = self.history.latest
            number = shown.epoch.number + by
            if latest is not None and number > latest.number:
                self.current.frozen = None
                return
            epoch = self.history.find(number)
            if epoch is None or (table := epoch.table) is None:
                self.message = "no older epoch is kept" if by < 0 else ""
                return
            self.current.frozen = Frozen(epoch, table)

    def sort_by(self, name: str) -> None:
        """Sort by a column; by the same column again: in the other direction."""
        choice, column = self.current, self.history.answer[name]
        if choice.sorting is not None and choice.sorting.column == name:
            choice.sorting = Sorting(name, not choice.sorting.is_descending)
        else:
            choice.sorting = Sorting(name, column.is_number)
        choice.row = choice.top = 0

    def sort_beside(self, by: int) -> None:
        """Sort by the column to the left or right; the order of delivery is left of the first."""
        choice = self.current
        columns = self.history.answer.shown
        names: list[str | None] = [None, *(column.name for column in columns)]
        before = choice.sorting.column if choice.sorting is not None else None
        name = names[(names.index(before) + by) % len(names)]
        choice.sorting = None
        if name is not None:
            self.sort_by(name)
        choice.row = choice.top = 0

    def reverse(self) -> None:
        """Sort in the other direction."""
        if (sorting := self.current.sorting) is not None:
            self.sort_by(sorting.column)

    def move(self, row: int, rows: int) -> None:
        """Choose the row at a place, as far as there are rows."""
        self.current.row = max(0, min(row, rows - 1))

    def ask_filter(self) -> None:
        """Let the user type a filter."""
        self.prompt = Prompt(_FILTER, self.current.filter.text)
        self._filter_before = self.current.filter

    def type(self, text: str) -> None:
        """Take the text of the prompt so far; the terms of a filter that are valid take effect."""
        assert self.prompt is not None
        self.prompt.text = text
        self.prompt.error = ""
        if self.prompt.title != _FILTER:
            return
        try:
            self.current.filter = parse_filter(text, self.history.answer)
        except InvalidFilterError as error:
            self.current.filter = valid_part(text, self.history.answer)
            self.prompt.error = str(error)
        self.current.row = self.current.top = 0

    def record(self) -> None:
        """Let the user name a file to record in, or end the recording."""
        if self.recorder.current is not None:
            self.recorder.stop()
        else:
            self.prompt = Prompt("record in", f"gscope-{self.history.answer.query}.csv")

    def ask_packets(self, place: int | None) -> None:
        """Let the user name a file for the packets of a row of the epoch; None for no row."""
        shown = self.shown()
        if not self._model.can_save:
            self.message = "packets of rows are saved when a replay of files has ended"
        elif shown is not None and place is not None:
            self._wanted_row = shown.epoch.first_row + place
            self.prompt = Prompt(_PACKETS, f"gscope-{self.history.answer.query}.pcapng")

    def accept_prompt(self) -> None:
        """Use what was typed; stay if a recording cannot begin."""
        prompt, self.prompt = self.prompt, None
        if prompt is None or prompt.title == _FILTER or not prompt.text:
            return
        if prompt.title == _PACKETS:
            path, query = Path(prompt.text).expanduser(), self.history.answer.query
            self._model.wanted_packets.put(WantedPackets(query, self._wanted_row, path))
            return
        shown = self.shown()
        epoch = None if shown is None else shown.epoch
        prompt.error = self.recorder.start(prompt.text, self.history, self.current, epoch)
        self.prompt = prompt if prompt.error else None

    def cancel_prompt(self) -> None:
        """Leave the prompt, with the filter as it was before."""
        if self.prompt is not None and self.prompt.title == _FILTER:
            self.current.filter = self._filter_before or Filter()
        self.prompt = None

    def read_all_notices(self) -> None:
        """Note that the user has seen all notices."""
        self.read_notices = len(self._model.notices)

    def clear_filter(self) -> None:
        """Show all rows."""
        self.current.filter = Filter()
        self.current.row = self.current.top = 0
