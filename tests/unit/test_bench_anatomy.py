"""What the benchmark says about threads and micro-batches."""

import json

from bench.anatomy import batches, by_thread, kind, read, steps

EVENT = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


def _progress(rows: int, millis: int) -> dict[str, object]:
    return {"sources": [{"numInputRows": rows}], "durationMs": {"addBatch": millis, "latestOffset": 2}}


def test_threads_are_told_apart_by_name_and_process() -> None:
    assert kind("Executor task l", worker=False) == "JVM: task (fetch, rows to Arrow)"
    assert kind("C2 CompilerThre", worker=False) == "JVM: compiler"
    assert kind("python3", worker=True) == "worker: Python"
    assert kind("python3", worker=False) == "driver: Python"
    assert kind("rdk:broker0", worker=True) == "worker: librdkafka"
    assert kind("rdk:broker0", worker=False) == "driver: librdkafka"
    assert kind("unheard of-12", worker=False) == "JVM: unheard of"


def test_cpu_is_told_for_a_million_records_dearest_first() -> None:
    table = by_thread({"worker: Python": 1.0}, {"worker: Python": 2.0, "JVM: compiler": 3.0}, 500_000)
    assert table.index("JVM: compiler | 6.00 | 75 %") < table.index("worker: Python | 2.00 | 25 %")
    assert "in all | 8.00" in table


def test_progress_is_found_among_other_events_and_empty_batches_do_not_count() -> None:
    lines = [
        json.dumps({"Event": "SparkListenerJobStart"}),
        json.dumps({"Event": EVENT, "progress": _progress(10, 100)}),
        json.dumps({"Event": EVENT, "progress": _progress(20, 300)}),
        json.dumps({"Event": EVENT, "progress": _progress(0, 5)}),
        json.dumps({"Event": EVENT, "progress": _progress(30, 5)})[:-9],
    ]
    found = steps(lines)
    assert [read(batch) for batch in found] == [10, 20]
    assert "| addBatch ms | 200 | 100 | 300 |" in batches(found)
