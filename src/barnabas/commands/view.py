"""What a run shows while it works: a live table on a terminal, a line every few seconds elsewhere. On stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from barnabas.board import MirrorBoard
from barnabas.commands.tables import size

LINE_SECONDS = 5.0
LIVE_SECONDS = 0.25

log = logging.getLogger("barnabas")


def watch(boards: Iterable[MirrorBoard], running: Callable[[], bool], *, progress: bool) -> None:
    """Shows the boards until nothing runs any more. `progress`: there is an end to reach, so show how far it is."""
    shown = list(boards)
    if sys.stderr.isatty():
        _live(shown, running, progress)
    else:
        _lines(shown, running, progress)


def _live(boards: list[MirrorBoard], running: Callable[[], bool], progress: bool) -> None:
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=1 / LIVE_SECONDS, transient=False) as live:
        while running():
            live.update(_table(boards, progress))
            time.sleep(LIVE_SECONDS)
        live.update(_table(boards, progress))


def _table(boards: list[MirrorBoard], progress: bool) -> Group:
    table = Table(box=None, pad_edge=False)
    for heading in ("mirror", "state", "records", "records/s", "MB/s", "lag", "done" if progress else ""):
        table.add_column(heading, justify="left" if heading in ("mirror", "state", "done") else "right")
    notes: list[Text] = []
    for board in boards:
        records, volume = board.rate()
        bar = ProgressBar(total=max(1, board.target), completed=_done(board), width=30) if progress else ""
        table.add_row(
            board.name,
            board.state,
            f"{board.records:,}",
            f"{records:,.0f}",
            f"{volume / 1e6:.1f}",
            f"{board.lag():,}",
            bar,
        )
        if board.error:
            notes.append(Text(str(board.error), style="yellow"))
    return Group(table, *notes)


def _done(board: MirrorBoard) -> int:
    return board.target if board.state == "done" else min(board.copied_to_target, board.target)


def _lines(boards: list[MirrorBoard], running: Callable[[], bool], progress: bool) -> None:
    said: dict[str, str] = {}
    due = time.monotonic() + LINE_SECONDS
    while running():
        time.sleep(LIVE_SECONDS)
        for board in boards:
            _say_change(board, said)
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            for board in boards:
                if board.state == "copying":
                    log.info("%s", _line(board, progress))
    for board in boards:
        _say_change(board, said)


def _say_change(board: MirrorBoard, said: dict[str, str]) -> None:
    """Says at once what an operator must not wait for: a mirror that waits, is refused, or goes on again."""
    now = f"{board.state} {board.restarts}"
    if said.get(board.name) != now:
        said[board.name] = now
        log.info("%s: %s%s", board.name, board.state, f": {board.error}" if board.error else "")


def _line(board: MirrorBoard, progress: bool) -> str:
    records, volume = board.rate()
    done = f", {100 * _done(board) // max(1, board.target)} %" if progress else ""
    return (
        f"{board.name}: {board.records:,} records, {records:,.0f}/s, {volume / 1e6:.1f} MB/s, lag {board.lag():,}{done}"
    )


def summary(board: MirrorBoard, seconds: float) -> str:
    """What was copied, in one line."""
    copied = f"copied {board.records:,} records, {size(board.bytes)}, in {seconds:.1f} s"
    copied += f", {board.quarantined:,} of them set aside" if board.quarantined else ""
    return f"{board.name}: {board.state}, {copied}, lag {board.lag():,}, {board.restarts} restarts"
