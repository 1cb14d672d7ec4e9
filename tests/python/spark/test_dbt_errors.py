"""What dbt shows of a statement that Spark refuses.

Fails when a failing dbt statement prints a plan or a stack trace, or not the line at fault.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sandbox.settings import PROJECT, Home
from tests.python.conftest import program_environment
from tests.python.programs import ran

MODELS = {
    "unknown_column": "select\n    a,\n    nope\nfrom (select 1 as a, 2 as b)\n",
    "fails_in_a_task": (
        "select if(id < 2, 1, cast(raise_error('no such day') as int)) as day\nfrom range(3)\n"
    ),
    "unknown_table": "select *\nfrom nowhere.nothing\n",
}
TESTS = {"fails_while_it_runs": "select id\nfrom range(3)\nwhere assert_true(id < 2) is null\n"}


def test_a_failing_statement_shows_class_object_and_line_and_the_log_has_the_plan(
    home: Home, tmp_path: Path
) -> None:
    project(tmp_path)

    dbt = str(Path(sys.executable).parent / "dbt")
    place = ["--profiles-dir", str(PROJECT), "--project-dir", str(tmp_path)]
    # Not where the checkout's manifest is looked for.
    place += ["--target-path", str(tmp_path / "target")]

    done = ran(
        [dbt, "--no-use-colors", "build", *place], env=program_environment(home), timeout=300
    )

    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    column = failure(said, "model unknown_column")
    assert len(column) <= 4
    assert "[UNRESOLVED_COLUMN.WITH_SUGGESTION]" in column[1]
    assert "`nope`" in column[1]
    file = re.fullmatch(r"\s*compiled code at (.*)", column[3])
    number = re.search(r"\(line (\d+), position \d+\)$", column[1])
    assert file is not None, said
    assert number is not None, said
    assert column[2].strip() == f"line {number[1]}: nope"
    compiled = (tmp_path / file[1]).read_text().splitlines()
    assert compiled[int(number[1]) - 1].strip() == "nope"

    table = failure(said, "model unknown_table")
    assert len(table) <= 4
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in table[1]
    assert "`nowhere`.`nothing`" in table[1]
    assert "from nowhere.nothing" in table[2]

    for of in ("model fails_in_a_task", "test fails_while_it_runs"):
        running = failure(said, of)
        assert len(running) <= 4
        assert "[USER_RAISED_EXCEPTION]" in running[1]

    log = (tmp_path / "logs/dbt.log").read_text()
    for part in ("'UnresolvedRelation", "SQLQueryContextLogger", "at org.apache.spark", "Aborting"):
        assert part not in said
    assert "'UnresolvedRelation [nowhere, nothing]" in log


def project(folder: Path) -> None:
    """A dbt project whose statements fail."""
    (folder / "dbt_project.yml").write_text(
        "name: failing\nversion: 1.0.0\nprofile: millrace\n"
        "models: {failing: {+materialized: table, +file_format: iceberg}}\n"
    )
    for kind, files in (("models", MODELS), ("tests", TESTS)):
        (folder / kind).mkdir()
        for name, text in files.items():
            (folder / kind / f"{name}.sql").write_text(text)


def failure(said: str, of: str) -> list[str]:
    """The lines that dbt's summary has of one failure."""
    found = re.search(rf"\n[^\n]*(Database Error in {of} .*?)\n\d\d:\d\d:\d\d ", said, re.DOTALL)
    assert found is not None, said
    return found[1].rstrip().splitlines()
