"""What each side of a tunnel needs before it can start: firewall openings, addresses, names. Pure; asks nobody."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from barnabas.config.tunnel import Address, Tunnel
from barnabas.tunnel.hosts import mapped
from barnabas.tunnel.targets import FIRST_DISCOVERED, configured, loopback_of


@dataclass(frozen=True)
class Opening:
    """One rule for a firewall: TCP connections, made by `origin`, that must pass."""

    direction: str
    origin: str
    target: str


@dataclass(frozen=True)
class Side:
    """One machine: what to run there, what must pass its firewall, what names it must know."""

    name: str
    command: str
    key: str
    openings: tuple[Opening, ...]
    listens: tuple[str, ...]
    names: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def planned(name: str, tunnel: Tunnel, bootstrap: Sequence[Address]) -> tuple[Side, Side]:
    """The source side and the destination side of a tunnel."""
    return _source(name, tunnel, bootstrap), _destination(name, tunnel, bootstrap)


def _source(name: str, tunnel: Tunnel, bootstrap: Sequence[Address]) -> Side:
    public, targets = tunnel.serve.address, configured(tunnel, bootstrap)
    peer = tunnel.connect.origin or "any address"
    notes = []
    if tunnel.serve.brokers == "discover":
        notes.append(f'out: also every other broker of cluster "{tunnel.cluster}"; serve asks the cluster for them')
    if tunnel.connect.origin is None:
        notes.append("in: give connect.from in the configuration and open the port to that address only")
    return Side(
        name="source",
        command=f"barnabas tunnel serve -c FILE --tunnel {name}",
        key=str(tunnel.key),
        openings=(
            Opening("in", peer, str(public)),
            *(Opening("out", "this machine", str(target.address)) for target in targets),
        ),
        listens=(str(tunnel.serve.listen),),
        names=(),
        notes=tuple(notes),
    )


def _destination(name: str, tunnel: Tunnel, bootstrap: Sequence[Address]) -> Side:
    targets, first = configured(tunnel, bootstrap), tunnel.connect.loopback
    notes = []
    if tunnel.serve.brokers == "discover":
        notes.append(
            f"names: also every discovered broker, number N on {loopback_of(first, FIRST_DISCOVERED)} plus N; "
            f"`barnabas tunnel hosts -c FILE --tunnel {name}` prints them all once serve runs"
        )
    if not tunnel.connect.write_hosts:
        notes.append("names: into /etc/hosts by `connect --write-hosts`, or by hand from `barnabas tunnel hosts`")
    return Side(
        name="destination",
        command=f"barnabas tunnel connect -c FILE --tunnel {name}",
        key=str(tunnel.key),
        openings=(Opening("out", tunnel.connect.origin or "this machine", str(tunnel.serve.address)),),
        listens=tuple(f"{loopback_of(first, target.number)}:{target.address.port}" for target in targets),
        names=tuple((host, str(address)) for host, address in mapped(targets, first).items()),
        notes=tuple(notes),
    )


def as_json(sides: Sequence[Side]) -> list[dict[str, Any]]:
    return [asdict(side) for side in sides]


def as_text(name: str, sides: Sequence[Side]) -> str:
    """The plan for people."""
    lines = []
    for side in sides:
        lines += [f'tunnel "{name}", {side.name} side', f"  run       {side.command}", f"  key file  {side.key}"]
        lines += [f"  firewall  allow TCP {o.direction:<3} {o.origin} → {o.target}" for o in side.openings]
        lines += [f"  listens   {address}" for address in side.listens]
        lines += [f"  name      {address}  {host}" for host, address in side.names]
        lines += [f"  note      {note}" for note in side.notes]
    return "\n".join(lines) + "\n"
