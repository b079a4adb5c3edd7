"""The writer of this worker process: one transactional producer per mirror and epoch, kept while its commits are clean.

A new transactional producer costs tens of milliseconds, so it lives across micro-batches. Its id is made of the
mirror, a random token and a slot. A slot is a small number held with a file lock; the token stands beside the locks. So
ids are few and come back, and no two live processes ever share one, because those that share a token share its locks.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from barnabas.errors import Refused
from barnabas.kafka.producer import TransactionalProducer
from barnabas.ledger.registration import Writer, opened_writer
from barnabas.worker.task import WriteTask

MOST_SLOTS = 1024
TOKEN = re.compile("[0-9a-f]{16}")
TOKEN_TRIES = 10
FULL_SECONDS = 0.05  # without any answer, until a full queue is flushed

_writers: dict[str, tuple[int, Writer]] = {}
_looked: dict[str, tuple[int, int]] = {}  # by mirror: the epoch, and how far in the ledger no newer one was seen
_slots: dict[str, tuple[int, int]] = {}  # by mirror: the number, and the descriptor that holds its lock


def writer(task: WriteTask) -> Writer:
    """This process' writer for the task's epoch, opened if there is none yet."""
    held = _writers.get(task.mirror)
    if held is not None:
        epoch, kept = held
        if epoch == task.epoch and kept.producer.clean:
            return kept
        del _writers[task.mirror]
    looked_epoch, looked_to = _looked.get(task.mirror, (task.epoch, 0))
    opened = opened_writer(
        task.destination,
        task.ledger,
        epoch=task.epoch,
        run=task.run,
        transactional_id=_transactional_id(task.mirror),
        looked_to=max(task.looked_to, looked_to if looked_epoch == task.epoch else 0),
        extra=task.producer,
    )
    _writers[task.mirror] = (task.epoch, opened)
    _looked[task.mirror] = (task.epoch, opened.end.offset)
    return opened


def patiently(producer: TransactionalProducer | Producer, *record: Any) -> None:
    """Produces one record, waiting while librdkafka's queue is full; Refused for one that no empty queue can hold."""
    while True:
        was_empty = len(producer) == 0
        try:
            return producer.produce(*record)
        except BufferError:
            if was_empty:
                raise Refused(
                    f"{record[0]}: a record of {len(record[1] or b''):,} bytes is larger than the client's queue: "
                    f"raise `queue.buffering.max.kbytes` under `producer`"
                ) from None
            if not producer.poll(FULL_SECONDS):
                producer.flush(FULL_SECONDS)  # spread over many partitions no batch may be full: what is there must go


def write_all(task: WriteTask, wanted: Iterable[tuple[Any, ...]], where: str) -> None:
    """One transaction of this process' writer, with the arguments of each produce; fenced like any other (B)."""
    ours = writer(task)
    try:
        ours.producer.begin()
        for record in wanted:
            told = (ours.end.delivered,) if record[0] == task.ledger else ()
            patiently(ours.producer, *record, *told)
        ours.commit()
    except BaseException as error:
        dropped(task)
        if isinstance(error, KafkaException):
            raise ours.producer.explained(error, where) from None
        raise


def dropped(task: WriteTask) -> None:
    """Forgets the writer: after an error the next one begins with a new producer epoch."""
    _writers.pop(task.mirror, None)


def _transactional_id(mirror: str) -> str:
    slot = _slot(mirror)
    return f"barnabas.{mirror}.{_token(mirror)}.{slot}"


def _token(mirror: str) -> str:
    """The random token of this mirror's locks, made by whoever comes first."""
    file = _locks(mirror) / "token"
    for _ in range(TOKEN_TRIES):
        with suppress(FileNotFoundError):
            token = file.read_text(encoding="ascii", errors="replace")
            if TOKEN.fullmatch(token):
                os.utime(file)
                return token
            file.unlink()  # half of it, after a power cut
        fresh = file.with_name(f"token.{secrets.token_hex(8)}")
        fresh.write_text(secrets.token_hex(8), encoding="ascii")
        with suppress(FileExistsError):
            os.link(fresh, file)  # whole or not at all, and only where there is none
        fresh.unlink()
    raise Refused(f"{file}: it cannot be read and made anew: remove it")


def _slot(mirror: str) -> int:
    """A number that no other live process has for this mirror under its token."""
    held = _slots.get(mirror)
    if held is not None and os.fstat(held[1]).st_nlink:  # a lock that was swept away keeps nobody out
        os.utime(held[1])
        return held[0]
    if held is not None:
        os.close(held[1])
    directory = _locks(mirror)
    for number in range(MOST_SLOTS):
        lock = os.open(directory / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _slots[mirror] = (number, lock)
        return number
    raise Refused(f"{directory}: all {MOST_SLOTS} slots are held; too many workers on this host")


def _locks(mirror: str) -> Path:
    directory = _own(Path(tempfile.gettempdir()) / f"barnabas-{os.getuid()}") / "slots" / mirror
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


def _own(directory: Path) -> Path:
    """The directory, made if need be; refused where another user could have put it there."""
    directory.mkdir(exist_ok=True, mode=0o700)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Refused(f"{directory} is not a directory that only its owner may write to: remove it, or set TMPDIR")
    return directory
