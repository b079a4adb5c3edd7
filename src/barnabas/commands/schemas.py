"""`barnabas schemas plan|copy`: what would be registered at the destination; do it ahead of the records."""

from __future__ import annotations

import argparse
import json
from typing import Any

from barnabas.commands.choose import chosen
from barnabas.commands.tables import printed
from barnabas.config.load import Configuration
from barnabas.errors import ConfigError
from barnabas.plan import planned
from barnabas.schemas import ahead
from barnabas.schemas.ahead import SubjectPlan
from barnabas.survey import Surveyor


def add_parser(commands: Any, parents: list[argparse.ArgumentParser], formatted: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("schemas", help="the schemas of a mirror's records")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("plan", parents=[*parents, formatted], help="what would be registered; writes nothing")
    actions.add_parser("copy", parents=parents, help="register it ahead of the records")


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    mirrors = [mirror for mirror in chosen(args, configuration) if mirror.schemas]
    if not mirrors:
        raise ConfigError("no mirror that was chosen has `schemas`: nothing to do")
    results = {}
    for mirror in mirrors:
        surveyor = Surveyor(configuration, mirror)
        plan = planned(mirror, surveyor.survey())
        settings = surveyor.translation(plan.demuxed if mirror.kind == "demux" else plan.routes)
        assert settings is not None
        if args.action == "plan":
            results[mirror.name] = ahead.plan(settings)
            continue
        for subject in ahead.copy(settings):
            ids = ", ".join(f"version {version} has id {number}" for version, number in subject.ids.items())
            print(f'mirror "{mirror.name}": {subject.source} → {subject.destination}: {ids}')
    if args.action == "plan":
        _show(results, args.format)
    return 1 if any(subject.problem for plans in results.values() for subject in plans) else 0


def _show(results: dict[str, tuple[SubjectPlan, ...]], form: str) -> None:
    if form == "json":
        mirrors = [{"name": name, "subjects": [vars(s) for s in subjects]} for name, subjects in results.items()]
        print(json.dumps({"mirrors": mirrors}, indent=2))
        return
    for name, subjects in results.items():
        rows = [
            (s.source, s.destination, _numbers(s.there), _numbers(s.missing), s.level, s.problem or "-")
            for s in subjects
        ]
        headings = ("subject", "becomes", "versions there", "to register", "compatibility", "problem")
        printed(
            f'mirror "{name}"' + ("" if rows else ": only the records tell which schemas are needed"), headings, rows
        )


def _numbers(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions)) or "-"
