"""Spark's process that forks workers, but with PySpark from where pip put it.

Spark names its own zip files first, and what Python takes out of a zip it compiles anew in every process: half a second
of work for the daemon and as much for two workers, while a mirror that was killed waits to go on. It names a jar too,
whose long table of contents would be read. Who looks for `pyspark.daemon` among the processes finds this one.
"""

import sys

if __name__ == "__main__":
    sys.path.sort(key=lambda place: place.endswith((".zip", ".jar")))
    from pyspark.daemon import manager

    manager()
