"""A mirror whose source lies behind the tunnel, against the same mirror without it.

Waits for a way to reach a broker by its name without touching the machine's own hosts file: `bench.tunnel` measures the
tunnel itself, beside stunnel.
"""

from bench.ground import Ground

TITLE = "Through the tunnel"


def run(ground: Ground) -> str:
    return "Not measured yet: see `python -m bench.tunnel` for the tunnel beside stunnel.\n"
