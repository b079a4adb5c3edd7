"""A produce request written by hand, for what no client writes: timestamp 0, header names that are not UTF-8."""

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

PRODUCE, VERSION = 0, 3
CASTAGNOLI = 0x82F63B78
SECONDS = 30.0


class RawRecord(NamedTuple):
    """One record; every part of it just bytes."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def produce_raw(bootstrap: str, topic: str, records: Sequence[RawRecord], partition: int = 0) -> int:
    """Appends the records as one batch; the offset of the first."""
    batch = _batch(records)
    body = struct.pack(">hhi", -1, -1, int(SECONDS * 1000))  # no transaction, acknowledged by all
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    request = struct.pack(">hhi", PRODUCE, VERSION, 1) + _string("tests") + body
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _received(connection, 4))
        answer = _received(connection, size)
    # correlation, one topic with its name, one partition: number, error, offset
    at = 4 + 4 + 2 + len(topic.encode()) + 4
    _, error, offset = struct.unpack_from(">ihq", answer, at)
    assert error == 0, f"{topic}-{partition}: the broker answered with error {error}"
    return int(offset)


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "the broker closed the connection: it did not understand the request"
        data += part
    return data


def _batch(records: Sequence[RawRecord]) -> bytes:
    first = records[0].timestamp
    latest = max(record.timestamp for record in records)
    rows = b"".join(_record(record, number, first) for number, record in enumerate(records))
    checked = struct.pack(">hiqqqhii", 0, len(records) - 1, first, latest, -1, -1, -1, len(records)) + rows
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, _crc32c(checked)) + checked


def _record(record: RawRecord, number: int, first: int) -> bytes:
    body = b"\0" + _varint(record.timestamp - first) + _varint(number) + _bytes(record.key) + _bytes(record.value)
    body += _varint(len(record.headers)) + b"".join(_bytes(name) + _bytes(value) for name, value in record.headers)
    return _varint(len(body)) + body


def _bytes(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
