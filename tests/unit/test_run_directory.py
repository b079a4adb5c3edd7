"""The run's directory is private, gone at the end, and swept when its run was killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from barnabas.run_directory import LONGEST_SETTING, LONGEST_SOCKET_DIRECTORY, PREFIX, run_directory, socket_directory

RUN = """
import sys
from barnabas.run_directory import run_directory
with run_directory() as place:
    print(place, flush=True)
    sys.stdin.read()
"""

DYING = """
import os, signal, sys
from barnabas.run_directory import run_directory
left = int(sys.argv[1])
def die_at_the_last(event, _):
    global left
    if event in ("os.remove", "os.rmdir"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
with run_directory() as place:
    for name in "secrets", "a", "z":
        (place / name).write_text("secret")
    (place / "within").mkdir()
    (place / "within" / "secrets").write_text("secret")
    sys.addaudithook(die_at_the_last)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def other_run(place: Path) -> tuple[subprocess.Popen[str], Path]:
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=-1, stdout=-1, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    assert run.stdout is not None
    return run, Path(run.stdout.readline().strip())


def test_the_directory_is_ours_alone_and_gone_at_the_end() -> None:
    umask = os.umask(0)
    try:
        with run_directory() as directory:
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    finally:
        os.umask(umask)
    assert not directory.exists()


def test_what_a_killed_run_left_is_removed_and_a_living_run_keeps_its_own(place: Path) -> None:
    living, kept = other_run(place)
    killed, left = other_run(place)
    (left / "secrets").write_text("secret")
    killed.send_signal(signal.SIGKILL)
    killed.wait(30)
    assert left.exists()
    with run_directory():
        assert kept.is_dir() and not left.exists()
    living.communicate(timeout=30)
    assert not kept.exists()


def test_no_secret_stays_of_a_run_that_is_killed_while_it_removes_its_directory(place: Path) -> None:
    environment, removed = {**os.environ, "TMPDIR": str(place)}, 0
    while subprocess.run([sys.executable, "-c", DYING, str(removed)], env=environment, timeout=30).returncode:
        with run_directory():
            pass
        assert not [path for path in place.rglob("*") if path.is_file()], f"after {removed} were removed"
        removed += 1
    assert removed == 7, "four files, a directory in it, its lock and itself"


def test_what_may_be_just_being_made_or_is_no_directory_of_ours_stays(place: Path) -> None:
    (place / f"{PREFIX}new").mkdir()
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "lock").touch()
    (place / f"{PREFIX}link").symlink_to(place / "elsewhere")
    with run_directory():
        pass
    assert sorted(path.name for path in place.iterdir()) == [f"{PREFIX}link", f"{PREFIX}new", "elsewhere"]
    assert (place / "elsewhere" / "lock").exists()


@pytest.mark.parametrize("is_javas", [True, False])
@pytest.mark.parametrize("length", [LONGEST_SETTING, LONGEST_SETTING + 1, LONGEST_SOCKET_DIRECTORY + 1])
def test_sockets_have_a_private_directory_however_long_the_name_of_the_runs_is(length: int, is_javas: bool) -> None:
    directory = Path("/" + "d" * (length - 1))
    with socket_directory(directory, is_javas=is_javas) as found:
        if length <= LONGEST_SETTING:
            assert found == directory
        elif is_javas and length <= LONGEST_SOCKET_DIRECTORY:
            assert found is None  # Java's temporary directory, which is the run's
        else:
            assert found is not None and stat.S_IMODE(found.stat().st_mode) == 0o700
            assert len(str(found)) <= LONGEST_SETTING
    assert found is None or not found.exists()
