"""`spokes:` a hub and its spokes in a few lines, written out as the mirrors it stands for.

intermediate: hub      spoke ──mux──▶ hub ──demux──▶ hub
intermediate: spoke    spoke ──mux──▶ spoke ──mirror──▶ hub ──demux──▶ hub
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Strict
from barnabas.config.document import Items, Section, merged
from barnabas.config.mirror import MUX_TOPICS

GROUP = "spokes"


class Member(Strict):
    """One spoke: a cluster, what it is called in topics and headers, and which of its topics travel."""

    cluster: str
    identifier: str | None = None
    enabled: bool = True
    select: Any = Field(default=None, alias="from")


class Spokes(Strict):
    """The hub, what all spokes have in common, and the spokes. `mux`, `relay`, `demux`: settings of those mirrors."""

    hub: str
    intermediate: Literal["hub", "spoke"] = "hub"
    select: Any = Field(default=None, alias="from")
    to: str = "{topic}"
    mux: dict[str, Any] = Field(default_factory=dict)
    relay: dict[str, Any] = Field(default_factory=dict)
    demux: dict[str, Any] = Field(default_factory=dict)
    members: tuple[Member, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _without_hub(self) -> Self:
        for at, member in enumerate(self.members):
            if member.cluster == self.hub:
                raise PydanticCustomError(
                    "spokes",
                    '"{hub}" is the hub: its own topics are there already, so leave this member out',
                    {"hub": self.hub, "path": ("members", at, "cluster")},
                )
        return self


def written_out(spokes: Spokes, section: Section) -> Section:
    """The group of mirrors that `spokes` stands for; every line is that of its spoke."""
    group = Section(section.line)
    group.put("name", GROUP, section.line)
    mirrors = Items()
    for member, own in zip(spokes.members, section["members"], strict=True):
        for settings in _mirrors(spokes, section, member, own):
            mirrors.append(settings)
            mirrors.lines.append(own.line)
    group.put("mirrors", mirrors, section.line)
    return group


def _mirrors(spokes: Spokes, section: Section, member: Member, own: Section) -> list[Section]:
    name = member.identifier or member.cluster
    topic = spokes.mux.get("intermediate") or f"{MUX_TOPICS}{name}"
    through = spokes.hub if spokes.intermediate == "hub" else member.cluster
    chosen = own["from"] if "from" in own else section.get("from")
    mux = {"kind": "mux", "source": member.cluster, "destination": through, "identifier": name, "from": chosen}
    relay = {"kind": "mirror", "source": member.cluster, "destination": spokes.hub, "from": topic}
    demux = {"kind": "demux", "source": spokes.hub, "destination": spokes.hub, "from": topic, "to": spokes.to}
    demux["registry_of"] = member.cluster  # where the records, and so their schema ids, come from
    stages: list[tuple[str, dict[str, Any]]] = [("mux", mux), ("demux", demux)]
    if spokes.intermediate == "spoke":
        stages.insert(1, ("relay", relay))
    return [_section(section, stage, f"{stage}_{name}", fields, member, own) for stage, fields in stages]


def _section(section: Section, stage: str, name: str, fields: dict[str, Any], member: Member, own: Section) -> Section:
    settings = Section(own.line)
    for key, value in {"name": name, **fields, "enabled": member.enabled}.items():
        if value is not None:
            settings.put(key, value, own.line)
    given = section.get(stage)
    return merged(settings, given) if isinstance(given, Section) else settings
