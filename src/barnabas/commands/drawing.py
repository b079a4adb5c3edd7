"""`plan --format mermaid|dot`: which topics go where, as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.config.mirror import Mirror
from barnabas.naming import drawn_name
from barnabas.plan import Plan

Edge = tuple[str, str, str, str]  # cluster and topic, cluster and topic


def mermaid(drawn: Sequence[tuple[Mirror, Plan]]) -> str:
    """A flowchart: a box a cluster, a diamond a mux or demux."""
    lines = ["flowchart LR"]
    for cluster, nodes in _clusters(drawn).items():
        lines.append(f"  subgraph {_id(cluster)}[{_quoted(cluster)}]")
        lines += [f"    {_id(cluster, node)}{_shape(kind, node)}" for node, kind in sorted(nodes.items())]
        lines.append("  end")
    for mirror, plan in drawn:
        lines += [f"  {_id(a, b)} -- {mirror.name} --> {_id(c, d)}" for a, b, c, d in _edges(mirror, plan)]
    return "\n".join(lines)


def dot(drawn: Sequence[tuple[Mirror, Plan]]) -> str:
    """The same for Graphviz."""
    lines = ["digraph barnabas {", "  rankdir=LR;", "  node [shape=box];"]
    for cluster, nodes in _clusters(drawn).items():
        lines.append(f"  subgraph cluster_{_id(cluster)} {{ label={_quoted(cluster)};")
        for node, kind in sorted(nodes.items()):
            shape = "box" if kind == "topic" else "diamond"
            lines.append(f"    {_id(cluster, node)} [label={_quoted(node)}, shape={shape}];")
        lines.append("  }")
    for mirror, plan in drawn:
        lines += [
            f"  {_id(a, b)} -> {_id(c, d)} [label={_quoted(mirror.name)}];" for a, b, c, d in _edges(mirror, plan)
        ]
    return "\n".join([*lines, "}"])


def _edges(mirror: Mirror, plan: Plan) -> Iterable[Edge]:
    """What goes where, also of topics that are not there yet. A demux writes what its records tell: its destination is
    drawn as its template."""
    for route in plan.routes:
        yield mirror.source, route.source, mirror.destination, route.destination
    for name in plan.absent:
        yield mirror.source, name, mirror.destination, drawn_name(mirror, name)


def _clusters(drawn: Sequence[tuple[Mirror, Plan]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for mirror, plan in drawn:
        for source, topic, destination, to in _edges(mirror, plan):
            found.setdefault(source, {}).setdefault(topic, "topic")
            kind = "demux" if mirror.kind == "demux" else "topic"
            found.setdefault(destination, {}).setdefault(to, kind)
            if mirror.kind == "mux":
                found[destination][to] = "mux"
    return found


def _shape(kind: str, node: str) -> str:
    opening, closing = ("[", "]") if kind == "topic" else ("{", "}")
    return f"{opening}{_quoted(node)}{closing}"


def _id(*parts: str) -> str:
    return "_".join("".join(c if c.isalnum() else f"_{ord(c):x}_" for c in part) for part in parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'
