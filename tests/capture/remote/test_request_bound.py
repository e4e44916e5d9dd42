"""The bound on incomplete requests, over frames cut at any place."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.capture.remote.request_bound import MAX_REQUEST_BYTES, MAX_REQUESTS, RequestBound

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING = 0, 1, 3, 4, 6


def frame(kind: int, stream: int, size: int = 0, flags: int = 0) -> bytes:
    header = size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return header + b"\xff" * size


def admits(data: bytes, piece: int = 1 << 20) -> bool:
    bound = RequestBound()
    return all(bound.admits(data[i : i + piece]) for i in range(0, len(data), piece))


def test_a_request_may_be_as_large_as_the_bound_and_no_larger() -> None:
    half = MAX_REQUEST_BYTES // 2
    data = PREFACE + frame(SETTINGS, 0, 18) + frame(HEADERS, 1, 100) + frame(DATA, 1, half)
    assert admits(data + frame(DATA, 1, half))
    assert not admits(data + frame(DATA, 1, half) + frame(DATA, 1, 1))
    assert not admits(data + frame(DATA, 3, half) + frame(DATA, 3, 1))


def test_requests_that_are_complete_or_reset_hold_nothing() -> None:
    size = MAX_REQUEST_BYTES // 2
    many = b"".join(
        frame(HEADERS, stream, 9) + frame(DATA, stream, size) + end
        for stream, end in ((1, frame(DATA, 1, 5, flags=1)), (3, frame(RESET, 3, 4)))
    )
    assert admits(PREFACE + 20 * many)


def test_the_number_of_incomplete_requests_is_bounded() -> None:
    some = PREFACE + b"".join(frame(HEADERS, 2 * i + 1, 7) for i in range(MAX_REQUESTS))
    assert admits(some)
    assert not admits(some + frame(HEADERS, 9999, 7))


def test_other_frames_do_not_count() -> None:
    assert admits(PREFACE + 300 * frame(PING, 0, 8) + 300 * frame(SETTINGS, 0, 6))


frames = st.builds(
    frame,
    st.sampled_from([DATA, HEADERS, RESET, SETTINGS, PING]),
    st.integers(1, 5),
    st.sampled_from([0, 1, 100, 200_000, 400_000]),
    st.sampled_from([0, 1]),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(frames, max_size=12), st.sampled_from([1 << 20, 65_537, 8]))
def test_where_the_bytes_are_cut_changes_nothing(made: list[bytes], piece: int) -> None:
    if piece == 8:
        made = [each for each in made if len(each) < 1000]
    # An independent count over whole frames.
    held: dict[int, int] = {}
    expected = True
    for each in made:
        size, kind, flags = len(each) - 9, each[3], each[4]
        stream = int.from_bytes(each[5:9], "big")
        if kind == RESET or (kind in (DATA, HEADERS) and flags):
            held.pop(stream, None)
        elif kind == DATA:
            held[stream] = held.get(stream, 0) + size
        expected = expected and sum(held.values()) <= MAX_REQUEST_BYTES
    assert admits(PREFACE + b"".join(made), piece) == expected


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_taken_without_an_error(data: bytes) -> None:
    admits(data, 7)
