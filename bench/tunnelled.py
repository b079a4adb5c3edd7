"""The tunnel beside stunnel, and a mirror through it beside the same mirror without, as `bench.tunnel` tells them."""

import subprocess
import sys

from bench.contenders import ROOT
from bench.ground import Ground

TITLE = "Through the tunnel"
LIMIT_SECONDS = 1200.0


def run(_ground: Ground) -> str:
    command = [sys.executable, "-m", "bench.tunnel"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as child:
        try:
            said, errors = child.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            child.terminate()
            said, _ = child.communicate()  # what it had found by then is worth telling
            errors = f"not done in {LIMIT_SECONDS:g} s"
    if child.returncode != 0:
        said += f"No further figure: {errors.strip()}\n"
    return "".join(f"- {line}\n" for line in said.splitlines())
