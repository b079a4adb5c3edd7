"""Taking over a mirror: fence first, then read. The steps are those of DESIGN.md and their order is the point."""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

from barnabas.errors import Fenced, Refused, Unavailable
from barnabas.kafka.producer import INIT_SECONDS, TransactionalProducer, append
from barnabas.ledger import records
from barnabas.ledger.state import EpochRecord, LedgerState
from barnabas.ledger.topic import read_on
from barnabas.model import Connection

RELEASE_SECONDS = 5.0  # a clean stop is over in ten
MORE_SECONDS = 2.0  # a client's own limit comes first, and says more
INITS_AT_ONCE = 16
MOST_WRITERS = 4096


@dataclass(frozen=True)
class Epoch:
    """One run's right to write, and the ledger as it was when it began."""

    number: int
    run: str
    state: LedgerState


def take_over(
    connection: Connection,
    topic: str,
    *,
    run: str,
    source_id: str,
    known: LedgerState | None = None,
    after: int | None = None,
) -> Epoch:
    """Ends every earlier run of the mirror and returns the positions it left.

    `known`: what a survey has read already; this reads on from there. `after`: the last epoch of this very run, which
    does not take the mirror back from another run.
    """
    state = deepcopy(known) if known is not None else LedgerState(topic)
    refuse_taken(state, run=run, after=after)
    # 1. our epoch is the offset of our epoch record; 2. whoever registered before it may still write
    number, seen = _begun(connection, state, run=run, source_id=source_id, after=after)
    # 3. fence them all (B)
    writers = list(seen.writers)
    _refuse_too_many(topic, writers)
    _init_all(connection, topic, {transactional_id for transactional_id, _ in writers}, INIT_SECONDS)
    # 4. strike out what is over. The broker acknowledges these writes after the fencing, so their offsets are past
    #    everything that a fenced writer wrote; what a broker says of the log's end may be old
    gone = sorted((record for record in seen.epochs.items() if record[1].offset != number), key=_void_first)
    lines: list[tuple[bytes, bytes | None]] = [(records.writer_key(i, epoch), None) for i, epoch in writers]
    lines += [(records.epoch_key(token), None) for token, _ in gone]
    mark = max(done.offset for done in append(connection, topic, [*lines, (records.barrier_key(), None)])) + 1
    # 5. only now are the positions final, up to that mark (C)
    read_on(connection, state, mark, committed=True)
    refuse_taken(state, run=run, after=number)
    return Epoch(number, run, state)


def refuse_taken(state: LedgerState, *, run: str, after: int | None, whole: bool = False) -> None:
    """Raises Fenced when another run has begun an epoch since ours, and Refused when the ledger has forgotten ours.

    `whole`: the state was read up to a write of ours. Else it says nothing of what stands past it.
    """
    if after is None or state.epoch == after or (not whole and max(state.read_to - 1, state.epoch) < after):
        return
    if state.epoch < after:
        raise Refused(
            f"ledger {state.topic}: its last epoch is {state.epoch} and this run began epoch {after} there: the ledger "
            f"lost records, after an unclean election or with a disk; compare the topics at both ends, then set the "
            f"positions by hand and start again"
        )
    if state.begun_by_another_than(run):
        raise Fenced(f"ledger {state.topic}: epoch {after} is over; {begun_by(state)}")


def begun_by(state: LedgerState) -> str:
    return f"epoch {state.epoch} was begun by {state.epoch_run}: another barnabas runs this mirror now"


def _begun(
    connection: Connection, state: LedgerState, *, run: str, source_id: str, after: int | None
) -> tuple[int, LedgerState]:
    """The number of our epoch, and the ledger up to there with what is not committed yet.

    A barrier of our own comes first, because what a survey was told of the ledger's end may be old. So a record of ours
    that is void is void because another run began in between: that run wins.
    """
    (barrier,) = append(connection, state.topic, [(records.barrier_key(), None)])
    _refuse_shorter(state, barrier.offset)
    seen = deepcopy(state)
    read_on(connection, seen, barrier.offset + 1, committed=False)
    refuse_taken(seen, run=run, after=after, whole=True)
    line = records.epoch_key(secrets.token_hex(8)), records.epoch_value(run, source_id, seen.read_to)
    (ours,) = append(connection, state.topic, [line], once=True)
    _refuse_shorter(seen, ours.offset)
    read_on(connection, seen, ours.offset + 1, committed=False)
    if seen.epoch == ours.offset:
        return ours.offset, seen
    if seen.begun_by_another_than(run):
        raise Fenced(f"ledger {state.topic}: another run began while this one did: {begun_by(seen)}")
    raise Unavailable(f"ledger {state.topic}: an epoch record of this run was late; the next one counts")


def _refuse_shorter(state: LedgerState, ours: int) -> None:
    if ours < state.read_to:
        raise Refused(
            f"ledger {state.topic}: our record got offset {ours}, and {state.read_to} was read before: the ledger lost "
            f"records or was made anew; compare the topics at both ends, then set the positions by hand"
        )


def _void_first(record: tuple[str, EpochRecord]) -> tuple[bool, int]:
    """A void record goes before the valid one that makes it void, as far as the cleaner keeps that order."""
    return not record[1].void, record[1].offset


def _refuse_too_many(topic: str, writers: list[tuple[str, int]]) -> None:
    if len(writers) > MOST_WRITERS:
        raise Refused(
            f"ledger {topic} has {len(writers):,} writers, and a take-over fences {MOST_WRITERS:,} at most: "
            f"does somebody else write to this topic?"
        )


def _init_all(connection: Connection, topic: str, ids: Iterable[str], seconds: float) -> None:
    """Aborts what these ids left open and fences them; in threads that a process which ends does not wait for."""
    failures: list[BaseException] = []
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[None] = queue.SimpleQueue()  # one for each id
    given_up = threading.Event()
    wanted = sorted(set(ids))
    for transactional_id in wanted:
        todo.put(transactional_id)

    def init() -> None:
        try:
            while not given_up.is_set():
                TransactionalProducer(connection, todo.get_nowait()).init(topic, seconds)
                done.put(None)
        except queue.Empty:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised below, in the caller's thread
            failures.append(failure)
            done.put(None)

    for _ in wanted[:INITS_AT_ONCE]:
        threading.Thread(target=init, daemon=True).start()
    try:
        for _ in wanted:
            done.get(timeout=seconds + MORE_SECONDS)  # the limit is for standing still
            if failures:
                raise failures[0]
    except queue.Empty:
        raise Unavailable(
            f'cluster "{connection.cluster}": writers of {topic} were not fenced in {seconds:.0f} s'
        ) from None
    finally:
        given_up.set()


def release(connection: Connection, topic: str, epoch: Epoch, *, ends: bool) -> None:
    """When an epoch is over: leaves no open transaction behind, unless a newer run has seen to that already.

    Registrations stay for the next take-over to strike out: a worker that does not know yet that the epoch is over may
    register anew, and must be found (B). `ends`: the run is over too, so its sign of life is struck out.
    """
    (mark,) = append(connection, topic, [(records.barrier_key(), None)])
    state = since(epoch)
    read_on(connection, state, mark.offset, committed=False)
    if state.epoch == epoch.number:
        _init_all(connection, topic, {transactional_id for transactional_id, _ in state.writers}, RELEASE_SECONDS)
        if ends:
            append(connection, topic, [(records.alive_key(), None)])


def since(epoch: Epoch) -> LedgerState:
    """A ledger to be read from this epoch's record on: what began it is known."""
    return LedgerState(epoch.state.topic, epoch.number, epoch.run, read_to=epoch.number + 1)
