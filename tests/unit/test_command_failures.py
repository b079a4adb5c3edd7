"""One mirror that fails hides no other, and the exit code says whose fault it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.board import MirrorBoard, State
from barnabas.cli import main
from barnabas.commands.failed import told
from barnabas.commands.run import failure
from barnabas.errors import BarnabasError, ConfigError, Refused
from barnabas.kafka import admin

NOBODY = """\
clusters:
  a: {bootstrap: '127.0.0.1:1'}
  b: {bootstrap: '127.0.0.1:1'}
groups:
  - name: g
    source: a
    destination: b
    mirrors:
      - {name: one, from: {match: 'x.*'}}
      - {name: two, from: {match: 'y.*'}}
"""


def board(state: State, error: BarnabasError | None = None) -> MirrorBoard:
    return MirrorBoard("orders", state, error)


@pytest.mark.parametrize(
    ("boards", "code"),
    [
        ([board("done"), board("stopped")], 0),
        ([board("done"), board("refused", Refused("no"))], 1),
        ([board("refused", Refused("no")), board("refused", ConfigError("wrong"))], 2),
        ([board("done"), board("copying")], 1),
        ([board("waiting", ConfigError("an earlier one"))], 1),
    ],
)
def test_a_run_ends_with_the_code_of_its_worst_mirror(boards: list[MirrorBoard], code: int) -> None:
    assert told(error for each in boards if (error := failure(each))) == code


def test_a_mirror_that_does_not_end_is_told() -> None:
    assert 'mirror "orders" was still copying 8 s after it was told to stop' in str(failure(board("copying")))


@pytest.mark.parametrize("command", ["status", "plan"])
def test_mirrors_whose_clusters_do_not_answer_are_each_told_in_table_and_json(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admin, "ANSWER_SECONDS", 0.2)
    file = tmp_path / "c.yaml"
    file.write_text(NOBODY)
    assert main([command, "-c", str(file), "--format", "json"]) == 1
    shown = capsys.readouterr()
    mirrors = json.loads(shown.out)["mirrors"]
    assert [mirror["name"] for mirror in mirrors] == ["one", "two"]
    assert all("127.0.0.1:1" in mirror["error"] for mirror in mirrors)
    assert shown.err.count("barnabas: cluster") == 2
    assert main([command, "-c", str(file)]) == 1
    out = capsys.readouterr().out
    assert all(f'mirror "{name}": ' in out for name in ("one", "two"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{name: one", "{name: one, producer: {linger.msec: 5}", 'c.yaml:9: mirror "one": producer: No such conf'),
        (
            "b: {bootstrap: '127.0.0.1:1'",
            "b: {bootstrap: '127.0.0.1:1', settings: {nope: 1}",
            "c.yaml:3: clusters.b: cl",
        ),
        (
            "a: {bootstrap: '127.0.0.1:1'",
            "a: {bootstrap: '127.0.0.1:1', settings: {nope: 1}",
            "c.yaml:2: clusters.a: cl",
        ),
    ],
)
def test_check_notices_client_settings_that_no_client_knows(
    old: str, new: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text(NOBODY.replace(old, new))
    assert main(["check", "-c", str(tmp_path / "c.yaml")]) == 2
    assert says in capsys.readouterr().err
