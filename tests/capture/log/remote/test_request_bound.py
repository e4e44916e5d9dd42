"""The bound on requests, over frames cut at any place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.capture.log.remote.request_bound import (
    MAX_REQUEST_BYTES,
    MAX_REQUESTS,
    TOO_MANY,
    RequestBound,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING = 0, 1, 3, 4, 6
END_STREAM = 1


def frame(kind: int, stream: int, size: int = 0, flags: int = 0) -> bytes:
    header = size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return header + b"\xff" * size


def admits(data: bytes, piece: int = 1 << 20) -> bool:
    bound = RequestBound()
    return not any(bound.refusal(data[i : i + piece]) for i in range(0, len(data), piece))


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


@pytest.mark.parametrize("flags", [0, END_STREAM])
@pytest.mark.parametrize("end", [b"", frame(RESET, 1, 4)])
def test_requests_that_are_not_answered_are_bounded_also_complete_and_reset_ones(
    flags: int, end: bytes
) -> None:
    some = b"".join(frame(HEADERS, 2 * i + 1, 7, flags) for i in range(MAX_REQUESTS))
    more = frame(HEADERS, 9999, 7, flags)
    assert admits(PREFACE + some + end)
    bound = RequestBound()
    assert bound.refusal(PREFACE + some + end + more) == TOO_MANY
    assert bound.requests == MAX_REQUESTS + 1


@pytest.mark.parametrize("answer", [frame(HEADERS, 3, 5, END_STREAM), frame(RESET, 3, 4)])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_an_answer_makes_room_for_a_request(answer: bytes, piece: int) -> None:
    bound = RequestBound()
    some = b"".join(frame(HEADERS, 2 * i + 1, 7, END_STREAM) for i in range(MAX_REQUESTS))
    assert bound.refusal(PREFACE + some) is None
    replies = frame(SETTINGS, 0, 18) + frame(HEADERS, 1, 5) + frame(DATA, 1, 20) + answer
    for i in range(0, len(replies), piece):
        bound.on_replies(replies[i : i + piece])
    assert bound.refusal(frame(HEADERS, 9999, 7, END_STREAM)) is None
    assert bound.refusal(frame(HEADERS, 10_001, 7, END_STREAM)) == TOO_MANY


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
    RequestBound().on_replies(data)
