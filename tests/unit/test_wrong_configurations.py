"""Wrong configurations: each ends with exit 2, names its key and its line, and shows no secret."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.cli import main
from barnabas.config.load import load
from barnabas.errors import ConfigError
from tests.unit.configurations import CANARY, GOOD

ORDERS = "groups[0].mirrors[0]"
GROUPS = GOOD[GOOD.index("groups:") :]
MIRRORS = GOOD[GOOD.index("      - name") :]
CLUSTER_MAPS = GOOD[GOOD.index("  orange:") : GOOD.index("spark:")]
SASL = "{mechanism: PLAIN, username: env:CANARY_NAME, password: env:CANARY_SECRET}"
TOKEN = SASL.replace("}", ", token_url: ")


class Wrong(NamedTuple):
    """`instead` of `old` stands `new` (without `old`: at the end of the last mirror); then line, key and words."""

    old: str
    new: str
    line: int
    key: str
    says: str


def at_mirror(setting: str, line: int, key: str, says: str) -> Wrong:
    return Wrong("", setting, line, f"{ORDERS}.{key}", says)


def at_cluster(setting: str, line: int, key: str, says: str) -> Wrong:
    return Wrong(
        "    bootstrap: b0:9092", f"    bootstrap: b0:9092\n    {setting}", line, f"clusters.orange.{key}", says
    )


KEYS = [
    Wrong("groups:", "group:", 9, "group", 'unknown key; did you mean "groups"?'),
    at_mirror("form: clicks", 16, "form", 'unknown key; did you mean "from"?'),
    at_mirror("topics:\n          create: true\n          creat: true", 18, "topics.creat", 'did you mean "create"?'),
    at_mirror("topics: {partitions: {from: source, mni: 2}}", 16, "topics.partitions.mni", 'did you mean "min"?'),
    at_cluster("bootstrp: b1:9092", 4, "bootstrp", 'did you mean "bootstrap"?'),
    Wrong("    source: orange", "    soruce: orange", 11, f"{ORDERS}.soruce", 'did you mean "source"?'),
    Wrong("from: orders", "zebra: orders", 15, f"{ORDERS}.zebra", "unknown key; known are: "),
    Wrong("", "from: clicks", 16, "", "`from` stands twice, first in line 15; keep one"),
    Wrong("  grape:", "  orange:", 6, "", "`orange` stands twice, first in line 2"),
    at_mirror("group: other", 16, "group", "unknown key"),
    Wrong("spark:", "sparks:", 8, "sparks", 'did you mean "spark"?'),
    Wrong("master: local", "mastre: local", 8, "spark.mastre", 'did you mean "master"?'),
    Wrong("password: env:CANARY_SECRET", f"password:{CANARY}", 4, "clusters.orange.sasl.password:…", "a space missing"),
]
SECRETS = [
    Wrong(
        "password: env:CANARY_SECRET", "password: env:NOT_SET", 4, "clusters.orange.sasl.password", "NOT_SET is not set"
    ),
    Wrong(
        "username: env:CANARY_NAME", "username: env:NOT_SET", 4, "clusters.orange.sasl.username", "NOT_SET is not set"
    ),
    Wrong(
        "password: env:CANARY_SECRET", "password: file:/no/file", 4, "clusters.orange.sasl.password", "/no/file cannot"
    ),
    Wrong("password: env:CANARY_SECRET", f"password: {CANARY}", 4, "clusters.orange.sasl.password", "never as itself"),
    Wrong("password: env:CANARY_SECRET", "password: 1234", 4, "clusters.orange.sasl.password", "env:NAME or file:PATH"),
    Wrong(
        "password: env:CANARY_SECRET", "password: 'env:'", 4, "clusters.orange.sasl.password", "env:NAME or file:PATH"
    ),
    Wrong("password: env:CANARY_SECRET", f"password: *{CANARY}", 4, "", "not YAML: found undefined alias"),
    Wrong("password: env:CANARY_SECRET", f"password: !{CANARY} x", 4, "", "not YAML: could not determine"),
    *(
        Wrong("password: env:CANARY_SECRET", f"password: !!{tag} {CANARY}", 4, "", f"not what {tag} means")
        for tag in ("int", "float", "bool", "timestamp")
    ),
    Wrong(
        "password: env:CANARY_SECRET", f"password: [{CANARY}]", 4, "clusters.orange.sasl.password", "never as itself"
    ),
    Wrong(", password: env:CANARY_SECRET", "", 4, "clusters.orange.sasl", "PLAIN needs `password`"),
    Wrong("mechanism: PLAIN", "mechanism: GSSAPI", 4, "clusters.orange.sasl.mechanism", "must be 'PLAIN', 'SCRAM"),
    Wrong("mechanism: PLAIN", f"mechanism: {CANARY}", 4, "clusters.orange.sasl.mechanism", "must be 'PLAIN', 'SCRAM"),
    Wrong("mechanism: PLAIN", "mechanism: OAUTHBEARER", 4, "clusters.orange.sasl", "OAUTHBEARER needs `token_url`"),
    Wrong(SASL, f"{TOKEN}http://login}}", 4, "clusters.orange.sasl.token_url", "PLAIN takes no `token_url`"),
    Wrong(SASL, f"{TOKEN}x}}", 4, "clusters.orange.sasl.token_url", "must be http://HOST"),
    Wrong(SASL, f"{TOKEN}http://me:{CANARY}@h}}", 4, "clusters.orange.sasl.token_url", "password apart from it"),
    Wrong(SASL, CANARY, 4, "clusters.orange.sasl", "must be a map of settings"),
]
CLUSTERS = [
    Wrong("b0:9092", "b0:kafka", 3, "clusters.orange.bootstrap", "the port of 'b0:kafka' is not a number in 1…65535"),
    Wrong("b0:9092", "b0:²", 3, "clusters.orange.bootstrap", "is not a number in 1…65535"),
    Wrong("b0:9092", "b0:65536", 3, "clusters.orange.bootstrap", "is not a number in 1…65535"),
    Wrong("b0:9092", "b0", 3, "clusters.orange.bootstrap", "'b0' is not HOST:PORT"),
    Wrong("b0:9092", "b0:9092,,b1:9092", 3, "clusters.orange.bootstrap", "'' is not HOST:PORT"),
    Wrong("b0:9092", f"me:{CANARY}@b0:9092", 3, "clusters.orange.bootstrap", "credentials do not belong"),
    Wrong("b0:9092", "9092", 3, "clusters.orange.bootstrap", "must be text"),
    Wrong("b0:9092", "b0.example.com.:9092", 3, "clusters.orange.bootstrap", "without the dot at its end"),
    Wrong("b0:9092", "b0..com:9092", 3, "clusters.orange.bootstrap", "is not HOST:PORT"),
    Wrong("b0:9092", "'[:::]:9092'", 3, "clusters.orange.bootstrap", "is not HOST:PORT"),
    Wrong("    bootstrap: b0:9092\n", "", 3, "clusters.orange.bootstrap", "is missing"),
    Wrong("tls: false", "tls: {ca: /no/ca.pem}", 5, "clusters.orange.tls.ca", "there is no file /no/ca.pem"),
    Wrong("tls: false", "tls: {key: /etc/hosts}", 5, "clusters.orange.tls", "`certificate` and `key` go together"),
    Wrong("tls: false", "tls: perhaps", 5, "clusters.orange.tls", "must be a map of settings"),
    at_cluster(f"registry: {{url: 'http://me:{CANARY}@sr'}}", 4, "registry.url", "user and password apart from it"),
    at_cluster("registry: {url: 'sr:8081'}", 4, "registry.url", "must be http://HOST"),
    at_cluster("registry: {url: 'http://h:notaport'}", 4, "registry.url", "must be http://HOST"),
    at_cluster("registry: {url: 'http://[::1'}", 4, "registry.url", "must be http://HOST"),
    at_cluster("registry: {url: 'http://sr', username: me}", 4, "registry", "go together"),
    Wrong("source: orange", "source: oragne", 11, f"{ORDERS}.source", 'no cluster "oragne"; did you mean "orange"?'),
    Wrong("    destination: grape\n", "", 13, f"{ORDERS}.destination", "is missing"),
    Wrong("destination: grape", "destination: orange", 14, ORDERS, "are the same cluster"),
]
TOPICS = [
    Wrong(
        "from: orders", "from:\n          match: 'a('", 16, f"{ORDERS}.from.match", "'a(' is not a regular expression"
    ),
    Wrong(
        "from: orders", "from:\n          match: a\n          except: 'b['", 17, f"{ORDERS}.from.except", "'b[' is not"
    ),
    Wrong("from: orders", "from: {match: 'a{99999999999999999999}'}", 15, f"{ORDERS}.from.match", "is not a regular"),
    Wrong("from: orders", f"from: {{match: '{'(' * 3000}{')' * 3000}'}}", 15, f"{ORDERS}.from.match", "is not a"),
    Wrong("from: orders", "from: 12", 15, f"{ORDERS}.from", "must be a name, a list of names or {match: REGEX}"),
    Wrong("from: orders", "from: []", 15, f"{ORDERS}.from", "selects nothing"),
    Wrong("from: orders", "from: {except: a}", 15, f"{ORDERS}.from", "selects nothing"),
    Wrong("from: orders", "from: orders.*", 15, f"{ORDERS}.from", "for a regular expression write {match: …}"),
    Wrong("from: orders", "from:\n          - a\n          - b c", 17, f"{ORDERS}.from[1]", "cannot be a topic's name"),
    Wrong("from: orders", "from:\n          - a\n          - 12", 17, f"{ORDERS}.from[1]", "must be text"),
    Wrong("        from: orders\n", "", 14, f"{ORDERS}.from", "is missing"),
    at_mirror("to: '{topics}.copy'", 16, "to", "knows {topic}, {source}"),
    at_mirror("to: '{topic'", 16, "to", "knows {topic}, {source}"),
    at_mirror("to: 12", 16, "to", "must be text"),
    at_mirror("to:\n          replace: 'a('\n          with: b", 16, "to", "not a regular expression"),
    at_mirror("to: {replace: a, with: '\\2'}", 16, "to", "invalid group reference 2"),
    at_mirror("to: {replace: a}", 16, "to.with", "is missing"),
    at_mirror("topics: {partitions: 0}", 16, "topics.partitions", "must be greater than or equal to 1"),
    at_mirror("topics:\n          replication: three", 17, "topics.replication", "give a number, or {from: source}"),
    at_mirror("topics: {replication: true}", 16, "topics.replication", "give a number, or {from: source}"),
    at_mirror("topics: {partitions: {fixed: 3, from: source}}", 16, "topics.partitions", "give a number, or"),
    at_mirror(
        "topics: {partitions: {from: source, min: 3, max: 2}}", 16, "topics.partitions", "`max` 2 is below `min` 3"
    ),
    at_mirror("topics: {partitions: 100001}", 16, "topics.partitions", "must be less than or equal to 100000"),
    at_mirror("topics: {create: maybe}", 16, "topics.create", "must be true or false"),
]
RULES = [
    at_mirror("start: yesterday", 16, "start", "must be earliest, latest, a timestamp such as"),
    at_mirror("start: 2026-13-01", 16, "start", "must be earliest, latest, a timestamp such as"),
    at_mirror("start: -2", 16, "start", "is before 1970"),
    at_mirror("start: 99999999999999999999999", 16, "start", "is later than any of Kafka's timestamps"),
    at_mirror(f"start: {{offsets: {{orders: {{0: {2**63}}}}}}}", 16, "start.offsets.orders.0", "less than or equal"),
    at_mirror("start: true", 16, "start", "must be earliest, latest, a timestamp such as"),
    at_mirror(
        "start:\n          offsets: {orders: {0: -1}}", 17, "start.offsets.orders.0", "greater than or equal to 0"
    ),
    at_mirror("start: {offsets: {orders: {first: 1}}}", 16, "start.offsets.orders.first", "must be a whole number"),
    at_mirror("on_loss: ignore", 16, "on_loss", "must be 'stop', 'record' or 'restart'"),
    at_mirror("partitioning: random", 16, "partitioning", "must be 'keep' or 'key'"),
    at_mirror("batch: {lanes: 0}", 16, "batch.lanes", "must be greater than or equal to 1"),
    at_mirror("batch: {records: 99999999999}", 16, "batch.records", "must be less than or equal to 1000000000"),
    at_mirror("batch: {records: many}", 16, "batch.records", "must be a whole number"),
    at_mirror("enabled: perhaps", 16, "enabled", "must be true or false"),
    Wrong(
        "    source: orange",
        "    enabled: 'false'\n    source: orange",
        11,
        "groups[0].enabled",
        "must be true or false",
    ),
    Wrong("name: orders", "name: my orders", 14, f"{ORDERS}.name", "it names the ledger"),
    Wrong("name: orders", f"name: {'o' * 201}", 14, f"{ORDERS}.name", "up to 200"),
    Wrong("", "\n      - name: orders\n        from: clicks", 17, "groups[0].mirrors[1].name", "would share a ledger"),
    Wrong("", "\n      - from: [a, b]", 17, "groups[0].mirrors[1].name", "needs a name of its own"),
]
GUARDED = [
    at_mirror(
        "consumer:\n          fetch.min.bytes: 1\n          isolation.level: read_uncommitted",
        18,
        "consumer.isolation.level",
        "reads committed records only",
    ),
    at_mirror(
        "consumer: {enable.auto.commit: true}", 16, "consumer.enable.auto.commit", "positions live in the ledger"
    ),
    at_mirror("consumer: {minPartitions: 8}", 16, "consumer.minPartitions", "must stay in one task"),
    at_mirror(
        "consumer: {kafka.auto.offset.reset: latest}", 16, "consumer.kafka.auto.offset.reset", "never a reason to jump"
    ),
    at_mirror("producer:\n          acks: 1", 17, "producer.acks", "on all in-sync replicas"),
    at_mirror("producer: {enable.idempotence: false}", 16, "producer.enable.idempotence", "an idempotent producer"),
    at_mirror("producer: {Transactional.ID: mine}", 16, "producer.Transactional.ID", "which Barnabas chooses"),
    at_mirror("producer: {error_cb: x}", 16, "producer.error_cb", "it is a function, and a file holds none"),
    at_mirror("consumer: {fetch.min.bites: 1}", 16, "consumer.fetch.min.bites", "did you mean `fetch.min.bytes`?"),
    at_mirror("consumer: {queued.min.messages: 1}", 16, "consumer.queued.min.messages", "the Java consumer has no"),
    at_mirror("consumer: {default.topic.config: x}", 16, "consumer.default.topic.config", "beside the others"),
    at_mirror("producer: {retries: [3]}", 16, "producer.retries", "must be text"),
    at_mirror(f"producer: {{sasl.password: {CANARY}}}", 16, "producer.sasl.password", "`clusters.NAME.sasl`"),
    at_cluster(
        "settings:\n      client.rack: a\n      ssl.ca.location: x",
        6,
        "settings.ssl.ca.location",
        "`clusters.NAME.tls`",
    ),
    Wrong(
        "settings: {}", "settings: {spark.speculation: true}", 8, "spark.settings.spark.speculation", "a range twice"
    ),
]
SHAPES = [
    Wrong("    bootstrap: b0", "\tbootstrap: b0", 3, "", "not YAML: found character '\\t'"),
    Wrong("from: orders", "from: orders: all", 15, "", "not YAML: mapping values are not allowed here"),
    Wrong("from: orders", "from: 'orders", 16, "", "not YAML: found unexpected end of stream"),
    Wrong("from: orders", 'from: "or\x00ders"', 15, "", "not YAML: a character that no text has"),
    Wrong("from: orders", "? [from]\n        : orders", 15, "", "a key must be a word"),
    Wrong("from: orders", "<<: orders", 15, "", "`<<` takes a map or a list of maps"),
    Wrong("from: orders", "<<: {from: a}\n        <<: {from: b}", 16, "", "`<<` stands twice"),
    Wrong("spark:", "metrics: {console: {every_seconds: .inf}}\nspark:", 8, "metrics.console.every_seconds", "less"),
    Wrong("spark:", "metrics: {prometheus: {port: 1, host: a b}}\nspark:", 8, "metrics.prometheus.host", "a host name"),
    Wrong("", "topics: &t {settings: *t}", 1, "", "an alias stands within what it stands for"),
    Wrong(GOOD, "", 1, "clusters", "is missing or empty"),
    Wrong(GOOD, "# nothing yet\n", 1, "clusters", "is missing or empty"),
    Wrong(GOOD, "\n\nclusters:\ngroups: []\n", 3, "clusters", "is missing or empty"),
    Wrong(GOOD, "- clusters\n- groups\n", 1, "", "the document is a list; it must be a map"),
    Wrong(GOOD, f"{CANARY}\n", 1, "", "the document is a single value; it must be a map"),
    Wrong(GOOD, GOOD + "---\nmore: true\n", 16, "", "not YAML: but found another document"),
    Wrong(GROUPS, "groups: {name: prod}\n", 9, "groups", "begin each group with a dash"),
    Wrong(GROUPS, "", 1, "groups", "is missing or empty"),
    Wrong("  - name: prod", "  - prod\n  - name: prod", 10, "groups[0]", "must be a map of settings"),
    Wrong("  - name: prod", "  - enabled: true", 10, "groups[0].name", "a group needs a name"),
    Wrong(MIRRORS, "      name: orders\n", 13, "groups[0].mirrors", "must be a list of mirrors"),
    Wrong(MIRRORS, "      - orders\n", 14, ORDERS, "must be a map of settings"),
    Wrong(CLUSTER_MAPS, "  - orange\n", 1, "clusters", "must be a map of settings"),
]
TABLE = [*KEYS, *SECRETS, *CLUSTERS, *TOPICS, *RULES, *GUARDED, *SHAPES]


@pytest.fixture(autouse=True)
def canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_NAME", CANARY)
    monkeypatch.setenv("CANARY_SECRET", CANARY)
    monkeypatch.delenv("NOT_SET", raising=False)


def written(directory: Path, wrong: Wrong) -> Path:
    if wrong.old:
        assert GOOD.count(wrong.old) >= 1, "the row changes nothing"
        text = GOOD.replace(wrong.old, wrong.new, 1)
    else:
        text = f"{GOOD}        {wrong.new}\n"
    file = directory / "barnabas.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_configuration_that_all_rows_change_is_right(tmp_path: Path) -> None:
    assert load(written(tmp_path, Wrong(GOOD, GOOD, 0, "", ""))).mirrors[0].name == "orders"


def test_the_table_is_long_enough_and_has_no_row_twice() -> None:
    assert len(TABLE) >= 40
    assert len({(wrong.old, wrong.new) for wrong in TABLE}) == len(TABLE)


@pytest.mark.parametrize("wrong", TABLE, ids=lambda wrong: f"{wrong.key or 'document'}: {wrong.says}"[:60])
def test_a_wrong_configuration_is_refused_with_key_and_line_and_without_secrets(wrong: Wrong, tmp_path: Path) -> None:
    file = written(tmp_path, wrong)
    with pytest.raises(ConfigError) as refused:
        load(file).refuse_missing(["orange", "grape"])
    said = str(refused.value)
    where = f"{file}:{wrong.line}: {wrong.key}{': ' if wrong.key else ''}"
    assert said.startswith(where)
    assert wrong.says in said
    assert refused.value.exit_code == 2
    assert CANARY not in said + repr(refused.value)
    assert refused.value.__cause__ is None and (refused.value.__context__ is None or refused.value.__suppress_context__)
    assert "Input should" not in said and "Value error" not in said


@pytest.mark.parametrize("command", ["check", "plan", "status", "run"])
def test_every_command_ends_with_exit_2_and_the_sentence_on_stderr(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, SECRETS[3])
    assert main([command, "-c", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        err
        == f"barnabas: {file}:4: {SECRETS[3].key}: a secret must be written as env:NAME or file:PATH, never as itself\n"
    )


def test_a_secret_in_a_file_is_not_shown_when_something_else_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    text = GOOD.replace("env:CANARY_SECRET", f"file:{tmp_path}/secret").replace("b0:9092", "b0")
    (tmp_path / "barnabas.yaml").write_text(text)
    with pytest.raises(ConfigError, match="is not HOST:PORT") as refused:
        load(tmp_path / "barnabas.yaml")
    assert CANARY not in str(refused.value)
