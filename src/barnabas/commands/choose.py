"""Which of the configured mirrors a command is about."""

from __future__ import annotations

import argparse
import difflib

from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError


def chosen(args: argparse.Namespace, configuration: Configuration) -> tuple[Mirror, ...]:
    """Those named with --mirror, or all that are enabled."""
    by_name = {mirror.name: mirror for mirror in configuration.mirrors}
    for name in args.mirror:
        if name not in by_name:
            close = difflib.get_close_matches(name, by_name, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(by_name)}"
            raise ConfigError(f"--mirror {name}: no mirror is called so; {hint}")
    mirrors = tuple(by_name[name] for name in dict.fromkeys(args.mirror)) or configuration.enabled()
    if not mirrors:
        raise ConfigError("no mirror is enabled: nothing to do")
    for mirror in mirrors:
        if mirror.schemas:
            mirror.source_registry(configuration.clusters)
    return mirrors


def used(args: argparse.Namespace, configuration: Configuration) -> set[str]:
    """The clusters that the chosen mirrors lead between; all of them where there is no mirror."""
    mirrors = chosen(args, configuration) if configuration.mirrors else ()
    return {side for mirror in mirrors for side in (mirror.source, mirror.destination)} or set(configuration.clusters)


def asked(args: argparse.Namespace, configuration: Configuration) -> set[str]:
    """The clusters of which a chosen mirror needs the registry only: spokes whose records came through a hub."""
    mirrors = chosen(args, configuration) if configuration.mirrors else ()
    return {mirror.registry_of for mirror in mirrors if mirror.schemas and mirror.registry_of}
