"""Memory, garbage collection and threads of the Spark JVM, from its own management beans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from pyspark.sql import SparkSession

from barnabas.metrics import JVM_MEASURES


def measured(spark: SparkSession) -> Iterator[Metric]:
    """One family after the other. In local mode the driver's JVM is the executors' too."""
    beans: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    memory = GaugeMetricFamily(*_named("barnabas_jvm_memory_bytes"), labels=["area", "kind"])
    bean = beans.getMemoryMXBean()
    for area, usage in (("heap", bean.getHeapMemoryUsage()), ("nonheap", bean.getNonHeapMemoryUsage())):
        for kind, value in (("used", usage.getUsed()), ("committed", usage.getCommitted()), ("max", usage.getMax())):
            memory.add_metric([area, kind], value)
    yield memory
    seconds = CounterMetricFamily(*_named("barnabas_jvm_gc_seconds"), labels=["collector"])
    collections = CounterMetricFamily(*_named("barnabas_jvm_gc_collections"), labels=["collector"])
    for collector in beans.getGarbageCollectorMXBeans():
        seconds.add_metric([collector.getName()], collector.getCollectionTime() / 1000)
        collections.add_metric([collector.getName()], collector.getCollectionCount())
    yield seconds
    yield collections
    yield GaugeMetricFamily(*_named("barnabas_jvm_threads"), value=beans.getThreadMXBean().getThreadCount())
    uptime = beans.getRuntimeMXBean().getUptime() / 1000
    yield GaugeMetricFamily(*_named("barnabas_jvm_uptime_seconds"), value=uptime)


def _named(name: str) -> tuple[str, str]:
    return name, JVM_MEASURES[name]
