"""Render the lake's Spark settings with absolute paths, where Spark will find them.

The one source is ``profiles/spark-defaults.conf``. `make install` renders it into the
Spark of the virtual environment (for programs typed by hand) and into the sandbox's own
``spark-conf`` folder (for ``SPARK_CONF_DIR``).
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from string import Template

from sandbox.parts import component_folder
from sandbox.settings import PROJECT, Home, load_home, save_settings

PROFILES = PROJECT / "profiles"


def environment_conf() -> Path:
    """The ``conf`` folder of the Spark that this Python's pyspark starts."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed in this Python")
    return Path(spec.origin).parent / "conf"


def render(home: Home, into: Path) -> Path:
    """Write Spark's settings, its log levels and its start-up file for one sandbox.

    Args:
        home: The sandbox whose lake Spark shall open; its lake folder is created.
        into: The folder to write to, created when missing.

    Returns:
        The written ``spark-defaults.conf``.
    """
    home.lake.mkdir(parents=True, exist_ok=True)
    into.mkdir(parents=True, exist_ok=True)
    template = Template((PROFILES / "spark-defaults.conf").read_text())
    text = template.safe_substitute(
        LAKE=home.lake, SPARK_PARTS=component_folder("spark"), SANDBOX_HOME=home.path
    )
    target = into / "spark-defaults.conf"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    shutil.copyfile(PROFILES / "log4j2.properties", into / "log4j2.properties")
    start_up = into / "spark-env.sh"
    # Spark's launcher does not quote this file's path: a blank in it is an error there.
    if any(character.isspace() for character in str(into)):
        start_up.unlink(missing_ok=True)
    else:
        shutil.copyfile(PROFILES / "spark-env.sh", start_up)
    return target


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


def main() -> None:
    """Render for this environment's Spark and for the sandbox; what `make install` runs."""
    home = load_home()
    if not home.settings_file.exists():
        save_settings(home)
    for folder in (environment_conf(), home.spark_conf):
        render(home, folder)


if __name__ == "__main__":
    main()
