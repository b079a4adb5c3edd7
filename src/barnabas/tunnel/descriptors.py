"""Open files: each carried connection is two, and a shell's usual limit is lower than the tunnel's own."""

import logging
import resource

PER_CONNECTION = 2  # both its ends; one whose handshake is unfinished has one
SPARE = 64  # the rest of the process
FEWEST_UNFINISHED = 32

log = logging.getLogger(__name__)


def make_room(tunnel: str, connections: int, unfinished: int = 0) -> int:
    """Raises this process's limit as far as the system lets it, and says so where that is not enough.

    Returns how many of the unfinished handshakes there is room for: strangers must not take what connections need.
    """
    needed = PER_CONNECTION * connections + unfinished + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return unfinished
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        log.warning(
            'tunnel "%s": %d connections may need %d open files and the system allows %d: '
            "raise `ulimit -n`, or lower `limits.connections`",
            tunnel,
            connections,
            needed,
            allowed,
        )
    return min(unfinished, max(FEWEST_UNFINISHED, allowed - PER_CONNECTION * connections - SPARE))
