"""By default no packet of a capture is late, however far it steps back.

tshark counts the same packets.
"""

from __future__ import annotations

import bz2
import gzip
import os
import random
import struct
import subprocess
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import ipv4, udp
from tests.capture.replay.test_replay_capture import flow_program, logged_flows, write_pcap
from tests.support.gscope_command import run
from tests.support.requirements import captures, needs, needs_captures

from gscope.capture.interface.open_log import open_log
from gscope.capture.replay.open_inputs import OpenInputs
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.replay.trace_interface import TraceInterface
from gscope.capture.settings import SECOND_NS, CaptureSettings
from gscope.capture.sources.files import backward_steps
from gscope.capture.sources.files.backward_steps import BackwardSteps, Walk
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.walk_loop import walk_blocks
from gscope.cli.config.capture_files import chosen_interfaces
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary, InterfaceSummary

HOUR = 3600 * SECOND_NS
YEAR = 365 * 24 * HOUR
BEGIN = 1_500_000_000 * SECOND_NS
QUERY = "SELECT time_ns FROM PKT"


def packet(number: int) -> bytes:
    return ipv4(1, 2, udp(1000 + number, 53, b"x" * (number % 50)))


def write(path: Path, times: Sequence[int]) -> Path:
    write_pcap(path, [(time, packet(number)) for number, time in enumerate(times)])
    return path


def stepping(step_ns: int, packets: int = 400) -> list[int]:
    """Times that rise by a millisecond; every 50th packet is ``step_ns`` behind."""
    return [BEGIN + n * 1_000_000 - (step_ns if n % 50 == 49 else 0) for n in range(packets)]


def replay(
    folder: Path,
    *captures: str | Path,
    skews: Sequence[str] = (),
    block_bytes: int | None = None,
) -> CaptureSummary:
    """The summary of a replay with the interfaces that the command line makes of ``captures``."""
    interfaces = chosen_interfaces([str(capture) for capture in captures], (), skews, {})
    chosen = CaptureSettings(interfaces, block_bytes=block_bytes)
    program = flow_program(*(each.name for each in interfaces))
    log = open_log(folder, program, chosen)
    try:
        return replay_capture(program, chosen, log)
    finally:
        log.close()


def counted(path: Path) -> int | None:
    """How many packets tshark's suite sees in a capture, None if it takes it for none."""
    done = subprocess.run(
        ["capinfos", "-TmMcr", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    return int(done.stdout.strip().rsplit(",", 1)[-1]) if done.stdout.strip() else None


@needs_captures
@needs("capinfos")
def test_by_default_every_packet_of_every_capture_counts(tmp_path: Path) -> None:
    files = captures()
    summary = replay(tmp_path / "log", *files)
    assert sum(each.late + each.unread + each.dropped for each in summary.interfaces) == 0
    compared = 0
    for path, interface in zip(files, summary.interfaces, strict=True):
        count = counted(path)
        # Files that are not captures are compared elsewhere.
        if count is not None and interface.name not in summary.refused:
            assert interface.received == count, path.name
            compared += 1
    assert compared > 70


@pytest.mark.parametrize("step_ns", [SECOND_NS, 20 * SECOND_NS, HOUR, YEAR, 40 * YEAR])
@pytest.mark.parametrize("kind", ["plain", "gzip", "block"])
def test_packets_that_step_back_count(tmp_path: Path, step_ns: int, kind: str) -> None:
    path = write(tmp_path / "a.pcap", stepping(step_ns))
    if kind == "gzip":
        path = tmp_path / "a.pcap.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.pcap").read_bytes()))
    block_bytes = 4096 if kind == "block" else None
    summary = replay(tmp_path / "log", path, block_bytes=block_bytes)
    (interface,) = summary.interfaces
    assert (interface.received, interface.late, interface.needed_skew_ns) == (400, 0, 0)
    assert sum(logged_flows(tmp_path / "log")[0].values()) == 400


def test_rotated_captures_in_the_wrong_order_are_one_interface(tmp_path: Path) -> None:
    first = write(tmp_path / "1.pcap", [BEGIN + n * SECOND_NS for n in range(100)])
    second = write(tmp_path / "2.pcap", [BEGIN + HOUR + n * SECOND_NS for n in range(100)])
    other = write(tmp_path / "3.pcap", stepping(YEAR, 100))
    summary = replay(tmp_path / "log", f"up={second}", f"up={first}", other)
    assert [(each.received, each.late) for each in summary.interfaces] == [(200, 0), (100, 0)]


def write_pcapng(path: Path, times: Sequence[tuple[int, int]]) -> Path:
    """A pcapng with two interfaces, of microseconds and of nanoseconds.

    Times are (interface, ns).
    """

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 0))
    out += block(1, struct.pack("<HHIHHBxxxHH", 1, 0, 0, 9, 1, 9, 0, 0))
    for number, (interface, time_ns) in enumerate(times):
        data = packet(number)
        stamp = time_ns if interface else time_ns // 1000
        head = struct.pack("<IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, *[len(data)] * 2)
        out += block(6, head + data)
    path.write_bytes(out)
    return path


def test_interfaces_of_one_pcapng_whose_clocks_differ(tmp_path: Path) -> None:
    times = [(n % 2, BEGIN + n * SECOND_NS - (n % 2) * HOUR) for n in range(300)]
    summary = replay(tmp_path / "log", write_pcapng(tmp_path / "a.pcapng", times))
    assert [(each.received, each.late) for each in summary.interfaces] == [(300, 0)]


def test_a_skew_that_is_given_is_honoured_and_the_one_that_suffices_is_named(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.pcap", stepping(HOUR))
    (interface,) = replay(tmp_path / "first", path, skews=["1s"]).interfaces
    assert interface.late == 8
    # The packet before the first late one is a millisecond before the time at which it should be.
    assert interface.needed_skew_ns == HOUR - 1_000_000
    (again,) = replay(tmp_path / "second", path, skews=[f"{interface.needed_skew_ns}ns"]).interfaces
    assert again.late == 0
    (less,) = replay(
        tmp_path / "third", path, skews=[f"{interface.needed_skew_ns - 1}ns"]
    ).interfaces
    assert less.late > 0


def test_what_is_too_large_has_the_default_and_names_what_suffices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.pcap", stepping(HOUR))
    small = write(tmp_path / "b.pcap", stepping(HOUR, 60))
    monkeypatch.setattr(backward_steps, "WALKED_BYTES", path.stat().st_size - 1)
    large, walked = replay(tmp_path / "log", path, small).interfaces
    assert (large.late, large.needed_skew_ns) == (8, HOUR - 1_000_000)
    assert walked.late == 0


def test_a_compressed_capture_is_given_up_when_it_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "a.pcap", stepping(HOUR)).read_bytes()))
    monkeypatch.setattr(backward_steps, "UNPACKED_BYTES", 1000)
    (interface,) = replay(tmp_path / "log", path, block_bytes=4096).interfaces
    assert (interface.late, interface.needed_skew_ns) == (8, HOUR - 1_000_000)


@given(
    st.lists(
        st.integers(0, 2**32 - 1) | st.integers(1_500_000_000, 1_500_000_100),
        min_size=1,
        max_size=60,
    ),
    st.integers(200, 9000),
    st.integers(1, 9000),
)
def test_the_walk_finds_what_a_loop_finds(
    tmp_path_factory: pytest.TempPathFactory,
    seconds: list[int],
    block_bytes: int,
    pass_bytes: int,
) -> None:
    path = write(tmp_path_factory.mktemp("walk") / "a.pcap", [s * SECOND_NS for s in seconds])
    expected, latest = 0, 0
    for time in seconds:
        latest = max(latest, time)
        expected = max(expected, (latest - time) * SECOND_NS)
    source = open_source(str(path), block_bytes=block_bytes)
    walk = Walk(1 << 40, threading.Event())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backward_steps, "PASS_BYTES", pass_bytes)
        assert walk.over(source)
    assert walk.deepest_ns == expected
    source.close()


def test_times_below_zero_do_not_wrap() -> None:
    import numpy as np

    times = np.array([2**62, -(2**62), -(2**63)], np.int64)
    lengths = np.zeros(3, np.int32)
    at = times.ctypes.data, lengths.ctypes.data
    assert backward_steps._deepest(*at, 2, -(2**63))[1] == 2**63 - 1
    assert backward_steps._deepest(*at, 3, -(2**63))[1] == 2**63 - 1
    assert backward_steps._deepest(at[0] + 8, at[1], 2, -(2**63))[1] == 2**62


def test_a_named_pipe_is_not_touched_and_a_missing_file_not_walked(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    steps = BackwardSteps({"a": (str(pipe),), "b": (str(tmp_path / "no"),), "c": ("-",)})
    assert [steps.deepest_ns(name) for name in "abcd"] == [None] * 4
    steps.close()


def test_damaged_captures_do_not_stop_the_walk(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.pcap", stepping(HOUR)).read_bytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole[:-7])
    text = tmp_path / "text.pcap"
    text.write_bytes(bz2.compress(whole))
    summary = replay(tmp_path / "log", cut, text)
    assert [(each.received, each.late) for each in summary.interfaces] == [(399, 0), (0, 0)]
    with pytest.raises(CaptureError):
        replay(tmp_path / "log2", text)


def test_a_stop_ends_the_walk(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", stepping(HOUR))
    interfaces = chosen_interfaces([str(path)], (), (), {})
    settings = CaptureSettings(interfaces)
    stop = ReplayStop()
    stop.request()
    program = flow_program("a")
    log = open_log(tmp_path / "log", program, settings)
    with OpenInputs(settings) as inputs:
        summary = replay_capture(program, settings, log, inputs=inputs, stop=stop)
    log.close()
    assert summary.is_stopped
    (interface,) = summary.interfaces
    assert interface.received == interface.late + interface.unread + interface.accepted


@pytest.mark.slow
def test_the_command_counts_all_and_says_what_a_pipe_lost(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", stepping(HOUR))
    arguments = ("replay", "-e", QUERY, "-o", "csv", "--work-dir", tmp_path / "wd")
    done = run(*arguments, path)
    assert (done.returncode, done.stdout.count("\n")) == (0, 401)
    assert "400 packets received = 400 accepted" in done.stderr
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as piped:
        lost = run(*arguments, "-", "--strict", "--quiet", stdin=piped.stdout)
    assert (lost.returncode, lost.stdout.count("\n")) == (3, 393)
    assert "8 late" in lost.stderr
    assert "--skew 3599999ms accepts them all" in lost.stderr
    shown = run(*arguments, path, "--skew", "a=1s", "--quiet")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_many_random_captures_lose_nothing(tmp_path: Path) -> None:
    numbers = random.Random(5)
    files = []
    for n in range(20):
        spread = 10 ** numbers.randrange(4, 18)
        times = [BEGIN + numbers.randrange(spread) for _ in range(numbers.randrange(1, 300))]
        files.append(write(tmp_path / f"{n}.pcap", times))
    summary = replay(tmp_path / "log", *files)
    assert sum(each.late for each in summary.interfaces) == 0
    assert sum(each.received for each in summary.interfaces) == sum(
        logged_flows(tmp_path / "log")[0].values()
    )


@pytest.mark.parametrize("largest", [100, 3000])
def test_the_compiled_walk_takes_records_of_all_sizes_across_blocks_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """The longest records are larger than a block.

    The deepest step is from the first file to the second.
    """
    numbers = random.Random(largest)
    monkeypatch.setattr(backward_steps, "open_source", partial(open_source, block_bytes=512))
    passed_packets = 0

    def walked(*arguments: Any) -> tuple[int, ...]:
        nonlocal passed_packets
        found: tuple[int, ...] = walk_blocks(*arguments)
        passed_packets += found[2]
        return found

    monkeypatch.setattr(backward_steps, "walk_blocks", walked)
    times = [BEGIN + n * SECOND_NS - numbers.randrange(5) * SECOND_NS for n in range(600)]
    files = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    for path, chosen in zip(files, (times[300:], times[:300]), strict=True):
        write_pcap(path, [(time, bytes(numbers.randrange(14, largest))) for time in chosen])
    steps = BackwardSteps({"a": [str(path) for path in files]})
    expected, latest = 0, 0
    for time in (*times[300:], *times[:300]):
        latest = max(latest, time)
        expected = max(expected, latest - time)
    assert steps.deepest_ns("a") == expected
    steps.close()
    assert passed_packets > 50


def test_packets_do_not_wait_for_the_walk_over_one_plain_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk that ends after all packets were read: none is late, as if it had ended before."""
    times = stepping(20 * SECOND_NS)
    captures = [write(tmp_path / f"{name}.pcap", times) for name in "ab"]
    has_read, walk = threading.Event(), vars(backward_steps)["_walk"]

    def slow(*arguments: Any) -> int | None:
        assert has_read.wait(60)
        return walk(*arguments)  # type: ignore[no-any-return]

    monkeypatch.setattr(backward_steps, "_walk", slow)
    finish = TraceInterface.current_summary

    def finished(interface: TraceInterface) -> InterfaceSummary:
        has_read.set()
        return finish(interface)

    monkeypatch.setattr(TraceInterface, "current_summary", finished)
    summary = replay(tmp_path / "log", *captures)
    assert [each.late for each in summary.interfaces] == [0, 0]
    assert [each.accepted for each in summary.interfaces] == [len(times)] * 2


@pytest.mark.parametrize("is_compressed", [False, True])
def test_packets_wait_for_a_walk_that_may_be_abandoned(
    tmp_path: Path, is_compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would depend on its speed which packets are late."""
    ended = threading.Event()

    def waiting(*_: object) -> None:
        assert ended.wait(60)

    monkeypatch.setattr(backward_steps, "_walk", waiting)
    first = write(tmp_path / "a.pcap", stepping(0))
    paths = [str(first), str(write(tmp_path / "b.pcap", stepping(0)))]
    if is_compressed:
        (tmp_path / "c.pcap.gz").write_bytes(gzip.compress(first.read_bytes()))
        paths = [str(tmp_path / "c.pcap.gz")]
    steps = BackwardSteps({"several": paths, "one": [str(first)]})
    try:
        assert steps.is_under_way("one")
        assert not steps.is_under_way("several")
    finally:
        ended.set()
        steps.close()
