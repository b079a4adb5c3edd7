"""The tunnel beside stunnel, and a mirror through it beside the same mirror without, as `bench.tunnel` tells them."""

import subprocess
import sys

from bench.contenders import ROOT
from bench.ground import Ground

TITLE = "Through the tunnel"
LIMIT_SECONDS = 600.0


def run(_ground: Ground) -> str:
    command = [sys.executable, "-m", "bench.tunnel"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        return f"No figure: not done in {LIMIT_SECONDS:g} s.\n"
    said = found.stdout if found.returncode == 0 else f"No figure: {found.stderr.strip()}"
    return "".join(f"- {line}\n" for line in said.splitlines())
