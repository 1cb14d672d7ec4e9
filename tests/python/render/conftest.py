"""The rendered project, checked once for all tests, and the table of what was checked."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.python.mutations.planting import entries
from tests.python.project_copy import copy_project
from tests.python.render import checks
from tests.python.render.checks import Checked, SparkParser
from tests.python.render.goldens import add_goldens
from tests.python.render.rendering import ENGINES, Engine, Text, pool, render

CHECKED: list[Checked] = []
# Models with mistakes, rendered beside the project's own.
BAD_MODELS = Path("models/bad_models")


def pytest_terminal_summary() -> None:
    """Print what was checked, where it was."""
    if not CHECKED:
        return
    table = Table("engine", "check", box=None, title="Rendered SQL", title_justify="left")
    for number in ("texts", "refused", "seconds"):
        table.add_column(number, justify="right")
    for one in CHECKED:
        numbers = (str(one.texts), str(len(one.problems)), f"{one.seconds:.1f}")
        table.add_row(one.engine, one.check, *numbers)
    Console().print("", table)


@dataclass(frozen=True)
class Rendered:
    """The project as both engines would get it, and what the checks say of it.

    Attributes:
        texts: The SQL for each engine, and that of ``golden/``.
        bad: The SQL of the bad models, which none of the checks has seen.
        checked: What the checks say of the texts.
    """

    texts: dict[Engine, list[Text]]
    bad: dict[Engine, list[Text]]
    checked: list[Checked]


@pytest.fixture(scope="session")
def spark_parser() -> Iterator[SparkParser]:
    """The parser of the installed Spark, in the one JVM of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPARK_HOME", raising=False)
        with checks.spark_parser() as parser:
            yield parser


@pytest.fixture(scope="session")
def rendered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """This checkout's project and the calls of ``golden/``, rendered and checked."""
    folder = tmp_path_factory.mktemp("rendered project")
    project = copy_project(folder / "project")
    add_goldens(project)
    (project / BAD_MODELS).mkdir()
    for model in entries("render"):
        (project / BAD_MODELS / f"{model['file']}.sql").write_text(model["new"])
    with pool() as workers:
        tasks: dict[Engine, Future[list[Text]]] = {
            engine: workers.submit(render, project, engine, folder) for engine in ENGINES
        }
        # A JVM takes as long to start as dbt to render.
        parser = request.getfixturevalue("spark_parser")
        texts: dict[Engine, list[Text]] = {}
        bad: dict[Engine, list[Text]] = {}
        for engine, task in tasks.items():
            for text in task.result():
                is_bad = Path(text.path).parent == BAD_MODELS
                (bad if is_bad else texts).setdefault(engine, []).append(text)
        lint = checks.Linting(workers, checks.ours(texts["redshift"]))
        CHECKED.extend([*checks.unlinted(texts, parser), lint.result()])
    return Rendered(texts, bad, list(CHECKED))
