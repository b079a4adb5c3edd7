"""A lab is ready when it says so: its topic is there, and a command feeds it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lab import lab
from tests.barnabas_runs import ran
from tests.kafka_io import ends, read_all


@pytest.fixture
def directory(lab_directory: Path) -> Iterator[Path]:
    place = lab_directory / "produced"
    yield place
    lab.down(place)


def test_the_topic_of_a_labs_configuration_exists_and_lab_produce_feeds_it(directory: Path, tmp_path: Path) -> None:
    code, up = ran(tmp_path, "lab", "up", "--directory", directory, "--sasl", "PLAIN")
    assert code == 0, up.messages
    configuration = Path(up.output.strip())
    assert "barnabas lab produce" in up.messages and str(directory) in up.messages

    code, plan = ran(tmp_path, "plan", "-c", configuration, "--format", "json")
    assert code == 0, plan.messages
    [mirror] = plan.answer()["mirrors"]
    assert (mirror["absent"], mirror["records"], [r["from"] for r in mirror["routes"]]) == ([], 0, ["orders"])

    produce = ("lab", "produce", "--directory", directory)
    began = time.monotonic()
    code, fed = ran(tmp_path, *produce, "--records", "300", "--rate", "150", "--size", "500")
    assert code == 0, fed.messages
    assert time.monotonic() - began > 1.5, "300 records at 150 a second"
    assert fed.output == "lab: 300 records produced to orders\n"
    code, again = ran(tmp_path, *produce, "--topic", "clicks", "--records", "1000")
    assert code == 0, again.messages

    where = lab.client_settings(directory)
    records = read_all(where, "orders")
    assert len(records) == 300 and {len(record.value or b"") for record in records} == {500}
    assert all(record.key and json.loads(record.value or b"") for record in records)
    assert len(ends(where, "orders")) > 1 and len({record.partition for record in records}) > 1
    assert len(read_all(where, "clicks")) == 1000

    code, wrong = ran(tmp_path, *produce, "--rate", "0")
    assert code == 2 and "--rate" in wrong.messages
    code, absent = ran(tmp_path, "lab", "produce", "--directory", tmp_path / "nowhere")
    assert code == 1 and "barnabas lab up" in absent.messages
