"""A watermark is the minimum over streams and never falls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message, Punctuation
from gscope.queries.streams.punctuation import Watermark, advanced, minimum


def beat(stream: str, bound: int, column: str = "tb") -> Heartbeat:
    return Heartbeat(stream, 0, 0, 0, (Punctuation(column, bound),))


MESSAGES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.builds(beat, st.sampled_from("abx"), st.integers(-50, 50), st.sampled_from(["tb", "t"])),
        st.builds(EndOfStream, st.sampled_from("abx"), st.just(0)),
    )
)


@given(MESSAGES)
def test_a_watermark_never_falls(messages: list[Message]) -> None:
    watermark = Watermark({"a": "tb", "b": "tb"})
    before: int | None = None
    for message in messages:
        watermark.observe(message)
        assert before is None or (watermark.value is not None and watermark.value >= before)
        before = watermark.value


@given(MESSAGES)
def test_a_watermark_is_below_the_bound_of_each_open_stream(messages: list[Message]) -> None:
    watermark = Watermark({"a": "tb", "b": "tb"})
    for message in messages:
        watermark.observe(message)
    ended = {m.stream for m in messages if isinstance(m, EndOfStream)}
    for stream in {"a", "b"} - ended:
        bounds = [
            m.punctuations[0].bound
            for m in messages
            if isinstance(m, Heartbeat) and m.stream == stream and m.punctuations[0].column == "tb"
        ]
        assert watermark.value is None or (bounds and watermark.value <= max(bounds))


def test_a_silent_stream_holds_the_watermark_back_and_is_named() -> None:
    watermark = Watermark({"a": "tb", "b": "t"})
    watermark.observe(beat("a", 5))
    assert (watermark.value, watermark.waiting_for) == (None, "b")
    watermark.observe(beat("b", 3, "t"))
    assert (watermark.value, watermark.waiting_for) == (3, "b")


def test_an_ended_stream_holds_up_nobody() -> None:
    watermark = Watermark({"a": "tb", "b": "tb"})
    watermark.observe(beat("a", 5))
    watermark.observe(EndOfStream("b", 1))
    assert (watermark.value, watermark.is_ended) == (5, False)
    watermark.observe(EndOfStream("a", 1))
    assert (watermark.waiting_for, watermark.is_ended) == (None, True)


def test_batches_and_foreign_streams_change_nothing() -> None:
    watermark = Watermark({"a": "tb"})
    watermark.observe(Batch("a", 0, "p", 1, 1, ()))
    watermark.observe(beat("other", 9))
    assert watermark.value is None


def test_a_promise_once_given_stays() -> None:
    bounds = advanced({"tb": 5}, (Punctuation("tb", 4), Punctuation("t", 1)))
    assert bounds == {"tb": 5, "t": 1}


def test_a_minimum_needs_a_bound_of_everybody() -> None:
    assert minimum([3, 1, 2]) == 1
    assert minimum([3, None]) is None
    assert minimum([]) is None
