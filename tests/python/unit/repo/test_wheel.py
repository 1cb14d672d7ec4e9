"""The wheel that pip installs: its files, its metadata, and what each extra promises.

Nothing is fetched: an environment is made of links to the installed packages, of those alone
that the wheel's metadata asks for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sandbox.install.environment import EXTRAS
from sandbox.settings import PROJECT
from tests.python.programs import ran

PACKAGES = ("dashboard", "sandbox", "spark_ingest")
OWNERS = {top: set(names) for top, names in packages_distributions().items()}
PROMISES = {
    # A cluster brings its Spark: the command says where to get one elsewhere.
    "": [
        ("spark-ingest", ["--help"], 0, "verify"),
        (
            "python",
            ["-c", "from spark_ingest.lake import preflight as p; p.check_spark_home()"],
            1,
            "pip install 'millrace[spark]'",
        ),
    ],
    "spark": [
        (
            "python",
            ["-c", "import spark_ingest.operate.backfill as b; print(b.__name__)"],
            0,
            "spark_ingest.operate.backfill",
        )
    ],
    "dbt": [
        ("dbt", ["--version"], 0, "redshift"),
        ("python", ["-c", "import dbt_millrace; print('loaded')"], 0, "loaded"),
        (
            "python",
            ["-c", "import dbt.adapters.spark.session as s; print(s.__name__)"],
            0,
            "spark.session",
        ),
    ],
    "msk": [
        (
            "python",
            ["-c", "import aws_msk_iam_sasl_signer as a; print(a.__name__)"],
            0,
            "aws_msk_iam_sasl_signer",
        )
    ],
    "dashboard": [("python", ["-m", "dashboard", "--help"], 0, "PYICEBERG_CATALOG")],
    "sandbox": [
        ("sandbox", ["--help"], 0, "produce"),
        ("sandbox", ["status"], 0, "registry"),
        (
            "python",
            ["-c", "import sandbox.services.redshift.server as s; print(s.__name__)"],
            0,
            "redshift.server",
        ),
    ],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as pip builds it, of a copy that has nothing from earlier builds."""
    copy, built = (tmp_path_factory.mktemp(name) for name in ("copy", "wheel"))
    unread = shutil.ignore_patterns("__pycache__")
    for package in (*PACKAGES, "tests", "bench"):
        shutil.copytree(PROJECT / package, copy / package, ignore=unread)
    for name in ("pyproject.toml", "README.md", "LICENSE", "dbt_millrace.py"):
        shutil.copyfile(PROJECT / name, copy / name)
    build = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(built)], cwd=copy, check=True, capture_output=True
    )
    (file,) = built.glob("*.whl")
    return file


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    listed = ran(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES], check=True
    ).stdout.split()
    tracked = {name for name in listed if (PROJECT / name).exists()}

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == tracked | {"dbt_millrace.py"}
    assert {Path(name).suffix for name in held} > {".java", ".avsc", ".xml", ".sql"}


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    reported = metadata(wheel)

    assert reported["Name"] == "millrace"
    assert reported["Requires-Python"] == ">=3.11"
    assert reported["License-Expression"] == "Apache-2.0"
    assert set(reported.get_all("Provides-Extra", [])) >= PROMISES.keys() - {""}
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        assert "spark-ingest = spark_ingest.cli:main" in archive.read(name).decode()


def test_spark_is_not_forced_on_a_cluster_that_brings_its_own(wheel: Path) -> None:
    plain = wanted(metadata(wheel).get_all("Requires-Dist", []), set())

    assert "confluent-kafka" in plain
    assert "pyspark" not in plain


def wanted(lines: list[str], extras: set[str]) -> dict[str, set[str]]:
    """What requirements ask for: extras by distribution."""
    found: dict[str, set[str]] = {}
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in extras or {""}):
            name = canonicalize_name(requirement.name)
            found.setdefault(name, set()).update(requirement.extras)
    return found


def closure(lines: list[str], extra: str) -> set[str]:
    """The distributions that pip would install for an extra."""
    todo, done = wanted(lines, {extra}), dict[str, set[str]]()
    while todo:
        name, extras = todo.popitem()
        if name in done and extras <= done[name]:
            continue
        done.setdefault(name, set()).update(extras)
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            if extra and extra not in EXTRAS["all"]:
                pytest.skip(f"no {name}: `make {extra}` installs it first")
            raise AssertionError(f"{name} is not installed: run `make install`") from None
        for other, more in wanted(needs, done[name]).items():
            todo[other] = todo.get(other, set()) | more
    return set(done)


def link_distribution(name: str, site: Path) -> None:
    """Put links to a distribution's files into a folder."""
    found = distribution(name)
    for file in found.files or []:
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        # A folder at the top is linked as a whole, unless several distributions share it.
        parts = file.parts[:1]
        if len(OWNERS.get(parts[0], ())) > 1:
            parts = file.parts
        link = site.joinpath(*parts)
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(Path(str(found.locate_file(Path(*parts)))).resolve())


@pytest.fixture(scope="module")
def site_of(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder of packages for an extra: the wheel's files and links to what it needs."""

    @cache
    def made(extra: str) -> Path:
        needed = closure(metadata(wheel).get_all("Requires-Dist", []), extra)
        site = tmp_path_factory.mktemp(f"site-{extra}")
        for name in needed:
            link_distribution(name, site)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        return site

    return made


@pytest.mark.parametrize(
    ("extra", "program", "words", "code", "said"),
    [(extra, *promise) for extra, all_of in PROMISES.items() for promise in all_of],
)
def test_an_extra_installs_what_it_promises(
    site_of: Callable[[str], Path],
    tmp_path: Path,
    extra: str,
    program: str,
    words: list[str],
    code: int,
    said: str,
) -> None:
    site = site_of(extra)
    # Without the site-packages of this environment, and away from the checkout.
    start = [sys.executable, "-S", "-P"]
    if program == "python":
        command = [*start, *words]
    else:
        (entry,) = (
            point.value
            for name in ("millrace", "dbt-core")
            for point in distribution(name).entry_points
            if point.name == program
        )
        module, _, function = entry.partition(":")
        call = f"import sys, {module} as m; sys.argv[0] = {program!r}; sys.exit(m.{function}())"
        command = [*start, "-c", call, *words]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(site),
        "COLUMNS": "200",
    }

    done = ran(command, cwd=tmp_path, env=environment, timeout=120)

    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
