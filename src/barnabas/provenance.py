"""Where a copy came from, as a header of its own, and which records a mirror leaves out for it.

Each mirror with `provenance` writes the path of a copy, `CLUSTER/TOPIC CLUSTER/TOPIC …`: where the record was born, and
each topic it was copied to. A record is a copy only if its path ends where it is read now; else an application made it
of a copy and handed on the headers: it was born here, and the path says nothing of it.

Before topics were named, each mirror added a header with its source's cluster id alone. Such headers keep their
meaning: the record goes to none of these clusters. Pure DataFrame → DataFrame, in Spark SQL. A lambda is slow there,
and a filter may be computed for each place where its column stands: only what is written looks at all headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from barnabas.model import Route
from barnabas.transform import HEADERS

ORIGIN = "barnabas.origin"
PATH = "_path"  # a column that lives between the steps; null where a record has no such header


def with_path(records: DataFrame) -> DataFrame:
    """Adds the last origin header of each record, as text."""
    headers = F.coalesce("headers", F.array().cast(HEADERS))
    last = F.size(headers) - F.array_position(F.reverse(headers["key"]), F.lit(ORIGIN))  # the size itself: none
    path = F.get(headers, last.cast("int"))["value"].cast("string")
    return records.withColumn("headers", headers).withColumn(PATH, path)


def without_returning(records: DataFrame, here: Column, there: Column, destination_id: str) -> DataFrame:
    """Drops copies that would return to a topic they were in."""
    been = F.contains(F.concat(F.lit(" "), PATH), F.concat(F.lit(" "), there, F.lit(" ")))
    cluster = F.struct(F.lit(ORIGIN).alias("key"), F.lit(destination_id).cast("binary").alias("value"))
    named = F.array_contains("headers", cluster)
    returning = F.coalesce(been, F.lit(False)) | F.coalesce(named, F.lit(False))
    return _without(records, F.when(_names_topics(F.col(PATH)) & ~_is_copy(here), F.lit(False)).otherwise(returning))


def born_here(records: DataFrame, here: Column, source_id: str) -> DataFrame:
    """Drops all copies. A cluster's id alone cannot tell a copy from what an application made of it."""
    return _without(records, F.when(_names_topics(F.col(PATH)), _is_copy(here)).otherwise(F.col(PATH) != source_id))


def stamped(records: DataFrame, here: Column, there: Column) -> DataFrame:
    """Writes the path of this copy in place of what an application handed on; nothing where `there` is null."""
    headers, begun = F.col("headers"), F.when(_is_copy(here), F.col(PATH)).otherwise(here)
    path = F.concat(begun, F.lit(" "), there).cast("binary")
    one = F.array(F.struct(F.lit(ORIGIN).alias("key"), path.alias("value"))).cast(HEADERS)
    others = F.filter(
        headers,
        lambda header: (
            (header["key"] != ORIGIN) | ~F.coalesce(_names_topics(header["value"].cast("string")), F.lit(False))
        ),
    )
    kept = F.when(F.coalesce(_names_topics(F.col(PATH)), F.lit(False)), others).otherwise(headers)
    marked = F.when(there.isNull(), headers).otherwise(F.concat(kept, one))
    return records.withColumn("headers", marked).drop(PATH)


def _without(records: DataFrame, left_out: Column) -> DataFrame:
    return records.where(F.col(PATH).isNull() | ~left_out)


def _is_copy(here: Column) -> Column:
    return F.coalesce(F.endswith(F.col(PATH), F.concat(F.lit(" "), here)), F.lit(False))


def place(cluster_id: str, topic: Column) -> Column:
    """A topic's name in a path; a topic has neither a slash nor a space in its name, a cluster's id may."""
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


def _names_topics(path: Column) -> Column:
    return F.contains(path, F.lit(" "))


def _plain(cluster_id: str) -> str:
    return cluster_id.replace(" ", "%20")
