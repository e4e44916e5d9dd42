"""A compiled kernel gives the bits that Python gives; bounds and orders hold."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from tests.engine.sampling.sampled import Packet, Sampled, packet
from tests.support.long_form import cases

from gscope.engine.sampling import kernels
from gscope.engine.sampling.kernel_text import kernel_of

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.engine.sampling.kernel_text import Kernel
    from gscope.queries.plan.sampling_operator import Sampling

MIN_HASH = """
SELECT tb, srcIP, HX, count(*), Kth_smallest_value$(HX, 6), count_distinct$(*) FROM IP
WHERE HX <= Kth_smallest_value$(HX, 6) GROUP BY time/20 AS tb, srcIP, H(destPort) AS HX SUPERGROUP BY tb, srcIP
HAVING HX <= Kth_smallest_value$(HX, 6)
CLEANING WHEN count_distinct$(*) >= 8 CLEANING BY HX <= Kth_smallest_value$(HX, 6)
"""  # noqa: E501
EVERYTHING = """
DEFINE { max_groups 40; }
SELECT tb, srcIP, destPort, count(*), count(win), sum(win), min(win), max(frac), avg(win), first(destIP),
  last(destIP), sum(frac), first(current_bucket()), sum$(win), min$(win), max$(frac), count$(win), first$(len),
  count_distinct$(destPort), Kth_smallest_value$(destPort, 3), UMAX(sum(len), ssthreshold())
FROM (SELECT time, time_ns, srcIP, destIP, len, destPort, ttl, CASE WHEN ttl > 9 THEN ttl END AS win,
  FLOAT(ttl) / (len - 60) AS frac FROM IP) AS q
WHERE ssample(len, 20) AND (ttl > 3 OR sum$(win) DIV 7 <> 4 OR sum$(win) IS NULL)
GROUP BY time/20 AS tb, srcIP, destPort, len % 5 SUPERGROUP srcIP
HAVING ssfinal_clean(sum(len)) AND NOT (max(frac) < min$(win) AND avg(win) > 200.5)
CLEANING_WHEN ssdo_clean() OR local_count(9) OR max$(frac) > 1e9
CLEANING_BY ssclean_with(sum(len)) AND count(*) >= current_bucket() - first(current_bucket())
  OR coalesce(min(win), 0) % 7 = -1 OR destPort <= Kth_smallest_value$(destPort, 3) OR sum(frac) > 3.0
"""  # noqa: E501


def stream(seed: int, count: int) -> list[Packet]:
    chance = random.Random(seed)
    times = sorted(chance.randrange(60 * 10**9) for _ in range(count))
    return [
        packet(
            at,
            chance.choice((40, 60, 61, 1500)),
            chance.randrange(4),
            chance.randrange(9),
            destPort=chance.randrange(30),
            ttl=chance.randrange(256),
        )
        for at in times
    ]


@pytest.mark.parametrize("text", cases([MIN_HASH], [EVERYTHING]), ids=["min_hash", "everything"])
def test_compiled_kernels_give_what_python_gives(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    query = Sampled(text)
    streams = [stream(seed, 400) for seed in range(20)]
    plain = [query.answers(packets) for packets in streams]
    left_out, query.left_out = query.left_out, 0
    with mock.patch.object(kernels, "COMPILED_ROWS", 0):
        compiled = [query.answers(packets) for packets in streams]
    assert sum(len(rows) for rows, _ in plain) > 500
    for (rows, states), (other_rows, other_states) in zip(plain, compiled, strict=True):
        assert repr(other_rows) == repr(rows)
        assert (states is None and other_states is None) or (
            states is not None and states.equals(other_states)
        )
    assert left_out == query.left_out
    assert len(list(tmp_path.glob("gscope/sampling/*/kernel.py"))) == 1


def test_functions_of_states_that_no_kernel_computes_run_in_python() -> None:
    query = Sampled(
        "SELECT tb, srcIP, count(*) FROM IP GROUP BY time/20 AS tb, srcIP"
        " HAVING sqrt(FLOAT(count$(*))) > 2 AND log2(FLOAT(count(*))) < 4"
    )
    rows, _ = query.answers([packet(n, 60, n % 3) for n in range(9)])
    assert [row[2] for row in rows] == [3, 3, 3]
    assert query.answers([packet(n, 60, n % 3) for n in range(4)])[0] == []


def test_tuples_beyond_the_bound_are_left_out_and_counted() -> None:
    query = Sampled(
        "DEFINE { max_groups 2; } SELECT tb, srcIP, count(*), count_distinct$(*) FROM IP"
        " GROUP BY time/20 AS tb, srcIP"
    )
    rows, _ = query.answers([packet(n, 60, n % 5) for n in range(10)])
    assert [row[2:] for row in rows] == [(2, 2), (2, 2)]
    assert query.left_out == 6


def test_equal_times_keep_the_order_of_the_stream() -> None:
    query = Sampled("SELECT tb, first(len), last(len), first$(len) FROM IP GROUP BY time/20 AS tb")
    (row,) = query.answers([packet(5, 1), packet(5, 2), packet(5, 3)])[0]
    assert row[1:] == (1, 3, 1)


def test_a_kernel_that_numba_cannot_compile_or_load_is_run_by_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    query = Sampled("SELECT tb, sum(len), sum$(len) FROM IP GROUP BY time/20 AS tb, len")
    packets = stream(1, 50)
    expected = query.answers(packets)
    whole = kernel_of

    def broken(sampling: Sampling) -> Kernel:
        kernel = whole(sampling)
        return replace(
            kernel,
            text=kernel.text.replace("    answered = 0\n", "    answered = 0\n    eval('1')\n"),
        )

    kernels._kernel.cache_clear()
    with (
        mock.patch.object(kernels, "kernel_of", broken),
        mock.patch.object(kernels, "COMPILED_ROWS", 0),
    ):
        assert query.answers(packets) == expected
    kernels._kernel.cache_clear()


def test_integers_wrap_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    query = Sampled(
        "SELECT tb, sum(big), count$(*)"
        " FROM (SELECT time, len + 9223372036854775000 AS big FROM IP) AS q GROUP BY time/20 AS tb"
    )
    (row,) = query.answers([packet(1, 700), packet(2, 700), packet(3, 700)])[0]
    assert row[1] == (3 * (9223372036854775000 + 700) + (1 << 63)) % (1 << 64) - (1 << 63)
    assert [each for each in recwarn if issubclass(each.category, RuntimeWarning)] == []
