"""Where a copy came from, as a header of its own, and which records a mirror leaves out for it.

Each mirror with `provenance` adds one stamp to what it copies, `CLUSTER/TOPIC CLUSTER/TOPIC`: where it was read and
where it was written. A record is a copy only if its last stamp says that it was written where it is read now; else an
application made it of a copy and handed on the headers: it was born here, and the stamps say nothing of it.

Before topics were named a stamp was the source's cluster id alone. Such stamps keep their meaning: the record goes to
none of these clusters. Pure DataFrame → DataFrame, in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from barnabas.model import Route
from barnabas.transform import HEADERS

ORIGIN = "barnabas.origin"
STAMPS, COPY = "_stamps", "_copy"  # columns that live between the steps


def with_stamps(records: DataFrame, here: Column) -> DataFrame:
    """Adds what later steps ask for: the stamps as text, and whether the record is a copy that was written `here`.

    Of records without a stamp, as most are that were born here, only the headers' names are looked at.
    """
    headers = F.coalesce("headers", F.array().cast(HEADERS))
    own = F.filter(headers, lambda header: (header["key"] == ORIGIN) & header["value"].isNotNull())
    texts = F.transform(own, lambda header: header["value"].cast("string"))
    none = F.array().cast("array<string>")
    found = records.withColumn("headers", headers)
    found = found.withColumn(STAMPS, F.when(F.array_contains(headers["key"], ORIGIN), texts).otherwise(none))
    last = F.reverse(F.filter(STAMPS, _names_topics))
    written = F.substring_index(F.get(last, F.lit(0)), " ", -1)
    is_copy = F.when(F.size(STAMPS) > 0, F.coalesce(written == here, F.lit(False))).otherwise(F.lit(False))
    return found.withColumn(COPY, is_copy)


def without_returning(records: DataFrame, there: Column, destination_id: str) -> DataFrame:
    """Drops copies that would return to a topic they were in."""
    been = F.exists(STAMPS, lambda stamp: F.substring_index(stamp, " ", 1) == there)
    returning = (F.col(COPY) & F.coalesce(been, F.lit(False))) | F.array_contains(STAMPS, destination_id)
    return records.where(~F.when(F.size(STAMPS) > 0, returning).otherwise(F.lit(False)))


def born_here(records: DataFrame, source_id: str) -> DataFrame:
    """Drops all copies. A stamp without a topic cannot tell a copy from what an application made of it."""
    from_elsewhere = F.exists(STAMPS, lambda stamp: ~_names_topics(stamp) & (stamp != source_id))
    return records.where(~F.when(F.size(STAMPS) > 0, F.col(COPY) | from_elsewhere).otherwise(F.lit(False)))


def stamped(records: DataFrame, here: Column, there: Column) -> DataFrame:
    """Adds the stamp of this copy, takes off those that an application handed on; nothing where `there` is null."""
    headers, stamp = F.col("headers"), F.concat(here, F.lit(" "), there).cast("binary")
    one = F.array(F.struct(F.lit(ORIGIN).alias("key"), stamp.alias("value"))).cast(HEADERS)
    alive = F.filter(
        headers,
        lambda header: (
            (header["key"] != ORIGIN) | ~F.coalesce(_names_topics(header["value"].cast("string")), F.lit(False))
        ),
    )
    kept = F.when((F.size(STAMPS) > 0) & ~F.col(COPY), alive).otherwise(headers)
    marked = F.when(there.isNull(), headers).otherwise(F.concat(kept, one))
    return records.withColumn("headers", marked).drop(STAMPS, COPY)


def place(cluster_id: str, topic: Column) -> Column:
    """A topic's name in a stamp; a topic has neither a slash nor a space in its name, a cluster's id may."""
    return F.concat(F.lit(_plain(cluster_id) + "/"), topic)


def destination_topic(routes: Sequence[Route]) -> Column:
    """What each record's topic becomes: what stands before and after its name, if that is all there is to it.

    Spark searches a map from its beginning for each record.
    """
    names = {route.destination for route in routes}
    if len(names) <= 1:
        return F.lit(next(iter(names), None)).cast("string")
    longest = max(routes, key=lambda route: len(route.source))
    before, _, after = longest.destination.partition(longest.source)
    if all(route.destination == before + route.source + after for route in routes):
        return F.concat(F.lit(before), F.col("topic"), F.lit(after))
    return F.create_map(*[F.lit(text) for route in routes for text in (route.source, route.destination)])[
        F.col("topic")
    ]


def _names_topics(stamp: Column) -> Column:
    return F.contains(stamp, F.lit(" "))


def _plain(cluster_id: str) -> str:
    return cluster_id.replace(" ", "%20")
