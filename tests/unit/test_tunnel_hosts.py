"""Names and addresses: the same for everybody, and a hosts file that is left as it was found."""

import json
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import ConfigError, Refused, Unavailable
from barnabas.tunnel.frames import decode
from barnabas.tunnel.hosts import Format, HostsBlock, formatted, mapped
from barnabas.tunnel.targets import Target, configured, from_json, joined, loopback_of, to_json
from tests.hosts_lock import locked
from tests.unit.hostile_json import altered, texts

FIRST = IPv4Address("127.0.1.1")
BOOTSTRAP = (Address("pkc.orange.test", 9092), Address("b1.orange.test", 9092))
NAMES = {"b0.orange.test": IPv4Address("127.0.1.1"), "b1.orange.test": IPv4Address("127.0.1.2")}


def tunnel(**serve: Any) -> Tunnel:
    return Tunnel.model_validate({"cluster": "orange", "key": "k", "serve": {"address": "192.0.2.1:7443", **serve}})


def test_configured_hosts_come_first_and_discovered_brokers_keep_the_number_of_their_id() -> None:
    fixed = configured(tunnel(registry="sr.orange.test:8081"), BOOTSTRAP)
    brokers = {
        0: Address("b0.orange.test", 9092),
        1: Address("b1.orange.test", 9092),
        2: Address("b2.orange.test", 9092),
    }
    expected = {
        "pkc.orange.test": "127.0.1.1",
        "b1.orange.test": "127.0.1.2",
        "sr.orange.test": "127.0.1.3",
        "b0.orange.test": "127.0.1.10",
        "b2.orange.test": "127.0.1.12",
    }
    assert {name: str(ip) for name, ip in mapped(joined(fixed, brokers), FIRST).items()} == expected
    del brokers[0]
    del expected["b0.orange.test"]
    assert {name: str(ip) for name, ip in mapped(joined(fixed, brokers), FIRST).items()} == expected


def test_brokers_on_one_host_share_its_address() -> None:
    targets = configured(tunnel(brokers=["b.test:9092", "b.test:9093"]), ())
    assert targets == (Target(0, Address("b.test", 9092)), Target(0, Address("b.test", 9093)))
    assert mapped(targets, FIRST) == {"b.test": FIRST}


def test_more_hosts_than_places_is_refused() -> None:
    with pytest.raises(ConfigError, match="10 hosts, more than the 9 addresses"):
        configured(tunnel(), [Address(f"b{number}.test", 9092) for number in range(10)])


def test_addresses_and_this_machine_get_no_name() -> None:
    targets = [Target(0, Address("10.0.0.1", 9092)), Target(1, Address("localhost", 9092))]
    assert mapped(targets, FIRST) == {}


@pytest.mark.parametrize("number", [-1, 1 << 24, 1 << 31])
def test_a_number_outside_the_loopback_network_is_refused(number: int) -> None:
    with pytest.raises(Refused, match="does not fit"):
        loopback_of(FIRST, number)


def test_the_list_survives_the_wire() -> None:
    targets = configured(tunnel(registry="sr.orange.test:8081"), BOOTSTRAP)
    assert from_json(json.loads(json.dumps(to_json(targets)))) == targets


@pytest.mark.parametrize(
    "items",
    [
        None,
        5,
        [1],
        "abc",
        {"abc": 1},
        [[0, "a.", 1]],
        [[0, "a", True]],
        [[1.0, "a", 1]],
        [["0", "a", 1]],
        [[0, 1, 1]],
        [[2**31, "a", 1]],
        [[0, "a", 65536]],
        [[0, "a b", 1]],
        [[0, "a\n127.0.0.1 bank.example", 1]],
        [[0, "a", 0]],
        [[0, "", 1]],
        [[-1, "a", 1]],
    ],
)
def test_a_list_that_would_spoil_a_hosts_file_is_refused(items: object) -> None:
    with pytest.raises(Refused):
        from_json(items)


def test_any_list_of_the_other_end_is_targets_or_refused() -> None:
    good = to_json(configured(tunnel(registry="sr.orange.test:8081"), BOOTSTRAP))
    taken, refused = 0, list[str]()
    for text in [*altered({"version": 1, "targets": good}, 500, seed=5), *texts(100, seed=5)]:
        try:
            for target in from_json(decode(text.encode(errors="surrogatepass")).get("targets")):
                assert type(target.number) is int and type(target.address.port) is int
                assert not set(target.address.host) & set(" \t\n#")
            taken += 1
        except Refused as error:
            refused.append(str(error))
    assert taken > 20
    assert len(refused) > 100
    assert max(map(len, refused)) < 300


def test_the_formats_are_what_their_readers_read() -> None:
    assert formatted(NAMES, Format.HOSTS) == "127.0.1.1\tb0.orange.test\n127.0.1.2\tb1.orange.test\n"
    compose = yaml.safe_load(formatted(NAMES, Format.COMPOSE))
    assert compose == {"extra_hosts": ["b0.orange.test:127.0.1.1", "b1.orange.test:127.0.1.2"]}
    kubernetes = yaml.safe_load(formatted(NAMES, Format.KUBERNETES))
    assert kubernetes["hostAliases"][1] == {"ip": "127.0.1.2", "hostnames": ["b1.orange.test"]}


@pytest.mark.parametrize("before", ["", "127.0.0.1\tlocalhost\n", "127.0.0.1 localhost", "# caf\udce9\n\n::1 six\n"])
def test_a_block_comes_and_goes_and_the_rest_stays(tmp_path: Path, before: str) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(before.encode(errors="surrogateescape"))
    inode = file.stat().st_ino
    block = HostsBlock("eu", file, FIRST)
    block.write(NAMES)
    assert b"127.0.1.2\tb1.orange.test\n" in file.read_bytes()
    block.write({"b0.orange.test": FIRST})
    assert b"b1.orange.test" not in file.read_bytes()
    assert file.read_bytes().count(b"barnabas tunnel eu: begin") == 1
    block.remove()
    assert file.read_bytes().rstrip(b"\n") == before.encode(errors="surrogateescape").rstrip(b"\n")
    assert file.stat().st_ino == inode


def test_a_block_left_by_a_crash_is_replaced_and_one_of_another_tunnel_stays(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    HostsBlock("eu", file, FIRST).write(NAMES)
    HostsBlock("us", file, FIRST).write({"b9.grape.test": FIRST})
    after_crash = HostsBlock("eu", file, FIRST)
    after_crash.write({"b5.orange.test": FIRST})
    text = file.read_text()
    assert "b0.orange.test" not in text
    assert "b9.grape.test" in text
    after_crash.remove()
    assert "b5.orange.test" not in file.read_text()
    assert "b9.grape.test" in file.read_text()


@pytest.mark.parametrize(
    "after",
    [
        "",
        "10.0.0.7\tdb.example\n127.0.1.9\tkept.example\n",
        "127.0.0.1\tlocalhost\n",
        "127.0.1.1\thost host.example\n",
        "\n127.0.1.1\thost\n",
        "# barnabas tunnel us: begin, removed when the tunnel ends\n127.0.1.3\tb9\n# barnabas tunnel us: end\n",
    ],
)
def test_a_block_without_its_end_takes_nothing_with_it_that_is_not_the_tunnels(tmp_path: Path, after: str) -> None:
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    HostsBlock("eu", file, FIRST).write(NAMES)
    text = file.read_text().replace("# barnabas tunnel eu: end\n", "")
    file.write_text(text + after)
    block = HostsBlock("eu", file, FIRST)
    block.write({"b5.orange.test": FIRST})
    assert "b0.orange.test" not in file.read_text()
    block.remove()
    assert file.read_text() == "127.0.0.1 localhost\n" + after


def test_two_begins_before_one_end_are_an_unfinished_block_and_a_whole_one(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("")
    HostsBlock("eu", file, FIRST).write(NAMES)
    whole = file.read_text()
    unfinished = whole.replace("# barnabas tunnel eu: end\n", "")
    file.write_text(f"{unfinished}10.0.0.7\tdb.example\n{whole}10.0.0.8\tweb.example\n")
    block = HostsBlock("eu", file, FIRST)
    block.write(NAMES)
    block.remove()
    assert file.read_text() == "10.0.0.7\tdb.example\n10.0.0.8\tweb.example\n"


@pytest.mark.parametrize("kind", ["LOCK_EX", "LOCK_SH"])
def test_a_lock_that_another_user_holds_is_reported_with_its_holder_and_not_waited_for(
    readable: Path, kind: str
) -> None:
    file = readable / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    block = HostsBlock("eu", file, FIRST)
    with locked(file, kind) as pid, pytest.raises(Unavailable, match=f"is locked by process {pid}; end it"):
        block.write(NAMES)
    assert file.read_text() == "127.0.0.1 localhost\n"
    block.write(NAMES)
    with locked(file, kind), pytest.raises(Unavailable, match="locked"):
        block.remove()
    block.remove()
    assert file.read_text() == "127.0.0.1 localhost\n"


@pytest.mark.parametrize(
    "name",
    [
        *("localhost", "LOCALHOST", "LocalHost", "localhost.localdomain", "x.localhost", "a.B.LOCALHOST"),
        *(
            "ip6-localhost",
            "IP6-loopback",
            "localhost4",
            "localhost6",
            "localhost6.localdomain6",
            "localhost4.LocalDomain4",
        ),
        *("ip6-allnodes", "broadcasthost", "localhost.", "x.localhost."),
    ],
)
def test_no_name_that_stands_for_this_machine_is_mapped(name: str) -> None:
    assert mapped([Target(0, Address(name, 9092))], FIRST) == {}


@pytest.mark.parametrize("name", ["localhost.example.com", "notlocalhost", "my-localhost"])
def test_a_name_that_only_looks_like_it_is_mapped(name: str) -> None:
    assert mapped([Target(0, Address(name, 9092))], FIRST) == {name: FIRST}


def test_a_hosts_file_that_cannot_be_written_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave out --write-hosts"):
        HostsBlock("eu", tmp_path / "missing", FIRST).write(NAMES)
