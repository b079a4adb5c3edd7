"""Promise: subjects at the destination look as the mirror's rules want them, or no record passes.

All mirrors run side by side in one run: one that is refused leaves the others alone.
"""

import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import record_subject_name_strategy, topic_record_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

from barnabas.schemas.schema import Schema
from barnabas.schemas.wire import prefixed
from tests.barnabas_runs import ran
from tests.kafka_io import Record, create_topic, produce, read_all
from tests.registries import avro, versions
from tests.replicator_host import Host, Mirrors
from tests.schema_mirrors import Lands, canonical, hosted, id_of, key_of, rest_of, texts, translated, value_of

pytest_plugins = ["tests.hosted", "tests.schema_lands"]

UNKNOWN = 2_000_000_000
GUIDS = [uuid.UUID(int=number) for number in (1, 2)]
PLAIN = [b"plain text", b"", b"\x00\x01", b"\x01\x00\x00\x00\x05abc", prefixed(0, b"abc"), None]


def history(lands: Lands) -> list[Schema]:
    """The versions of every topic here: one schema stands under several subjects."""
    return versions(f"Order_{lands.mark}", 3)


def surplus(lands: Lands) -> Schema:
    return avro(f"Order_{lands.mark}", "surplus")


def breaking(lands: Lands) -> Schema:
    return Schema(avro(f"Order_{lands.mark}", "due", due="string").text.replace(', "default": 0', ""))


def key_schema(lands: Lands) -> str:
    return avro(f"Key_{lands.mark}", "number").text


@dataclass
class Ruled:
    """The mirrors, their configuration, and what became of them."""

    lands: Lands
    file: Path
    mirrors: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: Mirrors = field(default_factory=dict)

    def add(self, rule: str, topic: str, **settings: Any) -> None:
        """A mirror that copies a topic to `TOPIC.RULE`."""
        self.mirrors[rule] = {"name": self.name(rule), "from": topic, "to": f"{{topic}}.{rule}", **settings}

    @property
    def orders(self) -> list[Schema]:
        return history(self.lands)

    def name(self, rule: str) -> str:
        return f"{rule}-{self.lands.mark}"

    def state(self, rule: str) -> str:
        return str(self.ended[self.name(rule)]["state"])

    def error(self, rule: str) -> str:
        return str(self.ended[self.name(rule)]["error"])

    def there(self, stem: str, rule: str) -> list[Record]:
        return read_all(self.lands.destination.bootstrap, f"{self.lands.topic(stem)}.{rule}")

    def here(self, stem: str) -> list[Record]:
        return read_all(self.lands.source.bootstrap, self.lands.topic(stem))

    def subject(self, stem: str, rule: str) -> str:
        """The destination's subject of a topic's values."""
        return f"{self.lands.topic(stem)}.{rule}-value"

    def texts(self, stem: str, rule: str) -> list[str]:
        return texts(self.lands.registries.destination.history(self.subject(stem, rule)))


def orders(lands: Lands, topic: str, count: int = 3, configuration: dict[str, Any] | None = None) -> list[Record]:
    """Some records of each version, by the real serializer, which registers the versions."""
    client, _ = lands.clients()
    made: list[Record] = []
    for version, schema in enumerate(history(lands)[:count], 1):
        serializer = AvroSerializer(client, schema.text, conf=configuration)
        for number in range(20):
            value = serializer({f"f{at}": number for at in range(version)}, value_of(topic))
            made.append(Record(b"%d" % number, value, (), 1_700_000_000_000 + len(made)))
    return made


def filled(lands: Lands, stem: str, records: list[Record]) -> str:
    create_topic(lands.source.bootstrap, lands.topic(stem))
    produce(lands.source.bootstrap, lands.topic(stem), records)
    return lands.topic(stem)


@pytest.fixture(scope="module")
def ruled(lands: Lands, host: Host, tmp_path_factory: pytest.TempPathFactory) -> Ruled:
    """Every rule once, in one run until caught up."""
    file = tmp_path_factory.mktemp("ruled") / "c.yaml"
    ruled = Ruled(lands, file)
    _histories(ruled)
    _levels(ruled)
    _names(ruled)
    _carriers(ruled)
    lands.configuration(file, list(ruled.mirrors.values()))
    ruled.ended = hosted(host, file, until_caught_up=True).wait(240)
    return ruled


def _histories(ruled: Ruled) -> None:
    lands, there = ruled.lands, ruled.lands.registries.destination
    topic = filled(lands, "orders", orders(lands, lands.topic("orders")))
    ruled.add("strict", topic, schemas={})
    ruled.add("lenient", topic, schemas={"mode": "lenient"})
    ruled.add("disordered", topic, schemas={"mode": "lenient"})
    for rule in ("strict", "lenient"):
        for schema in (history(lands)[0], surplus(lands)):
            there.register(ruled.subject("orders", rule), schema)
    there.register(ruled.subject("orders", "disordered"), history(lands)[1])


def _levels(ruled: Ruled) -> None:
    lands = ruled.lands
    topic = filled(lands, "levels", orders(lands, lands.topic("levels")))
    lands.registries.source.set_compatibility(f"{topic}-value", "FULL_TRANSITIVE")
    ruled.add("copied", topic, schemas={"compatibility": "source"})
    ruled.add("forced", topic, schemas={"compatibility": "FORWARD"})
    broken = filled(lands, "broken", orders(lands, lands.topic("broken"), 1))
    number = lands.registries.source.register(f"{broken}-value", breaking(lands))
    produce(lands.source.bootstrap, broken, [Record(b"k", prefixed(number, b"\x02x"), (), 1)])
    ruled.add("incompatible", broken, schemas={"compatibility": "BACKWARD"})


def _names(ruled: Ruled) -> None:
    lands = ruled.lands
    fixed = {"fixed": f"everything-{lands.mark}"}
    one, two = (
        filled(lands, stem, orders(lands, lands.topic(stem), count)) for stem, count in (("one", 1), ("two", 2))
    )
    lands.registries.source.register(f"{two}-value", avro("Unused", "a"))
    schemas = {"mode": "ids", "subjects": fixed, "compatibility": "NONE"}
    ruled.add("fixed", one, schemas=schemas)
    ruled.mirrors["fixed"]["from"] = [one, two]
    strategies = {"record-name": record_subject_name_strategy, "topic-record-name": topic_record_subject_name_strategy}
    for strategy, function in strategies.items():
        records = orders(lands, lands.topic(strategy), configuration={"subject.name.strategy": function})
        ruled.add(strategy, filled(lands, strategy, records), schemas={"subjects": strategy})


def _carriers(ruled: Ruled) -> None:
    lands = ruled.lands
    mixed = orders(lands, lands.topic("mixed"))
    keys = AvroSerializer(lands.clients()[0], key_schema(lands))
    plain = [Record(keys({"number": n}, key_of(lands.topic("mixed"))), value, (), 5) for n, value in enumerate(PLAIN)]
    ruled.add("auto", filled(lands, "mixed", [*mixed, *plain]), schemas={"key": "auto", "value": "auto"})
    ruled.add("pass", lands.topic("mixed"), schemas={}, on_bad_schema="pass")
    unknown = filled(lands, "unknown", [Record(b"k", v, (), 1) for v in (b"plain", prefixed(UNKNOWN, b"abc"))])
    ruled.add("unknown", unknown, schemas={"value": "auto"})
    ruled.add("unknown-passed", unknown, schemas={"value": "auto"}, on_bad_schema="pass")
    orders(lands, lands.topic("guided"))
    headers = [(("__value_schema_id", b"\x01" + guid.bytes), ("other", b"\x01")) for guid in GUIDS]
    guided = [Record(b"k", b"%d" % number, headers[number % 2], 7) for number in range(40)]
    ruled.add("guids", filled(lands, "guided", guided), schemas={})


def test_every_mirror_that_its_rules_allow_has_copied_everything(ruled: Ruled) -> None:
    refused = {"strict", "disordered", "incompatible", "unknown"}
    states = {rule: ruled.state(rule) for rule in ruled.mirrors}
    assert states == {rule: "refused" if rule in refused else "done" for rule in ruled.mirrors}, ruled.ended


def test_strict_refuses_one_extra_version_before_a_record_passes_and_lists_both_histories(ruled: Ruled) -> None:
    message = ruled.error("strict")
    subject = ruled.subject("orders", "strict")
    assert f'subject "{subject}" is not the history of "{ruled.lands.topic("orders")}-value"' in message
    assert re.search(r"version 2 \(id \d+, \w+\) of the destination is not at the source", message), message
    histories = re.search(r"source versions: (.*); destination versions: (.*); mend", message)
    assert histories is not None, message
    assert [len(re.findall(r"\(id \d+", each)) for each in histories.groups()] == [3, 2]
    assert "mode: lenient" in message
    assert ruled.there("orders", "strict") == []
    assert ruled.texts("orders", "strict") == canonical([ruled.orders[0], surplus(ruled.lands)]), (
        "nothing was registered either"
    )


def test_lenient_accepts_the_extra_version_and_keeps_the_order(ruled: Ruled) -> None:
    ids = translated(ruled.here("orders"), ruled.there("orders", "lenient"))
    assert len(ids) == 3 and not set(ids) & set(ids.values())
    assert ruled.texts("orders", "lenient") == canonical([ruled.orders[0], surplus(ruled.lands), *ruled.orders[1:]])
    values = AvroDeserializer(ruled.lands.clients()[1])
    for record in ruled.there("orders", "lenient"):
        read = values(record.value, value_of("any"))
        assert isinstance(read, dict) and read["f0"] == int(record.key or b"")


def test_lenient_refuses_an_order_that_cannot_become_the_sources(ruled: Ruled) -> None:
    message = ruled.error("disordered")
    assert re.search(r"as mode lenient wants it: where the source has version 1 .* destination has version 1", message)
    assert "mode: ids where the order does not matter" in message
    assert ruled.there("orders", "disordered") == []


def test_a_plan_of_the_schemas_says_which_histories_fit_and_copy_brings_nothing_where_one_does_not(
    ruled: Ruled, tmp_path: Path
) -> None:
    def schemas(action: str, rule: str, *more: str) -> tuple[int, Any]:
        return ran(tmp_path, "schemas", action, "-c", ruled.file, "--mirror", ruled.name(rule), *more)

    code, plan = schemas("plan", "strict", "--format", "json")
    [subject] = plan.answer()["mirrors"][0]["subjects"]
    assert code == 1 and "is not at the source" in subject["problem"]
    code, plan = schemas("plan", "lenient", "--format", "json")
    [subject] = plan.answer()["mirrors"][0]["subjects"]
    assert (code, subject["there"], subject["missing"], subject["problem"]) == (0, [1, 2, 3], [], "")
    code, refused = schemas("copy", "strict")
    assert code == 1 and "of the destination is not at the source" in refused.messages
    assert ruled.texts("orders", "strict") == canonical([ruled.orders[0], surplus(ruled.lands)])


@pytest.mark.parametrize(("rule", "level"), [("copied", "FULL_TRANSITIVE"), ("forced", "FORWARD")])
def test_the_level_of_compatibility_is_the_sources_or_the_forced_one(ruled: Ruled, rule: str, level: str) -> None:
    assert ruled.lands.registries.destination.compatibility(ruled.subject("levels", rule)) == level
    assert len(translated(ruled.here("levels"), ruled.there("levels", rule))) == 3


def test_what_the_destination_finds_incompatible_stops_the_mirror_with_the_registrys_own_words(ruled: Ruled) -> None:
    assert re.search(r"409 .*Incompatible artifact.*due at /fields/0.*compatibility: NONE", ruled.error("incompatible"))
    assert ruled.there("broken", "incompatible") == []
    assert ruled.texts("broken", "incompatible") == canonical(ruled.orders[:1])


def test_one_fixed_subject_gets_only_what_the_records_of_all_topics_need(ruled: Ruled) -> None:
    lands = ruled.lands
    ids = [translated(ruled.here(stem), ruled.there(stem, "fixed")) for stem in ("one", "two")]
    there = lands.registries.destination.history(f"everything-{lands.mark}")
    assert {version.id for version in there} == {number for each in ids for number in each.values()}
    assert set(texts(there)) == set(canonical(ruled.orders[:2]))
    assert lands.registries.destination.compatibility(f"everything-{lands.mark}") == "NONE"
    assert ruled.texts("one", "fixed") == []


def test_subjects_are_named_after_the_record_or_after_the_renamed_topic_and_the_record(ruled: Ruled) -> None:
    lands, there = ruled.lands, ruled.lands.registries.destination
    names = {
        "record-name": f"shop.Order_{lands.mark}",
        "topic-record-name": f"{lands.topic('topic-record-name')}.topic-record-name-shop.Order_{lands.mark}",
    }
    for strategy, subject in names.items():
        ids = translated(ruled.here(strategy), ruled.there(strategy, strategy))
        assert list(ids.values()) == [version.id for version in there.history(subject)]
        assert len(ids) == 3 and not set(ids) & set(ids.values())
        assert texts(there.history(subject)) == canonical(ruled.orders)


@pytest.mark.parametrize("rule", ["auto", "pass"])
def test_auto_translates_what_names_a_known_schema_and_pass_lets_through_what_cannot_be_translated(
    ruled: Ruled, rule: str
) -> None:
    here, there = ruled.here("mixed"), ruled.there("mixed", rule)
    count = len(here) - len(PLAIN)
    keyless = [[record._replace(key=None) for record in records] for records in (here, there)]
    ids = translated(keyless[0][:count], keyless[1][:count])
    assert len(ids) == 3 and not set(ids) & set(ids.values())
    assert [record.value for record in there[count:]] == PLAIN
    assert [record.key for record in there[:count]] == [record.key for record in here[:count]], "keys without a schema"
    for original, copy in zip(here[count:], there[count:], strict=True):
        assert rest_of(copy.key) == rest_of(original.key)
        assert (id_of(copy.key) == id_of(original.key)) == (rule == "pass"), "pass has key: none"


def test_auto_stops_at_an_unknown_id_that_may_name_another_schema_at_the_destination_unless_it_may_pass(
    ruled: Ruled,
) -> None:
    said, topic = ruled.error("unknown"), ruled.lands.topic("unknown")
    assert f"{topic}-0 offset 1: value: schema id {UNKNOWN} is unknown to the registry of" in said
    assert "`pass` to copy them as they are" in said
    assert len(ruled.there("unknown", "unknown")) == 1
    assert [record.value for record in ruled.there("unknown", "unknown-passed")][1] == prefixed(UNKNOWN, b"abc")


def test_guids_in_headers_stay_and_their_schemas_are_at_the_destination(ruled: Ruled) -> None:
    here, there = ruled.here("guided"), ruled.there("guided", "guids")
    assert [record._replace(offset=0) for record in there] == [record._replace(offset=0) for record in here]
    assert {record.headers[0][1] for record in there} == {b"\x01" + guid.bytes for guid in GUIDS}
    assert ruled.texts("guided", "guids") == canonical(ruled.orders)
