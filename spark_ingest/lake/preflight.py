"""Checks before a JVM starts: the versions of Java and Spark, free disk space.

Each check takes less than a second and raises one line with the fix, instead of a page of Java
stack trace later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from spark_ingest.errors import ConfigurationError

SUPPORTED_JAVA = (17, 21)
SUPPORTED_SPARK = ("4.0", "4.1")
MIN_FREE_VARIABLE = "MILLRACE_MIN_FREE_MB"
MIN_FREE_MB = 1024
WITHOUT_PYSPARK = (
    "pyspark is not installed in this Python: activate .venv (`make install` creates it), "
    "pip install 'millrace[spark]', or put your cluster's $SPARK_HOME/python on PYTHONPATH"
)

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_NEEDED = "Millrace needs a JDK " + " or ".join(str(version) for version in SUPPORTED_JAVA)


def java_program() -> Path:
    """The ``java`` that Spark and the sandbox start: from ``JAVA_HOME``, else from ``PATH``.

    Raises:
        ConfigurationError: There is none.
    """
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        program = Path(java_home) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise ConfigurationError(
                f"JAVA_HOME is {java_home}, which has no bin/java; {_advice()}"
            )
        return program
    found = shutil.which("java")
    if found is None:
        raise ConfigurationError(f"no java on PATH and no JAVA_HOME; {_advice()}")
    return Path(found)


def check_java() -> int:
    """Check the version that ``java -version`` prints.

    Returns the feature version, one of ``SUPPORTED_JAVA``.

    Raises:
        ConfigurationError: No Java, one that does not start, or another version.
    """
    program = java_program()
    try:
        answer = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{program} does not start ({error}); {_advice()}") from error
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        raise ConfigurationError(f"{program} -version prints no version; {_advice()}")
    # Java 8 and older have versions like 1.8.
    version = int(match[2] or 0) if match[1] == "1" else int(match[1])
    if version not in SUPPORTED_JAVA:
        raise ConfigurationError(f"{program} is Java {version}; {_advice()}")
    return version


def pyspark_folder() -> Path:
    """The folder of this Python's pyspark, which is its Spark home as well.

    Raises:
        ConfigurationError: pyspark is not installed.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError(WITHOUT_PYSPARK)
    return Path(spec.origin).parent


def check_pyspark() -> None:
    """Refuse a pyspark of another version than ``SUPPORTED_SPARK``.

    Raises:
        ConfigurationError: pyspark is missing or of another version.
    """
    folder = pyspark_folder()
    version = import_module("pyspark.version").__version__
    if not version.startswith(tuple(f"{supported}." for supported in SUPPORTED_SPARK)):
        raise ConfigurationError(
            f"{folder} is Spark {version}: Millrace needs Spark {' or '.join(SUPPORTED_SPARK)}"
        )


def check_spark_home() -> None:
    """Refuse a ``SPARK_HOME`` of another version than this environment's pyspark.

    pyspark starts that Spark's JVM, with its configuration: on an edge node, the cluster's.

    Raises:
        ConfigurationError: ``SPARK_HOME`` is set to another version, or pyspark is missing.
    """
    own, spark_home = pyspark_folder(), os.environ.get("SPARK_HOME")
    if not spark_home or own.resolve().is_relative_to(Path(spark_home).resolve()):
        return
    here, there = (spark_version(folder) for folder in (own, Path(spark_home)))
    if here != there:
        version = f"Spark {there}" if there else "not a Spark"
        raise ConfigurationError(
            f"SPARK_HOME is {spark_home}, which is {version}, and this environment's Spark ({own}) "
            f"is {here}: unset SPARK_HOME, or install pyspark=={there or here}"
        )


def spark_version(home: Path) -> str | None:
    """The version of a Spark, by its JARs; None if the folder has none."""
    for jar in home.glob("jars/spark-core_*.jar"):
        return jar.stem.rpartition("-")[2]
    return None


def check_disk(folder: Path) -> int:
    """Refuse to start with a nearly full disk.

    ``folder`` need not exist yet. Returns the free space, in bytes.

    Raises:
        ConfigurationError: Less than ``MILLRACE_MIN_FREE_MB`` (default 1024) is free.
    """
    limit = os.environ.get(MIN_FREE_VARIABLE) or str(MIN_FREE_MB)
    if not limit.isdigit():
        raise ConfigurationError(f"{MIN_FREE_VARIABLE} is {limit!r}: it must be a number of MB")
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < int(limit) * 1024**2:
        raise ConfigurationError(
            f"only {free // 1024**2} MB are free on the disk of {folder}, {limit} are required:"
            f" free some space (or set {MIN_FREE_VARIABLE})"
        )
    return free


def check_spark() -> None:
    """The checks before a Spark session is created: pyspark, Java and ``SPARK_HOME``."""
    check_pyspark()
    check_java()
    check_spark_home()


def _advice() -> str:
    """The fix, with the path of a supported JDK if one is installed."""
    for home in _installed_jdks():
        return f"{_NEEDED}: export JAVA_HOME={home}"
    return f"{_NEEDED}: install one (Debian: apt install openjdk-17-jdk-headless) or set JAVA_HOME"


def _installed_jdks() -> list[Path]:
    """Supported JDKs in the usual folders, by the ``release`` file of each."""
    places = (
        (Path("/usr/lib/jvm"), "*"),
        (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home"),
        (Path.home() / ".sdkman/candidates/java", "*"),
    )
    homes = [home for place, pattern in places for home in sorted(place.glob(pattern))]
    return [
        home for home in homes if _release(home) in SUPPORTED_JAVA and (home / "bin/java").exists()
    ]


def _release(home: Path) -> int | None:
    try:
        match = re.search(r'^JAVA_VERSION="(\d+)', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None
