"""Each promise and each statement about security names a test, and that test is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("unit", "spark", "integration", "fault")


@pytest.mark.parametrize("document", ["README.md", "SECURITY.md"])
def test_every_test_that_a_document_names_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{'|'.join(PLACES)})/test_[\w*]+\.py)`", text)
    assert len(named) > 5
    assert [name for name in named if not list((ROOT / "tests").glob(name))] == []


@pytest.mark.parametrize("document", ["README.md", "SECURITY.md"])
def test_every_row_of_a_table_with_tests_names_one(document: str) -> None:
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    heads = [number for number, line in enumerate(lines) if re.fullmatch(r"\|.*\| test \|", line)]
    assert heads
    for head in heads:
        for line in lines[head + 2 :]:
            if not line.startswith("|"):
                break
            assert re.search(rf"`({'|'.join(PLACES)})/test_", line), f"{line} names no test"
