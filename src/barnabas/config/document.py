"""YAML text → plain values that remember their lines, so that every complaint can name one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from barnabas.errors import ConfigError

Keys = tuple[str | int, ...]
MOST_VALUES = 1_000_000  # of a document whose aliases are written out
MERGE = "tag:yaml.org,2002:merge"
WHOLE = ("from", "to", "start", "replication", "partitions")  # one choice each: half of another means nothing


class Section(dict[str, Any]):
    """A mapping that knows the line of each of its keys."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.empty: tuple[Keys, ...] = ()  # of a whole document: keys behind which nothing stands

    def put(self, key: str, value: Any, line: int) -> None:
        self[key] = value
        self.lines[key] = line


class Items(list[Any]):
    """A sequence that knows the line of each of its items."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


class _Scalars(yaml.SafeLoader):
    """SafeLoader that leaves dates as text: Kafka knows no YAML dates, and `start` wants the words as written."""


_Scalars.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> Section:
    """The whole document as a Section; ConfigError with file and line for what is not YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; name the configuration with -c FILE") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Section:
    try:
        loader = _Scalars(text)
        node = loader.get_single_node()
        if node is not None:
            _refuse_bomb(node, name)
        root = _value(loader, node, name) if node is not None else Section(1)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{name}:{line}: not YAML: a character that no text has, #x{error.character:04x}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{name}:{line}: not YAML: {_discreet(error.problem or '')}") from None
    except RecursionError:
        raise ConfigError(f"{name}:1: not a configuration: its maps and lists are nested too deeply") from None
    if not isinstance(root, Section):
        kind = "list" if isinstance(root, Items) else "single value"
        raise ConfigError(f"{name}:1: the document is a {kind}; it must be a map with `clusters` in it")
    root.empty = tuple(_empty(node)) if node is not None else ()
    return root


def _refuse_bomb(root: yaml.Node, name: str) -> None:
    """Aliases of aliases: a text of ten lines may stand for more values than memory holds."""
    sizes: dict[int, int] = {}  # by node; an alias is the node that it stands for

    def size(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        if id(node) not in sizes:
            sizes[id(node)] = MOST_VALUES  # one that stands within itself is too large in any case
            children = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
            sizes[id(node)] = 1 + sum(map(size, children))
        return sizes[id(node)]

    if size(root) > MOST_VALUES:
        raise ConfigError(
            f"{name}:1: not a configuration: with its aliases written out it has more than {MOST_VALUES:,} values, "
            "or an alias stands within what it stands for"
        )


def _empty(node: yaml.Node, path: Keys = ()) -> Iterator[Keys]:
    """Where a key has no value, not even a `null` that somebody wrote: what stood below it may be commented out."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    for key_node, value_node in pairs:
        yield from _empty(value_node, (*path, key_node.value))
    if isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield from _empty(item, (*path, at))
    if path and isinstance(node, yaml.ScalarNode) and not node.value and node.style is None:
        yield path


def _discreet(problem: str) -> str:
    """Without the name of an alias or a tag: a password that begins with * or ! and lacks its quotes is read as one."""
    return re.sub(r"(alias|tag) '.*'", r"\1: quote what begins with * or !", problem)


def discreet(key: str) -> str:
    """Without what stands after a colon: a password whose space before it was forgotten is read as part of its key."""
    word, colon, _ = key.partition(":")
    return word + (":…" if colon else "")


def _value(loader: yaml.SafeLoader, node: yaml.Node, name: str) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _section(loader, node, name)
    if isinstance(node, yaml.SequenceNode):
        items = Items()
        for child in node.value:
            items.append(_value(loader, child, name))
            items.lines.append(child.start_mark.line + 1)
        return items
    try:
        return loader.construct_object(node)
    except (ValueError, KeyError, AttributeError, TypeError):  # without its text: it may be a password
        tag = node.tag.rpartition(":")[2]
        what = f"not YAML: not what {tag} means: quote what is text"
        raise ConfigError(f"{name}:{node.start_mark.line + 1}: {what}") from None


def _section(loader: yaml.SafeLoader, node: yaml.MappingNode, name: str) -> Section:
    section = Section(node.start_mark.line + 1)
    inherited: Section | None = None
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = key_node.value
        if key_node.tag == MERGE:
            if inherited is not None:
                raise ConfigError(f"{name}:{line}: `<<` stands twice; write one with a list: `<<: [*one, *other]`")
            inherited = _inherited(_value(loader, value_node, name), f"{name}:{line}")
            continue
        if not isinstance(key, str):
            raise ConfigError(f"{name}:{line}: a key must be a word, not a map or a list")
        if key in section:
            first = section.lines[key]
            raise ConfigError(f"{name}:{line}: `{discreet(key)}` stands twice, first in line {first}; keep one")
        section.put(key, _value(loader, value_node, name), line)
    inherited = inherited or Section(section.line)
    for key, value in inherited.items():
        if key not in section:
            section.put(key, value, inherited.lines[key])
    return section


def _inherited(value: Any, where: str) -> Section:
    """What `<<` brings: one map, or a list of maps of which the first that has a key gives it."""
    maps = list(value) if isinstance(value, Items) else [value]
    result = Section(1)
    for part in reversed(maps):
        if not isinstance(part, Section):
            raise ConfigError(f"{where}: `<<` takes a map or a list of maps")
        for key, own in part.items():
            result.put(key, own, part.lines[key])
    return result


def merged(defaults: Section, own: Section) -> Section:
    """`own` laid over `defaults`, maps within maps likewise but for WHOLE; every key keeps the line it came from."""
    result = Section(own.line)
    for key, value in defaults.items():
        result.put(key, value, defaults.lines[key])
    for key, value in own.items():
        inherited = result.get(key)
        if isinstance(value, Section) and isinstance(inherited, Section) and key not in WHOLE:
            value = merged(inherited, value)
        result.put(key, value, own.lines[key])
    return result


def written(root: Section, path: Keys) -> Keys:
    """The steps of `path` that stand in the document: a validator's own words for its inside do not."""
    here: Any = root
    found: list[str | int] = []
    for step in path:
        known = isinstance(here, Section) and step in here
        if known or (isinstance(here, Items) and isinstance(step, int) and step < len(here)):
            here = here[step]
            found.append(step)
    return tuple(found)


def line_of(root: Section, path: Keys) -> int:
    """The line of the deepest part of `path` that is in the document."""
    line, here = root.line, root
    for step in path:
        if isinstance(here, Section) and step in here:
            line, here = here.lines[str(step)], here[str(step)]
        elif isinstance(here, Items) and isinstance(step, int) and step < len(here):
            line, here = here.lines[step], here[step]
        else:
            break
    return line
