"""The long run: ``python -m tests.differential --queries 2000 --seed 1``."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.differential.captured import usable_captures
from tests.differential.harness import Outcome, compare, random_scenario
from tests.differential.minimise import minimised, report
from tests.support.requirements import lacking_for_cluster
from tests.support.shared_spark import SharedSpark, session_here
from tests.support.spark_apart import session_apart


def main() -> int:
    """Compare until enough queries were answered; the exit code says whether all agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--queries", type=int, default=2000, help="how many to answer at least")
    parser.add_argument("--seed", type=int, default=1, help="of the first scenario")
    parser.add_argument("--at-once", type=int, default=12, help="queries of a scenario")
    parser.add_argument("--joins", type=int, default=0, help="how many of them joins, at least")
    parser.add_argument(
        "--captures", type=Path, help="folder of captures to take packets from; none: made ones"
    )
    parser.add_argument("--windows", action="store_true", help="most queries have windows")
    parser.add_argument("--partitions", type=int, default=1, help="into which rows are divided")
    parser.add_argument(
        "--cluster", action="store_true", help="two workers that do not see the runs (needs root)"
    )
    parser.add_argument("--compiled-every", type=int, default=20, help="scenarios; 0 for never")
    parser.add_argument("--minimise", type=float, default=60, help="seconds for a disagreement")
    options = parser.parse_args()
    if options.cluster and (missing := lacking_for_cluster()):
        parser.error(f"--cluster needs {', '.join(missing)}")
    total, seed, began = Outcome(), options.seed, time.monotonic()
    captures = usable_captures(options.captures) if options.captures else ()
    with tempfile.TemporaryDirectory(prefix="gscope-test-") as folder:
        shared = SharedSpark(Path(folder), session_apart if options.cluster else session_here)
        try:
            while total.compared < options.queries or total.joins < options.joins:
                every = options.compiled_every
                is_compiled = bool(every) and (seed - options.seed) % every == every - 1
                scenario = random_scenario(
                    seed,
                    options.at_once,
                    is_interpreted=not is_compiled,
                    captures=captures,
                    has_windows=options.windows,
                    partitions=options.partitions,
                )
                outcome = compare(scenario, shared.session())
                total.add(outcome)
                spent = time.monotonic() - began
                _say(f"seed {seed}: {total.compared} queries compared in {spent:.0f} s")
                for found in outcome.disagreements:
                    smaller = minimised(scenario, found, shared.session(), options.minimise)
                    _say(f"\nDISAGREEMENT, seed {seed}\n{report(*smaller)}\n")
                seed += 1
        finally:
            shared.release()
    _say(
        f"seeds {options.seed} to {seed - 1}: {total.compared} compared, "
        f"{total.joins} of them joins, {total.not_empty} with rows"
    )
    for reason, count in total.refused.most_common():
        _say(f"{count} refused: {reason}")
    _say(f"{len(total.disagreements)} disagreements")
    return 1 if total.disagreements else 0


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 a tool for people


if __name__ == "__main__":
    raise SystemExit(main())
