"""The ring of recent packets: what it has, what it has lost, and until when it is complete."""

from __future__ import annotations

import resource
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.capture.saving.pcapng_reader import SavedPacket, read_pcapng
from tests.capture.saving.test_packet_file import block_of, packet, save
from tests.support.gscope_command import wait_for

from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.saving import packet_file
from gscope.capture.saving.packet_ring import PacketRing
from gscope.capture.saving.packet_saver import PacketSaver
from gscope.capture.settings import CaptureSettings, InterfaceSettings, SavedPackets, SavedQuery
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.layout import CAPTURE_FOLDER, PACKET_RING_FOLDER
from gscope.queries.run_folder.packet_ring import AT_END, NEVER, read_state, ring_segments

if TYPE_CHECKING:
    from pathlib import Path

RING_BYTES = 40_000


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(packet_file, "BUFFER_BYTES", 1000)
    (tmp_path / CAPTURE_FOLDER).mkdir()
    return tmp_path


def ring_in(run_dir: Path, *lftas: str, size: int = RING_BYTES) -> PacketRing:
    queries = tuple(SavedQuery(lfta, "web") for lfta in lftas or ("a",))
    return PacketRing(SavedPackets(-1, queries, ring_bytes=size), run_dir)


def kept(run_dir: Path, interface: str = "up") -> list[SavedPacket]:
    """The packets in the segments of an interface, each of which is a file by itself."""
    folder = run_dir / PACKET_RING_FOLDER
    found = [
        each
        for segment in ring_segments(folder)
        if segment.interface == interface
        for each in read_pcapng((folder / segment.name).read_bytes())
    ]
    assert {each.interface for each in found} <= {interface}
    return found


def size_of(run_dir: Path) -> int:
    size = 0
    for path in (run_dir / PACKET_RING_FOLDER).glob("*.pcapng*"):
        # Its writer may have deleted it.
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def test_the_oldest_packets_leave_a_full_ring(run_dir: Path) -> None:
    ring = ring_in(run_dir)
    names = "up", "v/lan 7.%"
    savers = {name: PacketSaver(ring, name) for name in names}
    sent: dict[str, list[SavedPacket]] = {name: [] for name in names}
    for turn in range(80):
        name = names[turn % 3 == 0]
        packets = [packet(40 * turn + i, 10 * i, name) for i in range(20)]
        save(savers[name], packets, [1] * len(packets))
        savers[name].flush()
        sent[name] += packets
        # A live capture does not wait: with these small buffers it would leave packets out.
        wait_for(lambda: ring.counters.packets == sum(map(len, sent.values())), "the writer")
        assert size_of(run_dir) <= RING_BYTES
    for saver in savers.values():
        saver.finish()
    ring.close()
    assert size_of(run_dir) > RING_BYTES // 2
    state = read_state(run_dir / PACKET_RING_FOLDER)
    assert state is not None
    assert state.written_ns == AT_END
    for name in names:
        found = kept(run_dir, name)
        assert found == sent[name][-len(found) :] != sent[name]
        gone = sent[name][: -len(found)]
        assert max(each.time_ns for each in gone) <= state.gone_ns < found[-1].time_ns
    assert ring.counters.packets == 80 * 20
    assert not ring.counters.lost


def test_what_was_passed_on_is_in_the_ring_when_it_says_so(run_dir: Path) -> None:
    ring = ring_in(run_dir)
    saver = PacketSaver(ring, "up")
    for number in range(5):
        save(saver, [packet(number)], [1])
        saver.flush()
        passed_on_ns = time.monotonic_ns()

        def is_written(moment_ns: int = passed_on_ns) -> bool:
            state = read_state(run_dir / PACKET_RING_FOLDER)
            return state is not None and state.written_ns >= moment_ns

        wait_for(is_written, "the state")
        assert [each.data for each in kept(run_dir)] == [packet(n).data for n in range(number + 1)]
    state = read_state(run_dir / PACKET_RING_FOLDER)
    assert state is not None
    assert state.gone_ns == NEVER
    ring.close()


def test_a_restarted_daemon_keeps_the_ring(run_dir: Path) -> None:
    for number in range(3):
        ring = ring_in(run_dir)
        saver = PacketSaver(ring, "up")
        save(saver, [packet(number)], [1])
        saver.finish()
        ring.close()
        # Killed when it had begun a segment.
        (run_dir / PACKET_RING_FOLDER / "000000000099.up.pcapng.new").touch()
    assert [each.data[0] for each in kept(run_dir)] == [0, 1, 2]
    # What the earlier daemons left is deleted first, and counts as lost from then on.
    ring = ring_in(run_dir, size=4_000)
    saver = PacketSaver(ring, "up")
    for number in range(60):
        save(saver, [packet(number)], [1])
        saver.flush()
    ring.close()
    assert size_of(run_dir) <= 4_000
    state = read_state(run_dir / PACKET_RING_FOLDER)
    assert state is not None
    assert time.time_ns() - 60 * 10**9 < state.gone_ns < time.time_ns()


def test_a_full_disk_costs_packets_and_nothing_else(run_dir: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ring = ring_in(run_dir, size=1 << 20)
    saver = PacketSaver(ring, "up")
    resource.setrlimit(resource.RLIMIT_FSIZE, (5500, before[1]))
    try:
        save(saver, [packet(i) for i in range(300)], [1] * 300)
        saver.flush()
        counters = ring.counters
        wait_for(lambda: counters.packets + counters.unwritten + counters.outrun == 300, "writes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 0 < counters.packets < 300
    assert counters.failure == "file too large"
    assert len(kept(run_dir)) == counters.packets
    save(saver, [packet(200)], [1])
    saver.finish()
    ring.close()
    assert kept(run_dir)[-1].data == packet(200).data


def frame(number: int) -> bytes:
    """An IPv4 or IPv6 UDP datagram, tagged or not, from port ``number``."""
    datagram = struct.pack(">HHHH", number, 53, 8, 0)
    if number % 3:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) + bytes(8)
    else:
        head = struct.pack(">IHBB", 6 << 28, 8, 17, 64) + bytes(32)
    tag = b"\x81\x00\x00\x07" if number % 5 == 0 else b""
    return bytes(12) + tag + (b"\x08\x00" if number % 3 else b"\x86\xdd") + head + datagram


GROUPS = (
    "SELECT tb, srcPort, count(*) FROM UDP WHERE srcPort % 7 < {} GROUP BY time/60 AS tb, srcPort"
)


@pytest.mark.parametrize("limits", [(3,), (3, 5)])
def test_kernels_mark_the_packets_of_all_groups(
    run_dir: Path, limits: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group table with few slots and a small output buffer: kernels stop for room."""
    monkeypatch.setattr(packet_file, "BUFFER_BYTES", 1 << 20)
    texts = [QueryText(GROUPS.format(limit), f"q{limit}") for limit in limits]
    program = compile_queries(texts, CompileContext(("up",))).program
    lftas = [lfta.name for lfta in program.lftas]
    assert all(lfta.is_aggregation for lfta in program.lftas)
    queries = tuple(SavedQuery(lfta.name, lfta.query) for lfta in program.lftas)
    ring = PacketRing(SavedPackets(-1, queries, ring_bytes=1 << 22), run_dir)
    settings = CaptureSettings((InterfaceSettings("up", ("up",)),), table_slots=64, output_rows=1)
    engine = compiled_engines(program, settings, ring)("up", lambda _lfta, batch: batch.release())
    packets = [
        SavedPacket("up", 1, 10**18 + n, len(frame(n)), frame(n), ()) for n in range(1, 4000)
    ]
    block = block_of(packets)
    assert engine.process(block, 0) == block.count
    engine.heartbeat(10**18 + 61 * 10**9)
    engine.finish()
    ring.close()
    assert not ring.counters.lost
    assert len(lftas) == len(limits)
    assert [(p.time_ns, p.data, set(p.comments)) for p in kept(run_dir)] == [
        (p.time_ns, p.data, comments)
        for n, p in enumerate(packets, 1)
        if (comments := {f"q{limit}" for limit in limits if n % 7 < limit})
    ]
