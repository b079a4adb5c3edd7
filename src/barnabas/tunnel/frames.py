"""What travels inside one TLS connection of the tunnel, which carries one Kafka connection.

    frame     4 bytes of length, big-endian, then that many bytes
    request   the first frame from connect, JSON: {"version": 1, "ask": "list"} or {…, "ask": "open", "target": …}
    answer    the first frame from serve, JSON: {"version": 1, "ok": true, …} or {…, "ok": false, "reason": …}
    data      every later frame, either way; a frame of length 0 says that this direction has ended

Why frames: TLS ends both directions of a connection at once in most libraries (asyncio's among them), TCP one by one.
With an explicit end a direction can end while the other goes on, and a connection that breaks never looks like one that
ended: without the end frame the other side is reset.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

from barnabas import jsontext
from barnabas.errors import Refused

VERSION = 1
HEADER = struct.Struct(">I")
# Of 32, 64, 128 and 256 KiB the fastest for one connection in a prototype; for four at once 256 KiB was 13 % faster.
CHUNK = 128 * 1024
LONGEST_DATA = 1 << 20
LONGEST_REQUEST = 4 * 1024
LONGEST_ANSWER = 1 << 20
END = HEADER.pack(0)


class BadFrame(Refused):
    """The peer broke the rules above: another version, or not barnabas."""


def encode(message: Mapping[str, Any]) -> bytes:
    """A request or an answer as one frame."""
    body = json.dumps({"version": VERSION, **message}, separators=(",", ":")).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """The message in a frame; a message of another version is refused."""
    try:
        message = jsontext.parsed(body)
    except ValueError:
        raise BadFrame("tunnel: a message is not JSON; is the other end barnabas?") from None
    if not isinstance(message, dict):
        raise BadFrame("tunnel: a message is not a JSON object; is the other end barnabas?")
    if message.get("version") != VERSION:
        raise BadFrame(
            f"tunnel: the other end speaks version {message.get('version')!r:.20}, this one {VERSION}; "
            "run the same barnabas at both ends"
        )
    return message


def first_frame(buffer: bytearray, longest: int) -> bytes | None:
    """Take the first frame out of the buffer; None while it is not all there."""
    if len(buffer) < HEADER.size:
        return None
    (length,) = HEADER.unpack_from(buffer)
    if not 0 < length <= longest:
        raise BadFrame(f"tunnel: a message of {length} bytes where 1 to {longest} are allowed")
    end = HEADER.size + length
    if len(buffer) < end:
        return None
    body = bytes(buffer[HEADER.size : end])
    del buffer[:end]
    return body


class Unframer:
    """Takes the payload out of data frames; knows how far into a frame it is."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0
        self.ended = False
        self.frames = 0

    def payload(self, data: memoryview) -> bytes:
        """The payload in these bytes, joined: a read of a thousand small frames is one write.

        Sets `ended` at the end, and `frames` to the number of frames that these bytes have part in. BadFrame for a
        frame that is too long, and for anything behind the end.
        """
        pieces: list[memoryview] = []
        at, size, left = 0, len(data), self._left
        while at < size:
            if left:
                piece = data[at : at + left]
                pieces.append(piece)
                at += len(piece)
                left -= len(piece)
                continue
            if self.ended:
                raise BadFrame("tunnel: data behind the end of a direction")
            if not self._header and size - at >= HEADER.size:
                (left,) = HEADER.unpack_from(data, at)
                at += HEADER.size
            else:
                at, left, whole = self._header_in_parts(data, at)
                if not whole:
                    break
            if left > LONGEST_DATA:
                raise BadFrame(f"tunnel: a data frame of {left} bytes where {LONGEST_DATA} are allowed")
            self.ended = not left
        self._left, self.frames = left, len(pieces)
        return b"".join(pieces)

    def _header_in_parts(self, data: memoryview, at: int) -> tuple[int, int, bool]:
        """How far it was read, the length that a header says, and whether the header is all there."""
        part = data[at : at + HEADER.size - len(self._header)]
        self._header += part
        if len(self._header) < HEADER.size:
            return at + len(part), 0, False
        (length,) = HEADER.unpack(self._header)
        self._header.clear()
        return at + len(part), length, True
