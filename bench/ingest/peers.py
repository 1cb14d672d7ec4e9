"""Java parts of the systems: fetched by Ivy beside the sandbox's, compiled where needed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from sandbox.install import parts
from sandbox.install.ivy import run_ivy
from sandbox.processes.locks import locked
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import check_disk, java_program

_IVY_FILE = Path(__file__).with_name("peers.xml")
_CONVERTER = Path(__file__).with_name("FramedAvro.java")


def jars(name: str) -> Path:
    """The folder of one configuration's jars, fetched when they are not there.

    Args:
        name: A configuration of ``peers.xml``.

    Raises:
        ServiceUnavailable: The repository does not answer, or not with what was asked.
    """
    digest = hashlib.sha256(_IVY_FILE.read_bytes() + parts.SETTINGS_FILE.read_bytes())
    root = parts.cache_folder() / f"bench-{digest.hexdigest()[:10]}"
    folder = root / name
    if folder.exists():
        return folder
    check_disk(parts.cache_folder())
    with locked(parts.cache_folder() / "lock", "another program is fetching") as lock:
        if folder.exists():
            return folder
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="incoming-", dir=root) as incoming:
            run_ivy(
                [name],
                _IVY_FILE,
                parts.SETTINGS_FILE,
                parts.cache_folder() / "ivy",
                Path(incoming),
                root / "ivy.log",
                lock,
            )
            # In one step: what is there is complete.
            (Path(incoming) / name).rename(folder)
    return folder


def converter(into: Path, libraries: Path) -> Path:
    """Compile the converter that Connect reads framed Avro with.

    Args:
        into: Folder for the classes.
        libraries: Jars that it is compiled against.

    Returns:
        The folder, for a class path.

    Raises:
        ConfigurationError: There is no Java compiler, or it refuses.
    """
    into.mkdir(parents=True, exist_ok=True)
    java = java_program().resolve()
    compiler = shutil.which("javac", path=str(java.parent)) or shutil.which("javac")
    if compiler is None:
        raise ConfigurationError(
            f"no javac beside {java}: install a JDK, or leave Kafka Connect out with --only"
        )
    done = subprocess.run(
        [compiler, "-nowarn", "-cp", f"{libraries}/*", "-d", str(into), str(_CONVERTER)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ConfigurationError(
            f"{_CONVERTER.name} does not compile: {' '.join(done.stderr.split())}"
        )
    return into
