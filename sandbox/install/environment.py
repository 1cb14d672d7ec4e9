"""Make .venv: what make runs, with nothing but the standard library of the Python it was given.

    python sandbox/install/environment.py demo --parts

``demo`` installs what `make demo` runs, ``all`` the tools of development besides, ``dashboard``
what `make dashboard` runs, each from requirements.lock and beside what is there: which of its
packages they need follows from the extras of pyproject.toml and from the lock's own notes of what
needs what. With ``--parts`` the Java parts are fetched, and
Spark's classes archived, while the rest of the packages is installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOCK = Path("requirements.lock")
PROJECT = Path("pyproject.toml")
FOLDER = Path(".venv")
# By what is to be installed: the extras whose packages it needs, and the stamps of make.
EXTRAS = {
    "demo": ("dbt", "sandbox"),
    "all": ("dbt", "dev", "msk", "reconcile", "sandbox", "spark"),
    "dashboard": ("dashboard",),
}
STAMPS = {
    "demo": (".demo-packages",),
    "all": (".demo-packages", ".packages"),
    "dashboard": (".dashboard-packages",),
}
PLACE = ".place"
# Nothing comes from outside the lock: packages without a wheel are built with its setuptools.
BUILD = ("setuptools",)
# What fetches the parts: PySpark brings Ivy, and Spark itself needs no more than py4j.
FETCHER = ("pyspark", "py4j")
# With all that these need.
FETCHER_AND_NEEDED = ("platformdirs", "pydantic", "rich")
# PySpark is built here. Its JARs are packed already: to pack them again saves nothing.
BUILD_SETTINGS = "[bdist_wheel]\ncompression = stored\n"
_END_SECONDS = 20.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Pin:
    """A package of the lock.

    Attributes:
        text: Its lines: version, marker, hashes.
        needed_by: The packages that need it, by canonical name.
    """

    text: str
    needed_by: frozenset[str]


def pins(lock: str) -> dict[str, Pin]:
    """The lock's packages by canonical name."""
    found: dict[str, Pin] = {}
    for entry in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE):
        head = _NAME.match(entry)
        if head is None:
            continue
        notes = re.findall(r"^    #(?: via |   )([A-Za-z0-9][\w.-]*)", entry, re.MULTILINE)
        # A package may stand there once for each kind of machine.
        before = found.get(canonical(head[0]), Pin("", frozenset()))
        needed_by = before.needed_by | {canonical(note) for note in notes}
        found[canonical(head[0])] = Pin(before.text + entry, needed_by)
    return found


def canonical(name: str) -> str:
    """A package's name as all spell it alike."""
    return re.sub(r"[-_.]+", "-", name).lower()


def with_needed(lock: Mapping[str, Pin], names: Iterable[str]) -> set[str]:
    """Some packages of the lock and all that they need, themselves or through others."""
    unseen, found = list(names), set(names)
    while unseen:
        one = unseen.pop()
        new = {name for name, pin in lock.items() if one in pin.needed_by} - found
        found |= new
        unseen += new
    return found


def required(project: str, extras: Collection[str]) -> set[str]:
    """What the project names: its dependencies, and those of some extras.

    ``project`` is the text of pyproject.toml.
    """
    table = tomllib.loads(project)["project"]
    lines = list(table["dependencies"])
    for extra, of_extra in table["optional-dependencies"].items():
        if extra in extras:
            lines += of_extra
    return {canonical(match[0]) for line in lines if (match := _NAME.match(line))}


def chosen(lock: Mapping[str, Pin], project: str, what: str) -> set[str]:
    """The packages of the lock that are installed for one of ``EXTRAS``."""
    return with_needed(lock, required(project, EXTRAS[what]))


def requirements(lock: Mapping[str, Pin], names: Iterable[str]) -> str:
    """A file of requirements, hashes and all, with these packages of the lock."""
    return "".join(lock[name].text for name in sorted(names))


class Installer:
    """pip, or uv where that is on PATH."""

    def __init__(self) -> None:
        self.uv = shutil.which("uv")
        self.python = str(FOLDER / "bin" / "python")

    def make_folder(self) -> None:
        """The virtual environment, unless a fitting one is there."""
        needs = "import sys; sys.exit(sys.version_info < (3, 11))"
        if self.uv is None:
            needs = f"import pip; {needs}"
        with suppress(FileNotFoundError):
            fits = [self.python, "-c", needs]
            if subprocess.run(fits, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
        if self.uv is not None:
            of = ("--quiet", "--clear", "--python", sys.executable)
            run([self.uv, "venv", *of, str(FOLDER)])
            return
        try:
            run([sys.executable, "-m", "venv", "--clear", str(FOLDER)])
        except BaseException:
            shutil.rmtree(FOLDER, ignore_errors=True)
            raise

    def install(self, name: str, text: str) -> None:
        """Install packages.

        ``name`` is for the file that keeps them; ``text`` has their requirements with hashes.
        """
        settings = (FOLDER / "build.cfg").resolve()
        settings.write_text(BUILD_SETTINGS)
        os.environ["DIST_EXTRA_CONFIG"] = str(settings)
        file = FOLDER / f"{name}.lock"
        file.write_text(text)
        run([*self._command(), "--require-hashes", "--requirement", str(file)])

    def install_project(self) -> None:
        """Install the checkout itself, as it stands there."""
        run([*self._command(), "--editable", "."])

    def _command(self) -> list[str]:
        common = ["install", "--quiet", "--no-deps", "--no-build-isolation"]
        if self.uv is not None:
            return [self.uv, "pip", *common, "--python", str(FOLDER)]
        # As with uv, Python compiles what it imports when it first does.
        return [
            *(self.python, "-m", "pip", "--disable-pip-version-check", *common),
            *("--use-pep517", "--no-compile"),
        ]


def run(command: list[str]) -> None:
    """Run a program to its end.

    Raises:
        SystemExit: It failed, with an error message.
    """
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(1)


@contextmanager
def fetching(python: str, is_wanted: bool) -> Iterator[None]:
    """The parts are fetched while the body works; behind it they are there.

    Where the body fails, or somebody presses Ctrl-C, the fetch ends with it.

    Raises:
        SystemExit: The download failed, with an error message.
    """
    if not is_wanted:
        yield
        return
    # A group of its own: Java's programs below it end with it.
    fetch = subprocess.Popen(
        [python, "-m", "sandbox.install.spark_conf", "--parts"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
        code = fetch.wait()
    finally:
        _end(fetch)
    if code != 0:
        sys.exit(code)


def _end(fetch: subprocess.Popen[bytes]) -> None:
    if fetch.poll() is None:
        # As Ctrl-C would: it then ends its Java itself.
        os.killpg(fetch.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            fetch.wait(_END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(fetch.pid, signal.SIGKILL)
    fetch.wait()


def install(what: str, with_parts: bool) -> None:
    """Install one of ``EXTRAS`` into .venv, and say so with make's stamps."""
    lock, project = pins(LOCK.read_text()), PROJECT.read_text()
    names = chosen(lock, project, what)
    installer = Installer()
    how = "uv" if installer.uv else "pip (a minute or two)"
    tools = {"all": ", tools of development too,", "dashboard": " of the dashboard"}
    print(f"Installing the pinned packages{tools.get(what, '')} into .venv with {how}", flush=True)
    installer.make_folder()
    installer.install("build", requirements(lock, BUILD))
    first = {*FETCHER, *with_needed(lock, FETCHER_AND_NEEDED)}
    if with_parts:
        installer.install("first", requirements(lock, first))
    with fetching(installer.python, with_parts):
        installer.install(what, requirements(lock, names))
        installer.install_project()
        (FOLDER / PLACE).write_text(f"{Path.cwd()}\n")
        for stamp in STAMPS[what]:
            (FOLDER / stamp).touch()


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="Make .venv from requirements.lock.")
    parser.add_argument("what", choices=EXTRAS)
    parser.add_argument("--parts", action="store_true", help="fetch Java's as well")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        install(given.what, given.parts)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
