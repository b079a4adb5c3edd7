"""A file → the Configuration: groups laid under their mirrors, every complaint with file, line and key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from barnabas.config.cluster import Cluster, Strict
from barnabas.config.document import Items, Keys, Section, discreet, line_of, merged, read, written
from barnabas.config.metrics import MetricRules
from barnabas.config.mirror import Mirror
from barnabas.config.needs import Need, named
from barnabas.config.spark import SparkRules
from barnabas.config.spokes import Spokes, written_out
from barnabas.config.tunnel import Tunnel
from barnabas.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
OWN_TO_GROUP = ("name", "mirrors", "enabled")
PLAIN_WORDS = {
    "missing": "is missing",
    "model_type": "must be a map of settings",
    "dict_type": "must be a map of settings",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "too_short": "is empty: list at least one",
    "string_too_short": "must not be empty",
}
SET_BY_US = ("group", "place")  # of a mirror
KNOWN_AT_TOP = ("clusters", "groups", "spokes", "metrics", "spark", "tunnels")


class Configuration(Strict):
    clusters: dict[str, Cluster]
    mirrors: tuple[Mirror, ...]
    spark: SparkRules = SparkRules()
    metrics: MetricRules = MetricRules()
    tunnels: dict[str, Tunnel] = Field(default_factory=dict)
    places: dict[str, str] = Field(default_factory=dict, exclude=True)  # of clusters: file, line and key
    needs: tuple[Need, ...] = Field(default=(), exclude=True)
    chosen: frozenset[str] = Field(default=frozenset(), exclude=True)  # mirrors that --mirror names

    def enabled(self) -> tuple[Mirror, ...]:
        return tuple(mirror for mirror in self.mirrors if mirror.enabled)

    def together(self) -> tuple[Mirror, ...]:
        """Those that may run at the same time: all that are enabled, and those that were asked for by name."""
        return tuple(mirror for mirror in self.mirrors if mirror.enabled or mirror.name in self.chosen)

    def refuse_missing(self, clusters: Iterable[str], registries: Iterable[str] = ()) -> None:
        """ConfigError for the first secret or file of these clusters, and registries, that is not on this machine."""
        wanted, asked = set(clusters), set(registries)
        for need in self.needs:
            if need.cluster in wanted or (need.of_registry and need.cluster in asked):
                need.refuse_missing()


def load(path: Path) -> Configuration:
    return configured(read(path), str(path))


def configured(root: Section, name: str) -> Configuration:
    """The document as a Configuration; ConfigError names the first mistake."""
    return _Document(root, name).configuration()


class _Document:
    """One document on its way to a Configuration; knows its file's name for complaints."""

    def __init__(self, root: Section, name: str) -> None:
        self.root = root
        self.name = name

    def configuration(self) -> Configuration:
        for key in self.root:
            if key not in KNOWN_AT_TOP and key in _keys_at(Mirror, ()):
                raise self.complaint((key,), "belongs to a group or to one of its mirrors, not here")
            if key not in KNOWN_AT_TOP:
                raise self.complaint((key,), f"{_unknown(key)}{_suggested(key, KNOWN_AT_TOP)}")
        for key, instead in (("clusters", ()), ("groups", ("spokes", "tunnels"))):
            if not self.root.get(key) and not any(self.root.get(other) for other in instead):
                raise self.complaint((key,), "is missing or empty; see the smallest configuration in README.md")
        clusters = {
            key: self.validated(Cluster, self.section(value, ("clusters", key)), ("clusters", key))
            for key, value in self.section(self.root["clusters"], ("clusters",)).items()
        }
        mirrors = tuple(self.mirrors(clusters))
        spark = self.validated(SparkRules, self.optional("spark"), ("spark",))
        metrics = self.validated(MetricRules, self.optional("metrics"), ("metrics",))
        tunnels = {
            key: self.validated(Tunnel, self.section(value, ("tunnels", key)), ("tunnels", key))
            for key, value in self.optional("tunnels").items()
        }
        self.refuse_wrong_tunnels(clusters, tunnels)
        for path in self.root.empty:
            what = "nothing stands behind it: write its value, {} for a map of defaults, or null for none"
            raise self.complaint(path, what)
        return Configuration(
            clusters=clusters,
            mirrors=mirrors,
            spark=spark,
            metrics=metrics,
            tunnels=tunnels,
            places={name: self.place(("clusters", name)) for name in clusters},
            needs=tuple(need for name, cluster in clusters.items() for need in self.needs(name, cluster)),
        )

    def needs(self, name: str, cluster: Cluster) -> Iterable[Need]:
        for path, what in named(cluster):
            of_registry = path[0] == "registry"
            yield Need(cluster=name, of_registry=of_registry, place=self.place(("clusters", name, *path)), **what)

    def refuse_wrong_tunnels(self, clusters: dict[str, Cluster], tunnels: dict[str, Tunnel]) -> None:
        """A cluster and its tunnel name each other, and each tunnel has loopback addresses of its own."""
        loopbacks: dict[str, str] = {}
        for name, tunnel in tunnels.items():
            if tunnel.cluster not in clusters:
                what = f'there is no cluster "{tunnel.cluster}"{_suggested(tunnel.cluster, clusters)}'
                raise self.complaint(("tunnels", name, "cluster"), what)
            twin = loopbacks.setdefault(str(tunnel.connect.loopback), name)
            if twin != name:
                what = f'{tunnel.connect.loopback} is that of tunnel "{twin}" too; give each its own, 127.0.2.1 say'
                raise self.complaint(("tunnels", name, "connect", "loopback"), what)
        for name, cluster in clusters.items():
            if cluster.tunnel is None:
                continue
            if cluster.tunnel not in tunnels:
                what = f'there is no tunnel "{cluster.tunnel}"{_suggested(cluster.tunnel, tunnels)}'
                raise self.complaint(("clusters", name, "tunnel"), what)
            if tunnels[cluster.tunnel].cluster != name:
                what = (
                    f'tunnel "{cluster.tunnel}" leads to cluster "{tunnels[cluster.tunnel].cluster}", not to this one'
                )
                raise self.complaint(("clusters", name, "tunnel"), what)

    def mirrors(self, clusters: dict[str, Cluster]) -> Iterable[Mirror]:
        names: set[str] = set()
        for where, group in self.groups():
            if not isinstance(group.get("name"), str):
                what = "must be text: put it in quotes" if "name" in group else "a group needs a name"
                raise self.complaint((*where, "name"), what)
            members = group.get("mirrors")
            if not isinstance(members, Items) or not members:
                raise self.complaint((*where, "mirrors"), "must be a list of mirrors")
            for index, member in enumerate(members):
                path = (*where, "mirrors", index)
                mirror = self.mirror(group, self.section(member, path), path, clusters)
                if mirror.name in names:
                    raise self.complaint(
                        (*path, "name"),
                        f'two mirrors are called "{mirror.name}"; they would share a ledger: rename one',
                    )
                names.add(mirror.name)
                yield mirror

    def groups(self) -> Iterable[tuple[Keys, Section]]:
        """Those that are written as groups, and the one that `spokes` stands for."""
        groups = self.root.get("groups") or Items()
        if not isinstance(groups, Items):
            raise self.complaint(("groups",), "must be a list: begin each group with a dash")
        for at, value in enumerate(groups):
            yield ("groups", at), self.section(value, ("groups", at))
        if "spokes" in self.root:
            section = self.section(self.root["spokes"], ("spokes",))
            yield ("spokes",), written_out(self.validated(Spokes, section, ("spokes",)), section)

    def mirror(self, group: Section, own: Section, path: Keys, clusters: dict[str, Cluster]) -> Mirror:
        defaults = Section(group.line)
        for key, value in group.items():
            if key not in OWN_TO_GROUP:
                defaults.put(key, value, group.lines[key])
        settings = merged(defaults, own)
        for key in SET_BY_US:
            if key in settings:
                raise self.complaint((*path, key), "unknown key: it is set by Barnabas", settings.lines[key])
        settings.put("group", group["name"], own.line)
        settings.put("place", f"{self.name}:{own.line}", own.line)
        if not isinstance(group.get("enabled", True), bool):
            raise self.complaint(("groups", path[1], "enabled"), "must be true or false")
        if group.get("enabled") is False:
            settings.put("enabled", False, group.lines["enabled"])
        if "name" not in settings:
            settings.put("name", self.generated_name(settings, path), own.line)
        mirror = self.validated(Mirror, settings, path)
        for side in ("source", "destination"):
            cluster = getattr(mirror, side)
            if cluster not in clusters:
                what = f'there is no cluster "{cluster}"{_suggested(cluster, clusters)}'
                raise self.complaint((*path, side), what, settings.lines[side])
            if mirror.schemas and clusters[cluster].registry is None:
                what = f'cluster "{cluster}" has no `registry`, and schemas cannot follow the records without'
                raise self.complaint((*path, "schemas"), what, settings.lines["schemas"])
        return mirror

    def generated_name(self, settings: Section, path: Keys) -> str:
        """`<group>__<source topic>__<destination topic>`: stable, so that the ledger is found again."""
        source, to = settings.get("from"), settings.get("to", "{topic}")
        if isinstance(source, Items) and len(source) == 1:
            source = source[0]
        if not isinstance(source, str | Items | Section) or not isinstance(to, str | Section):
            return "unnamed"  # it is told what is wrong with those
        if not isinstance(source, str) or not isinstance(to, str):
            what = "a mirror of more than one topic, or whose `to` is a replacement, needs a name of its own"
            raise self.complaint((*path, "name"), what)
        values = {"topic": source, "source": settings.get("source"), "destination": settings.get("destination")}
        for key, value in values.items():
            to = to.replace(f"{{{key}}}", str(value))
        return f"{settings['group']}__{source}__{to}"

    def optional(self, key: str) -> Section:
        return self.section(self.root.get(key, Section(1)), (key,))

    def section(self, value: Any, path: Keys) -> Section:
        if not isinstance(value, Section):
            raise self.complaint(path, "must be a map of settings")
        return value

    def validated(self, model: type[M], section: Section, path: Keys) -> M:
        """`section` as a `model`; lines are the section's own, since a merged one has lines from two places."""
        try:
            return model.model_validate(dict(section))
        except ValidationError as failure:
            errors = failure.errors(include_input=False, include_url=False)
            error = max(errors, key=lambda e: (e["type"] == "extra_forbidden", e["type"] != "missing", len(e["loc"])))
            loc = tuple(error["loc"])
            what = _said(error["type"], error["msg"])
            if error["type"] == "extra_forbidden":
                what = f"{_unknown(str(loc[-1]))}{_suggested(str(loc[-1]), _keys_at(model, loc[:-1]))}"
            elif error["type"] != "missing":
                key = error.get("ctx", {}).get("key")
                inside = error.get("ctx", {}).get("path", () if key is None else (key,))
                loc = written(section, (*loc, *inside))
            raise self.complaint((*path, *loc), what, line_of(section, loc)) from None

    def complaint(self, path: Keys, what: str, line: int | None = None) -> ConfigError:
        return ConfigError(f"{self.place(path, line)}: {what}")

    def place(self, path: Keys, line: int | None = None) -> str:
        line = line_of(self.root, path) if line is None else line
        dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{discreet(step)}" for step in path).lstrip(".")
        return f"{self.name}:{line}: {dotted}"


def _said(kind: str, message: str) -> str:
    """What pydantic says, in words of a configuration file."""
    return PLAIN_WORDS.get(kind) or message.replace("Input should be", "must be", 1)


def _unknown(key: str) -> str:
    return "unknown key: is a space missing after its colon?" if ":" in key else "unknown key"


def _keys_at(model: Any, loc: Keys) -> list[str]:
    """The keys a model knows at `loc`, through optional and union types."""
    for step in loc:
        field = next((f for n, f in model.model_fields.items() if step in (n, f.alias)), None)
        candidates = _models_in(field.annotation) if field else []
        if not candidates:
            return []
        model = candidates[0]
    ours = SET_BY_US if model is Mirror else ()
    return [field.alias or name for name, field in model.model_fields.items() if name not in ours]


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _suggested(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else f"; known are: {', '.join(sorted(known))}" if known else ""
