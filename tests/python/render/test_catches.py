"""A model that one of the engines would refuse is found, with its file and the reason.

Fails when a bad model passes the checks of `make render`, or is reported without its file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.settings import PROJECT
from spark_ingest.errors import MillraceError
from tests.python.render import checks
from tests.python.render.bad_models import BAD_MODELS, FOLDER
from tests.python.render.checks import SparkParser
from tests.python.render.conftest import Rendered
from tests.python.render.rendering import ENGINES, Engine, Text, pool, render


@pytest.mark.nightly
@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_bad_model_is_found_by_its_file(
    rendered: Rendered, spark_parser: SparkParser, name: str
) -> None:
    _, found_by, words = BAD_MODELS[name]
    on: dict[Engine, list[Text]] = {
        engine: [text for text in rendered.bad[engine] if text.name == name]
        for engine in ENGINES
    }

    said = {
        (one.engine, one.check): one.problems
        for one in [
            checks.check_texts("spark", "parser", on["spark"], spark_parser.reason),
            checks.check_texts(
                "spark", "functions", on["spark"], checks.spark_function_reason
            ),
            checks.check_texts(
                "redshift", "refusals", on["redshift"], checks.redshift_reason
            ),
        ]
    }
    said["redshift", "sqlfluff"] = checks.lint_redshift(on["redshift"])

    assert {key for key, problems in said.items() if problems} == found_by
    messages = [str(problem) for key in found_by for problem in said[key]]
    assert all(f"{FOLDER / name}.sql" in message for message in messages)
    assert any(words in message for message in messages)


def test_a_project_that_cannot_be_rendered_says_why(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "profiles").symlink_to(PROJECT / "profiles")
    (project / "dbt_project.yml").write_text("name: millrace\nprofile: millrace\n")
    (project / "models/broken.sql").write_text("select {{ there_is_no_such_macro() }}")

    with (
        pool() as workers,
        pytest.raises(MillraceError, match=r"for spark .*there_is_no_such_macro"),
    ):
        workers.submit(render, project, "spark", tmp_path).result()
