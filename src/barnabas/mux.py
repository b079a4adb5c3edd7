"""Hub and spoke: many topics travel as one intermediate topic and come apart at the hub. Here MUX_* headers come off.

Pure DataFrame → DataFrame, in Spark SQL. A mux's writers put them last and in their order, so a demux finds them by
their place; records of another multiplexer, with the same headers elsewhere, are searched by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from barnabas.config.selection import LONGEST_TOPIC
from barnabas.model import FIRST_MILLISECOND, LAST_MILLISECOND
from barnabas.naming import INTERNAL
from barnabas.spoke import ALL, IDENTIFIER, MOST_PARTITIONS, PARTITION, PARTITIONS, TIMESTAMP, TOPIC
from barnabas.transform import HEADERS

# a topic's name that is not `.`, `..` or internal; for Java, whose `$` would let a line's end pass
ALLOWED = rf"\A(?!(?:\.\.?|{INTERNAL.pattern})\z)[A-Za-z0-9._-]{{1,{LONGEST_TOPIC}}}\z"
# a time as RFC 3339 writes it: Spark's own cast takes others too, and guesses their day or their zone
WRITTEN_TIME = r"\A\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\z"
COLUMNS_AS_CAME = ("came_headers", "came_millis")


def demultiplexed(
    records: DataFrame, template: str, *, keep_headers: bool, names: Mapping[str, str], as_came: bool = False
) -> DataFrame:
    """Adds where each record belongs: `to_topic`, `to_partition`, `to_partitions`, `from_topic`; null where unknown.

    `template` is `to` of the configuration; `names` are the values of its other words. The record's timestamp becomes
    the original one where a header holds it, and MUX_* headers are removed unless they are to be kept. A record that
    does not say where it belongs stays as it came. `as_came` adds COLUMNS_AS_CAME: as they were before.
    """
    found = records.withColumn("headers", F.coalesce("headers", F.array().cast(HEADERS)))
    found = found.withColumn("_behind", _stand_behind(F.col("headers")))
    # A step of its own for each: Spark computes a column once, but an expression wherever it stands. All but the last
    # become one loop in Java, which a lambda would prevent: each step would write its rows anew.
    found = found.select(
        "*", *[_text(name).alias(name) for name in (TOPIC, PARTITION, PARTITIONS, TIMESTAMP, IDENTIFIER)]
    )
    found = found.select("*", *_understood(template, names))
    told = (F.col(TOPIC) != "") & (F.col("_count") > F.col("_partition"))
    found = found.withColumn("_whole", F.coalesce(told & F.col("_name").rlike(ALLOWED), F.lit(False)))
    whole, headers = F.col("_whole"), F.col("headers")
    came = {"came_headers": headers, "came_millis": F.unix_millis("timestamp")} if as_came else {}
    return found.select(
        "key",
        "value",
        F.when(whole & F.lit(not keep_headers), _without(headers)).otherwise(headers).alias("headers"),
        "topic",
        "partition",
        "offset",
        F.when(whole, F.timestamp_millis("_millis")).otherwise(F.col("timestamp")).alias("timestamp"),
        F.when(whole, F.col("_name")).alias("to_topic"),
        F.when(whole, F.col("_partition")).alias("to_partition"),
        F.when(whole, F.col("_count")).alias("to_partitions"),
        F.col(TOPIC).alias("from_topic"),
        *[column.alias(name) for name, column in came.items()],
    )


def _understood(template: str, names: Mapping[str, str]) -> list[Column]:
    """What the headers mean; null where they say nothing that can be."""
    partition = _within(F.col(PARTITION).try_cast("int"), 0, MOST_PARTITIONS - 1)
    stated = F.col("_behind") | F.array_contains(F.col("headers")["key"], PARTITIONS)
    count = F.when(stated, F.col(PARTITIONS).try_cast("int")).otherwise(partition + 1)
    return [
        _named(template, F.col(TOPIC), F.col(IDENTIFIER), names).alias("_name"),
        partition.alias("_partition"),
        _within(count, 0, MOST_PARTITIONS).alias("_count"),
        _time(F.col(TIMESTAMP)).alias("_millis"),
    ]


def _time(text: Column) -> Column:
    """Milliseconds of a number or of RFC 3339; the record's own where the text is neither or Spark cannot keep it."""
    written = F.when(text.rlike(WRITTEN_TIME), F.unix_millis(F.upper(text).try_cast("timestamp")))
    read = (_within(millis, FIRST_MILLISECOND, LAST_MILLISECOND) for millis in (text.try_cast("long"), written))
    return F.coalesce(*read, F.unix_millis("timestamp"))


def _within(number: Column, least: int, most: int) -> Column:
    return F.when((number >= least) & (number <= most), number)


def _stand_behind(headers: Column) -> Column:
    """True where the last headers are those of a mux: no other multiplexer writes the count of partitions.

    Three names are looked at and not all eight, because each takes time for every record.
    """
    size = len(ALL)
    first, last = F.element_at(headers, -size)["key"], F.element_at(headers, -1)["key"]
    count = F.element_at(headers, ALL.index(PARTITIONS) - size)["key"]
    fits = (first == ALL[0]) & (count == PARTITIONS) & (last == ALL[-1])
    return F.when(F.size(headers) >= size, fits).otherwise(F.lit(False))


def _text(name: str) -> Column:
    """A MUX header's value as text: by its place, or by its name, the last one counting."""
    headers = F.col("headers")
    by_place = F.size(headers) + (ALL.index(name) - len(ALL))
    by_name = F.size(headers) - F.array_position(F.reverse(headers["key"]), F.lit(name))  # the size itself: not there
    return F.get(headers, F.when(F.col("_behind"), by_place).otherwise(by_name).cast("int"))["value"].cast("string")


def _without(headers: Column) -> Column:
    ours = F.slice(headers, F.lit(1), F.size(headers) - len(ALL))
    others = F.filter(headers, lambda h: ~h["key"].isin(*ALL))
    return F.when(F.col("_behind"), ours).otherwise(others)


def _named(template: str, topic: Column, identifier: Column, names: Mapping[str, str]) -> Column:
    """The destination topic: null where the template needs an identifier that is not there."""
    identifier = F.when(identifier != "", identifier)
    for word, value in names.items():
        template = template.replace(f"{{{word}}}", value)
    parts: list[Column] = []
    rest = template
    while rest:
        at = min((i for i in (rest.find("{topic}"), rest.find("{identifier}")) if i >= 0), default=len(rest))
        if at:
            parts.append(F.lit(rest[:at]))
        word, _, rest = rest[at:].partition("}")
        if word:
            parts.append(topic if word == "{topic" else identifier)
    return F.concat(*parts)
