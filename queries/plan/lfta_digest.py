"""What an LFTA computes, as a digest and as text, for processes on different hosts to compare.

A relay adds the partial tuples of several sensors. Each of them compiles the query text itself, so
both must have compiled it to the same LFTA: one that accepts the same packets, and writes the same
columns. The names of interfaces are left out, because each host has its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.plan.program_file import FORMAT, ProgramWriter
from gscope.queries.plan.sampling_operator import show_pre_sample
from gscope.queries.plan.show_expressions import show, show_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.plan.program import Lfta


def lfta_digest(lfta: Lfta, user_files: Sequence[UserFile] = ()) -> str:
    """Return the digest of everything that decides the rows of ``lfta``.

    Args:
        lfta: the LFTA; its interfaces, the name of its query and how its rows are divided into
            partitions do not count.
        user_files: the user code of its program, whose functions it may call.
    """
    writer = ProgramWriter()
    tree = writer.plain(replace(lfta, interfaces=(), query="", protocol="", partitioning=None))
    meaning = [FORMAT, [file.digest for file in user_files], writer.calls, tree]
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()


def lfta_meaning(lfta: Lfta) -> tuple[str, ...]:
    """Return what ``lfta`` computes as lines to read, in which two LFTAs can be compared."""
    predicate = "every packet" if lfta.predicate is None else show(lfta.predicate)
    return (
        f"packets {predicate}" if lfta.answers is None else f"answers {lfta.answers}",
        *(f"key {show_named([key])}" for key in lfta.keys),
        *([f"epoch {lfta.epoch}"] if lfta.epoch is not None else []),
        *(
            f"partial {p.name} := {p.op.value}({'*' if p.argument is None else show(p.argument)})"
            for p in lfta.partials
        ),
        *(f"column {show_named([column])}" for column in lfta.columns),
        *(f"order {show(call)}" for call in lfta.declared),
        *([f"left out {show_pre_sample(lfta.pre_sample)}"] if lfta.pre_sample is not None else []),
        *(
            f"stream {column.name} {column.type.value} {column.ordering.direction.value}"
            for column in lfta.stream_schema.columns
        ),
    )
