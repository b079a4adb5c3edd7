"""Slots: no two live processes of a host share a number, whoever else uses the temporary directory."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.errors import Refused
from barnabas.worker import writer

CLAIM = "from barnabas.worker import writer; print(writer._slot('m'))"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(writer, "_slots", {})
    yield tmp_path
    for _, lock in writer._slots.values():
        os.close(lock)


def of_another_process(place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CLAIM], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_a_slot_is_kept_by_its_process_and_another_gets_the_next(place: Path) -> None:
    assert (writer._slot("m"), writer._slot("m"), writer._slot("other")) == (0, 0, 0)
    assert of_another_process(place) == "1"


def test_a_lock_that_was_swept_away_is_claimed_anew_and_excludes_again(place: Path) -> None:
    writer._slot("m")
    (place / f"barnabas-{os.getuid()}" / "slots" / "m" / "0").unlink()
    assert writer._slot("m") == 0
    assert of_another_process(place) == "1"


def test_a_directory_or_lock_that_another_may_have_put_there_is_refused_and_nothing_is_harmed(place: Path) -> None:
    victim, home = place / "victim", place / f"barnabas-{os.getuid()}"
    victim.write_text("precious")
    home.symlink_to(place)
    with pytest.raises(Refused, match="remove it, or set TMPDIR"):
        writer._slot("m")
    home.unlink()
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    with pytest.raises(Refused):
        writer._slot("m")
    home.chmod(0o700)
    (home / "slots" / "m").mkdir(parents=True)
    (home / "slots" / "m" / "0").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        writer._slot("m")
    assert victim.read_text() == "precious"
