"""Jars: verified by checksum, refused by name, and from the cache without Java. Java is faked, our code is not."""

import hashlib
from pathlib import Path

import pytest

from barnabas.errors import ConfigError, Refused, Unavailable
from barnabas.lab import ivy, jars
from barnabas.lab.jars import JarSet

LETTER = b"a letter from the castle"
# Stands in for `java -jar ivy.jar … -retrieve PATTERN`: fails as often as told, then delivers what it was given.
FAKE_JAVA = """#!/bin/sh
echo call >> '{calls}'
[ "$(wc -l < '{calls}')" -gt {failures} ] || {{ echo '[FAILED     ] org#letter;1.0!letter.jar'; exit 1; }}
for pattern; do :; done
mkdir -p "$(dirname "$pattern")"
cp '{content}' "$(dirname "$pattern")/letter-1.0.jar"
"""


class Post:
    """An empty cache, a lock file of one jar, and a Java that delivers `content` after some failures."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.calls = directory / "calls"
        self.lock = directory / "test.lock"
        self.lock.write_text(f"spark org letter 1.0 - jar {hashlib.sha256(LETTER).hexdigest()}\n")

    def delivers(self, content: bytes, failures: int = 0) -> None:
        (self.directory / "content").write_bytes(content)
        java = self.directory / "java" / "bin" / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(
            FAKE_JAVA.format(calls=self.calls, content=self.directory / "content", failures=failures),
        )
        java.chmod(0o755)

    def fetch(self) -> list[Path]:
        return jars.fetch(JarSet.SPARK, lock=self.lock)

    def files(self) -> list[str]:
        return [path.name for path in (self.directory / "cache").rglob("*") if path.is_file() and path.name != "lock"]

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Post:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(ivy, "PAUSE_SECONDS", 0.0)
    return Post(tmp_path)


def test_a_right_jar_is_kept_and_found_again_without_java(post: Post) -> None:
    post.delivers(LETTER)
    [jar] = post.fetch()
    assert jar.read_bytes() == LETTER
    assert jar.is_relative_to(post.directory / "cache" / "barnabas" / "jars")
    assert post.fetch() == [jar]
    assert post.count() == 1


def test_a_wrong_checksum_is_refused_by_name_and_nothing_is_kept(post: Post) -> None:
    post.delivers(b"a letter that was opened on the way")
    with pytest.raises(Refused, match=r"letter-1\.0\.jar has SHA-256 [0-9a-f]{64} but the lock file says"):
        post.fetch()
    assert post.files() == []


def test_a_cached_jar_that_was_damaged_is_fetched_again(post: Post) -> None:
    post.delivers(LETTER)
    [jar] = post.fetch()
    jar.write_bytes(LETTER[:-1])
    assert post.fetch()[0].read_bytes() == LETTER
    assert post.count() == 2


def test_a_failing_download_is_tried_again(post: Post) -> None:
    post.delivers(LETTER, failures=ivy.ATTEMPTS - 1)
    assert post.fetch()[0].read_bytes() == LETTER
    assert post.count() == ivy.ATTEMPTS


def test_downloads_that_keep_failing_end_with_the_file_that_failed(post: Post) -> None:
    post.delivers(LETTER, failures=ivy.ATTEMPTS)
    with pytest.raises(Unavailable, match=r"5 downloads by Ivy failed.*letter;1\.0!letter\.jar"):
        post.fetch()
    assert post.files() == []


def test_what_a_killed_fetch_left_is_removed_by_the_next(post: Post) -> None:
    left = jars.cache_directory() / "fetch-killed" / "retrieved"
    left.mkdir(parents=True)
    (left / "letter-1.0.jar").write_bytes(LETTER[:5])
    post.delivers(LETTER)
    post.fetch()
    assert post.files() == ["letter-1.0.jar"]


def test_a_line_that_is_no_jar_is_refused_with_its_number(tmp_path: Path) -> None:
    lock = tmp_path / "bad.lock"
    lock.write_text("# comment\n\nspark org letter 1.0 jar\n")
    with pytest.raises(ConfigError, match=r"bad\.lock:3: not a locked jar"):
        jars.locked(JarSet.SPARK, lock)


def test_the_lock_file_names_what_facts_demand() -> None:
    spark = {jar.name for jar in jars.locked(JarSet.SPARK)}
    assert spark == {
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    }
    assert {"kafka_2.13-4.3.1.jar", "kafka-clients-4.3.1.jar"} <= {jar.name for jar in jars.locked(JarSet.BROKER)}
    assert [jar.name for jar in jars.locked(JarSet.REGISTRY)] == ["apicurio-registry-app-3.0.9-all.tar.gz"]
    assert "connect-mirror-4.3.1.jar" in {jar.name for jar in jars.locked(JarSet.MIRRORMAKER)}


@pytest.mark.parametrize("jar_set", JarSet)
def test_every_locked_jar_has_a_checksum_and_one_version(jar_set: JarSet) -> None:
    locked = jars.locked(jar_set)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in locked)
    modules = [(jar.artifact.organisation, jar.artifact.module) for jar in locked]
    assert len(set(modules)) == len(modules)
