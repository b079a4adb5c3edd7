"""What Spark's JVM and the allocator of its workers are told, and how an operator says otherwise."""

from __future__ import annotations

import os
import re
from pathlib import Path

from barnabas.run_directory import fits_sockets

USUAL_HEAP = "2g"
SLOT_MEGABYTES = 128  # of direct memory, where a task puts its batches together: see `session.batches_for`
JAVA_OPTIONS = (
    "-Duser.timezone=UTC",
    "-XX:+ExitOnOutOfMemoryError",  # a run that ends is started again; one that limps on is not noticed
    "-Xlog:disable",  # its warnings would stand among a command's results
    f'"-Dlog4j2.configurationFile={Path(__file__).with_name("log4j2.properties")}"',
)
# What a consumer holds while another of its task is read is garbage after two collections: Java, left alone, keeps it
# for ever after one, and so goes through all of the heap once, page by page, while it could do with a part.
AGES = ("-XX:-UseAdaptiveSizePolicy", "-XX:InitialTenuringThreshold=2", "-XX:MaxTenuringThreshold=2")
# What is fetched is gone before the next collection: hardly anything is to be copied. What is not gets room from the
# beginning: Java would make it in small steps, each after a collection of everything, up to a tenth of all time. And
# each thread begins with a small piece of it: with Java's first guess a start, which has many, is a collection longer.
MEMORY = ("-Xmn768m", "-Xms1500m", "-XX:TLABSize=512k", *AGES)
CLASSES = "-XX:MetaspaceSize=128m"  # for the same reason: the first such collection fell into each start
COLLECTOR = "-XX:+UseParallelGC"  # of what is made here nothing lives long: the least work for each record
HUGE_PAGES = "-XX:+UseTransparentHugePages"  # records pass through hundreds of megabytes: fewer pages to look up
# What a record passes is called often enough within a second. What plans micro-batches is called too rarely to be worth
# the best compiler's time, which without this goes on for minutes and takes up to a quarter of a core. Nor are the
# loops of each Arrow batch, over its few columns and buffers.
COMPILER = (
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=24000",
    "-XX:Tier4CompileThreshold=600000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


def default_options(own: str, heap: str, directory: Path, slots: int) -> str:
    """The operator's options behind ours: the last counts, but for collectors, of which Java takes only one.

    Huge pages only with our own collector, and where nothing is said of large ones: others have conditions for them.
    What Java writes for a while lies in our directory, not beside it for ever if the JVM is killed.
    """
    given = " ".join((own, *(os.environ.get(name, "") for name in _VARIABLES)))
    collector = [] if re.search(r"-XX:\+Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon)GC\b", given) else [COLLECTOR]
    memory = MEMORY if collector and heap == USUAL_HEAP and "-Xmx" not in given else ()
    pages = [HUGE_PAGES] if collector and not re.search(r"LargePages|HugePages|HugeTLBFS|UseSHM", given) else []
    fits = fits_sockets(directory) and "-Djava.io.tmpdir=" not in given
    place = [f'"-Djava.io.tmpdir={directory}"'] if fits else []
    direct = f"-XX:MaxDirectMemorySize={SLOT_MEGABYTES * slots}m"
    return " ".join((*collector, *memory, CLASSES, *pages, *COMPILER, *place, direct, own)).rstrip()


def tunables(own: str) -> str:
    """glibc's tunables of the workers: the operator's, and huge pages unless those say something of them."""
    return own if "glibc.malloc.hugetlb" in own else ":".join(filter(None, (own, "glibc.malloc.hugetlb=1")))
