"""What each macro of ``macros/cross_db`` renders on each engine, in files to read.

A macro that changed what it renders fails a test, and its golden files show the change to
whoever reviews it. They are rewritten by::

    python -m tests.python.render.goldens
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from sandbox.settings import PROJECT
from tests.python.project_copy import copy_project
from tests.python.render.rendering import ENGINES, Engine, Text, pool, render

GOLDEN = Path(__file__).with_name("golden")
REWRITE = "python -m tests.python.render.goldens"
_FOLDER = Path("analyses/golden")


def calls() -> dict[str, str]:
    """One call of each macro, by its name, as a model would write it."""
    found: dict[str, str] = yaml.safe_load((GOLDEN / "calls.yml").read_text())
    return found


def add_goldens(project: Path) -> None:
    """Put the calls into a copy of the project, to be rendered with it."""
    (project / _FOLDER).mkdir()
    for macro, call in calls().items():
        (project / _FOLDER / f"{macro}.sql").write_text(call)
    shutil.copyfile(GOLDEN / "answers.sql", project / "macros" / "golden_answers.sql")


def golden_files(engine: Engine, texts: Iterable[Text]) -> dict[str, str]:
    """What the golden files of an engine should hold, by file name."""
    made: dict[str, list[str]] = {}
    for text in texts:
        if Path(text.path).parent == _FOLDER and text.branch == "everything":
            lines = [line.rstrip() for line in text.sql.strip().splitlines()]
            if text.kind == "query":
                lines.insert(0, "-- asks the engine:")
            made.setdefault(f"{text.name}.{engine}.sql", []).append("\n".join(lines))
    return {name: "\n\n".join(parts) + "\n" for name, parts in made.items()}


def main() -> None:
    """Rewrite all golden files."""
    with tempfile.TemporaryDirectory() as folder, pool() as workers:
        project = copy_project(Path(folder) / "project")
        add_goldens(project)
        tasks = {
            engine: workers.submit(render, project, engine, Path(folder)) for engine in ENGINES
        }
        for old in GOLDEN.glob("*.*.sql"):
            old.unlink()
        for engine, task in tasks.items():
            for name, text in golden_files(engine, task.result()).items():
                (GOLDEN / name).write_text(text)
                print((GOLDEN / name).relative_to(PROJECT))


if __name__ == "__main__":
    main()
