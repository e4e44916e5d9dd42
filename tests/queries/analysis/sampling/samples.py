"""The schemes of a query set, and the packets that a sample by them keeps."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.queries.analysis.sampling.plain_answers import packet_values
from tests.queries.analysis.sampling.random_queries import packets, query_set, query_set_over_time

from gscope.errors import UnsupportedError
from gscope.queries.analysis.sampling.choose import sets_by_stream
from gscope.queries.analysis.sampling.query_sets import QuerySetSampling
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program_sampling import SamplingMethod

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.queries.analysis.sampling.plain_answers import Packet

    from gscope.queries.analysis.sampling.query_sets import PlacedTree
    from gscope.queries.compile import Compiled

INTERFACES = ("a", "b")


def compiled(text: str, *, samples: bool = True) -> Compiled:
    """Compile a text whose packets may be sampled."""
    context = CompileContext(interfaces=INTERFACES, samples=samples)
    return compile_queries([QueryText(text, "query")], context)


@dataclass(frozen=True)
class Sampled:
    """A query set with its schemes."""

    compiled: Compiled
    found: QuerySetSampling

    @classmethod
    def of(cls, text: str) -> Sampled:
        """Return the schemes of a text."""
        result = compiled(text)
        return cls(result, QuerySetSampling.of(result.stages[0][1], result.shared))

    @classmethod
    def at_random(cls, seed: int) -> tuple[Sampled, list[Packet]]:
        """Return a random query set and packets, every fourth by tuples if that is sound."""
        traffic = packets(random.Random(seed))
        if seed % 4 == 3:
            with suppress(UnsupportedError):
                return cls.of(query_set(random.Random(seed), by_tuples=True)), traffic
        return cls.of(query_set(random.Random(seed), by_tuples=False)), traffic

    @classmethod
    def over_time(cls, seed: int) -> tuple[Sampled, list[Packet]]:
        """Return a random query set with windows and groups that live on, and packets."""
        return cls.of(query_set_over_time(random.Random(seed))), packets(random.Random(seed))

    @property
    def trees(self) -> list[PlacedTree]:
        """The results that are sampled."""
        return [tree for tree in self.found.placed if not tree.refusal]

    def unit(self, tree: PlacedTree, leaf: int, packet: Packet, number: int) -> Any:
        """Return what is kept or dropped as one: of a leaf by tuples the packet of this number."""
        stream = tree.streams[leaf]
        if self.found.assignment.methods[stream] is SamplingMethod.TUPLES:
            return stream, number
        terms = sets_by_stream(self.found.assignment)[stream]
        place = self.found.assignment.sets.index(terms)
        return place, packet_values(packet, [term.over(stream) for term in terms])

    def keeps(
        self, tree: PlacedTree, packets: list[Packet], is_kept: Callable[[Any], bool]
    ) -> Callable[[int, Packet], bool]:
        """Return whether a leaf of a result keeps a packet, given which units are kept."""
        numbers = {id(packet): number for number, packet in enumerate(packets)}

        def keeps(leaf: int, packet: Packet) -> bool:
            return is_kept(self.unit(tree, leaf, packet, numbers[id(packet)]))

        return keeps
