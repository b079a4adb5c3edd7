"""Slots: no two live processes of a host share a number, whoever else uses the temporary directory."""

import os
import re
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


def test_ids_of_one_mirror_share_a_token_and_differ_in_their_slot(place: Path) -> None:
    claim = "from barnabas.worker import writer; print(writer._transactional_id('m'))"
    ours = writer._transactional_id("m")
    done = subprocess.run(
        [sys.executable, "-c", claim], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    token = ours.removeprefix("barnabas.m.").removesuffix(".0")
    assert re.fullmatch("[0-9a-f]{16}", token)
    assert done.stdout.strip() == f"barnabas.m.{token}.1"
    assert writer._transactional_id("m") == ours


def test_two_hosts_of_one_name_never_share_a_transactional_id(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = writer._transactional_id("m")
    (place / "another").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place / "another"))
    monkeypatch.setattr(writer, "_slots", {})
    assert writer._transactional_id("m") != ours


def test_a_token_that_was_written_by_half_is_made_anew(place: Path) -> None:
    writer._transactional_id("m")
    token = place / f"barnabas-{os.getuid()}" / "slots" / "m" / "token"
    token.write_text("0123")
    assert writer._transactional_id("m").split(".")[2] == token.read_text() != "0123"
