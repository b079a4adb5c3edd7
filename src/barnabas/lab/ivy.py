"""Apache Ivy, which ships inside PySpark, as a downloader that needs no POM and names no host."""

import importlib.util
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from barnabas.errors import ConfigError, Unavailable
from barnabas.lab.java import java

ATTEMPTS = 5
PAUSE_SECONDS = 2.0
ATTEMPT_SECONDS = 600

SETTINGS = """<ivysettings>
  <settings defaultResolver="registry"/>
  <caches defaultCacheDir={cache}/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="registry" m2compatible="true" usepoms="false" useMavenMetadata="false"
             timeoutConstraint="bounded"/>
  </resolvers>
</ivysettings>
"""

MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="barnabas" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Artifact:
    """One file of a registry; `classifier` is empty for a module's main file."""

    organisation: str
    module: str
    version: str
    classifier: str
    extension: str

    @property
    def file_name(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.module}-{self.version}{suffix}.{self.extension}"


def retrieve(artifacts: Iterable[Artifact], workspace: Path, tell: Callable[[str], None]) -> Path:
    """Downloads the artifacts, retrying, and returns the directory that holds them by `file_name`.

    No two artifacts may be versions of one module: Ivy would keep only the newer.
    """
    settings, module, output = workspace / "settings.xml", workspace / "ivy.xml", workspace / "retrieved"
    settings.write_text(SETTINGS.format(cache=quoteattr(str(workspace / "cache"))))
    module.write_text(MODULE.format(dependencies="\n".join(_dependency(artifact) for artifact in artifacts)))
    pattern = output / "[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), f"-Divy.default.ivy.user.dir={workspace}", "-jar", str(_ivy_jar())]
    command += ["-settings", str(settings), "-ivy", str(module), "-retrieve", str(pattern)]
    for attempt in range(1, ATTEMPTS + 1):
        # What an earlier attempt downloaded stays in the workspace's cache, so each attempt asks only for the rest.
        failure = _run(command)
        if failure is None:
            return output
        if attempt < ATTEMPTS:
            tell(f"jars: attempt {attempt} of {ATTEMPTS} failed ({failure}); trying again")
            time.sleep(PAUSE_SECONDS * attempt)
    raise Unavailable(f"jars: {ATTEMPTS} downloads by Ivy failed, the last with: {failure}: is the network reachable?")


def _dependency(artifact: Artifact) -> str:
    opening = (
        f"<dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.module)}"
        f' rev={quoteattr(artifact.version)} transitive="false" conf="default->*"'
    )
    if not artifact.classifier:
        return f"    {opening}/>"
    extension = quoteattr(artifact.extension)
    file = f"name={quoteattr(artifact.module)} type={extension} ext={extension}"
    return f"    {opening}><artifact {file} m:classifier={quoteattr(artifact.classifier)}/></dependency>"


def _run(command: list[str]) -> str | None:
    """One attempt; None if all is there, else the reason in a line."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=ATTEMPT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end after {ATTEMPT_SECONDS} s"
    if done.returncode == 0:
        return None
    # Ivy's warnings name the file at "[NOT FOUND  ]" and "[FAILED     ]".
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    named = [line for line in lines if "[FAILED" in line or "[NOT FOUND" in line]
    return (named or [line for line in lines if line] or [f"exit {done.returncode}"])[-1][:300]


def _ivy_jar() -> Path:
    # Looked up, not imported: importing pyspark takes a second and starts nothing we need here.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("pyspark is not installed: run `make` targets, which install it, or pip install barnabas")
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise ConfigError(f"{Path(spec.origin).parent / 'jars'} has no ivy-*.jar: is this a complete PySpark?")
    return jars[-1]
