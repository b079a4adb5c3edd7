"""`barnabas demo`: everything from nothing, and exit 0 only if both topics are equal."""

from pathlib import Path

import pytest

from tests.barnabas_runs import SECONDS, Run, mentioning, within
from tests.kafka_io import wait_until


@pytest.mark.slow  # `make test` itself runs the demo, for Java's class archive, and ends if it fails
def test_the_demo_copies_compares_and_leaves_nothing_running(tmp_path: Path) -> None:
    with Run(tmp_path, "demo", "--records", "20000", TMPDIR=str(tmp_path)) as run:
        code = run.wait(3 * SECONDS)
        # the JVM ends by itself when its parent has, a moment later
        wait_until(lambda: not (mentioning(str(tmp_path)) | run.processes()), within(5), "every process to be gone")
    assert code == 0, run.messages
    assert "records 20,000" in run.output
    assert "lost 0  doubled 0  altered 0" in run.output
    assert not list(tmp_path.glob("barnabas-demo-*"))
