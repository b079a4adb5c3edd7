"""A process that outlives a crash: it ends a lab when the process that started it dies before letting go."""

import subprocess
import sys
from pathlib import Path

from barnabas.errors import Unavailable
from barnabas.lab.process import end_all

RELEASE = b"stay"
END_SECONDS = 60


class Guard:
    """Watches over one lab directory from its own session.

    The guard reads from a pipe whose other end is ours. If the pipe closes without a word, be it by `end()` or because
    we were killed, it ends every process recorded in the directory and removes the directory.
    """

    def __init__(self, directory: Path, held: tuple[int, ...] = ()) -> None:
        """`held`: file descriptors the guard keeps open as long as it lives, such as that of a lock."""
        self._directory = directory
        self._process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.lab.guard", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=held,
            start_new_session=True,
        )

    def release(self) -> None:
        """Lets the lab live on without us."""
        self._process.communicate(RELEASE, END_SECONDS)

    def end(self) -> None:
        """Ends the lab now, if it has not ended yet."""
        if self._process.returncode is not None:
            return
        self._process.communicate(b"", END_SECONDS)
        if self._process.returncode != 0:
            raise Unavailable(f"lab: {self._directory} could not be ended; the guard said why on standard error")


def main() -> int:
    """The guard's own process."""
    directory = Path(sys.argv[1])
    if sys.stdin.buffer.read() != RELEASE:
        end_all(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
