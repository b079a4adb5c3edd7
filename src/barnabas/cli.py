"""The command line: which command, which configuration, which exit code.

0 done · 1 refused or failed · 2 the configuration or the command line is wrong
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas import __version__
from barnabas.beginning import refuse_foreign_topics
from barnabas.commands import check, demo, lab, plan, position, quarantine, run, schemas, status
from barnabas.commands.choose import asked, used
from barnabas.config.load import Configuration, configured, load
from barnabas.config.single import from_arguments, from_environment, refuse_half
from barnabas.errors import BarnabasError, ConfigError
from barnabas.naming import refuse_wrong_template
from barnabas.topology import refuse_circles_and_collisions
from barnabas.tunnel import commands as tunnel

DEFAULT_FILE = "barnabas.yaml"
Command = Callable[[argparse.Namespace, Configuration], int]
WITH_CONFIGURATION: dict[str, Command] = {
    "run": run.run,
    "plan": plan.run,
    "status": status.run,
    "check": check.run,
    "position": position.run,
    "schemas": schemas.run,
    "quarantine": quarantine.run,
}
COPIES_NOTHING = ("status", "position")  # of a disabled mirror too, beside whatever runs
log = logging.getLogger(__name__)
WITHOUT: dict[str, Callable[[argparse.Namespace], int]] = {"lab": lab.run, "demo": demo.run}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if args.verbose else logging.INFO,
        format="%(asctime)s %(levelname).1s %(name)s: %(message)s" if args.verbose else "%(asctime)s %(message)s",
        datefmt="%H:%M:%S",
    )
    for noisy in ("py4j", "httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        if args.command in WITHOUT:
            return WITHOUT[args.command](args)
        if args.command == "tunnel":
            return tunnel.run(args, None if args.tunnel_command == "keygen" else _tunnelled(args))
        configuration = _configuration(args)
        if args.command not in COPIES_NOTHING:
            configuration = configuration.model_copy(update={"chosen": frozenset(args.mirror)})
        refuse_circles_and_collisions(configuration.together())
        for mirror in configuration.together():
            refuse_wrong_template(mirror)
            refuse_foreign_topics(mirror)
        configuration.refuse_missing(used(args, configuration), registries=asked(args, configuration))
        return WITH_CONFIGURATION[args.command](args, configuration)
    except BarnabasError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on: nothing more to say
        return 1
    except OSError as error:  # a full disk, a directory that is not ours: nobody needs to read where in the code
        log.debug("%s", error, exc_info=True)
        print(f"barnabas: {error}", file=sys.stderr)
        return 1


def _configuration(args: argparse.Namespace) -> Configuration:
    """The file named by -c; else one mirror from the command line or the environment; else barnabas.yaml here."""
    refuse_half(args)
    if args.config is not None:
        return load(Path(args.config))
    single = from_arguments(args) if getattr(args, "source", None) is not None else from_environment(os.environ)
    if single is not None:
        return configured(*single)
    if Path(DEFAULT_FILE).exists():
        return load(Path(DEFAULT_FILE))
    raise ConfigError(f"no configuration: name one with -c FILE, or put {DEFAULT_FILE} into this directory")


def _tunnelled(args: argparse.Namespace) -> Configuration:
    """The same file on both sides: only serve, beside the cluster, needs the cluster's secrets."""
    configuration = load(Path(args.config))
    if args.tunnel_command == "serve":
        served = {name: each.cluster for name, each in configuration.tunnels.items()}
        configuration.refuse_missing([served[args.tunnel]] if args.tunnel in served else served.values())
    return configuration


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="barnabas", description="Copies Kafka topics between clusters, exactly once.")
    parser.add_argument("--version", action="version", version=f"barnabas {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more, on stderr")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    configured_command = argparse.ArgumentParser(add_help=False)
    configured_command.add_argument("-c", "--config", metavar="FILE", help=f"the configuration ({DEFAULT_FILE})")
    selecting = argparse.ArgumentParser(add_help=False)
    selecting.add_argument("--mirror", action="append", default=[], metavar="NAME", help="only this one; repeatable")
    formatted = argparse.ArgumentParser(add_help=False)
    formatted.add_argument("--format", choices=["table", "json"], default="table")

    running = commands.add_parser("run", parents=[configured_command, selecting], help="copy, until stopped")
    running.add_argument("--until-caught-up", action="store_true", help="copy what is there now, then exit")
    running.add_argument("--from", dest="source", metavar="HOST:PORT", help="source brokers, instead of a file")
    running.add_argument("--to", dest="destination", metavar="HOST:PORT", help="destination brokers")
    running.add_argument("--topics", metavar="NAME[,NAME]", help="topics to copy under their own names")
    everything = [configured_command, selecting, formatted]
    planning = commands.add_parser(
        "plan", parents=[configured_command, selecting], help="what run would create and copy; writes nothing"
    )
    planning.add_argument("--format", choices=["table", "json", "mermaid", "dot"], default="table")
    commands.add_parser("status", parents=everything, help="positions and lag, from the ledger")
    checking = commands.add_parser("check", parents=everything, help="the effective configuration, or its mistake")
    checking.add_argument("--connect", action="store_true", help="try to reach every cluster, step by step")

    position.add_parser(commands, [configured_command, selecting])
    schemas.add_parser(commands, [configured_command, selecting], formatted)
    quarantine.add_parser(commands, [configured_command, selecting], formatted)
    showing = commands.add_parser("demo", help="two real clusters, real records, mirrored and compared")
    showing.add_argument("--records", type=int, default=1_000_000)
    showing.add_argument("--keep", action="store_true", help="leave the clusters running")
    showing.add_argument("--archive", action="store_true", help="make Java's class archive: runs start 4 s sooner")
    lab.add_parser(commands)
    below = commands.add_parser("tunnel", help="through a firewall, with broker names kept")
    tunnel.add_parsers(below.add_subparsers(dest="tunnel_command", required=True, metavar="COMMAND"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
