"""A model that one of the engines would refuse is found, with its file and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ingest.errors import MillraceError
from tests.python.project_copy import copy_project
from tests.python.render import checks
from tests.python.render.checks import SparkParser
from tests.python.render.rendering import ENGINES, Engine, Text, pool, render

SEEDED = '{{ ref("sales_regions") }}'
# Models that nobody should write: who finds each, and what is said of it.
BAD_MODELS: dict[str, tuple[str, set[tuple[Engine, str]], str]] = {
    "unknown_function": (
        f"select soundex_of(country) as sound from {SEEDED}",
        {("spark", "functions"), ("redshift", "refusals")},
        "soundex_of",
    ),
    "function_of_spark": (
        f"select unix_seconds(current_date) as second from {SEEDED}",
        {("redshift", "refusals")},
        "the function unix_seconds",
    ),
    "function_of_redshift": (
        f"select len(country) as length from {SEEDED}",
        {("spark", "functions")},
        "the function len",
    ),
    "syntax_of_redshift": (
        f"select country from {SEEDED} qualify row_number() over (order by country) = 1",
        {("spark", "parser")},
        "qualify",
    ),
    "syntax_of_spark": (
        f"select country from {SEEDED} where country rlike 'x'",
        {("redshift", "refusals"), ("redshift", "sqlfluff")},
        "rlike",
    ),
    "branch_of_an_increment": (
        "{{ config(materialized='incremental') }} select country from "
        + SEEDED
        + "{% if is_incremental() %} where country rlike 'x' {% endif %}",
        {("redshift", "refusals"), ("redshift", "sqlfluff")},
        "rlike",
    ),
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[Engine, list[Text]]:
    """A project of one seed and these models, as both engines would get it."""
    folder = tmp_path_factory.mktemp("bad project")
    project = copy_project(folder / "project")
    for kept in ("models", "analyses", "tests/dbt"):
        for path in (project / kept).rglob("*"):
            if path.suffix in {".sql", ".yml", ".md"} and path.name != "_groups.yml":
                path.unlink()
    for name, (sql, _, _) in BAD_MODELS.items():
        (project / "models" / f"{name}.sql").write_text(sql)
    with pool() as workers:
        tasks = {
            engine: workers.submit(render, project, engine, folder)
            for engine in ENGINES
        }
        return {engine: task.result() for engine, task in tasks.items()}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_bad_model_is_found_by_name(
    texts: dict[Engine, list[Text]], spark_parser: SparkParser, name: str
) -> None:
    _, found_by, words = BAD_MODELS[name]
    on: dict[Engine, list[Text]] = {
        engine: [text for text in texts[engine] if text.name == name]
        for engine in ENGINES
    }

    checked = [
        checks.check_texts("spark", "parser", on["spark"], spark_parser.reason),
        checks.check_texts(
            "spark", "functions", on["spark"], checks.spark_function_reason
        ),
        checks.check_texts(
            "redshift", "refusals", on["redshift"], checks.redshift_reason
        ),
    ]
    linted = checks.lint_redshift(on["redshift"])

    said = {(one.engine, one.check): one.problems for one in checked}
    said["redshift", "sqlfluff"] = linted
    assert {key for key, problems in said.items() if problems} == found_by
    messages = [str(problem) for key in found_by for problem in said[key]]
    assert all(f"models/{name}.sql" in message for message in messages)
    assert any(words in message for message in messages)


def test_a_project_that_cannot_be_rendered_says_why(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    broken = project / "models/marts/shared/dim_dates.sql"
    broken.write_text("{{ a_macro_that_is_not_there() }}")

    with (
        pool() as workers,
        pytest.raises(MillraceError, match="a_macro_that_is_not_there"),
    ):
        workers.submit(render, project, "spark", tmp_path).result()
