"""A job whose log is thinned at random while it reads, and what the log was thinned to."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.golden.driver import Job

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.thinning.limits import StreamLimits
from gscope.capture.log.thinning.thinner import Thinner, ThinningRules
from gscope.engine.steps.batch_leases import leased_batches
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.sampling.keyed_hash import HashKey
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.thinnable import thinnable_samples

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gscope.engine.steps.steps import Step, Steps
    from gscope.engine.storage.commits import Output
    from gscope.queries.streams.messages import Batch
    from gscope.queries.streams.thresholds import ThresholdSchedule

MIN_RATE = 0.02


class ThinnedJob(Job):
    """Leases what a step reads, as a live job does; the log is thinned before and after."""

    cuts: list[tuple[str, int, int, int]]
    thinned_tuples = 0

    def run(self) -> None:
        self.cuts = []
        program = self._program
        specs = [
            StreamSpec.from_lfta(lfta, name) for lfta in program.lftas for name in lfta.interfaces
        ]
        budget, reader = ShedOldest(8 << 30), Consumer("job")
        with closing(StreamLog(self._log_folder, specs, consumers=[reader], budget=budget)) as log:
            self._log = log
            self._received: dict[str, int] = {}
            unleased = log.unleased

            def received(streams: Collection[str]) -> list[Batch]:
                """Only what has arrived: the log of a live capture grows while the job reads it."""
                found = unleased(streams)
                return [b for b in found if b.sequence <= self._received.get(b.stream, -1)]

            log.unleased = received  # type: ignore[method-assign]
            self._thinner = self._made(log, specs)
            log.use_thinning(self._thinner)
            super().run()
            self.thinned_tuples = log.stats.thinned_tuples_total
            stats = log.stats
            terms = stats.released_tuples_total + stats.waiting_tuples + stats.shed_tuples_total
            assert stats.tuples_total == terms
            assert stats.shed_tuples_total == stats.thinned_tuples_total
            assert not self._thinner.failures

    def _made(self, log: StreamLog, specs: Iterable[StreamSpec]) -> Thinner:
        """Thins the streams that clients do not read directly: only the job cuts what it reads."""
        program, shedding = self._program, self._variation.shedding
        assert shedding is not None
        direct = {
            stream
            for _, source in program.results
            if isinstance(source, StreamInput)
            for stream in program.lfta(source.lfta).streams
        }
        named = {spec.name: spec for spec in specs}
        samples = thinnable_samples(program, moving_samples(program)[0], set(named) - direct)
        assert samples
        key = HashKey.of_seed(shedding.seed)
        rules = ThinningRules(samples, named, key, MIN_RATE, 1, 0, "job")
        limits = StreamLimits(self._log_folder)
        lower = limits.lower

        def noted(streams: Iterable[str], threshold: int, from_ns: int, until_ns: int) -> bool:
            is_done = lower(streams, threshold, from_ns, until_ns)
            if is_done:
                self.cuts += [(stream, threshold, from_ns, until_ns) for stream in streams]
            return is_done

        limits.lower = noted  # type: ignore[method-assign]
        return Thinner(log, rules, limits, is_new=True)

    def _thin(self) -> None:
        # One cut concerns one component.
        for _ in range(self._random.choice((0, 1, 3))):
            used = max(1, self._log.used_bytes)
            self._thinner._rules = replace(self._thinner._rules, budget_bytes=used)
            self._thinner._thin_once()

    def on_committed(self, step: int, outputs: Sequence[Output], steps: Steps) -> None:
        """Kept groups are whole, so what was thinned makes no epoch incomplete."""
        super().on_committed(step, outputs, steps)
        assert not any(steps.incomplete.counts(query) for query in steps.operators)

    def _limits(self, step: Step, steps: Steps) -> Mapping[str, ThresholdSchedule]:
        for operator in steps.operators.values():
            for side in operator.sides:
                for name, port in side.ports.items():
                    self._received[name] = max(port.cursor, self._received.get(name, -1))
        self._thin()
        batches = leased_batches(step, steps)
        reply = self._log.lease_answered("job", batches, steps.answered())
        assert not reply.gone
        self._thin()
        return reply.limits
