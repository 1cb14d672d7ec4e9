"""Command lines and log settings of the services that run on Java."""

from __future__ import annotations

from sandbox.install.parts import component_folder
from spark_ingest.lake.preflight import java_program

_LOGGING = {
    "defaultLogLevel": "info",
    "showDateTime": "true",
    "dateTimeFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "logFile": "System.out",
    # Would log hundreds of lines of configuration at each start.
    "log.org.apache.kafka.common.config.AbstractConfig": "warn",
    # Would log a line for each request of `sandbox status`.
    "log.org.apache.kafka.connect.runtime.rest.RestServer": "warn",
}


def java_command(
    component: str, main: str, *arguments: str, heap: str, options: tuple[str, ...] = ()
) -> list[str]:
    """The command that runs a class of a component with slf4j-simple logging.

    The component's files are the class path; ``heap`` is the maximum heap size (`-Xmx`), and
    ``options`` are additional JVM options.
    """
    return [
        str(java_program()),
        f"-Xmx{heap}",
        *options,
        "-XX:+ExitOnOutOfMemoryError",
        "-Duser.timezone=UTC",
        *(f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in _LOGGING.items()),
        "-cp",
        f"{component_folder(component)}/*",
        main,
        *arguments,
    ]


def properties_text(settings: dict[str, str]) -> str:
    """Settings as a Java properties file, with escaped backslashes."""
    lines = [f"{key}={value}" for key, value in settings.items()]
    text = "\n".join(lines).replace("\\", "\\\\")
    return f"# Written by `sandbox up`.\n{text}\n"
