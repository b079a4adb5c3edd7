"""The house is built as its plan says: who imports whom, who says what, and how long things may get.

Every rule is a function from modules to complaints, and is itself tried on small made-up modules that break it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 300
LONGEST_FUNCTION = 50
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "core", "misc"}

WORDS = ("barnabas.model", "barnabas.errors")
WITHOUT_SPARK = ("barnabas.config", "barnabas.plan", "barnabas.naming", "barnabas.model", "barnabas.topology")
FOREIGN_TO_WORKERS = ("pyspark", "pydantic", "pydantic_core", "barnabas.config")
WORKER_MAY = {
    ("barnabas.worker.write", "pyspark.TaskContext"),
    ("barnabas.worker.pyspark.daemon", "pyspark.daemon.manager"),
}
SCHEMAS_MAY = ("httpx", "barnabas.errors", "barnabas.jsontext", "barnabas.schemas")
BORDERS = ("barnabas.lab", "barnabas.tunnel")
CROSS_BORDERS = ("barnabas.cli", "barnabas.commands", *BORDERS)
# the session needs Spark's jars; when their module moves out of the lab, this line goes
CROSSINGS = {("barnabas.session", "barnabas.lab.jars")}
ONLY = {"readStream": "barnabas.source", "writeStream": "barnabas.query", "getOrCreate": "barnabas.session"}


@dataclass(frozen=True)
class Module:
    """One source file, known by its dotted name."""

    name: str
    text: str
    package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every dotted name an import may mean: for `from a import b` that is `a.b`, for `import a.b` it is `a.b`."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {f"{self._origin(node)}.{alias.name}" for alias in node.names}
        return frozenset(found)

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = self.name.split(".") if self.package else self.name.split(".")[:-1]
        base = here[: len(here) - node.level + 1]
        return ".".join([*base, *([node.module] if node.module else [])])


Modules = dict[str, Module]


def read(directory: Path, prefix: str) -> Modules:
    modules: Modules = {}
    for path in sorted(directory.rglob("*.py")):
        parts = [prefix, *path.relative_to(directory).with_suffix("").parts]
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        modules[name] = Module(name, path.read_text(encoding="utf-8"), package)
    return modules


def made_up(**texts: str) -> Modules:
    """`made_up(plan="import x")` is a house of one module, barnabas.plan; two underscores stand for a dot."""
    names = {f"barnabas.{key.replace('__', '.')}": text for key, text in texts.items()}
    return {name: Module(name, text) for name, text in names.items()}


def within(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def reached(modules: Modules, start: str) -> dict[str, Module]:
    """The module and all of ours that importing it imports, packages on the way included."""
    found: dict[str, Module] = {}
    waiting = [start]
    while waiting:
        parts = waiting.pop().split(".")
        for name in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
            if name in modules and name not in found:
                found[name] = modules[name]
                waiting += modules[name].imports
    return found


def words_import_nothing(modules: Modules) -> Iterator[str]:
    for name in WORDS:
        for imported in modules[name].imports if name in modules else ():
            if within(imported, ["barnabas"]) and not within(imported, ["barnabas.errors"]):
                yield f"{name} imports {imported}"


def rules_know_no_spark(modules: Modules) -> Iterator[str]:
    for name in modules:
        if within(name, WITHOUT_SPARK):
            for via, module in reached(modules, name).items():
                yield from (f"{name} imports {i} in {via}" for i in module.imports if within(i, ["pyspark"]))


def workers_travel_light(modules: Modules) -> Iterator[str]:
    for name in modules:
        if within(name, ["barnabas.worker"]):
            for via, module in reached(modules, name).items():
                for imported in module.imports:
                    if within(imported, FOREIGN_TO_WORKERS) and (via, imported) not in WORKER_MAY:
                        yield f"{name} imports {imported} in {via}"


def schemas_stand_alone(modules: Modules) -> Iterator[str]:
    for name, module in modules.items():
        if within(name, ["barnabas.schemas"]):
            for imported in module.imports:
                known = imported.split(".")[0] in sys.stdlib_module_names or within(imported, SCHEMAS_MAY)
                if not known:
                    yield f"{name} imports {imported}"


def stations_stay_inside(modules: Modules) -> Iterator[str]:
    for name, module in modules.items():
        if not within(name, CROSS_BORDERS):
            for imported in module.imports:
                allowed = any(name == who and within(imported, [what]) for who, what in CROSSINGS)
                if within(imported, BORDERS) and not allowed:
                    yield f"{name} imports {imported}"


def each_word_has_its_place(modules: Modules) -> Iterator[str]:
    for name, module in modules.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and ONLY.get(node.attr, name) != name:
                yield f"{name}:{node.lineno} says {node.attr}, which only {ONLY[node.attr]} may"


def names_say_something(modules: Modules) -> Iterator[str]:
    for name in modules:
        if VAGUE & set(name.split(".")):
            yield f"{name} says nothing"


def nothing_is_too_long(modules: Modules) -> Iterator[str]:
    for name, module in modules.items():
        lines = len(module.text.splitlines())
        if lines >= LONGEST_FILE:
            yield f"{name} has {lines} lines"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length >= LONGEST_FUNCTION:
                    yield f"{name}:{node.lineno} {node.name} has {length} lines"


Rule = Callable[[Modules], Iterator[str]]
SOURCE = read(ROOT / "src" / "barnabas", "barnabas")
EVERYTHING = SOURCE | read(ROOT / "tests", "tests") | read(ROOT / "bench", "bench")
RULES: list[Rule] = [
    words_import_nothing,
    rules_know_no_spark,
    workers_travel_light,
    schemas_stand_alone,
    stations_stay_inside,
    each_word_has_its_place,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_its_layers(rule: Rule) -> None:
    assert sorted(rule(SOURCE)) == []


@pytest.mark.parametrize("rule", [names_say_something, nothing_is_too_long], ids=lambda rule: rule.__name__)
def test_source_and_tests_stay_readable(rule: Rule) -> None:
    assert sorted(rule(EVERYTHING)) == []


def test_the_modules_the_rules_name_exist() -> None:
    named = [*WORDS, *WITHOUT_SPARK, *BORDERS, *ONLY.values(), *(who for who, _ in WORKER_MAY | CROSSINGS)]
    assert [name for name in named if name not in SOURCE] == []
    assert len(SOURCE) > 50


LONG_FUNCTION = "def long():\n" + "    pass\n" * (LONGEST_FUNCTION - 1)
BROKEN: list[tuple[Rule, Modules, str]] = [
    (words_import_nothing, made_up(model="from barnabas import plan"), "barnabas.model imports barnabas.plan"),
    (words_import_nothing, made_up(model="from . import plan"), "barnabas.model imports barnabas.plan"),
    (words_import_nothing, made_up(errors="import barnabas.config.load"), "barnabas.errors imports barnabas.config"),
    (rules_know_no_spark, made_up(plan="import pyspark"), "barnabas.plan imports pyspark in barnabas.plan"),
    (rules_know_no_spark, made_up(plan="def f():\n from pyspark.sql import Row"), "imports pyspark.sql.Row"),
    (
        rules_know_no_spark,
        made_up(config__load="from barnabas.a import x", a="import barnabas.b", b="import pyspark.sql"),
        "barnabas.config.load imports pyspark.sql in barnabas.b",
    ),
    (
        rules_know_no_spark,
        made_up(naming="from barnabas.a.b import x", a="import pyspark", a__b=""),
        "barnabas.naming imports pyspark in barnabas.a",
    ),
    (workers_travel_light, made_up(worker__write="from pyspark.sql import Row"), "imports pyspark.sql.Row"),
    (workers_travel_light, made_up(worker__writer="from pyspark import TaskContext"), "pyspark.TaskContext in"),
    (
        workers_travel_light,
        made_up(worker__write="from ..kafka import settings", kafka__settings="from barnabas.config.cluster import C"),
        "barnabas.worker.write imports barnabas.config.cluster.C in barnabas.kafka.settings",
    ),
    (
        workers_travel_light,
        made_up(worker__task="from barnabas.model import X", model="import pydantic"),
        "imports pydantic in barnabas.model",
    ),
    (schemas_stand_alone, made_up(schemas__wire="import pyarrow"), "barnabas.schemas.wire imports pyarrow"),
    (schemas_stand_alone, made_up(schemas__wire="from barnabas.model import X"), "imports barnabas.model.X"),
    (stations_stay_inside, made_up(replicate="from barnabas.lab import jars"), "imports barnabas.lab.jars"),
    (stations_stay_inside, made_up(session="from barnabas.lab.cluster import X"), "imports barnabas.lab.cluster.X"),
    (stations_stay_inside, made_up(config__tunnel="import barnabas.tunnel.keys"), "imports barnabas.tunnel.keys"),
    (each_word_has_its_place, made_up(replicate="spark.readStream.load()"), "barnabas.replicate:1 says readStream"),
    (each_word_has_its_place, made_up(source="x\nframe.writeStream"), "barnabas.source:2 says writeStream"),
    (each_word_has_its_place, made_up(source="S.builder.getOrCreate()"), "says getOrCreate"),
    (names_say_something, made_up(utils=""), "barnabas.utils says nothing"),
    (names_say_something, made_up(kafka__common=""), "barnabas.kafka.common says nothing"),
    (nothing_is_too_long, made_up(plan="x = 1\n" * LONGEST_FILE), f"barnabas.plan has {LONGEST_FILE} lines"),
    (nothing_is_too_long, made_up(plan=LONG_FUNCTION), f"barnabas.plan:1 long has {LONGEST_FUNCTION} lines"),
    (nothing_is_too_long, made_up(plan=f"async {LONG_FUNCTION}"), f"long has {LONGEST_FUNCTION} lines"),
]


@pytest.mark.parametrize(("rule", "modules", "complaint"), BROKEN, ids=lambda v: getattr(v, "__name__", ""))
def test_a_rule_complains_of_what_breaks_it(rule: Rule, modules: Modules, complaint: str) -> None:
    complaints = list(rule(modules))
    assert [c for c in complaints if complaint in c], complaints


ALLOWED: list[tuple[Rule, Modules]] = [
    (words_import_nothing, made_up(model="import json\nfrom barnabas.errors import Refused")),
    (rules_know_no_spark, made_up(plan="from barnabas.model import X", model="", source="import pyspark")),
    (workers_travel_light, made_up(worker__write="def f():\n    from pyspark import TaskContext")),
    (workers_travel_light, made_up(replicate="import pyspark, pydantic\nfrom barnabas.config import load")),
    (
        schemas_stand_alone,
        made_up(schemas__wire="import json, httpx\nfrom barnabas.schemas.a import b\nfrom . import c"),
    ),
    (stations_stay_inside, made_up(session="from barnabas.lab.jars import spark_jars", cli="import barnabas.lab.lab")),
    (each_word_has_its_place, made_up(source="s.readStream", query="f.writeStream", session="b.getOrCreate()")),
    (each_word_has_its_place, made_up(plan="'readStream and writeStream'  # writeStream")),
    (names_say_something, made_up(model="", kafka__admin="")),
    (nothing_is_too_long, made_up(plan="x = 1\n" * (LONGEST_FILE - 1))),
]


@pytest.mark.parametrize(("rule", "modules"), ALLOWED, ids=lambda v: getattr(v, "__name__", ""))
def test_a_rule_is_silent_about_what_keeps_it(rule: Rule, modules: Modules) -> None:
    assert list(rule(modules)) == []
