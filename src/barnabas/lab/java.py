"""The Java that runs Ivy, the brokers and the registries."""

import os
import shutil
from pathlib import Path

from barnabas.errors import ConfigError


def java() -> str:
    """The path of the java command: JAVA_HOME's if that is set, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        command = Path(home) / "bin" / "java"
        if not command.is_file():
            raise ConfigError(f'JAVA_HOME is "{home}" but {command} does not exist: point JAVA_HOME at Java 17')
        return str(command)
    found = shutil.which("java")
    if found is None:
        raise ConfigError("java is not on the PATH: install Java 17 (apt-get install openjdk-17-jre-headless)")
    return found
