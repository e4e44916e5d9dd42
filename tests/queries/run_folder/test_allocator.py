"""What a process does with memory that it frees, counted by the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from gscope.queries.run_folder.allocator import KEPT_BYTES

PROGRAM = """
import json, resource, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from gscope.queries.run_folder.startup import settle
settle()
import pyarrow as pa

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def repeated(make):
    counts = []
    for _ in range(6):
        before = faults()
        made = make()
        counts.append(faults() - before)
        del made
    return min(counts[1:])

found = dict(pool=pa.default_memory_pool().backend_name)
found["large"] = repeated(lambda: b"x" * (64 << 20))
found["small"] = repeated(lambda: [b"x" * (1 << 20) for _ in range(64)])
numbers = pa.array(range(1 << 20))
found["arrow"] = repeated(lambda: numbers.cast(pa.float64()))

def in_turn(pools):
    counts = []
    for pool in pools:
        before = faults()
        pool.submit(lambda: len(b"x" * (48 << 20))).result()
        counts.append(faults() - before)
    return max(counts[1:])

# All threads live while one after the other works.
pools = [ThreadPoolExecutor(1) for _ in range(4)]
for pool in pools:
    pool.submit(bytes, 100_000).result()
found["of another thread"] = in_turn(pools)
at_rest = resident()
taken = b"x" * (1 << 30)
del taken
found["kept"] = resident() - at_rest
print(json.dumps(found))
"""
PAGES = (64 << 20) // os.sysconf("SC_PAGESIZE")
FEW = 200
"""Pages that a process touches for other reasons."""


def _found(**given: str) -> dict[str, int | str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MALLOC_")
        and name not in ("GLIBC_TUNABLES", "ARROW_DEFAULT_MEMORY_POOL")
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env=ours | given,
    )
    found: dict[str, int | str] = json.loads(done.stdout)
    return found


def test_memory_that_is_needed_again_is_not_cleared_again() -> None:
    found = _found()
    assert found["pool"] == "system"
    kinds = ("large", "small", "arrow", "of another thread")
    assert max(int(found[name]) for name in kinds) < FEW < PAGES // 10
    assert int(found["kept"]) <= KEPT_BYTES


def test_allocators_that_users_have_set_stay_as_they_are() -> None:
    found = _found(MALLOC_ARENA_MAX="2", ARROW_DEFAULT_MEMORY_POOL="mimalloc")
    assert found["pool"] == "mimalloc"
    # glibc gives so large a block back at once.
    assert int(found["large"]) >= PAGES
