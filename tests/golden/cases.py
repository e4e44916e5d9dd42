"""Golden cases.

A folder each with ``input.toml``, the expected rows and, unless it is in the library,
``query.gsql``.

``input.toml``::

    library = ["published/flow"]  # queries of the library, with ``query.gsql`` if there is one
    only = ["flow"]  # the queries to deliver (default: those that no other reads)
    is_ordered = false  # results have no temporal column (default true); some may be empty
    is_dealt = false  # the packets must not be dealt over other interfaces (default true)
    [captures]  # interface = files of ../shared/captures, read one after the other
    lan = ["a.pcap"]
    [sets]  # sets of interfaces
    lans = ["lan"]
    [
        synthetic.generated
    ]  # interface made by capture/sources/synthetic/source.py with these settings
    packets = 1000

``expected.csv`` has the rows of the result, sorted, with a heading; several results are
``expected.<query>.csv`` each. The first column of every result is temporal, unless it is not
ordered: delivered, it never falls. ``python -m tests.golden.cases`` writes the expected rows again
from the reference.
"""

from __future__ import annotations

import csv
import struct
import tempfile
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.reference.joins import JOIN_REFERENCES
from tests.reference.published import PUBLISHED_REFERENCES
from tests.reference.queries import REFERENCES as PLAIN_REFERENCES
from tests.reference.reference import read_packets, read_raw, shown
from tests.reference.running import RUNNING_REFERENCES
from tests.reference.whole_input import WHOLE_INPUT_REFERENCES
from tests.support.requirements import CAPTURES

from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.plan.program import Program

REFERENCES = {
    **PLAIN_REFERENCES,
    **RUNNING_REFERENCES,
    **PUBLISHED_REFERENCES,
    **JOIN_REFERENCES,
    **WHOLE_INPUT_REFERENCES,
}
FOLDER = Path(__file__).parent
LIBRARY = FOLDER.parents[1] / "queries" / "library"
Row = tuple[str, ...]
Files = dict[str, list[Path]]


@dataclass(frozen=True)
class Case:
    """One golden case; see the module."""

    name: str
    settings: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> Case:
        """The case in ``folder``."""
        return cls(folder.name, tomllib.loads((folder / "input.toml").read_text()))

    @property
    def is_dealt(self) -> bool:
        """Whether its packets may come on any interface."""
        return bool(self.settings.get("is_dealt", True))

    @property
    def is_ordered(self) -> bool:
        """Whether the first column of every result is temporal."""
        return bool(self.settings.get("is_ordered", True))

    @property
    def texts(self) -> list[QueryText]:
        """The queries."""
        paths = [LIBRARY / f"{name}.gsql" for name in self.settings.get("library", [])]
        texts = [QueryText(path.read_text(), path.name) for path in paths]
        own = FOLDER / self.name / "query.gsql"
        return [*texts, QueryText(own.read_text(), f"{self.name}.gsql")] if own.exists() else texts

    @cached_property
    def files(self) -> Files:
        """The captures of each interface; synthetic ones are made on first use."""
        files: Files = {}
        for interface, names in self.settings.get("captures", {}).items():
            files[interface] = [CAPTURES / name for name in names]
            for path in files[interface]:
                assert path.exists(), f"{path} is missing: the captures belong beside the project"
        for interface, settings in self.settings.get("synthetic", {}).items():
            files[interface] = [_synthetic(f"{self.name}-{interface}", settings)]
        return files

    def program(self, interfaces: Iterable[str], partitions: int = 1) -> Program:
        """Its queries, compiled for ``interfaces``, with rows divided into ``partitions``."""
        context = CompileContext(
            tuple(interfaces),
            self.settings.get("sets", {}),
            only=tuple(self.settings.get("only", ())),
            partitions=partitions,
        )
        return compile_queries(self.texts, context).program

    def expected(self) -> dict[str, list[Row]]:
        """The stored rows of each result."""
        return {query: _read(path)[1:] for query, path in self._paths().items()}

    def derived(self) -> dict[str, list[Row]]:
        """The rows of each result by the reference, sorted."""
        packets = [
            packet
            for interface, paths in self.files.items()
            for path in paths
            for packet in read_packets(path, interface)
        ]
        return {
            query: sorted(shown(reference.rows(packets), reference.columns))
            for query, reference in REFERENCES[self.name].items()
        }

    def store(self) -> None:
        """Write the expected rows again."""
        rows = self.derived()
        for query, path in self._paths().items():
            with path.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(REFERENCES[self.name][query].columns)
                writer.writerows(rows[query])

    def _paths(self) -> dict[str, Path]:
        queries = REFERENCES[self.name]
        one = len(queries) == 1
        return {
            query: FOLDER / self.name / ("expected.csv" if one else f"expected.{query}.csv")
            for query in queries
        }


def all_cases() -> list[Case]:
    """Every folder with an input."""
    return [Case.read(path.parent) for path in sorted(FOLDER.glob("*/input.toml"))]


def deal(files: Files, interfaces: Sequence[str], folder: Path) -> Files:
    """The same packets in time order, dealt in turn over ``interfaces``, as files in ``folder``."""
    packets = sorted(
        (raw for paths in files.values() for path in paths for raw in read_raw(path)),
        key=lambda raw: raw[0],
    )
    dealt: Files = {}
    for number, interface in enumerate(interfaces):
        dealt[interface] = [folder / f"{interface}.pcap"]
        with dealt[interface][0].open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
            for time_ns, wirelen, data in packets[number :: len(interfaces)]:
                seconds, rest = divmod(time_ns, 10**9)
                file.write(struct.pack("<IIII", seconds, rest, len(data), wirelen) + data)
    return dealt


_made = tempfile.TemporaryDirectory(prefix="gscope-golden-")


def _synthetic(name: str, settings: Mapping[str, Any]) -> Path:
    path = Path(_made.name) / f"{name}.pcap"
    if not path.exists():
        values = dict(settings)
        packets = values.pop("packets")
        write_pcap(TrafficProfile(**values), path, packets)
    return path


def _read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


if __name__ == "__main__":
    for case in all_cases():
        case.store()
