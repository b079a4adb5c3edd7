"""Which transforms a mirror's records pass on their way to the writer, in order."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from barnabas import mux, provenance, transform
from barnabas.config.mirror import Mirror
from barnabas.plan import Plan
from barnabas.receipts import weighed

DEMUX_COLUMNS = ("to_topic", "to_partition", "to_partitions", "from_topic")


def shaped(records: DataFrame, mirror: Mirror, plan: Plan) -> DataFrame:
    """Source records as the rows a writer takes."""
    only = plan.routes[0].number if len(plan.routes) == 1 else None
    if mirror.where or mirror.provenance:
        records = weighed(records)
    records = transform.filtered(records, mirror.where)
    if mirror.kind != "demux":
        return transform.routed(_traced(records, mirror, plan), only=only)
    names = {"source": mirror.source, "destination": mirror.destination}
    aside = mirror.sets_aside  # such records are set aside as they came
    records = mux.demultiplexed(
        records, str(mirror.to), keep_headers=mirror.keep_mux_headers, names=names, as_came=aside
    )
    columns = (*DEMUX_COLUMNS, *(mux.COLUMNS_AS_CAME if aside else ()))
    return transform.routed(_traced(records, mirror, plan), *columns, only=only)


def _traced(records: DataFrame, mirror: Mirror, plan: Plan) -> DataFrame:
    """Without what provenance leaves out, and with the stamps of this mirror. A demux finds each record's topic."""
    if not mirror.provenance:
        return records
    topic = F.lit(plan.routes[0].source) if len(plan.routes) == 1 else F.col("topic")
    becomes = F.col("to_topic") if mirror.kind == "demux" else provenance.destination_topic(plan.routes)
    here, there = provenance.place(plan.source_id, topic), provenance.place(plan.destination_id, becomes)
    records = provenance.with_path(records)
    if mirror.provenance == "direct":
        records = provenance.born_here(records, here, plan.source_id)
    else:
        records = provenance.without_returning(records, here, there, plan.destination_id)
    return provenance.stamped(records, here, there)
