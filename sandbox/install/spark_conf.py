"""Render the lake's Spark settings with absolute paths, where Spark will find them.

The one source is ``profiles/spark-defaults.conf``. `make install` renders it into the
Spark of the virtual environment (for programs typed by hand) and into the sandbox's own
``spark-conf`` folder (for ``SPARK_CONF_DIR``). The start-up file beside it brings the lake's
JARs and the archive of their classes where they are missing, before any Spark of this
environment starts.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from string import Template

from sandbox.install import class_archive
from sandbox.install.parts import cache_folder, component_folder, fetch
from sandbox.settings import PROJECT, Home, load_home, save_settings
from sandbox.ui import say
from spark_ingest.errors import MillraceError
from spark_ingest.lake.preflight import pyspark_folder

PROFILES = PROJECT / "profiles"
# For statements over some thousand rows: to compile a stage takes longer than to run it.
FEW_ROWS = {"spark.sql.codegen.wholeStage": "false"}
# For a JVM that lives for a minute or two: Java's second compiler takes a third of two cores
# in such a time, and its code never pays. Java keeps a fifth of the usual room for code where
# the first compiler works alone; a build fills that.
BRIEF_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def environment_conf() -> Path:
    """The ``conf`` folder of the Spark that this Python's pyspark starts."""
    return pyspark_folder() / "conf"


def options_for_few_rows() -> str:
    """``SPARK_SUBMIT_OPTS`` of a program that asks small tables for a minute or two."""
    return " ".join([BRIEF_JVM, *(f"-D{key}={value}" for key, value in FEW_ROWS.items())])


def bring_spark() -> None:
    """Fetch the lake's JARs and archive their classes, where that was not done yet.

    Raises:
        ConfigurationError: No fitting Java, or not enough disk space.
        ServiceUnavailable: The repository does not answer, or not with what was asked.
    """
    fetch(["spark"])
    if class_archive.is_current():
        return
    with tempfile.TemporaryDirectory(prefix="classes-", dir=cache_folder()) as folder:
        conf = Path(folder) / "conf"
        render(Home(Path(folder) / "home"), conf)
        class_archive.write(conf)


def render(home: Home, into: Path) -> Path:
    """Write Spark's settings, its log levels and its start-up file for one sandbox.

    The folder ``into`` and the lake's are created when missing. Returns the path of
    ``spark-defaults.conf``.
    """
    home.lake.mkdir(parents=True, exist_ok=True)
    into.mkdir(parents=True, exist_ok=True)
    template = Template((PROFILES / "spark-defaults.conf").read_text())
    text = template.safe_substitute(
        LAKE=home.lake,
        SPARK_PARTS=component_folder("spark"),
        SPARK_JARS=pyspark_folder() / "jars",
        CLASS_ARCHIVE=class_archive.archive_file(),
        SANDBOX_HOME=home.path,
    )
    target = into / "spark-defaults.conf"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    shutil.copyfile(PROFILES / "log4j2.properties", into / "log4j2.properties")
    start_up = into / "spark-env.sh"
    if takes_start_up(into):
        script = Template((PROFILES / "spark-env.sh").read_text()).safe_substitute(
            SPARK_PARTS=shlex.quote(str(component_folder("spark"))),
            SPARK_JARS=shlex.quote(str(pyspark_folder() / "jars")),
            CLASS_ARCHIVE=shlex.quote(str(class_archive.archive_file())),
            PYTHON=shlex.quote(sys.executable),
        )
        start_up.write_text(script)
    else:
        start_up.unlink(missing_ok=True)
    return target


def takes_start_up(conf: Path) -> bool:
    """Whether Spark's launcher can read a start-up file there: it does not quote the path."""
    return not any(character.isspace() for character in str(conf))


def rendered_home(conf: Path) -> Path | None:
    """The sandbox that a rendered ``spark-defaults.conf`` belongs to, if it is ours."""
    defaults = conf / "spark-defaults.conf"
    if not defaults.exists():
        return None
    for line in defaults.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == "spark.millrace.home":
            return Path(value.strip())
    return None


def main(arguments: list[str]) -> int:
    """Render for this environment's Spark and for the sandbox; what `make install` runs.

    With ``--fetch``, which the start-up file says, bring what the Spark that starts needs; with
    ``--parts`` all Java parts and the archive of Spark's classes. That runs beside pip in a new
    checkout, so nothing here imports what `environment.py` has not installed before all else.
    """
    try:
        if arguments == ["--fetch"]:
            _fetch_for_start(Path(os.environ["SPARK_CONF_DIR"]))
        elif arguments == ["--parts"]:
            # All at once: to ask for each on its own takes longer.
            fetch()
            bring_spark()
        else:
            _install()
    except MillraceError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _install() -> None:
    home = load_home()
    if not home.settings_file.exists():
        save_settings(home)
    for folder in (environment_conf(), home.spark_conf):
        render(home, folder)
    # Where Spark reads no start-up file, now is the time; the rest works without.
    if not takes_start_up(environment_conf()):
        try:
            fetch(["spark"])
        except MillraceError as error:
            say(f"Spark's JARs are missing ({error}): run `sandbox parts spark`")


def _fetch_for_start(conf: Path) -> None:
    # PySpark starts its launcher with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    bring_spark()
    home = rendered_home(conf)
    # The cache may be at another place than it was when the settings were rendered.
    if home is not None:
        render(Home(home), conf)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
