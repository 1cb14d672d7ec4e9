"""A model that one of the engines would refuse is found, with its file and the reason.

Fails when a bad model passes the checks of `make render`, or is reported without its file.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import PROJECT
from spark_ingest.errors import MillraceError
from tests.python.mutations.planting import entries
from tests.python.render import checks
from tests.python.render.checks import SparkParser
from tests.python.render.conftest import BAD_MODELS, Rendered
from tests.python.render.rendering import ENGINES, Engine, Text, pool, render


@pytest.mark.nightly
@pytest.mark.parametrize("bad", entries("render"), ids=itemgetter("file"))
def test_a_bad_model_is_found_by_its_file(
    rendered: Rendered, spark_parser: SparkParser, bad: dict[str, Any]
) -> None:
    on: dict[Engine, list[Text]] = {
        engine: [text for text in rendered.bad[engine] if text.name == bad["file"]]
        for engine in ENGINES
    }
    said = {f"{one.engine} {one.check}": one.problems for one in checks.unlinted(on, spark_parser)}
    said["redshift sqlfluff"] = checks.lint_redshift(on["redshift"])

    assert sorted(check for check, problems in said.items() if problems) == bad["test"]
    messages = [str(problem) for check in bad["test"] for problem in said[check]]
    file = str(BAD_MODELS / f"{bad['file']}.sql")
    assert all(file in message for message in messages)
    assert any(bad["why"] in message for message in messages)


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
