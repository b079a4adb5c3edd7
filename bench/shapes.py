"""The records that contenders copy.

A value ends in eight bytes that its sender chooses: its number within the partition, or the moment it was sent.
"""

import random
from dataclasses import dataclass

KEY_BYTES = 8
TAIL_BYTES = 8
MAGIC = b"\0"

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class Shape:
    """What a record looks like; `avro` ones begin with the id of a schema."""

    name: str
    value_bytes: int
    headers: tuple[tuple[str, int], ...] = ()
    avro: bool = False

    @property
    def record_bytes(self) -> int:
        """About what one record takes on a broker's disk."""
        return self.value_bytes + KEY_BYTES + 10 + sum(len(name) + size + 2 for name, size in self.headers)

    def body(self, schema_id: int = 0) -> bytes:
        """A value without its tail, the same at each call."""
        size = self.value_bytes - TAIL_BYTES
        prefix = MAGIC + schema_id.to_bytes(4, "big") if self.avro else b""
        return prefix + random.Random(self.name).randbytes(size - len(prefix))  # noqa: S311 - filling, not a secret

    def header_list(self) -> Headers | None:
        if not self.headers:
            return None
        return [(name, random.Random(name).randbytes(size)) for name, size in self.headers]  # noqa: S311


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("100B", 100),
        Shape("200B+headers", 200, headers=(("trace", 16), ("origin", 12))),
        Shape("1KB", 1_000),
        Shape("10KB", 10_000),
        Shape("200B-avro", 200, avro=True),
    )
}


def tail(value: bytes) -> int:
    """The number that the sender put at the end of a value."""
    return int.from_bytes(value[-TAIL_BYTES:], "big")


def schema_id(value: bytes) -> int:
    return int.from_bytes(value[1:5], "big")
