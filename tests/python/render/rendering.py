"""The SQL that dbt would send to an engine, rendered with neither server nor lake.

dbt itself compiles a copy of the project, with the real adapter and its macros, twice: as at
a first build and as at an increment (see the macro `rendered_branch`). What a model asks the
lake while it is rendered is taken from the log. Each engine is rendered in a process of its
own, because dbt keeps one adapter per process.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from spark_ingest.errors import MillraceError

Engine = Literal["spark", "redshift"]
ENGINES: tuple[Engine, ...] = ("spark", "redshift")
BRANCHES = ("everything", "increment")
TARGETS: dict[Engine, str] = {"spark": "sandbox", "redshift": "redshift"}
# The project asks for them, and nobody is called.
_ACCOUNT = {
    "DBT_READERS": "reader role:analysts",
    "REDSHIFT_HOST": "redshift.invalid",
    "REDSHIFT_DATABASE": "dev",
    "REDSHIFT_USER": "nobody",
    "DBT_ENV_SECRET_REDSHIFT_PASSWORD": "none",
}
_ASKS = "asks the lake: "


@dataclass(frozen=True)
class Text:
    """One piece of SQL.

    Attributes:
        name: The model, test or analysis.
        path: Its file, below the project.
        kind: ``model``, ``test``, ``analysis``; ``query`` for what a model asks while it is
            rendered, ``table`` for the columns and types that a file declares.
        branch: ``everything`` or ``increment``; the second only where it differs.
        sql: As the engine gets it.
    """

    name: str
    path: str
    kind: str
    branch: str
    sql: str


def pool() -> ProcessPoolExecutor:
    """Processes that know nothing of this one's dbt: one for each engine."""
    return ProcessPoolExecutor(len(ENGINES), mp_context=get_context("spawn"))


def render(project: Path, engine: Engine, into: Path) -> list[Text]:
    """All SQL of a project for one engine. Call it in a process of its own.

    Args:
        project: The dbt project; it is not written to.
        engine: Whose SQL.
        into: A folder for what dbt writes.

    Returns:
        Each text once, even if both branches have it.

    Raises:
        MillraceError: dbt cannot render it; the message is dbt's.
    """
    from dbt.cli.main import dbtRunner

    for name in [name for name in os.environ if name.startswith(("DBT_", "SANDBOX_", "SPARK_"))]:
        del os.environ[name]
    os.environ.update(_ACCOUNT)
    folder = into / engine
    shutil.rmtree(folder, ignore_errors=True)
    common = [
        *("--project-dir", str(project), "--profiles-dir", str(project / "profiles")),
        *("--target", TARGETS[engine], "--target-path", str(folder / "target")),
        *("--log-path", str(folder / "logs"), "--quiet", "--no-write-json"),
    ]
    parsed = dbtRunner().invoke(["parse", "--no-partial-parse", *common])
    manifest = _result(parsed, engine, "parse")
    texts: dict[str, Text] = {}
    for branch in BRANCHES:
        for text in _compiled(manifest, engine, branch, common):
            texts.setdefault(f"{text.name}\n{text.sql}", text)
    for text in _declared(manifest, engine):
        texts.setdefault(f"{text.name}\n{text.sql}", text)
    return list(texts.values())


def _compiled(manifest: Any, engine: Engine, branch: str, common: list[str]) -> Iterator[Text]:
    from dbt.cli.main import dbtRunner

    asked: list[dict[str, str]] = []

    def hear(event: Any) -> None:
        if event.info.name == "JinjaLogDebug" and event.data.msg.startswith(_ASKS):
            asked.append(json.loads(event.data.msg.removeprefix(_ASKS)))

    done = dbtRunner(manifest=manifest.deepcopy(), callbacks=[hear]).invoke(
        [
            *("--no-print", "compile", "--no-introspect", "--no-populate-cache"),
            *common,
            *("--exclude", "resource_type:operation", "resource_type:seed"),
            # Nothing else has a second branch.
            *(("--select", "config.materialized:incremental") if branch != BRANCHES[0] else ()),
            *("--vars", json.dumps({"rendered_branch": branch})),
        ]
    )
    for result in _result(done, engine, branch).results:
        node = result.node
        kind = str(node.resource_type)
        sql = node.compiled_code
        if not sql.strip():
            continue
        is_view = kind == "model" and node.config.get("materialized") == "view"
        if engine == "redshift" and is_view:
            # Its relations must be named otherwise than in a query.
            binding = "" if node.config.get("bind", True) else "with no schema binding"
            sql = f"create view {node.relation_name} as (\n{sql}\n) {binding}"
        yield Text(node.name, node.original_file_path, kind, branch, sql)
    for question in asked:
        node = manifest.nodes[question["node"]]
        yield Text(node.name, node.original_file_path, "query", branch, question["query"])


def _declared(manifest: Any, engine: Engine) -> Iterator[Text]:
    """A table for each contract and seed: the types are for the engine, too."""
    for node in manifest.nodes.values():
        types = dict(node.config.get("column_types") or {})
        if node.config.get("contract") and node.config.contract.enforced:
            types = {column.name: column.data_type for column in node.columns.values()}
        if not types:
            continue
        columns = ",\n".join(f"    {name} {type_}" for name, type_ in types.items())
        sql = f"create table {node.relation_name} (\n{columns}\n)"
        sql += "\nusing iceberg" if engine == "spark" else _layout(node.config)
        yield Text(node.name, node.original_file_path, "table", BRANCHES[0], sql)


def _layout(config: Any) -> str:
    """How a model is spread and sorted on Redshift, as the adapter writes it."""
    dist, sort = config.get("dist"), config.get("sort")
    words = ""
    if dist in {"all", "even"}:
        words += f"\ndiststyle {dist}"
    elif dist not in {None, "auto"}:
        words += f"\ndiststyle key distkey ({dist})"
    if sort:
        columns = [sort] if isinstance(sort, str) else sort
        words += f"\ncompound sortkey ({', '.join(columns)})"
    return words


def _result(done: Any, engine: Engine, step: str) -> Any:
    if not done.success:
        failed = [
            f"{result.node.original_file_path}: {result.message}"
            for result in getattr(done.result, "results", [])
            if result.message
        ]
        said = " ".join(str(done.exception or "; ".join(failed)).split())
        raise MillraceError(f"dbt cannot render the project for {engine} ({step}): {said}")
    return done.result
