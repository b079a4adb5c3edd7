"""Processes of a lab: only ours are ended, all of ours are ended, whatever happens to who started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.errors import Refused, Unavailable
from barnabas.lab.guard import Guard
from barnabas.lab.process import Identity, Process, end_all, recorded
from tests.kafka_io import wait_until

SLEEP = ["sleep", "600"]
STARTS_AND_IS_KILLED = """
import os, signal, sys, time
from pathlib import Path
from barnabas.lab.guard import Guard
from barnabas.lab.process import Process, recorded
directory = Path(sys.argv[1])
guard = Guard(directory)
Process(directory, "sleeper").start(["sleep", "600"])
while not recorded(directory):
    time.sleep(0.01)
print(recorded(directory)[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def started(directory: Path, name: str) -> Process:
    process = Process(directory, name)
    process.start(SLEEP)
    wait_until(lambda: name in [it.name for it in recorded(directory)], 10, "the process to record itself")
    return process


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_records_itself_and_is_gone_after_stop(tmp_path: Path) -> None:
    process = started(tmp_path, "sleeper")
    [identity] = recorded(tmp_path)
    assert identity.pid == process.pid
    assert identity.alive()
    process.stop(10)
    assert not identity.alive()
    assert recorded(tmp_path) == []


def test_a_process_is_not_started_twice(tmp_path: Path) -> None:
    process = started(tmp_path, "sleeper")
    pid = process.pid
    with pytest.raises(Refused, match=f"sleeper runs already, as pid {pid}"):
        process.start(SLEEP)
    assert process.pid == pid
    process.kill()


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process = Process(tmp_path, "stubborn")
    process.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
    process.wait_until(lambda: process.log_tail() == "ready", 10)
    pid = process.pid
    process.stop(0.2)
    assert pid is not None
    assert not exists(pid)


def test_a_stranger_with_a_recycled_pid_is_never_signalled(tmp_path: Path) -> None:
    process = started(tmp_path, "sleeper")
    [identity] = recorded(tmp_path)
    earlier = Identity("gone", identity.pid, identity.started - 1)
    assert not earlier.alive()
    assert earlier.signal(signal.SIGKILL, 0.1)
    assert process.pid == identity.pid
    process.kill()


def test_end_all_ends_every_process_and_removes_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    pids = [started(directory, name).pid for name in ("one", "two", "three")]
    end_all(directory)
    assert not any(exists(pid) for pid in pids if pid)
    assert not directory.exists()


def test_a_start_while_the_lab_ends_never_comes_to_be(tmp_path: Path) -> None:
    late = Process(tmp_path, "late")
    (tmp_path / "run").rename(tmp_path / "run.ended")  # the first thing that end_all does
    late.start(["touch", str(tmp_path / "it ran")])
    assert late.wait(10) != 0
    assert not (tmp_path / "it ran").exists()


def test_a_process_that_ends_while_starting_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    process = Process(tmp_path, "broken")
    process.start(["sh", "-c", "echo no such castle >&2; exit 3"])
    with pytest.raises(Unavailable, match=r"broken ended while starting; .* ends with: no such castle"):
        process.wait_until(lambda: False, 10)
    process.kill()


def test_a_process_that_never_answers_is_given_up_after_its_time(tmp_path: Path) -> None:
    process = started(tmp_path, "mute")
    with pytest.raises(Unavailable, match=r"mute does not answer after 0\.2 s"):
        process.wait_until(lambda: False, 0.2)
    process.kill()


def test_the_guard_ends_the_lab_of_a_killed_process(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    killed = subprocess.run(
        [sys.executable, "-c", STARTS_AND_IS_KILLED, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    pid = int(killed.stdout)
    wait_until(lambda: not exists(pid), 10, "the guard to end the process")
    wait_until(lambda: not directory.exists(), 10, "the guard to remove the directory")


def test_a_guard_may_be_asked_to_end_twice(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "lab")
    process = started(tmp_path / "lab", "sleeper")
    guard.end()
    guard.end()
    assert process.pid is None


def test_a_released_guard_lets_the_lab_live(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    process = started(tmp_path, "sleeper")
    guard.release()
    assert process.pid is not None
    os.kill(process.pid, 0)
    process.kill()
