"""Where the catalogue has no views, staging and intermediate models become ephemeral.

Fails when an increment reads a view by name where the catalog has no views.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.settings import PROJECT

pytestmark = pytest.mark.nightly

# A name of the view layers where a statement reads; in texts such names may stand.
READS_A_VIEW = re.compile(r"\b(?:from|join)\s+(?:staging|intermediate)\.")


def rendered(folder: Path, views_as: str) -> tuple[dict[str, str], dict[str, str]]:
    """The incremental marts in their second branch, and what each asks the lake before.

    Both by the model's name. Nothing is asked: see the macro ``rendered_branch``.
    """
    subprocess.run(
        [
            *(Path(sys.executable).parent / "dbt", "--quiet", "--log-path", folder),
            *("compile", "--no-introspect", "--no-populate-cache", "--no-partial-parse"),
            *("--target", "sandbox", "--target-path", folder / "target"),
            *("--select", "config.materialized:incremental"),
            *("--vars", '{"rendered_branch": "increment"}'),
        ],
        cwd=PROJECT,
        env={**os.environ, "DBT_VIEWS_AS": views_as},
        check=True,
        capture_output=True,
    )
    marts = {
        file.stem: file.read_text() for file in (folder / "target/compiled").rglob("marts/**/*.sql")
    }
    asked: dict[str, str] = {}
    for said in re.findall(r"asks the lake: (.*)", (folder / "dbt.log").read_text()):
        question = json.loads(said)
        name = question["node"].rpartition(".")[2]
        asked[name] = asked.get(name, "") + question["query"] + "\n"
    return marts, asked


@pytest.mark.parametrize(("views_as", "is_read_by_name"), [("view", True), ("ephemeral", False)])
def test_increments_read_views_by_name_only_where_there_are_views(
    tmp_path: Path, views_as: str, is_read_by_name: bool
) -> None:
    marts, asked = rendered(tmp_path, views_as)

    of_streams = {
        file.stem
        for file in PROJECT.glob("models/marts/*/*.sql")
        if "new_and_existing_rows(" in file.read_text()
    }
    assert "fct_rental_sales" in of_streams < set(marts)
    for name in sorted(of_streams):
        assert bool(READS_A_VIEW.search(marts[name])) is is_read_by_name, name
        assert bool(READS_A_VIEW.search(asked[name])) is is_read_by_name, name
        assert "bronze." in marts[name] or is_read_by_name
