"""Another process that holds a lock on a hosts file."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCKER = """
import fcntl, os, sys
if os.getuid() == 0:
    os.setuid(65534)
file = open(sys.argv[1])
fcntl.flock(file, getattr(fcntl, sys.argv[2]))
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(file: Path, kind: str = "LOCK_EX") -> Iterator[int]:
    """Another process, of another user where this one is root, holds a lock on the file; its number."""
    file.chmod(0o644)
    command = [sys.executable, "-c", LOCKER, str(file), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "locked\n"
        yield process.pid
        process.stdin.close()
