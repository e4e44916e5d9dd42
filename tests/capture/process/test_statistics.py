"""What others see of the capture daemon while it runs."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.live.test_live_capture import SECOND, START, ScriptedSource, World
from tests.capture.replay.test_replay_capture import flow_program

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.interface.open_log import open_log
from gscope.capture.interface.resume_state import ResumeState
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.live.devices import LiveInputs
from gscope.capture.live.live_capture import capture_live
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.process.statistics import CaptureStatistics, privileges
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.queries.run_folder.snapshot import INTERVAL_S, SnapshotFile, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.capture.lfta.columns import ColumnBatch


GONE = "it is gone"


class Watched:
    """A live capture of scripted interfaces, looked at while it runs."""

    def __init__(self, folder: Path, names: Sequence[str] = ("busy", "silent")) -> None:
        self.file = folder / "stats.json"
        self.folder = folder
        self.world = World()
        self.sources = {name: ScriptedSource(self.world, name) for name in names}
        self.looks: list[dict[str, Any]] = []

    def look(self) -> None:
        snapshot = read_snapshot(self.file)
        assert snapshot is not None
        self.looks.append(snapshot)

    def run(self, stop_s: float, demands: Demands | None = None, **chosen: Any) -> dict[str, Any]:
        """Capture for a number of seconds; what is reported at the end."""
        program = flow_program(*self.sources)
        settings = CaptureSettings(
            tuple(InterfaceSettings(n, device=DeviceSettings(n)) for n in self.sources), **chosen
        )
        self.world.at(stop_s, self.world.stop.request)

        def interpreted(
            interface: str, emit: Callable[[str, ColumnBatch], None]
        ) -> LftaInterpreter:
            return LftaInterpreter(program.lftas, interface, emit)

        log = open_log(self.folder / "log", program, settings)
        statistics = CaptureStatistics(
            self.file,
            settings,
            log,
            wall_ns=lambda: self.world.wall_ns,
            monotonic=lambda: self.world.monotonic_ns / SECOND,
        )
        try:
            capture_live(
                program,
                settings,
                log,
                LiveInputs(self.sources, make_clock=self.world.clock),
                engines=interpreted,
                stop=self.world.stop,
                observers=CaptureObservers(statistics=statistics),
                demands=demands,
            )
            statistics.write()
        finally:
            log.close()
        self.look()
        return self.looks[-1]

    def absent(self, name: str, problem: str) -> dict[str, Any]:
        """What a daemon that does not capture ``name`` reports."""
        interface = InterfaceSettings(name, device=DeviceSettings(name))
        settings = CaptureSettings((interface,))
        program = flow_program(name)
        log = open_log(self.folder / "other log", program, settings)
        statistics = CaptureStatistics(self.file, settings, log)
        reported = {each["name"]: each for each in self.looks[-1]["streams"]}
        counters = {f"flow@{name}": {**reported.get(f"flow@{name}", {}), "crashes_total": 1}}
        statistics.on_absent(interface, ResumeState(counters=counters), problem)
        statistics.write()
        log.close()
        self.look()
        return self.looks[-1]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_packets_are_reported_while_they_come(tmp_path: Path) -> None:
    # of two interfaces, one could be behind the other's clock by any time
    watched = Watched(tmp_path, ("busy",))
    for second in range(1, 20):
        watched.world.at(second, watched.sources["busy"].send_now)
    watched.world.at(10.5, watched.look)
    end = watched.run(20)
    (middle,) = watched.looks[0]["interfaces"]
    assert middle["name"] == "busy"
    assert 5 <= middle["received_packets"] <= 10
    assert 0 <= watched.looks[0]["written_ns"] - START <= 11 * SECOND
    assert end["interfaces"][0]["received_packets"] == 19


def test_interfaces_are_reported_when_all_is_over(watched: Watched) -> None:
    for second in range(1, 20):
        watched.world.at(second, watched.sources["busy"].send_now)
    busy, silent = watched.run(20)["interfaces"]
    assert (busy["received_packets"], busy["accepted_packets"]) == (19, 19)
    assert (silent["received_packets"], silent["last_packet_ns"]) == (0, None)
    assert busy["state"] == silent["state"] == "ended"


def test_partial_tuples_and_the_log_are_reported(watched: Watched) -> None:
    watched.world.at(1, watched.sources["busy"].send_now)
    end = watched.run(30)
    streams = {stream["name"]: stream for stream in end["streams"]}
    assert list(streams) == ["flow@busy", "flow@silent"]
    assert streams["flow@busy"]["tuples_in_total"] == streams["flow@busy"]["tuples_out_total"] == 1
    assert end["log"]["tuples_total"] == 1
    assert end["log"]["budget_bytes"] > 0


def test_a_daemon_that_is_started_again_goes_on_counting_packets(watched: Watched) -> None:
    watched.world.at(1, watched.sources["busy"].send_now)
    first = watched.run(5)
    again = Watched(watched.folder)
    again.file.rename(again.folder / "kept")
    (again.folder / "log").rename(again.folder / "older")
    (again.folder / "kept").rename(again.file)
    again.world.at(1, again.sources["busy"].send_now)
    second = again.run(5)
    assert second["interfaces"][0]["received_packets"] == 2
    assert second["interfaces"][0]["accepted_packets"] == 2
    assert second["began_ns"] == first["began_ns"]
    assert second["log"]["tuples_total"] == 1


def test_heartbeats_that_answer_a_demand_are_counted(tmp_path: Path) -> None:
    watched, demands = Watched(tmp_path, ("silent",)), Demands(["flow@silent"])
    for second in (1, 3):
        watched.world.at(second, lambda: demands.ask({"flow@silent": {}}))
    end = watched.run(9, demands, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert [each["answers_total"] for each in end["interfaces"]] == [2]


def test_privileges_are_those_of_the_process(watched: Watched) -> None:
    end = watched.run(2)
    assert end["pid"] == os.getpid()
    assert end["privileges"] == privileges()
    assert end["privileges"].keys() == {"uid", "capabilities", "no_new_privs", "unconfined"}


def test_a_snapshot_is_replaced_as_a_whole_and_not_too_often(tmp_path: Path) -> None:
    now = [0.0]
    file = SnapshotFile(tmp_path / "reported.json", lambda: now[0])
    dues = [file.is_due]
    file.write({"a": 1})
    dues.append(file.is_due)
    now[0] += INTERVAL_S
    dues.append(file.is_due)
    assert dues == [True, False, True]
    assert read_snapshot(tmp_path / "reported.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["reported.json"]


def test_a_snapshot_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    SnapshotFile(tmp_path / "none" / "reported.json").write({"a": 1})
    assert read_snapshot(tmp_path / "none" / "reported.json") is None


def test_what_is_no_snapshot_is_none(tmp_path: Path) -> None:
    path = Path(tmp_path / "reported.json")
    for text in ("", "[1]", '{"a":'):
        path.write_text(text)
        assert read_snapshot(path) is None


def test_an_interface_whose_device_is_gone_stays_as_it_was_reported_last(watched: Watched) -> None:
    watched.world.at(1, watched.sources["silent"].send_now)
    before = watched.run(12.5)
    for problem in (GONE, ""):  # a later daemon still reports it
        silent = watched.absent("silent", problem)["interfaces"][0]
        assert (silent["state"], silent["failure"], silent["damage"]) == ("gone", GONE, [GONE])
        assert silent["accepted_packets"] == before["interfaces"][1]["accepted_packets"] == 1
        (stream,) = watched.looks[-1]["streams"]
        (reported,) = [each for each in before["streams"] if each["name"] == "flow@silent"]
        assert {**stream, "recent": None} == {**reported, "recent": None, "crashes_total": 1}


def test_packets_that_a_killed_daemon_took_after_its_last_heartbeat_stay_counted(
    watched: Watched,
) -> None:
    watched.world.at(1, watched.sources["silent"].send_now)
    before = deepcopy(watched.run(12.5))
    for each in before["streams"]:
        each["tuples_in_total"] += 3
        each["tuples_out_total"] += 2  # not in the log
    SnapshotFile(watched.file).write(before)
    watched.absent("silent", GONE)
    (stream,) = watched.looks[-1]["streams"]
    assert (stream["tuples_in_total"], stream["tuples_out_total"]) == (1 + 3, 1)
    assert stream["recent"]["tuples_in"] == 0


def test_an_interface_that_was_never_captured_has_all_that_others_have(watched: Watched) -> None:
    captured = watched.run(1)["interfaces"][0]
    assert watched.absent("other", GONE)["interfaces"][0].keys() == captured.keys()
