"""Writes the log of a ledger with millions of transactions into a stopped broker's directory, and counts what is left.

Record batches of version 2, as Kafka's protocol guide has them. All transactions are alike but for a few bytes, so
numpy makes them and their checksums by column.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from barnabas.ledger import records
from barnabas.model import Partition, Position

SEGMENT_BYTES = 8 * 1024 * 1024
FIRST_NEXT = 10_000_000  # positions of eight digits each: every batch has the same length
TRANSACTIONAL, CONTROL = 0x10, 0x20
PRODUCER_ID = 4242
CHECKED_FROM = 21  # where the bytes begin that a batch's checksum covers
Bytes = npt.NDArray[np.uint8]


def _castagnoli() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


TABLE = _castagnoli()


def _varint(number: int) -> bytes:
    zigzag, out = (number << 1) ^ (number >> 63), bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def _batch(key: bytes, value: bytes, attributes: int, sequence: int, millis: int) -> bytes:
    """A batch of one record at offset 0, without its checksum."""
    body = b"\x00" + _varint(0) + _varint(0) + _varint(len(key)) + key + _varint(len(value)) + value + _varint(0)
    record = _varint(len(body)) + body
    rest = struct.pack(">hiqqqhii", attributes, 0, millis, millis, PRODUCER_ID, 0, sequence, 1) + record
    return struct.pack(">qiibI", 0, len(rest) + 9, 0, 2, 0) + rest


def _checked(batches: Bytes) -> None:
    """Puts the checksum into each batch, a row."""
    crc = np.full(len(batches), 0xFFFFFFFF, np.uint32)
    for column in range(CHECKED_FROM, batches.shape[1]):
        crc = TABLE[(crc ^ batches[:, column]) & 0xFF] ^ (crc >> np.uint32(8))
    batches[:, 17:21] = (crc ^ np.uint32(0xFFFFFFFF)).astype(">u4").view(np.uint8).reshape(-1, 4)


def _rows(model: bytes, offsets: npt.NDArray[np.int64]) -> Bytes:
    rows = np.tile(np.frombuffer(model, np.uint8), (len(offsets), 1))
    rows[:, 0:8] = offsets.astype(">i8").view(np.uint8).reshape(-1, 8)
    return rows


def write_transactions(directory: Path, count: int, *, committed: bool = True) -> None:
    """So many transactions of one position each, over eight source partitions, in segments of a ledger's size."""
    millis = records.now()
    position = Position(FIRST_NEXT, "id", 1, millis)
    key, value = records.position_key(Partition("orders", 0)), records.position_value(position)
    data = _batch(key, value, TRANSACTIONAL, 0, millis)
    marker = _batch(struct.pack(">hh", 0, committed), struct.pack(">hi", 0, 0), TRANSACTIONAL | CONTROL, -1, millis)
    number_at = data.index(str(FIRST_NEXT).encode())
    partition_at = data.index(b'"partition":0') + len(b'"partition":')
    a_segment = SEGMENT_BYTES // (len(data) + len(marker))
    for first in range(0, count, a_segment):
        these = np.arange(first, min(first + a_segment, count), dtype=np.int64)
        rows = _rows(data, 2 * these)
        rows[:, 53:57] = these.astype(">i4").view(np.uint8).reshape(-1, 4)
        for place in range(8):
            rows[:, number_at + 7 - place] = (FIRST_NEXT + these) // 10**place % 10 + ord("0")
        rows[:, partition_at] = these % 8 + ord("0")
        markers = _rows(marker, 2 * these + 1)
        _checked(rows)
        _checked(markers)
        log = directory / f"{2 * first:020}.log"
        log.write_bytes(np.hstack([rows, markers]).tobytes())
        for index in (".index", ".timeindex", ".txnindex"):
            log.with_suffix(index).unlink(missing_ok=True)


def markers_and_bytes(directory: Path) -> tuple[int, int]:
    """Transaction markers in the log, and how large it is."""
    markers = size = 0
    for file in sorted(directory.glob("*.log")):
        try:
            raw = file.read_bytes()
        except FileNotFoundError:  # the cleaner has just replaced it
            continue
        at, size = 0, size + len(raw)
        while at + 61 <= len(raw):
            (length,) = struct.unpack_from(">i", raw, at + 8)
            if length <= 0:
                break
            markers += bool(struct.unpack_from(">h", raw, at + 21)[0] & CONTROL)
            at += length + 12
    return markers, size
