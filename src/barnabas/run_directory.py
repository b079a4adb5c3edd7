"""The run's own directory: only we may enter it, and it is gone at the end.

A run that was killed leaves its directory, with secrets in it. The next run of the same user with the same TMPDIR
removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from barnabas.errors import Refused

PREFIX = "barnabas-spark-"
SHORT = "/tmp"  # noqa: S108 - what is made there is made by mkdtemp
LOCK = "lock"  # held as long as the run lives
LONGEST_SOCKET_DIRECTORY = 107 - len("/.00000000-0000-0000-0000-000000000000.sock")  # Linux's limit for a socket's path
LONGEST_SETTING = 60  # of spark.python.unix.domain.socket.dir


@contextmanager
def run_directory() -> Iterator[Path]:
    """A directory of mode 0700."""
    _sweep()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _locked(directory)
    try:
        yield directory
    finally:
        _remove(directory)
        os.close(lock)


@contextmanager
def socket_directory(directory: Path, *, is_javas: bool) -> Iterator[Path | None]:
    """The directory for Unix sockets: whoever can connect to one of Spark's needs no password, so it must be private.

    It is the run's own, or a short one where that name is too long. None where Spark must not be told: its setting
    takes a shorter name than a socket does, but Java's temporary directory (`is_javas`) is its default.
    """
    length = len(os.fsencode(directory))
    if length <= LONGEST_SETTING:
        yield directory
    elif is_javas and length <= LONGEST_SOCKET_DIRECTORY:
        yield None
    else:
        try:
            short = tempfile.mkdtemp(prefix="b-", dir=SHORT)
        except OSError as error:
            reason = f"{directory} is too long for sockets: set a shorter TMPDIR"
            raise Refused(f"{SHORT}: {error.strerror}; {reason}") from None
        try:
            yield Path(short)
        finally:
            shutil.rmtree(short, ignore_errors=True)


def fits_sockets(directory: Path) -> bool:
    return len(os.fsencode(directory)) <= LONGEST_SOCKET_DIRECTORY


def _locked(directory: Path) -> int:
    """The descriptor of the directory's lock, which has its name only when it is held: nobody finds it free."""
    fresh = directory / f"{LOCK}.new"
    lock = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(directory / LOCK)
    return lock


def _remove(directory: Path) -> None:
    """The lock goes last: without it nobody would sweep what stays when we are killed here, or cannot remove."""
    with suppress(OSError):
        for entry in directory.iterdir():
            if entry.name == LOCK:
                continue
            with suppress(OSError):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink()
        if [entry.name for entry in directory.iterdir()] == [LOCK]:
            (directory / LOCK).unlink()
            directory.rmdir()


def _sweep() -> None:
    """Removes the directories of our runs that are dead. One without a lock is just being made, or not ours."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = directory.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(directory)
            finally:
                os.close(lock)
