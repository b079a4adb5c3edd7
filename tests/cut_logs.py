"""A broker's log that loses its tail, as after an unclean election or a power cut."""

import os
import struct
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster

DERIVED = (".index", ".timeindex", ".txnindex", ".snapshot")


def cut_log(cluster: KafkaCluster, topic: str, at: int) -> None:
    """Takes away what partition 0 holds from the batch with this offset on; its one broker must be down."""
    place = cluster.directory / "broker-0" / f"{topic}-0"
    segment = place / "00000000000000000000.log"
    os.truncate(segment, _place_of(segment, at))
    for file in place.iterdir():
        if file.suffix in DERIVED:  # the broker makes them again from the log
            file.unlink()


def _place_of(segment: Path, offset: int) -> int:
    data, place = segment.read_bytes(), 0
    while place < len(data):
        base, size = struct.unpack_from(">qi", data, place)
        if base == offset:
            return place
        place += 12 + size
    raise AssertionError(f"{segment}: no batch begins at offset {offset}")
