"""How D5 to D8 divide packets and work: each curve as what hosts run and send."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.library_set import LIBRARY

ROWS, MERGED, ANSWERS = "rows", "merged", "answers"
"""What a host sends: rows of its LFTAs; these after a relay on it has merged them; its answers."""


@dataclass(frozen=True, slots=True)
class Work:
    """Queries of a curve that are computed in the same way.

    Attributes:
        queries: the names of query files of the library, in ``published``.
        sends: what hosts send of them.
        by: what packets are divided by, of ``SETS``.
        results: the results.
    """

    queries: tuple[str, ...]
    sends: str
    by: str
    results: tuple[str, ...]

    @property
    def text(self) -> str:
        """The queries as one text."""
        return ";\n".join(query_text(name) for name in self.queries)

    @property
    def name(self) -> str:
        """A name for files and figures."""
        return f"{'-'.join(self.results)}.{self.sends}.{self.by}"


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of an experiment.

    Attributes:
        experiment: D5 to D8.
        name: as published.
        work: what its hosts do; several parts are measured one after the other and added.
    """

    experiment: str
    name: str
    work: tuple[Work, ...]


def query_text(name: str) -> str:
    """Return the text of a published query, with a name for its result."""
    lines = (LIBRARY / f"published/{name}.gsql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    if "query_name" in text:
        return text
    protocol, select, rest = text.rpartition(
        "SELECT tb, subnet" if "subnet" in text else "SELECT S1"
    )
    return f"{protocol}DEFINE {{ query_name '{name}'; }}\n{select}{rest}"


def _work(queries: str, sends: str, by: str) -> Work:
    names = tuple(queries.split())
    return Work(names, sends, by, names)


CURVES = (
    Curve("D5", "naive", (_work("suspicious", ROWS, "none"),)),
    Curve("D5", "partial", (_work("suspicious", MERGED, "none"),)),
    Curve("D5", "partitioned", (_work("suspicious", ANSWERS, "flow"),)),
    Curve("D6", "naive", (_work("jitter", ROWS, "none"),)),
    Curve("D6", "partitioned", (_work("jitter", ANSWERS, "flow"),)),
    Curve("D7", "naive", (_work("subnet_stats jitter", ROWS, "none"),)),
    Curve(
        "D7",
        "suboptimal set: ports and addresses",
        (_work("jitter", ANSWERS, "flow"), _work("subnet_stats", MERGED, "flow")),
    ),
    Curve(
        "D7",
        "chosen set, join central (as published)",
        (_work("subnet_stats", ANSWERS, "subnet"), _work("jitter", ROWS, "subnet")),
    ),
    Curve("D7", "chosen set, join on hosts", (_work("subnet_stats jitter", ANSWERS, "subnet"),)),
    Curve("D8", "naive", (_work("flow_pairs", ROWS, "none"),)),
    Curve("D8", "partial", (_work("flow_pairs", MERGED, "none"),)),
    Curve("D8", "partly compatible: addresses", (_work("flow_pairs", MERGED, "pair"),)),
    Curve("D8", "fully compatible: source", (_work("flow_pairs", ANSWERS, "source"),)),
)
