"""What a Spark cluster gets of the settings of the laptop."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

from sandbox.install import cluster_folder, cluster_main
from sandbox.settings import PROJECT
from spark_ingest.lake.required_settings import refuse_limits, refuse_settings

DEFAULTS = (PROJECT / "profiles" / "spark-defaults.conf").read_text()


def properties() -> dict[str, str]:
    lines = cluster_folder.properties(DEFAULTS, ["jars/a.jar", "jars/b.jar"]).splitlines()
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


def test_no_setting_of_one_machine_goes_to_a_cluster() -> None:
    found = properties()
    text = "\n".join(f"{key} {value}" for key, value in found.items())
    for word in ("${", "127.0.0.1", "local[", "sqlite", "SharedArchive", "extraClassPath", "-Xlog"):
        assert word not in text
    assert "spark.sql.catalog.lake.type" not in found
    assert "spark.sql.shuffle.partitions" not in found
    assert found["spark.jars"] == "jars/a.jar,jars/b.jar"
    assert found["spark.archives"] == "millrace.tar.gz#millrace"


def test_what_exactness_needs_goes_to_a_cluster() -> None:
    found = properties()
    # The others have these values as Spark's own defaults.
    defaults = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    }
    refuse_settings({**defaults, **found})
    for side in ("driver", "executor"):
        options = found[f"spark.{side}.extraJavaOptions"].split()
        limits = dict(option[2:].split("=") for option in options if option.startswith("-Dorg"))
        refuse_limits(limits, side, "")
        assert "-Duser.timezone=UTC" in options


def test_the_script_unpacks_the_archive_again_when_it_is_newer(tmp_path: Path) -> None:
    script = tmp_path / "spark-ingest.py"
    script.write_text(Path(cluster_main.__file__).read_text())
    (tmp_path / "ingest.yml").touch()
    for number in (1, 2):
        package = tmp_path / "made" / "spark_ingest"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "cli.py").write_text(
            f"import json, sys\ndef main(): print(json.dumps([{number}, *sys.argv[1:]]))\n"
        )
        with tarfile.open(tmp_path / "millrace.tar.gz", "w:gz") as tar:
            tar.add(package, "spark_ingest")
        for _ in range(2):
            command = [sys.executable, "-I", str(script), "run", "--once"]
            done = subprocess.run(
                command, cwd=tmp_path.parent, capture_output=True, text=True, check=True
            )
            options = ["--profile", str(tmp_path / "ingest.yml"), "run", "--once"]
            assert json.loads(done.stdout) == [number, *options]
