"""How a record says which schema it was written with.

    in the payload   byte 0 = 0, bytes 1-4 = schema id, big-endian; what follows is not ours
                     (Protobuf's message indexes, then the encoded record)
    in a header      `__key_schema_id` or `__value_schema_id`: byte 0 = 1, then a 16-byte GUID that is
                     the same in every registry; the payload then has no prefix at all

Ids differ between registries and are replaced. GUIDs do not and stay.
"""

import uuid
from typing import Final

from barnabas.schemas.settings import Side

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
GUID_MAGIC: Final = 1
GUID_HEADER_BYTES: Final = 17
GUID_HEADERS: Final[dict[Side, str]] = {"key": "__key_schema_id", "value": "__value_schema_id"}


def schema_id(payload: bytes) -> int | None:
    """The schema id a payload starts with, or None where there is no such prefix."""
    if len(payload) < PREFIX_BYTES or payload[0] != MAGIC:
        return None
    return int.from_bytes(payload[1:PREFIX_BYTES], "big")


def prefixed(number: int, rest: bytes) -> bytes:
    """The payload that names schema `number` and goes on with `rest`."""
    return bytes([MAGIC]) + number.to_bytes(PREFIX_BYTES - 1, "big") + rest


def guid(header: bytes) -> str | None:
    """The GUID in a header's value, as registries write it, or None where it holds none."""
    if len(header) != GUID_HEADER_BYTES or header[0] != GUID_MAGIC:
        return None
    return str(uuid.UUID(bytes=header[1:]))
