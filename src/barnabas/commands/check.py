"""`barnabas check`: the configuration as it takes effect; secrets stay references."""

from __future__ import annotations

import argparse
import json

import yaml

from barnabas.config.load import Configuration


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    effective = configuration.model_dump(mode="json", by_alias=True, exclude_none=True)
    if args.mirror:
        effective["mirrors"] = [mirror for mirror in effective["mirrors"] if mirror["name"] in args.mirror]
    if args.format == "json":
        print(json.dumps(effective, indent=2))
    else:
        print(yaml.safe_dump(effective, sort_keys=False, allow_unicode=True), end="")
    return 0
