"""Records that are written all the time while a test does something else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kafka_io import Record, produce


@contextmanager
def flowing(bootstrap: str, topic: str, partitions: int) -> Iterator[None]:
    """A few hundred records at a time, without a pause, until the block ends; fails if one could not be written."""
    over = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        number = 0
        try:
            while not over.is_set():
                batch = [Record(b"k", b"%d" % (number + i), (), 1000 + i, i % partitions) for i in range(300)]
                produce(bootstrap, topic, batch)
                number += len(batch)
        except BaseException as failure:  # noqa: BLE001 - told below, in the test's own thread
            failures.append(failure)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    except BaseException as failure:
        if failures:  # what was waited for could not come
            raise failures[0] from failure
        raise
    finally:
        over.set()
        writing.join()
    if failures:
        raise failures[0]
