"""What bounds latency: Barnabas at the pace of the latency run, its micro-batches taken apart by step and thread."""

from bench.anatomy import dissect_paced, events
from bench.contenders import Errand
from bench.ground import Ground
from bench.latency import TOPIC

TITLE = "What bounds latency"
WARM_SECONDS, SECONDS = 60.0, 30.0


def run(ground: Ground) -> str:
    directory = ground.directory / "breakdown"
    errand = Errand(ground, TOPIC, directory, spark=events(directory))
    try:
        return EXPLAINED + dissect_paced(ground, errand, warm=WARM_SECONDS, seconds=SECONDS)
    except RuntimeError as error:
        return f"{error}\n"
    finally:
        ground.swept()


EXPLAINED = """
A record waits until the micro-batch before it is over, half of one on average, and is read by a committed reader when
its own is: one and a half times `triggerExecution`. Of that `addBatch` is the tasks: a fetch, the worker, and one
transaction with its commit; the rest is Spark asking for the newest offsets and planning. Spark's event log is on here,
which it is not in the latency run.

"""
