"""Build every model on both engines, in rounds from one bronze, and read what they hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.services import stack as services
from sandbox.settings import PROJECT, Home
from spark_ingest.errors import MillraceError
from tests.python.conftest import bring_spark
from tests.python.parity import museum_page, records
from tests.python.parity.compare import Difference, compare
from tests.python.parity.records import Bronze, Step
from tests.python.parity.relations import Cell, Relation, from_spark, load
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import run_steps

ROUNDS: dict[str, Callable[[Bronze], None]] = {
    "first": records.first,
    "increment": records.increment,
    "odd": records.odd,
}
ENGINES = ("Spark", "the emulator")
_LAYERS = ("staging", "intermediate", "marts")
# dbt only compiles analyses: the project that is built has each as a view, to be read like a mart.
ANALYSES = "analyses"
_AS_VIEW = f"{{{{ config(materialized='view', schema='{ANALYSES}', bind=false) }}}}\n"
# What increments know of themselves; when they were recorded is each engine's own.
STATE = ("state.read_points", "state.touched_days")
# What each engine's own invocations came to; rows of one say nothing of the other.
RUNS = "state.runs"
_OF_RUNS = ("staging.stg_dbt__runs", "intermediate.int_ops__runs_ordered", "marts.rpt_dbt_nodes")
# Redshift refuses a null where a contract says that there is none, and Spark takes it: for a
# round with such rows both get tables without these constraints.
_UNCONSTRAINED = """{% macro redshift__get_table_columns_and_constraints() -%}
    (
    {%- for column in model.columns.values() %}
        {{ column.name }} {{ column.data_type }}{{ "," if not loop.last }}
    {%- endfor %}
    )
{%- endmacro %}
"""
# What holds such rows by then, and how each engine must refuse it: a test, a constraint.
_WITH_NULLS = "fct_rental_sales"
_NO_TESTS = ("--exclude-resource-type", "test", "unit_test")
# A view is there since the first round.
_TABLES = ("--exclude", "config.materialized:view")
# What reads a table with odd rows; a history and a fact by keys have nothing new to read.
_ODD = ("source:ingest+", "source:moma+", "source:smoothies+", "source:pagila.sales+")
_ODD_RUN = ["run", "--select", *_ODD, "fct_ticket_sales", *_TABLES]
# The data of the second round pass every test, and unit tests need none; on Spark other tests see
# to both.
_SPARK = {"first": ["build", *_NO_TESTS], "increment": ["run", *_TABLES], "odd": _ODD_RUN}
_STANDIN = {
    "first": ["build", "--exclude-resource-type", "test"],
    "increment": ["build", "--exclude-resource-type", "unit_test"],
    "odd": _ODD_RUN,
}


class BuildFailed(MillraceError):
    """dbt did not build what shall be compared."""


@dataclass(frozen=True)
class Compared:
    """One relation after one round.

    Attributes:
        name: ``schema.relation``.
        spark: What Spark has; nothing when there is no such relation.
        differences: Where the emulator has something else.
        identities: By engine, what stays the same until the table is recreated.
    """

    name: str
    spark: Relation
    differences: list[Difference]
    identities: dict[str, str]


@dataclass(frozen=True)
class Built:
    """What dbt did in one round.

    Attributes:
        statuses: By engine, of each node how it ended.
        failures: By engine, of each node that was not good, what dbt said.
        recorded: By engine, the nodes and statuses that `state.runs` has.
    """

    statuses: dict[str, dict[str, str]]
    failures: dict[str, dict[str, str]]
    recorded: dict[str, set[tuple[Cell, Cell]]]


@dataclass(frozen=True)
class Trial:
    """All rounds.

    Attributes:
        compared: By round, each relation by its name.
        built: By round.
        manifest: dbt's, of the Redshift side.
        catalog: What `dbt docs generate` found there; empty when only some were built.
        refused: By engine, what the project as it is does with the rows of the round ``odd``:
            ``{"success", "said"}``.
        shown: What the dashboard's page of the museum has at the end, by the view.
    """

    compared: dict[str, dict[str, Compared]]
    built: dict[str, Built]
    manifest: dict[str, Any]
    catalog: dict[str, Any]
    refused: dict[str, dict[str, Any]]
    shown: dict[str, list[tuple[Cell, ...]]]

    @property
    def failures(self) -> list[str]:
        """What dbt could not do, or found wrong."""
        return [
            f"{node} of the round {name!r} for {engine}: {message}"
            for name, built in self.built.items()
            for engine, failures in built.failures.items()
            for node, message in failures.items()
        ]

    @property
    def differs(self) -> bool:
        return any(
            relation.differences
            for relations in self.compared.values()
            for relation in relations.values()
        )


def relations() -> list[str]:
    """Each seed, model and analysis that holds the same on both engines, in this order."""
    found = [f"seeds.{file.stem}" for file in sorted(PROJECT.glob("seeds/*.csv"))]
    for layer in _LAYERS:
        files = sorted(PROJECT.glob(f"models/{layer}/*/*.sql"))
        found += [f"{layer}.{file.stem}" for file in files]
    found = [name for name in found if name not in _OF_RUNS]
    shown = [*(file.stem for file in _analyses(PROJECT)), *museum_page.figures()]
    return found + [f"{ANALYSES}.{name}" for name in shown]


def _analyses(project: Path) -> list[Path]:
    return sorted(project.glob("analyses/**/*.sql"), key=lambda file: file.stem)


def run_trial(
    home: Home, rounds: Iterable[str] = tuple(ROUNDS), select: Sequence[str] = ()
) -> Trial:
    """Do rounds on a lake and an emulator of their own.

    Args:
        home: A new sandbox on free ports.
        rounds: Those of ``ROUNDS`` that are done, in their order.
        select: dbt's selection; all when empty, and then the docs are made, too.

    Raises:
        BuildFailed: dbt did not build everything on one of the engines.
        StepsFailed: The lake's program died.
    """
    names = [*relations(), *STATE, RUNS]
    rounds = list(rounds)
    project = _project(home.path / "project", is_unconstrained="odd" in rounds)
    only = ("--select", *select) if select else ()
    with standin(home):
        bronze, steps = Bronze(seed=7), []
        ends: list[int] = []
        for name in rounds:
            ROUNDS[name](bronze)
            filling = bronze.take_steps()
            if not ends:
                filling = {"together": [filling, external_schema(home, project)]}
            steps += [
                filling,
                {
                    "together": [
                        {"dbt": [*_SPARK[name], *only]},
                        standin_dbt(home, *_STANDIN[name], *only, project=project),
                    ]
                },
                # dbt writes to the same files in the next round.
                *(
                    {"copy": [str(made / "run_results.json"), str(_results(home, name, who))]}
                    for who, made in targets(home).items()
                ),
                {
                    "together": [
                        {"read": names},
                        read_standin(home, names, home.path / f"{name}.json"),
                    ]
                },
            ]
            ends.append(len(steps))
        if "odd" in rounds:
            steps.append({"together": _refusing(home)})
        if not select:
            steps.append(standin_dbt(home, "docs", "generate", project=project))
        results = run_steps(home, steps, project)
    return _outcome(home, names, results, dict(zip(rounds, ends, strict=True)))


def _project(into: Path, is_unconstrained: bool) -> Path:
    project = copy_project(into)
    views = project / "models" / ANALYSES
    views.mkdir()
    for file in _analyses(project):
        (views / file.name).write_text(_AS_VIEW + file.read_text())
    museum_page.write_views(views, _AS_VIEW)
    if is_unconstrained:
        (project / "macros/overrides/unconstrained.sql").write_text(_UNCONSTRAINED)
    return project


@contextmanager
def standin(home: Home) -> Iterator[None]:
    """The Redshift emulator of a sandbox, up, and its Spark's settings; down at the end."""
    bring_spark(home)
    try:
        services.up(home, ["redshift"])
        yield
    finally:
        services.down(home)


def standin_dbt(home: Home, *words: str, project: Path = PROJECT) -> Step:
    """dbt on the emulator, as a person types it."""
    return {
        "run": [
            *("dbt", "--warn-error", "--no-use-colors"),
            *("--log-path", str(home.logs / "standin")),
            *words,
            *("--target", "redshift-standin"),
            *("--project-dir", str(project)),
            *("--profiles-dir", str(project / "profiles")),
            *("--target-path", str(targets(home)[ENGINES[1]])),
        ]
    }


def external_schema(home: Home, project: Path = PROJECT) -> Step:
    """Let the emulator read bronze."""
    words = ["run-operation", "create_external_schema"]
    return standin_dbt(home, *words, project=project)


def read_standin(home: Home, names: list[str], file: Path) -> Step:
    """Write relations of the emulator to a file."""
    words = [str(home.ports["redshift"]), str(file), *names]
    return {"run": ["python", "-m", "tests.python.parity.relations", *words]}


def keys(manifest: Mapping[str, Any], node_id: str) -> list[str]:
    """The columns that the data tests of a node say are its key; none when no test does."""
    found: list[list[str]] = []
    for test in manifest["nodes"].values():
        if test["resource_type"] != "test" or test.get("attached_node") != node_id:
            continue
        kind = test["test_metadata"]["name"]
        if kind == "unique":
            found.append([test["column_name"]])
        elif kind == "unique_combination":
            found.append(test["test_metadata"]["kwargs"]["columns"])
        elif kind == "key_and_required_columns":
            found.append(test["test_metadata"]["kwargs"]["key"])
    return min(found, key=lambda columns: (len(columns), columns), default=[])


def targets(home: Home) -> dict[str, Path]:
    """Where dbt writes for each engine."""
    folders = (home.path / "out/target", home.path / "out/standin")
    return dict(zip(ENGINES, folders, strict=True))


def _refusing(home: Home) -> list[Step]:
    """Spark's test of required columns, and Redshift's constraints where all is rebuilt."""
    tested = f"{_WITH_NULLS},test_name:key_and_required_columns"
    rebuilt = ("run", "--full-refresh", "--select", _WITH_NULLS)
    return [
        {"dbt": ["test", "--select", tested], "project": str(PROJECT)},
        standin_dbt(home, *rebuilt),
    ]


def _results(home: Home, round_name: str, engine: str) -> Path:
    return home.path / f"{round_name} {engine}.json"


def _outcome(home: Home, names: list[str], results: list[Any], ends: Mapping[str, int]) -> Trial:
    if not (made := results[0][1])["success"]:
        raise BuildFailed(f"the emulator has no external schema:\n{made['said']}")
    made = targets(home)[ENGINES[1]]
    manifest = json.loads((made / "manifest.json").read_text())
    catalog: dict[str, Any] = {}
    if len(results) > max(ends.values()):
        if not (made / "catalog.json").exists():
            raise BuildFailed(f"dbt wrote no docs:\n{results[-1]['said'][-6000:]}")
        catalog = json.loads((made / "catalog.json").read_text())
    compared, built = {}, {}
    for name, end in ends.items():
        _check_built(results, end, name)
        read = results[end - 1][0]
        spark = {table: from_spark(found) for table, found in read.items()}
        theirs = load(home.path / f"{name}.json")
        compared[name] = {
            table: _compared(table, spark.get(table), theirs.get(table), manifest)
            for table in names
            if table != RUNS
            if catalog or table in spark or table in theirs
        }
        runs = dict(zip(ENGINES, (spark[RUNS], theirs[RUNS]), strict=True))
        built[name] = _built(home, name, runs)
    refused = {}
    if "odd" in ends:
        refused = dict(zip(ENGINES, results[ends["odd"]], strict=True))
    shown = museum_page.by_duckdb(home) if catalog else {}
    return Trial(compared, built, manifest, catalog, refused, shown)


def _check_built(results: list[Any], end: int, name: str) -> None:
    """The steps of a round end with: build, copy, copy, read."""
    builds, *copied = results[end - 4 : end - 1]
    for engine, done, is_there in zip(ENGINES, builds, copied, strict=True):
        if not is_there:
            raise BuildFailed(
                f"dbt failed for {engine} in the round {name!r}:\n{done['said'][-6000:]}"
            )
    done = results[end - 1][1]
    if not done["success"]:
        raise BuildFailed(f"the round {name!r} cannot be read:\n{done['said']}")


def _built(home: Home, name: str, runs: Mapping[str, Relation]) -> Built:
    statuses, failures, recorded = {}, {}, {}
    for engine in ENGINES:
        done = json.loads(_results(home, name, engine).read_text())["results"]
        statuses[engine] = {node["unique_id"]: node["status"] for node in done}
        failures[engine] = {
            node["unique_id"]: " ".join(node["message"].split())
            for node in done
            if node["status"] in {"error", "fail", "runtime error", "warn"}
        }
        columns = [column.name for column in runs[engine].columns]
        node_id, status = columns.index("node_id"), columns.index("run_status")
        recorded[engine] = {(row[node_id], row[status]) for row in runs[engine].rows}
    return Built(statuses, failures, recorded)


def _compared(
    table: str, spark: Relation | None, theirs: Relation | None, manifest: Mapping[str, Any]
) -> Compared:
    if table in STATE:
        # Of the macros that a model is made with, those of its engine count.
        for column in ("recorded_at", "run_id", "code"):
            spark, theirs = _without(spark, column), _without(theirs, column)
    node = next(
        (
            node
            for node in manifest["nodes"].values()
            if node["resource_type"] in {"model", "seed"}
            and f"{node['schema']}.{node['name']}" == table
        ),
        None,
    )
    contract = {
        column["name"]: column["data_type"]
        for column in (node["columns"].values() if node else ())
        if column["data_type"]
    }
    key = keys(manifest, node["unique_id"]) if node else []
    return Compared(
        table,
        spark or Relation((), ()),
        # No contract says the types of an analysis; a person reads its values.
        compare(spark, theirs, key, contract, compares_types=not table.startswith(f"{ANALYSES}.")),
        {
            engine: relation.identity if relation else ""
            for engine, relation in zip(ENGINES, (spark, theirs), strict=True)
        },
    )


def _without(relation: Relation | None, column: str) -> Relation | None:
    if relation is None:
        return None
    kept = [at for at, here in enumerate(relation.columns) if here.name != column]
    return Relation(
        tuple(relation.columns[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in relation.rows),
    )
