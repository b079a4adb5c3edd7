"""Workers start while the clusters are still being asked, so that the first micro-batch finds them ready."""

from __future__ import annotations

import logging
import threading

from pyspark.sql import SparkSession

from barnabas.session import lanes
from barnabas.worker.write import ready

log = logging.getLogger(__name__)


def warm_up(spark: SparkSession) -> None:
    """Starts one worker for each lane of a mirror, in the background; they stay."""
    threading.Thread(target=_warm, args=(spark,), name="warm-up", daemon=True).start()


def _warm(spark: SparkSession) -> None:
    count = lanes(spark)
    try:
        spark.range(count, numPartitions=count).mapInArrow(ready, "id long").collect()
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the first micro-batch will say it better
        log.debug("warm-up: %s", error)
