"""The spool against a plain list.

Whatever is read, dropped or killed, each row is accounted for.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from gscope.cli.outlets.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.outlets.spool import Cursor


def lines(first: int, count: int) -> bytes:
    return b"".join(b'{"n": %d}\n' % number for number in range(first, first + count))


def append(spool: Spool, count: int, query: str = "q") -> None:
    spool.append(query, lines(spool.end, count), count)


def published(spool: Spool) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(json.dumps(spool.state()))
    spool.publish()
    return state


def read_all(spool: Spool, cursor: Cursor, most_rows: int = 100) -> list[int]:
    found: list[int] = []
    while (block := spool.read(cursor, most_rows, 1 << 20)) is not None:
        assert len(block.lines) <= most_rows
        numbers = [json.loads(line)["n"] for line in block.lines]
        assert numbers == list(range(block.first, block.end))
        found += numbers
    return found


def test_rows_can_be_read_once_they_are_on_record(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    cursor = spool.add_reader(0)
    append(spool, 3)
    assert read_all(spool, cursor) == []
    published(spool)
    append(spool, 2)
    assert read_all(spool, cursor) == [0, 1, 2]
    published(spool)
    assert read_all(spool, cursor) == [3, 4]
    spool.close()


def test_rows_are_numbered_within_their_result(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    cursor = spool.add_reader(0)
    for query, count in (("a", 2), ("b", 3), ("a", 4)):
        append(spool, count, query)
    published(spool)
    found = []
    while (block := spool.read(cursor, 3, 1 << 20)) is not None:
        found.append((block.query, block.number, len(block.lines)))
    assert found == [("a", 1, 2), ("b", 1, 3), ("a", 3, 3), ("a", 6, 1)]
    assert spool.numbers == {"a": 6, "b": 3}
    spool.close()


def test_a_row_above_the_size_of_a_batch_is_read_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20)
    cursor = spool.add_reader(0)
    append(spool, 3)
    published(spool)
    sizes = []
    while (block := spool.read(cursor, 10, 1)) is not None:
        sizes.append(len(block.lines))
    assert sizes == [1, 1, 1]
    spool.close()


def test_acknowledged_segments_are_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 14)
    fast, slow = spool.add_reader(0), spool.add_reader(0)
    for _ in range(10):
        append(spool, 100)
    published(spool)
    read_all(spool, fast)
    spool.acknowledge(fast, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    spool.acknowledge(slow, 450)
    assert spool.first == 400
    spool.acknowledge(slow, 1000)
    assert len(list(tmp_path.iterdir())) == 1
    spool.close()


def test_rows_that_were_deleted_while_a_run_was_down_count_as_dropped(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 14)
    append(spool, 100)
    append(spool, 100)
    state = published(spool)
    spool.close()
    min(tmp_path.iterdir()).unlink()
    again = Spool(tmp_path, 1 << 14, state)
    cursor = again.add_reader(30)
    assert cursor.dropped == 70
    assert read_all(again, cursor) == list(range(100, 200))
    again.close()


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_random_every_row_is_read_in_order_or_dropped(tmp_path: Path, seed: int) -> None:
    """The model: what is on record is a list; what was appended since is gone after a kill."""
    chance = random.Random(seed)
    budget = 1 << 13
    spool = Spool(tmp_path, budget)
    recorded: dict[str, Any] = {}
    settled, dropped = [0, 0], [0, 0]
    cursors = [spool.add_reader(0) for _ in settled]
    seen: list[list[int]] = [[], []]
    for _ in range(300):
        what = chance.choice(["append", "append", "publish", "read", "read", "kill"])
        if what == "append":
            append(spool, chance.randrange(1, 40))
            assert spool.size <= budget
        elif what == "publish":
            recorded = published(spool)
        elif what == "read":
            which = chance.randrange(2)
            cursor = cursors[which]
            block = spool.read(cursor, chance.randrange(1, 50), 1 << 20)
            if block is not None:
                seen[which] += range(block.first, block.end)
                spool.acknowledge(cursor, cursor.next)
            settled[which], dropped[which] = cursor.next, cursor.dropped
        elif chance.random() < 0.3:
            spool.close()
            spool = Spool(tmp_path, budget, recorded)
            cursors = [spool.add_reader(*at) for at in zip(settled, dropped, strict=True)]
    published(spool)
    for which, cursor in enumerate(cursors):
        seen[which] += read_all(spool, cursor)
        assert seen[which] == sorted(set(seen[which]))
        assert len(seen[which]) + cursor.dropped == spool.end
        assert cursor.dropped < spool.end
    spool.close()
