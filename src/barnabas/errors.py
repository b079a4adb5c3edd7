"""Every error Barnabas raises on purpose.

    BarnabasError
    ├── ConfigError      the configuration or the command line is wrong            exit 2
    ├── Unavailable      something outside does not answer now; retried            exit 1 when retries end
    │   ├── TopicsNeeded a demux met topics that are not at the hub yet
    │   └── AccessDenied a cluster does not let us in: retried for minutes       exit 1
    └── Refused          going on would break a promise; a person must look        exit 1
        ├── Fenced       another run of the same mirror has taken over
        ├── Lost         source records are gone before they were copied
        └── BadRecord    a record that cannot be copied as it is, and the policy says stop
            ├── TooLarge a broker refused one for its size, and with it the whole batch
            └── Untimely a broker refused one for its timestamp

A sentence in an error says where, what with its numbers, what it means and what to do.
"""

import json
from collections.abc import Mapping
from typing import Any


class BarnabasError(Exception):
    """The root: caught only by the command line and by the retry loop."""

    exit_code = 1
    details: Mapping[str, Any] = {}  # plain values for the retry loop; they come along from a worker


class ConfigError(BarnabasError):
    """The configuration or the command line is wrong: nothing was started."""

    exit_code = 2


class Unavailable(BarnabasError):  # noqa: N818 - the words of DESIGN.md
    """Something outside does not answer now; trying again may help."""


class TopicsNeeded(Unavailable):
    """A demux met topics that are not at the hub yet; its text is JSON: destination → [source, partitions]."""

    def needed(self) -> dict[str, tuple[str, int]]:
        return {name: (source, count) for name, (source, count) in json.loads(str(self)).items()}


class AccessDenied(Unavailable):
    """A cluster does not let us in. Retried for some minutes, because secrets and certificates rotate; then refused."""


class Refused(BarnabasError):  # noqa: N818
    """Going on would break a promise; trying again will not help."""


class Fenced(Refused):
    """Another run of the same mirror has taken over."""


class Lost(Refused):
    """Source records are gone before they were copied."""


class BadRecord(Refused):
    """A record that cannot be copied as it is."""


class TooLarge(BadRecord):
    """A broker refused a record for its size; it does not say which."""


class Untimely(BadRecord):
    """A broker refused a record for its timestamp, by its own clock."""
