"""The syntax of one alert: when it is raised for a key, and when it is cleared."""

from __future__ import annotations

from gscope.records import dataclass

MIRRORED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
"""The operator that is true of a number exactly if the other one is not."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a column with a number. NULL does not fulfil it.

    Attributes:
        column: the name of the column.
        operator: ``<``, ``<=``, ``>`` or ``>=``.
        number: the threshold.
    """

    column: str
    operator: str
    number: int | float

    @property
    def opposite(self) -> Condition:
        """Return the condition that holds for all other numbers."""
        return Condition(self.column, MIRRORED[self.operator], self.number)

    def overlaps(self, other: Condition) -> bool:
        """Return whether a number can fulfil both conditions."""
        if self.operator[0] == other.operator[0]:
            return True
        low, high = (self, other) if self.operator[0] == ">" else (other, self)
        if low.number == high.number:
            return low.operator == ">=" and high.operator == "<="
        return low.number < high.number

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.number}"


@dataclass(frozen=True, slots=True)
class AlertRule:
    """When an alert is raised and cleared for a key.

    Attributes:
        text: the alert as the user wrote it.
        name: what events call it.
        query: the result whose rows it judges.
        raises: the condition for a row that counts for raising; None for any row.
        raise_epochs: in how many epochs in a row it must hold.
        clears: the condition for a row that counts for clearing; None for no row.
        clear_epochs: in how many epochs in a row it must hold.
        silence_clears: whether an epoch without a row of the key counts for clearing.
        by: the columns that form the key; () for the columns by which the query groups.
    """

    text: str
    name: str
    query: str
    raises: Condition | None
    raise_epochs: int
    clears: Condition | None
    clear_epochs: int
    silence_clears: bool
    by: tuple[str, ...] = ()
