"""`barnabas check`: the configuration as it takes effect; secrets stay references. `--connect` tries every step."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import yaml

from barnabas.commands.choose import chosen
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.config.schemas import registry_settings
from barnabas.errors import BarnabasError, ConfigError
from barnabas.kafka.admin import Admin
from barnabas.kafka.settings import connection
from barnabas.schemas.registry import RegistryClient
from barnabas.survey import Surveyor
from barnabas.tunnel.diagnose import Step, diagnose


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    mirrors = chosen(args, configuration) if configuration.mirrors else ()
    for mirror in mirrors:
        Surveyor(configuration, mirror)  # makes the clients that a run would make, which refuse unknown settings
    _refuse_wrong_sql(configuration, mirrors)
    if args.connect:
        return _connect(args, configuration, mirrors)
    effective = configuration.model_dump(mode="json", by_alias=True, exclude_none=True)
    if args.mirror:
        effective["mirrors"] = [mirror for mirror in effective["mirrors"] if mirror["name"] in args.mirror]
    if args.format == "json":
        print(json.dumps(effective, indent=2))
    else:
        print(yaml.safe_dump(effective, sort_keys=False, allow_unicode=True), end="")
    return 0


def _refuse_wrong_sql(configuration: Configuration, mirrors: tuple[Mirror, ...]) -> None:
    """Asks Spark itself what it thinks of each `where`; started only when there is one."""
    if not any(mirror.where for mirror in mirrors):
        return
    from barnabas.predicate import explain_where  # Spark takes seconds to start: only who needs it waits for it
    from barnabas.session import session

    with session(configuration.spark) as spark:
        for mirror in mirrors:
            problem = explain_where(spark, mirror.where) if mirror.where else None
            if problem:
                raise ConfigError(f'{mirror.place}: mirror "{mirror.name}": where: {problem}')


def _connect(args: argparse.Namespace, configuration: Configuration, mirrors: tuple[Mirror, ...]) -> int:
    """Goes to every cluster the mirrors name, and says which step fails; exit 1 when one does."""
    wanted = dict.fromkeys(name for mirror in mirrors for name in (mirror.source, mirror.destination))
    found = [(name, step) for name in wanted or configuration.clusters for step in _steps(configuration, name)]
    registries = dict.fromkeys(m.registry_of for m in mirrors if m.schemas and m.registry_of not in {None, *wanted})
    found += [(name, step) for name in registries if name for step in _registry(configuration, name)]
    if args.format == "json":
        print(
            json.dumps(
                [{"cluster": name, "step": s.name, "ok": s.ok, "detail": s.detail} for name, s in found], indent=2
            )
        )
    else:
        for name, step in found:
            print(f"{'ok  ' if step.ok else 'FAIL'}  {name}: {step.name}: {step.detail}")
    return 0 if all(step.ok for _, step in found) else 1


def _steps(configuration: Configuration, name: str) -> Iterator[Step]:
    cluster = configuration.clusters[name]
    reached = connection(name, cluster)
    leading = [tunnel for tunnel, ends in configuration.tunnels.items() if ends.cluster == name]
    for tunnel in [cluster.tunnel] if cluster.tunnel else leading:
        yield from diagnose(tunnel, configuration.tunnels[tunnel], reached.properties)
    try:
        admin = Admin(reached)
        yield Step("brokers", True, f"{admin.broker_count()} brokers, cluster id {admin.cluster_id()}")
    except BarnabasError as error:
        yield Step("brokers", False, str(error))
    yield from _registry(configuration, name)


def _registry(configuration: Configuration, name: str) -> Iterator[Step]:
    cluster = configuration.clusters[name]
    if cluster.registry:
        try:
            client = RegistryClient(registry_settings(name, cluster.registry))
            client.ping()
            client.close()
            yield Step("registry", True, f"{cluster.registry.url} answers")
        except BarnabasError as error:
            yield Step("registry", False, str(error))
