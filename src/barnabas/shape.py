"""Which transforms a mirror's records pass on their way to the writer, in order."""

from __future__ import annotations

from pyspark.sql import DataFrame

from barnabas import mux, transform
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
    if mirror.provenance:
        records = transform.without_returning(records, plan.destination_id)
        records = transform.stamped(records, plan.source_id)
    if mirror.kind == "demux":
        names = {"source": mirror.source, "destination": mirror.destination}
        aside = mirror.schemas is not None and mirror.on_bad_schema == "quarantine"  # such records are set aside whole
        records = mux.demultiplexed(
            records, str(mirror.to), keep_headers=mirror.keep_mux_headers, names=names, as_came=aside
        )
        return transform.routed(records, *DEMUX_COLUMNS, *(mux.COLUMNS_AS_CAME if aside else ()), only=only)
    return transform.routed(records, only=only)
