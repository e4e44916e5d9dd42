"""Sampling as code: which packets an LFTA keeps, of those that its predicate accepts.

    H = finish((start ^ srcIP) * first …)       GROUPS: the terms of the LFTA
    H = finish((packet ^ number) * first)       TUPLES: the number of the packet
    if H > threshold: not kept

Thresholds and constants are words that the kernel reads when it runs (``SamplingState``), so that
a change of rate or seed compiles nothing. A set of LFTAs that keep all packets has no such code
at all: its kernel is that of a run without sampling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import int_code, lower
from gscope.capture.lfta.kernel_arguments import SamplingRule
from gscope.capture.lfta.sampling_kernels import TAKEN, WANTED
from gscope.capture.lfta.state import SAMPLING_NAMES, InterfaceState, SamplingState
from gscope.capture.packet.record import INFO, REASON_SHIFT
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import NULL_WORD
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.capture.lfta.codegen.scope import Lowered, Scope
    from gscope.queries.plan.program import Lfta
    from gscope.queries.plan.program_sampling import LeafSampling

_IMPORTS = """\
from gscope.capture.lfta.kernel_arguments import SamplingRule
from gscope.capture.lfta.sampling_kernels import begin_fates, count_shed, finished

# Words of the interface's state for samples.
"""


@dataclass(frozen=True, slots=True)
class SampledSet:
    """Whether a set of LFTAs samples, and what its code needs for that.

    Attributes:
        is_sampled: whether an LFTA of the set samples.
        has_others: whether the set has several LFTAs, of which each notes the packets it takes.
    """

    is_sampled: bool
    has_others: bool

    @classmethod
    def of(cls, lftas: Sequence[Lfta]) -> SampledSet:
        """Return that of ``lftas``."""
        return cls(any(lfta.sampling is not None for lfta in lftas), len(lftas) > 1)

    @property
    def preamble(self) -> str:
        """Imports and names, behind those of all kernels."""
        return f"{_IMPORTS}{SAMPLING_NAMES}\n" if self.is_sampled else ""

    @property
    def parameters(self) -> str:
        """Further parameters of the function of an LFTA."""
        return ", sampling, threshold" if self.is_sampled else ""

    def arguments(self, number: int) -> str:
        """Return the arguments for ``parameters`` in the call of LFTA ``number``."""
        if not self.is_sampled:
            return ""
        return f", sampling, interface[{SamplingState.THRESHOLDS} + {number}]"

    def begin_batch(self) -> Iterator[str]:
        """Yield lines of ``run`` before the LFTAs process a batch."""
        if not self.is_sampled:
            return
        yield "        sampling = SamplingRule("
        for name in SamplingRule._fields:
            yield f"            {name}=interface[{_WORDS[name]}],"
        yield "        )"
        yield f"        if interface[{InterfaceState.WAITING}] < 0:"
        yield "            begin_fates(sampling.fates)"

    def end_batch(self) -> Iterator[str]:
        """Yield lines of ``run`` after all LFTAs have processed a batch."""
        if self.is_sampled:
            yield f"        interface[{SamplingState.SHED}] += count_shed(sampling.fates)"
            yield f"        interface[{SamplingState.SEEN}] += count"

    def keep(self, scope: Scope, lfta: Lfta) -> None:
        """Add code that leaves the packet, which the LFTA wants, out of it unless it is sampled."""
        if not self.is_sampled:
            return
        fate = "sampling.fates + i"
        if lfta.sampling is not None:
            hashed = _hash(scope, lfta.sampling)
            wanted = str(WANTED)
            if not scope.variant.is_plain:
                # A packet that is not decoded as a whole is in the counter of its reason.
                scope.bind(("record",))
                reason = f"lshr(ld64(record + {INFO}), {REASON_SHIFT}) & 255"
                wanted = f"(0 if {reason} != 0 else {WANTED})"
            scope.emit(f"if ult(threshold, {hashed}):")
            scope.emit(f"    st8({fate}, ld8({fate}) | {wanted})")
            scope.emit("    continue")
        if self.has_others:
            scope.emit(f"st8({fate}, ld8({fate}) | {TAKEN})")


_WORDS = {
    "start": SamplingState.START,
    "address": SamplingState.ADDRESS,
    "ipv4": SamplingState.IPV4,
    "packet": SamplingState.PACKET,
    "first": SamplingState.FIRST,
    "second": SamplingState.SECOND,
    "number": SamplingState.SEEN,
    "fates": SamplingState.FATES,
}


def _hash(scope: Scope, sampling: LeafSampling) -> str:
    if sampling.method is SamplingMethod.TUPLES:
        return _finished(scope, _step(scope, "sampling.packet ^ (sampling.number + i)"))
    result = "sampling.start"
    for term in sampling.terms:
        word = _word(scope, lower(scope, term))
        result = _step(scope, f"{result} ^ {word}")
    return _finished(scope, result)


def _word(scope: Scope, value: Lowered) -> str:
    if value.is_always_null:
        return int_code(NULL_WORD)
    if value.type is GsqlType.IP:
        high, low = value.parts
        if high == "0":
            # The high half of every IPv4 address.
            mixed = "sampling.ipv4"
        else:
            mixed = _finished(scope, _step(scope, f"{high} ^ sampling.address"))
        code = scope.value(f"{low} ^ {mixed}")
    elif value.type is GsqlType.BOOL:
        code = scope.value(f"1 if {value.code} else 0")
    else:
        code = value.code
    if value.null is not None:
        code = scope.value(f"{int_code(NULL_WORD)} if {value.null} else {code}")
    return code


def _step(scope: Scope, code: str) -> str:
    return scope.value(f"wrap_mul({code}, sampling.first)")


def _finished(scope: Scope, code: str) -> str:
    return scope.value(f"finished({code}, sampling.second)")
