"""What other programs read from answers: DuckDB, jq and pyarrow are the oracles."""

from __future__ import annotations

import json
import struct
import subprocess
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.gscope_command import run
from tests.support.requirements import needs

if TYPE_CHECKING:
    from pathlib import Path

PAYLOADS = [b"\x00", rb"\x00", b"", b"\xff\xfe,\n", b'say "hi"', "Grüße".encode(), b"NULL", b"''"]
SKIPPED = 7
"""The port whose payload the query makes NULL."""

QUERY = (
    f"SELECT time, srcPort, srcIP, CASE WHEN destPort <> {SKIPPED} THEN UDP_data END AS payload, "
    "str_truncate(UDP_data, 2) AS head FROM UDP"
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A UDP packet for each payload, and one more whose payload is NULL to the query."""
    packets = []
    for number, payload in enumerate([*PAYLOADS, b"left out"]):
        port = SKIPPED if number == len(PAYLOADS) else 9
        udp = struct.pack(">HHHH", number, port, 8 + len(payload), 0) + payload
        header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0)
        packet = bytes(12) + b"\x08\x00" + header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp
        packets.append(struct.pack("<IIII", 1_700_000_000, number, len(packet), len(packet)))
        packets.append(packet)
    path = tmp_path_factory.mktemp("capture") / "payloads.pcap"
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(header + b"".join(packets))
    return path


def written(capture: Path, kind: str, folder: Path, query: str = QUERY) -> Path:
    done = run(
        *("replay", capture, "--quiet", "--work-dir", folder / "work"),
        *("-o", kind, "-w", folder / "out", "-e", query),
    )
    assert done.returncode == 0, done.stderr
    (path,) = (folder / "out").glob(f"*.{kind}")
    return path


def asked(sql: str) -> Any:
    """What DuckDB answers."""
    return duckdb.connect().sql(sql)


EXPECTED: list[bytes | None] = [*PAYLOADS, None]


@pytest.mark.spark
def test_duckdb_reads_payloads_of_parquet_as_they_were_on_the_wire(
    capture: Path, tmp_path: Path
) -> None:
    path = written(capture, "parquet", tmp_path)
    rows = asked(f"SELECT payload, head, srcIP FROM '{path}' ORDER BY srcPort").fetchall()
    assert [row[0] for row in rows] == EXPECTED
    assert [row[1] for row in rows[:-1]] == [payload[:2] for payload in PAYLOADS]
    assert {row[2] for row in rows} == {"10.0.0.1"}
    types = asked(f"SELECT payload, head, srcIP FROM '{path}'").types
    assert [str(kind) for kind in types] == ["BLOB", "BLOB", "VARCHAR"]
    fields = pq.read_schema(path)
    assert fields.field("srcIP").metadata[b"gscope.type"] == b"IP"


@pytest.mark.spark
def test_arrow_files_have_payloads_as_bytes(capture: Path, tmp_path: Path) -> None:
    with pa.memory_map(str(written(capture, "arrow", tmp_path))) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.schema.field("payload").type == pa.binary()
    assert table.sort_by("srcPort")["payload"].to_pylist() == EXPECTED
    assert table.schema.field("srcIP").metadata[b"gscope.type"] == b"IP"


@pytest.mark.spark
def test_duckdb_distinguishes_null_from_empty_text_in_csv(capture: Path, tmp_path: Path) -> None:
    path = written(capture, "csv", tmp_path)
    options = "header = true, all_varchar = true, allow_quoted_nulls = false"
    rows = asked(
        f"SELECT payload FROM read_csv('{path}', {options}) ORDER BY srcPort::INT"
    ).fetchall()
    assert [text for (text,) in rows] == [
        *(r"\x00", r"\\x00", "", r"\xff\xfe,\n", 'say "hi"', "Grüße", "NULL", "''", None)
    ]


@needs("jq")
@pytest.mark.spark
def test_jq_reads_all_ndjson(capture: Path, tmp_path: Path) -> None:
    query = (
        "SELECT time, srcPort, pow(10.0, 300 + srcPort * 10) AS large, "
        "-pow(10.0, 300 + srcPort * 10) AS small, "
        "pow(10.0, 400) - pow(10.0, 400) * srcPort AS odd, "
        "UDP_data AS payload FROM UDP"
    )
    path = written(capture, "ndjson", tmp_path, query)
    read = subprocess.run(
        ["jq", "-c", "[.srcPort, .large, .small, .odd, .payload]", path],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = sorted(json.loads(line) for line in read.stdout.splitlines())
    assert [row[1:4] for row in rows[:1]] == [[1e300, -1e300, None]]
    assert rows[5][1:4] == [None, None, None]
    assert [row[4] for row in rows[:3]] == [r"\x00", r"\\x00", ""]
