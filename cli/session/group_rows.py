"""The keys of the groups in answers, by which their packets are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.capture.lfta.punctuation import known_value

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.settings import SavedQuery
    from gscope.cli.session.saved_packets import SavePlan


class GroupRows:
    """Keys of groups, collected while the rows of these are delivered.

    Args:
        plan: how packets are saved.
    """

    def __init__(self, plan: SavePlan) -> None:
        self._plan = plan
        self._tables: dict[str, list[pa.Table]] = {each.query: [] for each in plan.queries}

    def take(self, query: str, table: pa.Table) -> None:
        """Note the keys of the rows of an answer."""
        for saved in self._plan.queries:
            if saved.query == query and saved.lfta in self._plan.groups:
                keys = self._plan.groups[saved.lfta].keys
                columns = [table[shown] for _, shown in keys] or [pa.nulls(table.num_rows)]
                names = [column for column, _ in keys] or [""]
                self._tables[query].append(pa.table(columns, names))

    def settle(self) -> None:
        """Do nothing: packets are searched when all rows are delivered."""

    def add(self, others: GroupRows) -> None:
        """Add the keys of others of the same plan."""
        for query, tables in others._tables.items():
            self._tables[query] += tables

    def __len__(self) -> int:
        return sum(table.num_rows for tables in self._tables.values() for table in tables)

    def begun_until(self, time_ns: int) -> int:
        """Return the number of groups that may have a packet at ``time_ns`` or earlier."""
        count = 0
        for saved in self._plan.queries:
            found = self._plan.groups.get(saved.lfta)
            tables = self._tables[saved.query]
            epoch = None
            if found is not None and found.epoch is not None:
                epoch = known_value(found.epoch.expression, time_ns, {})
            for table in tables:
                if epoch is None or found is None or found.epoch is None:
                    count += table.num_rows
                    continue
                column = table[found.epoch.name].cast(pa.int64())
                count += pc.sum(pc.less_equal(column, epoch)).as_py() or 0
        return count

    def write(self, folder: Path) -> tuple[SavedQuery, ...]:
        """Write the keys to files in ``folder``; return the queries with the names of the files."""
        queries = []
        for saved in self._plan.queries:
            if saved.lfta not in self._plan.groups:
                queries.append(saved)
                continue
            tables = self._tables[saved.query]
            table = pa.concat_tables(tables) if tables else pa.table({})
            if not self._plan.groups[saved.lfta].keys:
                # All packets are of one group, which is in the answer or is not.
                table = table.slice(0, 1)
            path = folder / f"{saved.lfta}.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            path.chmod(0o644)
            queries.append(replace(saved, keys=str(path)))
        return tuple(queries)
