"""Spark gets references instead of secrets; the file behind them is ours alone and reads back as it was."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from barnabas.kafka.secret_file import SECRET_PROPERTIES, hidden
from tests.unit.configurations import CANARY

VALUES = [
    CANARY,
    'user="a" password="b\\c";',
    "a=b:c#d!e",
    "  edges  ",
    "line\nfeed\r\ttab",
    "größe \U0001f4e8",
    "\\u0041",
]


def read_back(file: Path) -> dict[str, str]:
    """As java.util.Properties reads a line: key, first bare separator, value with its escapes undone."""
    plain = {"n": "\n", "r": "\r", "t": "\t"}
    found: dict[str, str] = {}
    for line in file.read_text(encoding="ascii").splitlines():
        key, _, value = line.partition("=")
        parts = re.sub(
            r"\\(u([0-9a-f]{4})|.)", lambda m: chr(int(m[2], 16)) if m[2] else plain.get(m[1], m[1]), value.lstrip()
        )
        found[key] = parts.encode("utf-16", "surrogatepass").decode("utf-16")
    return found


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_is_written_so_that_java_reads_it_back(value: str, tmp_path: Path) -> None:
    given = dict.fromkeys(sorted(SECRET_PROPERTIES), value) | {"bootstrap.servers": "b:1"}
    shown = hidden(given, tmp_path / "query" / "secrets")
    assert read_back(tmp_path / "query" / "secrets") == dict.fromkeys(SECRET_PROPERTIES, value)
    assert shown["sasl.jaas.config"] == f"${{file:{tmp_path}/query/secrets:sasl.jaas.config}}"
    assert value not in str(shown) and shown["bootstrap.servers"] == "b:1"


def test_only_we_may_read_the_file_also_after_it_was_written_anew(tmp_path: Path) -> None:
    file = tmp_path / "query" / "secrets"
    for value in ("first", "second"):
        hidden({"ssl.key.password": value}, file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert read_back(file) == {"ssl.key.password": value}
    assert [path.name for path in file.parent.iterdir()] == ["secrets"]


def test_without_a_secret_there_is_no_file_and_no_provider(tmp_path: Path) -> None:
    assert hidden({"bootstrap.servers": "b:1"}, tmp_path / "secrets") == {"bootstrap.servers": "b:1"}
    assert list(tmp_path.iterdir()) == []
