"""Frames: whatever the pieces in which they arrive, what was sent comes out, and nothing else passes."""

import random

import pytest

from barnabas.tunnel.frames import END, HEADER, LONGEST_DATA, BadFrame, Unframer, decode, encode, first_frame


def framed(*payloads: bytes) -> bytes:
    return b"".join(HEADER.pack(len(payload)) + payload for payload in payloads)


def test_data_comes_out_as_it_went_in_however_it_is_cut() -> None:
    chance = random.Random(7)
    payloads = [chance.randbytes(chance.randrange(1, 5000)) for _ in range(50)]
    stream = framed(*payloads) + END
    for _ in range(20):
        unframer, out, at = Unframer(), b"", 0
        largest = chance.choice([2, 7, 4000])
        while at < len(stream):
            assert not unframer.ended
            step = chance.randrange(1, largest)
            out += unframer.payload(memoryview(stream[at : at + step]))
            at += step
        assert out == b"".join(payloads)
        assert unframer.ended


def test_nothing_may_follow_the_end() -> None:
    unframer = Unframer()
    assert unframer.payload(memoryview(framed(b"a") + END)) == b"a"
    assert unframer.payload(memoryview(b"")) == b""
    with pytest.raises(BadFrame, match="behind the end"):
        unframer.payload(memoryview(b"\0"))


def test_a_frame_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadFrame, match=f"{LONGEST_DATA + 1} bytes where {LONGEST_DATA} are allowed"):
        Unframer().payload(memoryview(HEADER.pack(LONGEST_DATA + 1)))


def test_a_message_is_taken_when_it_is_all_there_and_leaves_the_rest() -> None:
    message = encode({"ask": "list"})
    buffer = bytearray(message[:-1])
    assert first_frame(buffer, 100) is None
    buffer += message[-1:] + b"rest"
    body = first_frame(buffer, 100)
    assert body is not None
    assert decode(body)["ask"] == "list"
    assert buffer == b"rest"


@pytest.mark.parametrize("length", [0, 101, 1 << 31])
def test_a_message_of_a_length_that_is_not_allowed_is_refused(length: int) -> None:
    with pytest.raises(BadFrame, match=f"{length} bytes where 1 to 100"):
        first_frame(bytearray(HEADER.pack(length)), 100)


@pytest.mark.parametrize("body", [b"\xff", b"[]", b"null", b"{}", b'{"version": 2}', b'{"version": "1"}', b"[" * 4000])
def test_what_is_no_message_of_this_version_is_refused(body: bytes) -> None:
    with pytest.raises(BadFrame):
        decode(body)
