"""Promise: subjects follow from one registry to the other as the mirror's mode wants it, or nothing passes."""

import re
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.errors import Refused
from barnabas.lab.registry import Registry
from barnabas.schemas import ahead
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.settings import SchemaRules
from barnabas.schemas.subjects import Pair
from tests.registries import Registries, avro, json_schema, proto, versions


@pytest.fixture(scope="module")
def registries(source_registry: Registry, destination_registry: Registry) -> Registries:
    return Registries.with_other_ids(source_registry, destination_registry)


@pytest.fixture
def topic() -> str:
    return f"orders-{secrets.token_hex(4)}"


def test_five_versions_arrive_in_order_with_the_destinations_ids(registries: Registries, topic: str) -> None:
    schemas = versions("Order", 5)
    ids = registries.fill(f"{topic}-value", schemas)
    copied = registries.mirroring(SchemaRules()).copy_all(f"{topic}-value", f"{topic}.copy-value")
    assert list(copied) == [1, 2, 3, 4, 5]
    assert not set(copied.values()) & set(ids)
    assert registries.texts(f"{topic}.copy-value") == [schema.canonical() for schema in schemas]
    for number, schema in zip(copied.values(), schemas, strict=True):
        found = registries.destination.schema(number)
        assert found is not None
        assert found.canonical() == schema.canonical()


def test_copying_again_changes_nothing_and_a_new_version_is_added(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    schemas = versions("Order", 3)
    registries.fill(subject, schemas[:2])
    mirroring = registries.mirroring(SchemaRules())
    first = mirroring.copy_all(subject, subject)
    assert mirroring.copy_all(subject, subject) == first
    registries.fill(subject, schemas[2:])
    assert {number: first[number] for number in (1, 2)}.items() <= mirroring.copy_all(subject, subject).items()
    assert registries.texts(subject) == [schema.canonical() for schema in schemas]


def test_strict_refuses_one_extra_version_and_lists_both_histories(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    ids = registries.fill(subject, versions("Order", 2))
    registries.mirroring(SchemaRules()).copy_all(subject, subject)
    extra = registries.destination.register(subject, avro("Order", "f0", "f1", "surplus"))
    before = registries.texts(subject)
    registries.fill(subject, versions("Order", 3)[2:])
    with pytest.raises(Refused) as refusal:
        registries.mirroring(SchemaRules()).copy_all(subject, subject)
    message = str(refusal.value)
    assert f'subject "{subject}" is not the history of "{subject}"' in message
    assert "as mode strict wants it" in message
    assert re.search(rf"version 3 \(id {extra}, [0-9a-f]{{8}}\) of the destination is not at the source", message)
    histories = re.search(r"source versions: (.*); destination versions: (.*); mend", message)
    assert histories is not None
    theirs, ours = (re.findall(r"(\d+) \(id (\d+), (\w+)\)", each) for each in histories.groups())
    assert [int(number) for _, number, _ in theirs[:2]] == ids
    assert [mark for *_, mark in theirs[:2]] == [mark for *_, mark in ours[:2]]
    assert theirs[2][2] != ours[2][2]
    assert "mode: lenient" in message
    assert registries.texts(subject) == before


def test_lenient_accepts_the_extra_version_and_keeps_the_order(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    schemas = versions("Order", 3)
    surplus = avro("Order", "surplus")
    registries.fill(subject, schemas)
    registries.destination.register(subject, schemas[0])
    registries.destination.register(subject, surplus)
    registries.mirroring(SchemaRules(mode="lenient")).copy_all(subject, subject)
    assert registries.texts(subject) == [each.canonical() for each in (schemas[0], surplus, *schemas[1:])]


def test_lenient_refuses_an_order_that_cannot_become_the_sources(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    schemas = versions("Order", 3)
    registries.fill(subject, schemas)
    registries.destination.register(subject, schemas[1])
    with pytest.raises(Refused, match=r"as mode lenient wants it: where the source has version 1 .* version 1 .*: ids"):
        registries.mirroring(SchemaRules(mode="lenient")).copy_all(subject, subject)
    assert registries.texts(subject) == [schemas[1].canonical()]


def test_ids_registers_only_what_is_needed_into_the_one_subject(registries: Registries, topic: str) -> None:
    schemas = versions("Order", 4)
    ids = registries.fill(f"{topic}-value", schemas)
    rules = SchemaRules(mode="ids", strategy="fixed", subject=f"{topic}.all", compatibility="NONE")
    pair = Pair(None, f"{topic}.all")
    for at in (3, 1, 3):
        assert registries.mirroring(rules).destination_id(pair, schemas[at], ids[at]) is not None
    assert registries.texts(f"{topic}.all") == [schemas[3].canonical(), schemas[1].canonical()]
    assert registries.destination.compatibility(f"{topic}.all") == "NONE"
    assert registries.destination.history(f"{topic}-value") == ()


@pytest.mark.parametrize(("forced", "level"), [("source", "FULL_TRANSITIVE"), ("FORWARD", "FORWARD")])
def test_the_level_is_the_sources_or_the_forced_one(
    registries: Registries, topic: str, forced: str, level: str
) -> None:
    subject = f"{topic}-value"
    registries.fill(subject, versions("Order", 2))
    registries.source.set_compatibility(subject, "FULL_TRANSITIVE")
    rules = SchemaRules(compatibility="source" if forced == "source" else "FORWARD")
    registries.mirroring(rules).copy_all(subject, subject)
    assert registries.destination.compatibility(subject) == level


def test_what_the_destination_finds_incompatible_stops_with_its_own_words(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    breaking = Schema('{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"due","type":"string"}]}')
    registries.fill(subject, [avro("Order", "a"), breaking])
    with pytest.raises(Refused, match=r"409 .*Incompatible artifact.*due at /fields/0.*compatibility: NONE"):
        registries.mirroring(SchemaRules(compatibility="BACKWARD")).copy_all(subject, subject)
    assert registries.texts(subject) == [avro("Order", "a").canonical()]


def test_references_are_copied_first_and_point_at_the_destinations_versions(registries: Registries, topic: str) -> None:
    money, unit = f"{topic}/money.proto", f"{topic}/unit.proto"
    registries.fill(unit, [proto("message Unit { string code = 1; }")])
    money_text = f'import "{unit}";\nmessage Money {{ int64 cents = 1; Unit unit = 2; }}'
    registries.fill(money, [proto(money_text, Reference(unit, unit, 1))])
    order_text = f'import "{money}";\nmessage Order {{ Money total = 1; }}'
    registries.fill(f"{topic}-value", [proto(order_text, Reference(money, money, 1))])
    registries.destination.register(unit, proto("message Unit { string other = 2; }"))

    registries.mirroring(SchemaRules(mode="lenient")).copy_all(f"{topic}-value", f"{topic}.copy-value")

    [copied] = registries.destination.history(f"{topic}.copy-value")
    assert copied.schema.references == (Reference(money, money, 1),)
    [copied_money] = registries.destination.history(money)
    assert copied_money.schema.references == (Reference(unit, unit, 2),)
    assert len(registries.destination.history(unit)) == 2


def test_json_references_follow_a_renamed_topic(registries: Registries, topic: str) -> None:
    address, customer = f"{topic}.address", f"{topic}.customer"
    registries.fill(f"{address}-value", [json_schema("Address", {"street": {"type": "string"}})])
    reference = Reference("address.json", f"{address}-value", 1)
    schemas = [
        json_schema("Customer", {"home": {"$ref": "address.json"}}, reference),
        json_schema("Customer", {"home": {"$ref": "address.json"}, "n": {"type": "integer"}}, reference),
    ]
    registries.fill(f"{customer}-value", schemas)
    mirroring = registries.mirroring(SchemaRules(), **{address: f"{address}.copy", customer: f"{customer}.copy"})
    mirroring.copy_all(f"{customer}-value", f"{customer}.copy-value")
    assert mirroring.copy_all(f"{customer}-value", f"{customer}.copy-value").keys() == {1, 2}
    moved = Reference("address.json", f"{address}.copy-value", 1)
    assert [each.schema.references for each in registries.destination.history(f"{customer}.copy-value")] == [
        (moved,),
        (moved,),
    ]
    assert registries.destination.history(f"{address}-value") == ()


def test_subjects_that_refer_to_each_other_in_a_circle_are_copied(registries: Registries, topic: str) -> None:
    one, two = f"{topic}.one", f"{topic}.two"
    registries.fill(one, [json_schema("One", {})])
    registries.fill(two, [json_schema("Two", {"o": {"$ref": "one"}}, Reference("one", one, 1))])
    registries.fill(one, [json_schema("One", {"t": {"$ref": "two"}}, Reference("two", two, 1))])
    mirroring = registries.mirroring(SchemaRules())
    assert mirroring.copy_all(one, one).keys() == {1, 2}
    assert mirroring.copy_all(two, two).keys() == {1}


def test_the_same_schema_formatted_otherwise_is_the_same_schema(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    schema = proto("message Order { int32 a = 1; }")
    registries.fill(subject, [schema])
    rewritten = Schema(schema.text.replace("{ ", "{\n  // the only one\n  "), "PROTOBUF")
    assert rewritten.text != schema.text
    number = registries.destination.register(subject, rewritten)
    assert registries.mirroring(SchemaRules()).copy_all(subject, subject) == {1: number}
    assert registries.mirroring(SchemaRules(mode="ids")).copy_all(subject, subject) == {1: number}
    assert len(registries.texts(subject)) == 1


def test_many_workers_at_once_make_one_history(registries: Registries, topic: str) -> None:
    subject = f"{topic}-value"
    schemas = versions("Order", 5)
    registries.fill(subject, schemas)
    workers = [Registries(*registries.settings).mirroring(SchemaRules(compatibility="FULL")) for _ in range(6)]
    with ThreadPoolExecutor(len(workers)) as pool:
        results = list(pool.map(lambda each: each.copy_all(subject, subject), workers))
    assert all(result == results[0] for result in results)
    assert registries.texts(subject) == [schema.canonical() for schema in schemas]


def test_a_plan_tells_what_copy_does_and_writes_nothing(registries: Registries, topic: str) -> None:
    money = f"{topic}.money"
    registries.fill(money, [json_schema("Money", {"cents": {"type": "integer"}})])
    order = json_schema("Order", {"total": {"$ref": "money"}}, Reference("money", money, 1))
    registries.fill(f"{topic}-value", [json_schema("Order", {}), json_schema("Order", {"n": {}}), order])
    settings = registries.translation(SchemaRules(), (topic, f"{topic}.copy"))

    before = registries.destination.subjects()
    planned = ahead.plan(settings)
    assert registries.destination.subjects() == before
    assert [(each.source, each.destination, each.there, each.missing) for each in planned] == [
        (money, money, (), (1,)),
        (f"{topic}-value", f"{topic}.copy-value", (), (1, 2, 3)),
    ]
    [copied] = ahead.copy(settings)
    assert (copied.destination, list(copied.ids)) == (f"{topic}.copy-value", [1, 2, 3])
    assert [(each.there, each.missing, each.problem) for each in ahead.plan(settings)] == [((1, 2, 3), (), "")]
    registries.destination.register(f"{topic}.copy-value", json_schema("Surplus", {}))
    [refused] = ahead.plan(settings)
    assert "is not at the source" in refused.problem
