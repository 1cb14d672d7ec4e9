"""Both engines take the SQL of the whole project, as far as is known without them.

Fails when a model, test or analysis is not SQL of one of the engines.
"""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from tests.python.render.checks import SparkParser, spark_functions
from tests.python.render.conftest import Rendered
from tests.python.render.rendering import ENGINES, Engine


@pytest.mark.parametrize(
    ("engine", "check"),
    [
        ("spark", "parser"),
        ("spark", "functions"),
        ("redshift", "refusals"),
        ("redshift", "sqlfluff"),
    ],
)
def test_no_text_is_refused(rendered: Rendered, engine: Engine, check: str) -> None:
    (checked,) = [one for one in rendered.checked if (one.engine, one.check) == (engine, check)]

    assert checked.texts > 100
    problems = "\n".join(sorted(map(str, checked.problems)))
    if problems:
        pytest.fail(f"{engine}, {check}:\n{problems}", pytrace=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_file_of_the_project_is_rendered(rendered: Rendered, engine: Engine) -> None:
    files = {
        str(path.relative_to(PROJECT))
        for folder in ("analyses", "models", "tests/dbt")
        for path in (PROJECT / folder).rglob("*.sql")
        if "generic" not in path.parts
    }

    assert files - {text.path for text in rendered.texts[engine]} == set()


@pytest.mark.parametrize("engine", ENGINES)
def test_incremental_models_are_rendered_in_both_branches(
    rendered: Rendered, engine: Engine
) -> None:
    texts = rendered.texts[engine]
    incremental = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "models").rglob("*.sql")
        if 'materialized="incremental"' in path.read_text()
    }

    assert incremental
    for branch in ("everything", "increment"):
        rendered_files = {
            text.path for text in texts if text.kind == "model" and text.branch == branch
        }
        assert incremental - rendered_files == set(), branch
    conditions = " ".join(text.sql for text in texts if text.branch == "increment")
    assert "_commit_id > 0 and _commit_id <= 9" in conditions
    assert "cast('2026-01-05 00:00:00' as timestamp)" in conditions
    assert any(text.kind == "query" and "existing." in text.sql for text in texts)


def test_every_listed_function_is_one_of_spark(spark_parser: SparkParser) -> None:
    assert set(spark_functions()) - spark_parser.functions() == set()
