"""Write the folder that a Spark cluster needs to run spark-ingest: `make cluster-archive`.

It has the packages as an archive for ``spark-submit --archives``, the script to submit, the
JARs, Spark's properties without those of a laptop, the dbt manifest and the connections file.
All paths in it are relative: it can be copied.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from sandbox.install import environment, parts
from sandbox.install.spark_conf import PROFILES
from sandbox.settings import PROJECT
from sandbox.ui import say
from spark_ingest.errors import MillraceError
from spark_ingest.sources import fresh_manifest

FOLDER = PROJECT / "target" / "cluster"
# By Spark's version: the components with its JARs.
JARS = {"4.1": ("spark", "aws", "msk"), "4.0": ("spark-4.0", "msk")}
PACKAGES = "millrace"
# Python's half of AWS MSK IAM is small enough to be there always.
_EXTRAS = ("msk",)
# What `profiles/spark-defaults.conf` has for one machine alone.
_OF_A_LAPTOP = re.compile(
    r"spark\.(master|driver\.(host|bindAddress|extraClassPath)|millrace\.home"
    r"|sql\.(shuffle\.partitions|warehouse\.dir|adaptive\.\w*(Local|advisory).*"
    r"|streaming\.checkpointFileManagerClass"
    r"|catalog\.lake\.(type|uri|warehouse))"
    r"|hadoop\.fs\.file\.impl)"
)
_CLASS_ARCHIVE = re.compile(r'"-XX:SharedArchiveFile=[^"]*" |-Xlog:\S+ ')


def properties(defaults: str, jars: list[str]) -> str:
    """Spark's properties for a cluster, from the text of ``profiles/spark-defaults.conf``.

    ``jars`` are paths, relative to the folder from which the application is submitted.
    """
    kept = []
    for line in defaults.splitlines():
        key, _, value = line.partition(" ")
        if key.startswith("spark.") and not _OF_A_LAPTOP.fullmatch(key):
            kept.append(f"{key} {_CLASS_ARCHIVE.sub('', value.strip())}")
    kept += [
        f"spark.jars {','.join(jars)}",
        f"spark.archives {PACKAGES}.tar.gz#{PACKAGES}",
        f"spark.executorEnv.PYTHONPATH {PACKAGES}",
    ]
    return "\n".join(kept) + "\n"


def write(spark: str, into: Path = FOLDER) -> None:
    """Write the folder anew.

    ``spark`` is a key of ``JARS``.

    Raises:
        ConfigurationError: The dbt project cannot be parsed, or the disk is full.
        ServiceUnavailable: Packages or JARs cannot be fetched.
    """
    manifest = fresh_manifest(PROJECT)
    parts.fetch(JARS[spark])
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=into.parent) as made:
        folder = Path(made)
        _archive(folder / f"{PACKAGES}.tar.gz")
        jars = folder / "jars"
        jars.mkdir()
        for component in JARS[spark]:
            for jar in parts.component_folder(component).glob("*.jar"):
                shutil.copy(jar, jars)
        names = sorted(f"jars/{jar.name}" for jar in jars.iterdir())
        defaults = (PROFILES / "spark-defaults.conf").read_text()
        (folder / "spark.conf").write_text(properties(defaults, names))
        shutil.copy(Path(__file__).with_name("cluster_main.py"), folder / "spark-ingest.py")
        shutil.copy(manifest, folder / "manifest.json")
        shutil.copy(PROFILES / "ingest.yml", folder / "ingest.yml")
        shutil.copy(PROFILES / "log4j2.properties", folder / "log4j2.properties")
        shutil.rmtree(into, ignore_errors=True)
        folder.rename(into)
        # The context manager removes it.
        folder.mkdir()


def _archive(target: Path) -> None:
    """The packages that spark-ingest needs, and spark-ingest itself, as a tar file."""
    lock = environment.pins((PROJECT / environment.LOCK).read_text())
    project = (PROJECT / environment.PROJECT).read_text()
    names = environment.with_needed(lock, environment.required(project, _EXTRAS))
    with tempfile.TemporaryDirectory(dir=target.parent) as made:
        packages = Path(made) / "packages"
        file = Path(made) / "requirements.txt"
        file.write_text(environment.requirements(lock, names))
        command = [*_installer(), "--quiet", "--no-deps", "--require-hashes"]
        say(f"Installing {len(names)} packages")
        done = subprocess.run(
            [*command, "--target", str(packages), "--requirement", str(file)], check=False
        )
        if done.returncode != 0:
            raise MillraceError("the packages could not be installed: see the lines above")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / "spark_ingest", packages / "spark_ingest", ignore=ignored)
        say(f"Writing {target.name}")
        with tarfile.open(target, "w:gz", compresslevel=1) as tar:
            for path in sorted(packages.iterdir()):
                tar.add(path, path.name, filter=_without_bytecode)


def _without_bytecode(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member


def _installer() -> list[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--spark", choices=JARS, default="4.1", help="version of the cluster's Spark"
    )
    given = parser.parse_args()
    try:
        write(given.spark)
    except MillraceError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    say(f"{FOLDER}: {size / 1e6:.0f} MB, for Spark {given.spark}")
    say("docs/your-cluster.md has the commands that run it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
